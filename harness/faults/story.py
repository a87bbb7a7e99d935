"""A history as a story: what each life did around the kill, one line a step.

Tools and outcomes are named, and no value is: what is told here ends in the logs of CI.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.faults.history import says_unknown
from harness.faults.journal import Answered, Asked, Ended, Ran, Reached, Refused, Verified

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness.faults.history import History, Life
    from harness.faults.journal import Event

__all__ = ["story"]

_SHOWN = 12
"""Steps shown of one life: those before its end, where the kill is."""


def story(history: History) -> Iterator[str]:
    """The lives of a history, one step a line, indented below the number of the life."""
    tools = {call["id"]: call["tool"] for answer in history.answers.values() for call in answer.calls}
    tools |= {call: executions[0].began.tool for call, executions in history.executions.items()}
    for life in history.lives:
        yield f"life {life.number}"
        steps = list(_steps(life, tools))
        # A killed life matters by its end, the one that came after it by its beginning.
        if len(steps) > _SHOWN:
            left = f"… {len(steps) - _SHOWN} more steps"
            steps = [left, *steps[-_SHOWN:]] if life.killed else [*steps[:_SHOWN], left]
        for step in steps:
            yield f"  {step}"


def _steps(life: Life, tools: Mapping[str, str]) -> Iterator[str]:
    for event in life.events:
        told = _told(event, tools)
        if told:
            yield told
    if life.killed and life.kill_after is not None:
        yield f"KILLED at {life.end}"
    elif life.death.timed_out:
        yield f"still running after {life.death.seconds:.1f} s, killed from outside"
    elif life.ended is None and not life.killed:
        yield f"ended by itself: {life.death.words}"


def _told(event: Event, tools: Mapping[str, str]) -> str | None:
    match event:
        case Reached(point, kill):
            return f"KILLED at {point}" if kill else None
        case Asked(turn, results):
            sent = ", ".join(f"{tools.get(call, 'another call')}{_kind(one)}" for call, one in results.items())
            return f"asks for turn {turn}" + (f", with results of {sent}" if sent else "")
        case Answered(turn, stop_reason, calls):
            wanted = ", ".join(call["tool"] for call in calls)
            return f"the model answers turn {turn}: " + (f"calls {wanted}" if wanted else str(stop_reason))
        case Ran():
            return f"{tools.get(event.call, 'a tool')} {'runs' if event.ok else 'runs and fails'}"
        case Verified():
            found = {True: "it took effect", False: "it did not take effect", None: "it cannot say"}[event.found]
            return f"asks the tool: {found}"
        case Refused():
            return f"the model refuses: {event.message}"
        case Ended():
            return f"fails: {event.error}" if event.error else "comes to its end"
        case _:
            return None


def _kind(result: Mapping[str, Any]) -> str:
    if says_unknown(result):
        return " (status unknown)"
    return " (an error)" if result["is_error"] else ""
