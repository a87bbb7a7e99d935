"""The rules of a conversation: who may say what, and which block answers which.

They are checked on turns, after consecutive messages of one role were merged, and in the order of `RULES`; the first
one broken is reported, as the API reports one error a response (that order is from memory [M]).  Tags as in PROTOCOL:
[I] a public issue, [D] documentation, [S] the SDK's source, [M] memory, unverified; and [R] traffic of the API,
recorded in a public repository's tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.model.conversation import is_blank, turns_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from harness.model.conversation import Turn

__all__ = ["RULES", "Facts", "mispaired"]

_THOUGHT: Final = ("thinking", "redacted_thinking")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the model knows beyond the request itself.

    Args:
        paused: its last answer, with which the request ends, stopped with `pause_turn`.
        prefill: it takes a final assistant message as the beginning of its answer (models before Claude 4.6).
        any_first_role: a conversation may begin with an assistant message.
        thinking: the thinking blocks of its last answer; None when they are not known.
        signatures: the signatures of every thinking block that it can have given; None when they are not known.
        context_window: how many tokens input and output may have together; None for no limit.
        input_tokens: how many the request has.
    """

    paused: bool = False
    prefill: bool = False
    any_first_role: bool = False
    thinking: Sequence[Mapping[str, Any]] | None = None
    signatures: AbstractSet[str] | None = None
    context_window: int | None = None
    input_tokens: int = 0


def mispaired(request: Mapping[str, Any], facts: Facts, turns: Sequence[Turn] | None = None) -> str | None:
    """The first rule that a well-formed request breaks, in the API's words, or None."""
    turns = turns_of(request["messages"]) if turns is None else turns
    for rule in RULES:
        if problem := rule(request, turns, facts):
            return problem
    return None


def first_role(_request: Mapping[str, Any], turns: Sequence[Turn], facts: Facts) -> str | None:
    """[I] lobehub#1601 (2024); by 2025-03 not raised for every model, courses#79: hence the switch."""
    if not turns or (turns[0].role != "user" and not facts.any_first_role):
        return 'messages: first message must use the "user" role'
    return None


def empty_messages(request: Mapping[str, Any], _turns: Sequence[Turn], _facts: Facts) -> str | None:
    """[I] autogen#6083, claude-code#3196."""
    messages = request["messages"]
    for index, message in enumerate(messages):
        final_assistant = index == len(messages) - 1 and message["role"] == "assistant"
        if not message["content"] and not final_assistant:
            return (
                f"messages.{index}: all messages must have non-empty content except for the optional final"
                " assistant message"
            )
    return None


def blank_text(_request: Mapping[str, Any], turns: Sequence[Turn], _facts: Facts) -> str | None:
    """[I] bolt.new#7426, claude-code#23440.  Models do write blank text (kibitz#78): it must not be sent back."""
    for turn in turns:
        for placed in turn.placed:
            if is_blank(placed.block):
                if not placed.block["text"]:
                    return "messages: text content blocks must be non-empty"
                return "messages: text content blocks must contain non-whitespace text"
    return None


def block_roles(_request: Mapping[str, Any], turns: Sequence[Turn], _facts: Facts) -> str | None:
    """[I] agent-framework#4328 for tool_use; [M] the back-ticks, the path, and tool_result."""
    for turn in turns:
        foreign = turn.uses if turn.role == "user" else turn.results
        if foreign:
            kind, home = ("tool_use", "assistant") if turn.role == "user" else ("tool_result", "user")
            return f"{foreign[0].path}: `{kind}` blocks can only be in `{home}` messages"
    return None


def unique_ids(_request: Mapping[str, Any], turns: Sequence[Turn], _facts: Facts) -> str | None:
    """[I] claude-code#21317, within one message.

    An id that comes back in a later message, answered there again, is accepted: [R] pydantic-ai,
    test_cross_provider_capability_replay (from Gemini to claude-sonnet-4-5).
    """
    for turn in turns:
        seen = set()
        for placed in turn.uses:
            if placed.block["id"] in seen:
                return f"{placed.path}: `tool_use` ids must be unique"
            seen.add(placed.block["id"])
    return None


