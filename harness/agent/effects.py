"""What the core of the loop asks of the world, one thing at a time, and what it gets back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from harness.agent.contract import Tool
    from harness.agent.results import ToolResult
    from harness.agent.state import Call, Change, Json

__all__ = [
    "Ask",
    "Collect",
    "Commit",
    "Effect",
    "EndProcesses",
    "Launch",
    "Lost",
    "Outcome",
    "Outlast",
    "StopRequested",
    "Verify",
    "Wait",
    "Whole",
]


@dataclass(frozen=True, slots=True)
class Commit:
    """Make a change durable.  Answered with nothing, once it is on the disk."""

    change: Change


@dataclass(frozen=True, slots=True)
class Ask:
    """Send one request.  Answered with `Whole` or `Lost`."""

    request: Json


@dataclass(frozen=True, slots=True)
class Whole:
    """A response that arrived whole, as the API gave it."""

    message: Json


@dataclass(frozen=True, slots=True)
class Lost:
    """No whole response.

    `again`: another attempt may help.  `retry_after`: seconds that the server wants us to wait.
    """

    reason: str
    again: bool
    retry_after: float | None = None
    status: int | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Let time pass, in seconds.  Answered with nothing."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Launch:
    """Begin to execute a call.  Answered at once, with nothing.

    `alone`: nothing else runs beside it, so that it may run in the thread of the caller.
    """

    call: Call
    tool: Tool
    arguments: dict[str, Any]
    alone: bool


@dataclass(frozen=True, slots=True)
class Collect:
    """Wait for the next of the launched calls to end.  Answered with an `Outcome`."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a launched call ended.  `timed_out`: the loop stopped waiting, in which case `result` says nothing."""

    tool_use_id: str
    result: ToolResult
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class Verify:
    """Ask a tool whether a call took effect.  Answered with `True`, `False`, `None` or a `ToolResult`: its result."""

    call: Call
    tool: Tool
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class EndProcesses:
    """See to it that no process of these calls is alive any more.  Answered with nothing."""

    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Outlast:
    """Wait a while for calls that this very process still executes, on behalf of a run that was broken off.

    Answered with a frozenset of the `tool_use_id`s of those that do not come to an end.
    """

    calls: tuple[Call, ...]


Effect: TypeAlias = Commit | Ask | Wait | Launch | Collect | Verify | EndProcesses | Outlast


class StopRequested(Exception):  # noqa: N818 (thrown into the core by a driver, never out of it)
    """Begin nothing new.  The core collects what is running, commits it, and lets this pass."""
