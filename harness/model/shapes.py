"""The shape of a request: which fields it needs, which it may have, and of what type.

The API checks shapes first, and reports them pydantic style: the path, a colon, what is wrong.  Which forms are
established and which are from memory is said at each rule with the tags of the issues they were seen in:
[I] a public issue, [S] the SDK's source, [M] memory, unverified.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

__all__ = [
    "BETA_FIELDS",
    "BLOCKS",
    "CUSTOM_TOOL",
    "REQUEST_FIELDS",
    "RESULT_CONTENT",
    "RETIRED_FIELDS",
    "misshapen",
]

Check: TypeAlias = Callable[[Any], str | None]
"""Says what is wrong with a value, or, path first (`.type: …`), with a part of it."""

Checks: TypeAlias = Mapping[str, Check | None]

# [S] SDK 2.14 MessageCreateParams, less what it sends as headers; `stream` included.
REQUEST_FIELDS: Final = frozenset(
    {
        "cache_control",
        "container",
        "diagnostics",
        "inference_geo",
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "output_config",
        "service_tier",
        "speed",
        "stop_sequences",
        "stream",
        "system",
        "thinking",
        "tool_choice",
        "tools",
    }
)
# [S] SDK 2.14 beta.MessageCreateParams, what it has on top.
BETA_FIELDS: Final = frozenset(
    {
        "billing_policy",
        "compaction",
        "context_management",
        "fallback_credit_token",
        "fallbacks",
        "mcp_servers",
        "thread",
    }
)
# [M] Sampling parameters that SDK 2.14 no longer names, and that older SDKs, which come in through the server, send.
RETIRED_FIELDS: Final = frozenset({"temperature", "top_k", "top_p"})

_MISSING: Final = object()
_REQUIRED: Final = "Field required"
_EXTRA: Final = "Extra inputs are not permitted"
_DICTIONARY: Final = "Input should be a valid dictionary"
_LIST: Final = "Input should be a valid list"
_STRING: Final = "Input should be a valid string"
_INTEGER: Final = "Input should be a valid integer"
_BOOLEAN: Final = "Input should be a valid boolean"

_ID_PATTERN: Final = "^[a-zA-Z0-9_-]+$"  # [I] forgecode#1142
_TOOL_NAME_PATTERN: Final = "^[a-zA-Z0-9_-]{1,128}$"  # [I] litellm#26788
_CALLED_NAME_PATTERN: Final = "^[a-zA-Z0-9_-]{1,200}$"  # [M]
_MOST_MESSAGES: Final = 100_000  # [S] MessageCreateParams.messages
_LEAST_THINKING: Final = 1_024  # [S] ThinkingConfigEnabledParam.budget_tokens


def _string(value: object) -> str | None:
    return None if isinstance(value, str) else _STRING


def _dictionary(value: object) -> str | None:
    """[I] `messages.3.content.3.tool_use.input: Input should be a valid dictionary`, a production log, 2025-10."""
    return None if isinstance(value, dict) else _DICTIONARY


def _boolean(value: object) -> str | None:
    return None if isinstance(value, bool) else _BOOLEAN


def _matching(pattern: str) -> Check:
    """[I] forgecode#1142, litellm#26788: `String should match pattern '…'`."""
    match = re.compile(pattern.removesuffix("$") + r"\Z").match

    def check(value: object) -> str | None:
        if not isinstance(value, str):
            return _STRING
        return None if match(value) else f"String should match pattern '{pattern}'"

    return check


class Fields(NamedTuple):
    """The fields of one kind of object beside `type`: needed and optional ones by name, each with its check."""

    required: Checks
    optional: Checks

    def names(self) -> frozenset[str]:
        """Every name that the object may have."""
        return frozenset({"type", *self.required, *self.optional})

    def problem(self, value: Mapping[str, Any]) -> str | None:
        """What is wrong with the object, path first (`.id: Field required`)."""
        for name, check in self.required.items():
            found = value.get(name, _MISSING)
            if found is _MISSING:
                return f".{name}: {_REQUIRED}"
            if check and (problem := check(found)):
                return f".{name}{_joined(problem)}"
        for name, found in value.items():
            if name in self.required or name == "type":
                continue
            if name not in self.optional:
                return f".{name}: {_EXTRA}"
            optional = self.optional[name]
            if optional and found is not None and (problem := optional(found)):
                return f".{name}{_joined(problem)}"
        return None


def _joined(problem: str) -> str:
    return problem if problem.startswith(".") else f": {problem}"


def _result_content(value: object) -> str | None:
    """[M] A dictionary or a number as the content of a tool_result; [D] which blocks it may hold."""
    if isinstance(value, str):
        return None
    if not isinstance(value, list):
        return _LIST
    for index, block in enumerate(value):
        if problem := _tagged(block, RESULT_CONTENT):
            return f".{index}{problem}"
    return None


_CACHE: Final[Checks] = {"cache_control": None}
_CALL: Final[Checks] = {
    "id": _matching(_ID_PATTERN),
    "name": _matching(_CALLED_NAME_PATTERN),
    "input": _dictionary,
}
_SERVER_RESULT: Final = Fields({"tool_use_id": _string, "content": None}, {**_CACHE, "caller": None})

