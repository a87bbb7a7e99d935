"""Where a run is kept: the protocol that the loop needs, and the store for runs that nobody wants to keep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from harness.agent.disk import cannot
from harness.errors import StateError

if TYPE_CHECKING:
    from harness.agent.state import Change, State

__all__ = ["MemoryStore", "Store", "open_store"]


@runtime_checkable
class Store(Protocol):
    """Durable memory of one run.

    Every method raises `StateError` when the disk does not do what it should; the caller then stops, and never goes on
    in memory.
    """

    def load(self) -> State | None:
        """Take the lock and read what there is; `None` when nothing was ever saved.  Changes nothing."""
        ...

    def create(self, state: State) -> None:
        """Save a run that begins: its id and its first prompt."""
        ...

    def commit(self, change: Change) -> None:
        """Make one change durable, wholly or not at all.  May be called from any thread, one call at a time."""
        ...

    def close(self) -> None:
        """Give the lock back."""
        ...


class MemoryStore:
    """Keeps nothing: a run without a `state_dir` is lost with its process."""

    def load(self) -> State | None:
        """Nothing was ever saved."""
        return None

    def create(self, state: State) -> None:
        """Do nothing."""

    def commit(self, change: Change) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def open_store(state_dir: str | Path | None, *, ledger: bool) -> Store:
    """The store for a directory: SQLite with a ledger, or one JSON file without.

    Raises:
        StateError: The directory holds a state of the other kind, which would be passed over in silence.
    """
    from harness.agent.json_store import JsonStore
    from harness.agent.sqlite_store import SqliteStore

    if state_dir is None:
        return MemoryStore()
    directory = Path(state_dir)
    wanted, other = (SqliteStore, JsonStore) if ledger else (JsonStore, SqliteStore)
    try:
        is_other = (directory / other.FILE_NAME).exists()
    except OSError as error:  # a name that is too long, for example
        raise cannot("read", directory, error) from error
    if is_other:
        raise StateError(
            f"{str(directory)!r} holds {other.FILE_NAME!r}, kept by {other.__name__}; pass ledger={not ledger} to go "
            "on with it, or another state_dir to begin anew",
            kind="other_store",
        )
    return wanted(directory)
