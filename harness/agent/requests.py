"""What is sent to the model and what may be taken from it: pure functions between state and Messages API.

The rules are those of PROTOCOL.md, most of them from public reports of requests that the API refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from harness.agent.results import ToolResult
from harness.agent.state import Answered, Call, Json, State

if TYPE_CHECKING:
    from harness.agent.contract import Tool

__all__ = ["NO_REPORT", "STOPPED_STUCK", "answered", "next_request", "not_executed", "status_of", "text_of", "unfit"]

STOPPED_STUCK: Final = "stopped_stuck"
"""How a run ends that its detector stopped.  Never "completed": nobody must take it for done."""

NO_REPORT: Final = (
    "The run was stopped because it made no progress, and the model gave no report. Calls were executed; what they "
    "achieved has not been checked."
)
"""The text of such a run when its last word did not come.  It claims nothing."""

# The calls of such a response may be cut off in the middle, and a half-written command must not run.
_NO_CALLS: Final = {
    "max_tokens": "the response was cut off at max_tokens",
    "model_context_window_exceeded": "the response was cut off at the end of the context window",
    "refusal": "the model declined to go on",
}

_STATUS: Final = {
    "end_turn": "completed",
    "stop_sequence": "completed",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
    "refusal": "refused",
}

# PROTOCOL.md, "tool id charset".  An id that breaks it is refused with the response, and never rewritten: one side of a
# conversation that was sanitised alone cost 926 mismatches in one release of another agent (Roo-Code PR#10015).
_TOOL_USE_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")

_WINDOW: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")

_MOST_TOKENS: Final = 2**53
"""What every reader of JSON still counts exactly; SQLite takes a little more."""


def next_request(state: State, fixed: Mapping[str, Any], *, tools_off: bool) -> Json:
    """The next request: what never changes, and the conversation so far.

    Args:
        state: The run.
        fixed: Model, max_tokens, system, tools and whatever else the caller wants sent each time.
        tools_off: The model may explain itself and do nothing else.  The tools stay declared, since the conversation
            holds calls of them.
    """
    messages = [{**message, "content": _sendable(message["content"])} for message in state.messages]
    request = {**fixed, "messages": [message for message in messages if message["content"]]}
    if tools_off and fixed.get("tools"):
        request["tool_choice"] = {"type": "none"}
    return request


def _sendable(content: str | list[Json]) -> str | list[Json]:
    """Content without the blank text blocks that models do emit and the API does not take back (kibitz#78)."""
    if isinstance(content, str):
        return content
    return [block for block in content if block.get("type") != "text" or str(block.get("text", "")).strip()]


def unfit(message: Json, state: State) -> str | None:
    """Why a whole response cannot become part of the conversation; `None` when it can.

    Such a response is discarded and asked for again.  Everything that is found here would otherwise fail every later
    request of the run.
    """
    content = message.get("content")
    if message.get("role") != "assistant" or not isinstance(content, list):
        return "the response is no assistant message"
    stop_reason = message.get("stop_reason")
    if stop_reason is None:
        return "the response ended without a stop_reason"
    if not isinstance(stop_reason, str):
        return f"the response has the stop_reason {stop_reason!r}, which is no word"
    miscounted = _miscounted(message.get("usage"))
    if miscounted:
        return miscounted
    seen = set(state.calls)
    for block in content:
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            return "the response holds something that is no content block"
        if block["type"] != "tool_use":
            continue
        tool_use_id = block.get("id")
        if not isinstance(tool_use_id, str) or not _TOOL_USE_ID.fullmatch(tool_use_id):
            return f"the response calls a tool under the id {tool_use_id!r}, which the API would not take back"
        if tool_use_id in seen:
            return f"the response calls a tool under the id {tool_use_id!r}, which is taken"
        if not isinstance(block.get("name"), str) or not isinstance(block.get("input"), dict):
            return f"the call {tool_use_id!r} has no name or no input"
        seen.add(tool_use_id)
    try:
        json.dumps(message, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        return "the response holds half of a character (a lone surrogate), which the API would not take back"
    except RecursionError:
        return "the response is nested too deeply to be saved"
    except (TypeError, ValueError) as error:
        return f"the response holds what JSON cannot: {error}"
    return None


def _miscounted(usage: Any) -> str | None:
    if usage is None:
        return None
    if not isinstance(usage, Mapping):
        return f"the response has the usage {usage!r}, which is no mapping"
    for part in _WINDOW:
        count = usage.get(part)
        if count is not None and (type(count) is not int or not 0 <= count < _MOST_TOKENS):
            return f"the response has a usage whose {part} are no count"
    return None


def answered(message: Json, state: State, toolset: Mapping[str, Tool], *, tools_off: bool) -> Answered:
    """Save point A for a response that is fit for it: what it says, what it asks for, and whether the run ends with
    it.
    """
    stop_reason = message["stop_reason"]
    turn = state.turns + 1
    calls: list[Call] = []
    for block in message["content"]:
        if block["type"] != "tool_use":  # never a server_tool_use: the API answers those itself
            continue
        tool = toolset.get(block["name"])
        call = Call(
            tool_use_id=block["id"],
            turn=turn,
            position=len(calls),
            tool=block["name"],
            input=block["input"],
            effect=tool.effect if tool else "irreversible",
        )
        calls.append(call)
    ends = tools_off or stop_reason in _NO_CALLS or not (calls or stop_reason == "pause_turn")
    return Answered(
        content=message["content"],
        about={key: value for key, value in message.items() if key not in {"content", "role", "type"}},
        tokens_used=_window(message.get("usage") or {}),
        calls=tuple(calls),
        status=(STOPPED_STUCK if tools_off else status_of(stop_reason)) if ends else None,
    )


def not_executed(state: State) -> ToolResult:
    """The answer to a call of a response that ended the run: it may be cut off in the middle, and must not run.

    That it ended the run is durable with save point A, so that no later process executes it either.
    """
    reason = _NO_CALLS.get(state.stop_reason or "", "tool use was switched off")
    return ToolResult(f"Not executed: {reason}.", is_error=True)


def status_of(stop_reason: str) -> str:
    """How a run ended, in a word that a caller can branch on; the stop_reason itself is always reported beside it."""
    return _STATUS.get(stop_reason, "completed")


def text_of(content: list[Json]) -> str:
    """What a response says, its text blocks joined."""
    return "".join(str(block.get("text", "")) for block in content if block.get("type") == "text")


def _window(usage: Mapping[str, Any]) -> int:
    """Tokens in the window after this response: what was read, cached or not, and what was written."""
    return sum(int(usage.get(part) or 0) for part in _WINDOW)
