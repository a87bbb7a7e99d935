"""The published layout of a checkpoint: a run as one JSON object that people can read, and back again.

    {"version": 2, "task": …, "turns": 3, "tokens_used": 5120, "messages": […], "pending_tool_uses": […], …}

Version 1 had `tokensUsed` and a single `pendingToolUse`; it is read and becomes version 2 with the next save.  What is
pending follows from the messages.  The list in the file is for the reader, and a list that says something else is
refused.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final, cast

from harness.agent.results import ToolResult
from harness.agent.state import Call, CallState, Json, State
from harness.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.agent.contract import Effect

__all__ = ["VERSION", "parse_layout", "to_layout"]

VERSION: Final = 2

_UNKNOWN: Final = "[execution status unknown]"


def to_layout(state: State) -> Json:
    """A run in the published layout, keys in the order in which people want them."""
    return {
        "version": VERSION,
        "task": state.task,
        "turns": state.turns,
        "tokens_used": state.tokens_used,
        "messages": state.messages,
        "pending_tool_uses": [
            {"id": call.tool_use_id, "name": call.tool, "input": call.input} for call in state.pending
        ],
        "status": state.status,
        "run_id": state.run_id,
        "prompts": state.prompts,
        "attempts": state.attempts,
        "attempts_of_turn": state.attempts_of_turn,
        "about": state.about,
        "interventions": state.interventions,
        "effects": {call.tool: call.effect for call in state.calls.values()},
    }


def parse_layout(data: bytes, where: str) -> State:
    """Read a checkpoint of version 1 or 2.

    The calls of earlier turns are told from the messages; those of the last one have no ledger to speak for them, and
    are `unrecorded`.

    Args:
        data: The content of the file.
        where: The file, for messages.

    Raises:
        StateError: `damaged`, `foreign` or `version`.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise StateError(
            f"{where} cannot be read as JSON ({error}): it was cut short or changed. Restore it from a backup, "
            "or move it away to begin anew.",
            kind="damaged",
        ) from error
    if not isinstance(value, dict) or "version" not in value:
        raise StateError(f"{where} is no checkpoint; move it away or use another state_dir", kind="foreign")
    version = value["version"]
    if type(version) is not int or version not in (1, VERSION):
        raise StateError(
            f"{where} has version {version!r}; this harness reads 1 and {VERSION}. Use the harness that wrote it, or "
            "another state_dir.",
            kind="version",
        )
    try:
        return _state(value if version == VERSION else _migrated(value, data))
    except (TypeError, KeyError, ValueError, AttributeError, IndexError) as error:
        words = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise StateError(
            f"{where} is damaged ({words}); restore it from a backup, or move it away to begin anew", kind="damaged"
        ) from error


def _migrated(old: Json, data: bytes) -> Json:
    """Version 1 as version 2.

    The run gets its id from the file: until the next save a second process must come to the same id, since the
    idempotency keys are made of it.
    """
    pending = old["pendingToolUse"]
    last = old["messages"][-1]
    over = pending is None and last["role"] == "assistant"
    return {
        "version": VERSION,
        "task": old["task"],
        "turns": old["turns"],
        "tokens_used": old["tokensUsed"],
        "messages": old["messages"],
        # There was room for one where a response can hold several: the messages know better.
        "pending_tool_uses": None if pending is None else [{"id": pending["id"]}],
        "status": "completed" if over else None,
        "run_id": hashlib.sha256(data).hexdigest()[:32],
        "prompts": [old["task"]],
        "attempts": old["turns"],
        "attempts_of_turn": 0,
        "about": {},
        "interventions": [],
        "effects": {},
    }


def _state(value: Json) -> State:
    messages = value["messages"]
    if not isinstance(messages, list) or not messages or not value["prompts"]:
        raise ValueError("it holds no message")
    calls = {call.tool_use_id: call for call in _calls(messages, value["effects"])}
    state = State(
        run_id=value["run_id"],
        prompts=list(value["prompts"]),
        messages=messages,
        calls=calls,
        turns=int(value["turns"]),
        tokens_used=int(value["tokens_used"]),
        attempts=int(value["attempts"]),
        attempts_of_turn=int(value["attempts_of_turn"]),
        about=dict(value["about"]),
        status=value["status"],
        interventions=list(value["interventions"]),
    )
    listed = {use["id"] for use in value["pending_tool_uses"] or ()}
    if not listed <= {call.tool_use_id for call in state.pending}:
        raise ValueError(f"pending_tool_uses names {sorted(listed)}, which the last message does not ask for")
    return state


def _calls(messages: list[Json], effects: dict[str, Effect]) -> Iterator[Call]:
    """Every call that the messages tell of, with the result that answers it or none."""
    turn = 0
    for index, message in enumerate(messages):
        if message["role"] != "assistant" or isinstance(message["content"], str):
            turn += message["role"] == "assistant"
            continue
        turn += 1
        after = messages[index + 1]["content"] if index + 1 < len(messages) else []
        answers = {block["tool_use_id"]: block for block in after if isinstance(block, dict) and "tool_use_id" in block}
        uses = [block for block in message["content"] if block["type"] == "tool_use"]
        for position, use in enumerate(uses):
            state, result = _outcome(answers.get(use["id"]))
            # A call that is still pending must not be taken for more careful than its contract says; `decide` takes the
            # stricter of both.  One that is over keeps the careful default where nothing is known.
            default: Effect = "read_only" if result is None else "irreversible"
            effect = effects.get(use["name"], default)
            yield Call(use["id"], turn, position, use["name"], use["input"], effect, state, result)


def _outcome(answer: Json | None) -> tuple[CallState, ToolResult | None]:
    if answer is None:
        return "unrecorded", None
    content: Any = answer.get("content", "")
    is_error = bool(answer.get("is_error"))
    unknown = is_error and isinstance(content, str) and content.startswith(_UNKNOWN)
    state = "unknown" if unknown else "failed" if is_error else "done"
    return cast("CallState", state), ToolResult(content, is_error)
