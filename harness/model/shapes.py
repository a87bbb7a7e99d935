"""The shape of a request: which fields it needs, which it may have, and of what type.

The API checks shapes first, and reports them pydantic style: the path, a colon, what is wrong.  Each rule names its
source.  Tags as in `fields`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.model.fields import (
    BETA_FIELDS,
    BLOCKS,
    BOOLEAN,
    CUSTOM_TOOL,
    DICTIONARY,
    EXTRA,
    INTEGER,
    LIST,
    MISSING,
    REQUEST_FIELDS,
    REQUIRED,
    RETIRED_FIELDS,
    STRING,
    tagged_problem,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["misshapen"]

_MOST_MESSAGES: Final = 100_000  # [S] MessageCreateParams.messages
_LEAST_THINKING: Final = 1_024  # [S] ThinkingConfigEnabledParam.budget_tokens


def misshapen(request: Mapping[str, Any], *, beta: bool, counting: bool) -> str | None:
    """What is wrong with the shape of a request, or None.

    Args:
        request: the parsed body.
        beta: whether the fields of the beta API are accepted (`?beta=true`, or an `anthropic-beta` header).
        counting: whether it is a request to count tokens, which has no `max_tokens`.
    """
    for rule in (_top_level, _messages, _system, _tools, _thinking, _tool_choice):
        if problem := rule(request):
            if counting and problem == f"max_tokens: {REQUIRED}":
                continue
            return problem
    known = REQUEST_FIELDS | BETA_FIELDS if beta else REQUEST_FIELDS
    for name in request:
        if name not in known and name not in RETIRED_FIELDS:
            return f"{name}: {EXTRA}"  # [M]
    return None


def _top_level(request: Mapping[str, Any]) -> str | None:
    """[M] `max_tokens: Field required`, pydantic style; [S] 0 is legal for max_tokens: it fills the prompt cache."""
    if "model" not in request:
        return f"model: {REQUIRED}"
    if not isinstance(request["model"], str):
        return f"model: {STRING}"
    if not request["model"]:
        return "model: String should have at least 1 character"
    if "messages" not in request:
        return f"messages: {REQUIRED}"
    if not isinstance(request.get("stream"), bool | None):
        return f"stream: {BOOLEAN}"
    if "max_tokens" not in request:
        return f"max_tokens: {REQUIRED}"
    if not isinstance(request["max_tokens"], int) or isinstance(request["max_tokens"], bool):
        return f"max_tokens: {INTEGER}"
    if request["max_tokens"] < 0:
        return "max_tokens: Input should be greater than or equal to 0"
    return None


def _messages(request: Mapping[str, Any]) -> str | None:
    """[I] portkey's error library: `messages: at least one message is required`; the rest [M]."""
    messages = request["messages"]
    if not isinstance(messages, list):
        return f"messages: {LIST}"
    if not messages:
        return "messages: at least one message is required"
    if len(messages) > _MOST_MESSAGES:
        return f"messages: List should have at most {_MOST_MESSAGES} items after validation, not {len(messages)}"
    for index, message in enumerate(messages):
        if problem := _message(message):
            return f"messages.{index}{problem}"
    return None


def _message(message: object) -> str | None:
    if not isinstance(message, dict):
        return f": {DICTIONARY}"
    if "role" not in message:
        return f".role: {REQUIRED}"
    role = message["role"]
    if role not in ("user", "assistant", "system"):
        return ".role: Input should be 'user' or 'assistant'"
    if "content" not in message:
        return f".content: {REQUIRED}"
    content = message["content"]
    if not isinstance(content, str | list):
        return f".content: {LIST}"
    if not isinstance(content, str):
        for index, block in enumerate(content):
            # What the model itself may say grows faster than any list: only what users say is held to it.
            if problem := tagged_problem(block, BLOCKS, closed=role != "assistant"):
                return f".content.{index}{problem}"
    for name in message:
        # [S] The beta API's system messages carry two more.
        if name not in {"role", "content"} and not (role == "system" and name in {"clear_at", "output_config"}):
            return f".{name}: {EXTRA}"
    return None


