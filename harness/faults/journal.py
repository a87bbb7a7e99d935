"""What happened, in an append-only file outside of the killed process: the only witness that survives every kill.

One record is one line and one `write`: what a process has handed to the kernel is there when the process is not.  A
kill from outside can come in the middle of a write that goes over the end of a page, and tear it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = [
    "Answered",
    "Asked",
    "Began",
    "Ended",
    "Entered",
    "Event",
    "Journal",
    "Ran",
    "Reached",
    "Refused",
    "Verified",
    "read_journal",
]


@dataclass(frozen=True, slots=True)
class Reached:
    """A crash point; `kill` when the process dies here, as the last thing that it does.

    `at` is the time on the monotonic clock, in seconds.
    """

    point: str
    kill: bool = False
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Entered:
    """The loop is about to be called: what the harness prepares for it is all there."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to the model.

    Args:
        turn: the response that it asks for, from 1: one more than the assistant messages that it carries.
        results: the tool_results of its last message, by tool_use id: `digest` and `text` of the content, `is_error`.
    """

    turn: int
    results: dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Answered:
    """A whole response of the model.

    `calls` are its tool_use blocks as mappings with `id`, `tool`, `digest` (of the input), in their order.
    """

    turn: int
    stop_reason: str | None
    calls: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Began:
    """A tool is about to run.

    Args:
        call: the tool_use id, or a made-up one when no response asked for it.
        turn: of the response that asked for it; 0 when there is none.
        position: among the calls of that response, from 1.
        tool: its name.
        digest: of its input.
        effect: as its contract says.
        key: the idempotency key that it was given.
        wants_key: the contract takes one.
    """

    call: str
    turn: int
    position: int
    tool: str
    digest: str
    effect: str
    key: str | None
    wants_key: bool


@dataclass(frozen=True, slots=True)
class Ran:
    """A tool has run: its effect is in the world.

    `ok` is False when it raised; `result` is a digest of what it returned, or of what it raised.
    """

    call: str
    ok: bool
    result: str


@dataclass(frozen=True, slots=True)
class Verified:
    """A tool was asked whether a call took effect; `found` is yes, no, or that it cannot say."""

    call: str
    found: bool | None


@dataclass(frozen=True, slots=True)
class Refused:
    """The model refused a request that no script asked it to refuse."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The loop came back.

    Args:
        error: what it raised and where, in words without values, or None.
        unreadable: the error says that the saved state cannot be read.
        problems: what the harness says of the run.
        turns: the count of turns that the loop reports, where it reports one.
        tokens: the count of tokens that it reports, where it reports one.
        value: digest of what it returned.
    """

    error: str | None = None
    unreadable: bool = False
    problems: tuple[str, ...] = ()
    turns: int | None = None
    tokens: int | None = None
    value: str | None = None


Event: TypeAlias = Reached | Entered | Asked | Answered | Began | Ran | Verified | Refused | Ended

_KINDS: Final[dict[str, type[Event]]] = {
    kind.__name__: kind for kind in (Reached, Entered, Asked, Answered, Began, Ran, Verified, Refused, Ended)
}

_FIELDS: Final[dict[type[Event], tuple[str, ...]]] = {
    kind: tuple(one.name for one in fields(kind)) for kind in _KINDS.values()
}


class Journal:
    """Appends the events of one life.

    Args:
        path: the file, shared by all lives.
        life: which process this is, from 1.
    """

    def __init__(self, path: Path, life: int) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._life = life

    def write(self, event: Event) -> None:
        """Append one event."""
        if type(event) is Reached:  # most events are
            point, kill = json.dumps(event.point), "true" if event.kill else "false"
            at = f'"point": {point}, "kill": {kill}, "at": {event.at:.6f}'
            line = f'{{"life": {self._life}, "event": "Reached", {at}}}\n'
            os.write(self._descriptor, line.encode())
            return
        kind = type(event)
        record = {"life": self._life, "event": kind.__name__}
        record |= {name: getattr(event, name) for name in _FIELDS[kind]}  # `asdict` copies all the way down
        os.write(self._descriptor, json.dumps(record, default=repr).encode() + b"\n")


def read_journal(path: Path, known: Sequence[tuple[int, Event]] = ()) -> list[tuple[int, Event]]:
    """The events so far, each with the life that it belongs to; a torn last line is cut off.  Nobody may be writing.

    Args:
        path: the file.
        known: what was read of it before, which is not parsed again.
    """
    if not path.exists():
        return []
    text = path.read_bytes()
    whole = text.rfind(b"\n") + 1
    if whole < len(text):  # torn: what it was to say has not been said, and the next life appends
        os.truncate(path, whole)
    lines = text[:whole].splitlines()[len(known) :]
    return [*known, *map(_event, json.loads(b"[%s]" % b",".join(lines)))]


def _event(record: dict[str, Any]) -> tuple[int, Event]:
    kind = _KINDS[record["event"]]
    values = {name: record[name] for name in _FIELDS[kind]}
    if kind is Ended:
        values["problems"] = tuple(values["problems"])
    return record["life"], kind(**values)