# [S] The fields of the SDK's ContentBlockParam and BetaContentBlockParam.
BLOCKS: Final[dict[str, Fields]] = {
    "text": Fields({"text": _string}, {**_CACHE, "citations": None}),
    "image": Fields({"source": _dictionary}, {**_CACHE, "transformations": None}),
    "document": Fields({"source": _dictionary}, {**_CACHE, "citations": None, "context": None, "title": None}),
    "search_result": Fields({"content": None, "source": _string, "title": _string}, {**_CACHE, "citations": None}),
    "thinking": Fields({"thinking": _string, "signature": _string}, {}),
    "redacted_thinking": Fields({"data": _string}, {}),
    "tool_use": Fields(_CALL, {**_CACHE, "caller": None, "toolset_name": None}),
    "tool_result": Fields(
        {"tool_use_id": _matching(_ID_PATTERN)},
        {**_CACHE, "content": _result_content, "is_error": _boolean, "toolset_name": None},
    ),
    "server_tool_use": Fields(_CALL, {**_CACHE, "caller": None}),
    "mcp_tool_use": Fields({**_CALL, "server_name": _string}, _CACHE),
    "mcp_tool_result": Fields({"tool_use_id": _string}, {**_CACHE, "content": None, "is_error": _boolean}),
    "advisor_tool_result": Fields({"tool_use_id": _string, "content": None}, _CACHE),
    "bash_code_execution_tool_result": Fields({"tool_use_id": _string, "content": None}, _CACHE),
    "code_execution_tool_result": Fields({"tool_use_id": _string, "content": None}, _CACHE),
    "text_editor_code_execution_tool_result": Fields({"tool_use_id": _string, "content": None}, _CACHE),
    "tool_search_tool_result": Fields({"tool_use_id": _string, "content": None}, _CACHE),
    "web_fetch_tool_result": _SERVER_RESULT,
    "web_search_tool_result": _SERVER_RESULT,
    "container_upload": Fields({"file_id": _string}, _CACHE),
    "compaction": Fields(
        {}, {**_CACHE, "content": None, "encrypted_content": None, "signature": None, "tool_changes": None}
    ),
    "fallback": Fields({}, {"from": None, "to": None, "trigger": None}),
    "mcp_tool_listing": Fields({}, {"mcp_server_name": None, "tools": None}),
    "tool_addition": Fields({}, {**_CACHE, "tool": None}),
    "tool_removal": Fields({}, {**_CACHE, "tool": None}),
}
# [S] ToolResultBlockParam.content.
RESULT_CONTENT: Final[dict[str, Fields | None]] = {
    "browser_state": None,
    "document": BLOCKS["document"],
    "image": BLOCKS["image"],
    "search_result": BLOCKS["search_result"],
    "text": BLOCKS["text"],
    "tool_reference": None,
}


def _input_schema(value: object) -> str | None:
    """[I] Codewhale#4329: no oneOf, allOf, anyOf at the top; [S] `type` is required and "object"; forms [M]."""
    if not isinstance(value, dict):
        return _DICTIONARY
    if "type" not in value:
        return f".type: {_REQUIRED}"
    if value["type"] != "object":
        return ".type: Input should be 'object'"
    if not value.keys().isdisjoint({"oneOf", "allOf", "anyOf"}):
        return "input_schema does not support oneOf, allOf, or anyOf at the top level"
    return None


# [S] ToolParam.
CUSTOM_TOOL: Final = Fields(
    {"name": _matching(_TOOL_NAME_PATTERN), "input_schema": _input_schema},
    {
        **_CACHE,
        "allowed_callers": None,
        "defer_loading": _boolean,
        "description": _string,
        "eager_input_streaming": _boolean,
        "input_examples": None,
        "strict": _boolean,
    },
)


def misshapen(request: Mapping[str, Any], *, beta: bool, counting: bool) -> str | None:
    """What is wrong with the shape of a request, or None.

    Args:
        request: the parsed body.
        beta: whether the fields of the beta API are accepted (`?beta=true`, or an `anthropic-beta` header).
        counting: whether it is a request to count tokens, which has no `max_tokens`.
    """
    for rule in (_top_level, _messages, _system, _tools, _thinking, _tool_choice):
        if problem := rule(request):
            if counting and problem == f"max_tokens: {_REQUIRED}":
                continue
            return problem
    known = REQUEST_FIELDS | BETA_FIELDS if beta else REQUEST_FIELDS
    for name in request:
        if name not in known and name not in RETIRED_FIELDS:
            return f"{name}: {_EXTRA}"  # [M]
    return None


def _top_level(request: Mapping[str, Any]) -> str | None:
    """[M] `max_tokens: Field required`, pydantic style; [S] 0 is legal for max_tokens: it fills the prompt cache."""
    if "model" not in request:
        return f"model: {_REQUIRED}"
    if not isinstance(request["model"], str):
        return f"model: {_STRING}"
    if not request["model"]:
        return "model: String should have at least 1 character"
    if "messages" not in request:
        return f"messages: {_REQUIRED}"
    if not isinstance(request.get("stream"), bool | None):
        return f"stream: {_BOOLEAN}"
    if "max_tokens" not in request:
        return f"max_tokens: {_REQUIRED}"
    if not isinstance(request["max_tokens"], int) or isinstance(request["max_tokens"], bool):
        return f"max_tokens: {_INTEGER}"
    if request["max_tokens"] < 0:
        return "max_tokens: Input should be greater than or equal to 0"
    return None