def _system(request: Mapping[str, Any]) -> str | None:
    """[S] A string, or text blocks; [M] both wordings."""
    system = request.get("system")
    if system is None or isinstance(system, str):
        return None
    if not isinstance(system, list):
        return f"system: {LIST}"
    for index, block in enumerate(system):
        if problem := tagged_problem(block, {"text": BLOCKS["text"]}):
            return f"system.{index}{problem}"
        if not block["text"]:
            return "system: text content blocks must be non-empty"
    return None


def _tools(request: Mapping[str, Any]) -> str | None:
    """[I] Codewhale#4329 for the path `tools.N.custom.`; forgecode#892, vscode#278073 for unique names."""
    tools = request.get("tools")
    if tools is None:
        return None
    if not isinstance(tools, list):
        return f"tools: {LIST}"
    seen = set()
    for index, tool in enumerate(tools):
        if not isinstance(tool, dict):
            return f"tools.{index}: {DICTIONARY}"
        if tool.get("type") in (None, "custom") and (problem := CUSTOM_TOOL.problem(tool)):
            return f"tools.{index}.custom{problem}"
        name = tool.get("name")
        if isinstance(name, str):
            if name in seen:
                return "tools: Tool names must be unique."
            seen.add(name)
    return None


def _thinking(request: Mapping[str, Any]) -> str | None:
    """[S] ThinkingConfigParam; the wordings [M]."""
    thinking = request.get("thinking")
    if thinking is None:
        return None
    if not isinstance(thinking, dict):
        return f"thinking: {DICTIONARY}"
    kinds = ("enabled", "disabled", "between_tools", "adaptive")
    if thinking.get("type") not in kinds:
        expected = ", ".join(f"'{one}'" for one in kinds)
        return (
            f"thinking: Input tag '{thinking.get('type')}' found using 'type' does not match any of the expected tags:"
            f" {expected}"
        )
    if thinking["type"] != "enabled":
        return None
    budget = thinking.get("budget_tokens", MISSING)
    if budget is MISSING:
        return f"thinking.enabled.budget_tokens: {REQUIRED}"
    if not isinstance(budget, int) or isinstance(budget, bool):
        return f"thinking.enabled.budget_tokens: {INTEGER}"
    if budget < _LEAST_THINKING:
        return f"thinking.enabled.budget_tokens: Input should be greater than or equal to {_LEAST_THINKING}"
    if budget >= request.get("max_tokens", budget + 1):
        return "`max_tokens` must be greater than `thinking.budget_tokens`."
    return None


def _tool_choice(request: Mapping[str, Any]) -> str | None:
    """[I] mastra#7507, oh-my-pi#341 for thinking with a forced tool; the rest [M].

    Adaptive thinking goes with a forced tool: [R] pydantic-ai, test_anthropic_opus_46_adaptive_thinking_accepts_….
    """
    choice = request.get("tool_choice")
    if choice is None:
        return None
    if not isinstance(choice, dict):
        return f"tool_choice: {DICTIONARY}"
    kind, kinds = choice.get("type"), ("auto", "any", "tool", "none")
    if kind not in kinds:
        expected = ", ".join(f"'{one}'" for one in kinds)
        return f"tool_choice: Input tag '{kind}' found using 'type' does not match any of the expected tags: {expected}"
    tools = request.get("tools") or []
    if not tools:
        return "tool_choice may only be specified while providing tools"
    if kind == "tool":
        if "name" not in choice:
            return f"tool_choice.tool.name: {REQUIRED}"
        if choice["name"] not in [tool.get("name") for tool in tools]:
            return f"Tool '{choice['name']}' not found in provided tools"
    if kind in {"any", "tool"} and (request.get("thinking") or {}).get("type") == "enabled":
        return "Thinking may not be enabled when tool_choice forces tool use."
    return None