def tools_defined(request: Mapping[str, Any], turns: Sequence[Turn], _facts: Facts) -> str | None:
    """[M] Tool blocks in the conversation need `tools` in the request."""
    if not request.get("tools") and any(turn.uses or turn.results for turn in turns):
        return "Requests which include `tool_use` or `tool_result` blocks must define tools"
    return None


def results(_request: Mapping[str, Any], turns: Sequence[Turn], _facts: Facts) -> str | None:
    """Every tool_use has exactly one tool_result, at the beginning of the next message; no other results exist.

    [I] Two for one: picoclaw#1792.  Unexpected: CLIProxyAPI#497, claude-code#18947.  Missing, also when text comes
    first or only some are there: claude-code#5989, #1831; which message is named there is unsettled, here it is the
    assistant's.
    """
    for number, turn in enumerate(turns):
        if turn.role == "user":
            asked = {one.block["id"] for one in turns[number - 1].uses} if number else set()
            if problem := _unexpected(turn, asked):
                return problem
        elif turn.uses:
            answered = _leading_results(turns[number + 1]) if number + 1 < len(turns) else set()
            if missing := [call.block["id"] for call in turn.uses if call.block["id"] not in answered]:
                return (
                    f"messages.{turn.last}: `tool_use` ids were found without `tool_result` blocks immediately after:"
                    f" {', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the"
                    " next message."
                )
    return None


