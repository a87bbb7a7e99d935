"""What a run tells those who watch it: one small record for each thing that has become true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from harness.agent.effects import Commit, Effect, Wait
from harness.agent.requests import text_of
from harness.agent.state import Answered, Returned, Settled, Started, State

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Progress", "progress_of"]


@dataclass(frozen=True, slots=True)
class Progress:
    """One thing that happened.

    `kind`: `resumed` (an earlier process began this run), `text` (a piece of a streamed response), `answer` (a response
    is saved), `call` (a call begins), `result` (a call is settled), `retry` (a request failed and will be repeated),
    `intervention` (the detector spoke).  `text` says it in words, `tool` and `tool_use_id` name the call.
    """

    kind: Literal["resumed", "text", "answer", "call", "result", "retry", "intervention"]
    turn: int
    text: str = ""
    tool: str | None = None
    tool_use_id: str | None = None


def progress_of(effect: Effect, state: State) -> Iterator[Progress]:
    """What an effect that has just been performed means for people; `state` is the one before it."""
    match effect:
        case Commit(Answered() as answer):
            yield Progress("answer", state.turns + 1, text_of(answer.content))
        case Commit(Started(tool_use_id)):
            yield Progress("call", state.turns, "", state.calls[tool_use_id].tool, tool_use_id)
        case Commit(Settled(tool_use_id, verdict)):
            yield Progress("result", state.turns, verdict, state.calls[tool_use_id].tool, tool_use_id)
        case Commit(Returned(intervention)) if intervention is not None:
            yield Progress("intervention", state.turns, intervention["message"])
        case Wait(seconds):
            yield Progress("retry", state.turns + 1, f"again in {seconds:.1f} s")
        case _:
            return