def _messages(request: Mapping[str, Any]) -> str | None:
    """[I] portkey's error library: `messages: at least one message is required`; the rest [M]."""
    messages = request["messages"]
    if not isinstance(messages, list):
        return f"messages: {_LIST}"
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
        return f": {_DICTIONARY}"
    if "role" not in message:
        return f".role: {_REQUIRED}"
    role = message["role"]
    if role not in ("user", "assistant", "system"):
        return ".role: Input should be 'user' or 'assistant'"
    if "content" not in message:
        return f".content: {_REQUIRED}"
    content = message["content"]
    if not isinstance(content, str | list):
        return f".content: {_LIST}"
    if not isinstance(content, str):
        for index, block in enumerate(content):
            # What the model itself may say grows faster than any list: only what users say is held to it.
            if problem := _tagged(block, BLOCKS, closed=role != "assistant"):
                return f".content.{index}{problem}"
    for name in message:
        # [S] The beta API's system messages carry two more.
        if name not in {"role", "content"} and not (role == "system" and name in {"clear_at", "output_config"}):
            return f".{name}: {_EXTRA}"
    return None


def _tagged(block: object, kinds: Mapping[str, Fields | None], *, closed: bool = True) -> str | None:
    """[M] `…: Input tag 'x' found using 'type' does not match any of the expected tags: 'a', 'b'`."""
    if not isinstance(block, dict):
        return f": {_DICTIONARY}"
    kind = block.get("type", _MISSING)
    if kind is _MISSING:
        return f".type: {_REQUIRED}"
    if not isinstance(kind, str) or kind not in kinds:
        if isinstance(kind, str) and not closed:
            return None
        expected = ", ".join(f"'{one}'" for one in sorted(kinds))
        return f": Input tag '{kind}' found using 'type' does not match any of the expected tags: {expected}"
    fields = kinds[kind]
    problem = fields.problem(block) if fields else None
    return f".{kind}{problem}" if problem else None


def _system(request: Mapping[str, Any]) -> str | None:
    """[S] A string, or text blocks; [M] both wordings."""
    system = request.get("system")
    if system is None or isinstance(system, str):
        return None
    if not isinstance(system, list):
        return f"system: {_LIST}"
    for index, block in enumerate(system):
        if problem := _tagged(block, {"text": BLOCKS["text"]}):
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
        return f"tools: {_LIST}"
    seen = set()
    for index, tool in enumerate(tools):
        if not isinstance(tool, dict):
            return f"tools.{index}: {_DICTIONARY}"
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
        return f"thinking: {_DICTIONARY}"
    kinds = ("enabled", "disabled", "between_tools", "adaptive")
    if thinking.get("type") not in kinds:
        expected = ", ".join(f"'{one}'" for one in kinds)
        return (
            f"thinking: Input tag '{thinking.get('type')}' found using 'type' does not match any of the expected tags:"
            f" {expected}"
        )
    if thinking["type"] != "enabled":
        return None
    budget = thinking.get("budget_tokens", _MISSING)
    if budget is _MISSING:
        return f"thinking.enabled.budget_tokens: {_REQUIRED}"
    if not isinstance(budget, int) or isinstance(budget, bool):
        return f"thinking.enabled.budget_tokens: {_INTEGER}"
    if budget < _LEAST_THINKING:
        return f"thinking.enabled.budget_tokens: Input should be greater than or equal to {_LEAST_THINKING}"
    if budget >= request.get("max_tokens", budget + 1):
        return "`max_tokens` must be greater than `thinking.budget_tokens`."
    return None


def _tool_choice(request: Mapping[str, Any]) -> str | None:
    """[I] mastra#7507, oh-my-pi#341 for thinking with a forced tool; the rest [M]."""
    choice = request.get("tool_choice")
    if choice is None:
        return None
    if not isinstance(choice, dict):
        return f"tool_choice: {_DICTIONARY}"
    kind, kinds = choice.get("type"), ("auto", "any", "tool", "none")
    if kind not in kinds:
        expected = ", ".join(f"'{one}'" for one in kinds)
        return f"tool_choice: Input tag '{kind}' found using 'type' does not match any of the expected tags: {expected}"
    tools = request.get("tools") or []
    if not tools:
        return "tool_choice may only be specified while providing tools"
    if kind == "tool":
        if "name" not in choice:
            return f"tool_choice.tool.name: {_REQUIRED}"
        if choice["name"] not in [tool.get("name") for tool in tools]:
            return f"Tool '{choice['name']}' not found in provided tools"
    thinks = (request.get("thinking") or {}).get("type") in {"enabled", "adaptive"}
    if thinks and kind in {"any", "tool"}:
        return "Thinking may not be enabled when tool_choice forces tool use."
    return None
