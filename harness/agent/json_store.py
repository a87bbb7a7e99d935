"""The durable run in one readable JSON file, without a ledger.

Every save writes the whole conversation, three times a turn, so that the cost of a run grows with the square of its
length: 6 MB for 40 turns of 2 kB, 2.6 GB for 400 turns of 10 kB, where `SqliteStore` writes 12 MB
(`benchmarks/store.py`).
"""

from __future__ import annotations

import copy
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from harness.agent.disk import cannot, make_directory, write_durably
from harness.agent.layout import parse_layout, to_layout
from harness.agent.lock import StateLock
from harness.agent.state import Change, ProcessBegan, Settled, Started, State
from harness.errors import StateError
from harness.wire import to_json

if TYPE_CHECKING:
    from harness.agent.state import Json

__all__ = ["JsonStore", "read_json"]


class JsonStore:
    """Keeps a run in `<directory>/checkpoint.json`, in the published layout.

    Save points A and B, the prompts and the count of attempts are durable.  What happens between A and B is not
    recorded: after a crash there, reads and idempotent calls of the turn run again, and of an irreversible one nobody
        can say.
    """

    FILE_NAME: ClassVar[str] = "checkpoint.json"

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory).absolute()  # a tool may change the working directory
        self._path = self._directory / self.FILE_NAME
        self._lock = StateLock(self._directory)
        self._mutex = threading.Lock()
        self._state: State | None = None
        self._seen: tuple[int, ...] | None = None

    def load(self) -> State | None:
        """Take the lock and read the run; `None` when there is none.  Nothing is written to an existing file.

        Raises:
            StateError: See its kinds; the file is as it was.
        """
        try:
            make_directory(self._directory)
        except OSError as error:
            raise cannot("make", self._directory, error) from error
        self._lock.acquire()
        try:
            if not self._path.exists():
                return None
            state = read_json(self._path)
            self._seen = self._identity()
        except BaseException:
            self.close()
            raise
        self._state = copy.deepcopy(state)
        return state

    def create(self, state: State) -> None:
        """Save a run that begins.

        Raises:
            StateError: The disk could not take it.
        """
        self._save(copy.deepcopy(state))

    def commit(self, change: Change) -> None:
        """Make one change durable, wholly or not at all; those that a ledger would hold are kept in memory only.

        Raises:
            StateError: The disk could not take it, or another process has taken over (`fenced`).
        """
        with self._mutex:
            state, self._state = self._state, None
            if state is None:
                raise StateError(f"{str(self._path)!r} is closed", kind="io")
            state.apply(change)
            if isinstance(change, Started | ProcessBegan | Settled):
                self._state = state
            else:
                self._save(state)

    def _save(self, state: State) -> None:
        self._fence()
        try:
            write_durably(self._path, to_json_document(to_layout(state)))
            self._seen = self._identity()
        except OSError as error:
            raise cannot("write", self._path, error) from error
        self._state = state  # only now: after a failed save this store writes nothing any more

    def _fence(self) -> None:
        """A file has no transactions: that nobody else wrote it is told by its identity, which a rename changes."""
        self._lock.check()
        try:
            found: tuple[int, ...] | None = self._identity()
        except FileNotFoundError:
            found = None
        if found != self._seen:
            raise StateError(
                f"another process has taken over {str(self._path)!r}; this one wrote nothing and must end",
                kind="fenced",
            )

    def _identity(self) -> tuple[int, ...]:
        found = os.stat(self._path)  # noqa: PTH116 (as the rest of the durable writes)
        return (found.st_ino, found.st_mtime_ns, found.st_size)

    def close(self) -> None:
        """Give the lock back."""
        self._state = None
        self._lock.release()


def read_json(path: Path) -> State:
    """Read a run for people, beside a process that may be writing it: no lock is taken and nothing is changed.

    Raises:
        StateError: It cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise cannot("read", path, error) from error
    return parse_layout(data, repr(str(path)))


def to_json_document(layout: Json) -> bytes:
    """One key a line, one message a line: a file that people can read and `diff`."""
    lines = []
    for key, value in layout.items():
        if key == "messages":
            inner = ",\n".join(f"    {to_json(message).decode()}" for message in value)
            lines.append(f'  "messages": [\n{inner}\n  ]')
        else:
            lines.append(f"  {to_json(key).decode()}: {to_json(value).decode()}")
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()