def _unexpected(turn: Turn, asked: AbstractSet[str]) -> str | None:
    seen = set()
    for placed in turn.results:
        identifier = placed.block["tool_use_id"]
        if identifier not in asked:
            return (
                f"{placed.path}: unexpected `tool_use_id` found in `tool_result` blocks: {identifier}. Each"
                " `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        if identifier in seen:
            return (
                f"{placed.path}: each tool_use must have a single result. Found multiple `tool_result` blocks with id:"
                f" {identifier}"
            )
        seen.add(identifier)
    return None


def _leading_results(turn: Turn) -> set[str]:
    answered = set()
    for placed in turn.placed:
        if placed.block["type"] != "tool_result":
            break
        answered.add(placed.block["tool_use_id"])
    return answered


def server_results(_request: Mapping[str, Any], turns: Sequence[Turn], _facts: Facts) -> str | None:
    """[I] claude-code#64383.  The reverse, a call without its result, is legal: turns may be mixed or paused [D]."""
    called = set()
    for turn in turns:
        for placed in turn.placed:
            kind = placed.block["type"]
            if kind in {"server_tool_use", "mcp_tool_use"}:
                called.add(placed.block.get("id"))
            elif kind.endswith("_tool_result") and placed.block.get("tool_use_id") not in called:
                caller = "mcp_tool_use" if kind == "mcp_tool_result" else "server_tool_use"
                return (
                    f"{placed.path}: unexpected `tool_use_id` found in `{kind}` blocks:"
                    f" {placed.block.get('tool_use_id')}. Each `{kind}` block must have a corresponding `{caller}`"
                    " block before it."
                )
    return None


def thinking_signatures(_request: Mapping[str, Any], turns: Sequence[Turn], facts: Facts) -> str | None:
    """[I] claude-code#10627.  The API verifies the signature; the model here knows the ones that it gave."""
    if facts.signatures is None:
        return None
    for turn in turns:
        for placed in turn.thoughts():
            if placed.block["type"] == "thinking" and placed.block["signature"] not in facts.signatures:
                return f"{placed.path}: Invalid `signature` in `thinking` block"
    return None


def thinking_unchanged(_request: Mapping[str, Any], turns: Sequence[Turn], facts: Facts) -> str | None:
    """[I] claude-code#19539.  Dropping all of them is another matter, which `thinking_first` judges."""
    latest = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
    sent = latest.thoughts() if latest else []
    if facts.thinking is None or not sent:
        return None
    for index, placed in enumerate(sent):
        given = facts.thinking[index] if index < len(facts.thinking) else None
        last_but_fewer = index == len(sent) - 1 and len(sent) < len(facts.thinking)
        if given is None or _thought(placed.block) != _thought(given) or last_but_fewer:
            return (
                f"{placed.path}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be"
                " modified. These blocks must remain as they were in the original response."
            )
    return None


def _thought(block: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(block.get(key) for key in ("type", "thinking", "signature", "data"))


def thinking_first(request: Mapping[str, Any], turns: Sequence[Turn], facts: Facts) -> str | None:
    """[I] opencode#3077, kilocode#5219 (the spelling is the API's); [M] that `adaptive` does not ask for it.

    An answer that the model itself gave without thinking is not held against the loop.
    """
    if (request.get("thinking") or {}).get("type") != "enabled":
        return None
    if facts.thinking is not None and not facts.thinking:
        return None
    latest = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
    if latest is None or not latest.uses:
        return None
    first = latest.placed[0]
    if first.block["type"] in _THOUGHT:
        return None
    return (
        f"{first.path}.type: Expected `thinking` or `redacted_thinking`, but found `{first.block['type']}`. When"
        " `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost"
        " set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To"
        " avoid this requirement, disable `thinking`. Please consult our documentation at"
        " https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
    )


def thinking_disabled(request: Mapping[str, Any], turns: Sequence[Turn], _facts: Facts) -> str | None:
    """[I] forgecode#1853; [M] that leaving `thinking` out is not the same, as newer models think by default."""
    if (request.get("thinking") or {}).get("type") != "disabled" or turns[-1].role != "assistant":
        return None
    for placed in turns[-1].thoughts():
        return (
            f"{placed.path}: When thinking is disabled, an `assistant` message in the final position cannot contain"
            f" `{placed.block['type']}`. To use thinking blocks, enable `thinking` in your request."
        )
    return None


def final_assistant(request: Mapping[str, Any], turns: Sequence[Turn], facts: Facts) -> str | None:
    """[I] vscode-unify-chat-provider#249, [D] without prefill; seer#1675, forgecode#1872 for models that have it.

    After `pause_turn` the conversation goes back as it is and ends with the assistant [D]: the one exception, inferred.
    """
    if turns[-1].role != "assistant" or facts.paused:
        return None
    if not facts.prefill:
        return "This model does not support assistant message prefill. The conversation must end with a user message."
    if request.get("tools"):
        return (
            "Your API request included an `assistant` message in the final position, which would pre-fill the"
            " `assistant` response. When using tools, pre-filling the `assistant` response is not supported."
        )
    last = turns[-1].placed[-1].block if turns[-1].placed else {}
    if last.get("type") == "text" and last["text"] != last["text"].rstrip():
        return "messages: final assistant content cannot end with trailing whitespace"
    return None


def context_window(request: Mapping[str, Any], _turns: Sequence[Turn], facts: Facts) -> str | None:
    """[I] claude-code#12186, docker-agent#569."""
    if facts.context_window is None:
        return None
    if facts.input_tokens > facts.context_window:
        return f"prompt is too long: {facts.input_tokens} tokens > {facts.context_window} maximum"
    wanted = request.get("max_tokens", 0)
    if facts.input_tokens + wanted > facts.context_window:
        return (
            f"input length and `max_tokens` exceed context limit: {facts.input_tokens} + {wanted} >"
            f" {facts.context_window}, decrease input length or `max_tokens` and try again"
        )
    return None


RULES: Final[tuple[Callable[[Mapping[str, Any], Sequence[Turn], Facts], str | None], ...]] = (
    first_role,
    empty_messages,
    blank_text,
    block_roles,
    unique_ids,
    tools_defined,
    results,
    server_results,
    thinking_signatures,
    thinking_unchanged,
    thinking_first,
    thinking_disabled,
    final_assistant,
    context_window,
)
