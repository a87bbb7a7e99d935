"""The fields of the Messages API's objects, and the checks of their types.

The literal lists are those of the SDK's types; a test compares them.  The wordings are pydantic's, path first.  Tags as
in PROTOCOL: [I] a public issue, [D] documentation, [S] the SDK's source, [M] memory, unverified; and [R] traffic of the
API, recorded in a public repository's tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

__all__ = [
    "BETA_FIELDS",
    "BLOCKS",
    "BOOLEAN",
    "CUSTOM_TOOL",
    "DICTIONARY",
    "EXTRA",
    "INTEGER",
    "LIST",
    "MISSING",
    "REQUEST_FIELDS",
    "REQUIRED",
    "RESULT_CONTENT",
    "RETIRED_FIELDS",
    "STRING",
    "Fields",
    "tagged_problem",
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
# [R] What SDK 2.14 no longer names, and older ones, which come in through the server, send.  All but `top_p` [M] are
# accepted in traffic of 2025 and 2026.
RETIRED_FIELDS: Final = frozenset({"output_format", "temperature", "top_k", "top_p"})

MISSING: Final = object()
REQUIRED: Final = "Field required"
EXTRA: Final = "Extra inputs are not permitted"
DICTIONARY: Final = "Input should be a valid dictionary"
LIST: Final = "Input should be a valid list"
STRING: Final = "Input should be a valid string"
INTEGER: Final = "Input should be a valid integer"
BOOLEAN: Final = "Input should be a valid boolean"

_ID_PATTERN: Final = "^[a-zA-Z0-9_-]+$"  # [I] forgecode#1142
_TOOL_NAME_PATTERN: Final = "^[a-zA-Z0-9_-]{1,128}$"  # [I] litellm#26788
_CALLED_NAME_PATTERN: Final = "^[a-zA-Z0-9_-]{1,200}$"  # [M]


def _string(value: object) -> str | None:
    return None if isinstance(value, str) else STRING


def _dictionary(value: object) -> str | None:
    """[I] `messages.3.content.3.tool_use.input: Input should be a valid dictionary`, a production log, 2025-10."""
    return None if isinstance(value, dict) else DICTIONARY


def _boolean(value: object) -> str | None:
    return None if isinstance(value, bool) else BOOLEAN


def _matching(pattern: str) -> Check:
    """[I] forgecode#1142, litellm#26788: `String should match pattern '…'`."""
    match = re.compile(pattern.removesuffix("$") + r"\Z").match

    def check(value: object) -> str | None:
        if not isinstance(value, str):
            return STRING
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
            found = value.get(name, MISSING)
            if found is MISSING:
                return f".{name}: {REQUIRED}"
            if check and (problem := check(found)):
                return f".{name}{_joined(problem)}"
        for name, found in value.items():
            if name in self.required or name == "type":
                continue
            if name not in self.optional:
                return f".{name}: {EXTRA}"
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
        return LIST
    for index, block in enumerate(value):
        if problem := tagged_problem(block, RESULT_CONTENT):
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
        return DICTIONARY
    if "type" not in value:
        return f".type: {REQUIRED}"
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


def tagged_problem(block: object, kinds: Mapping[str, Fields | None], *, closed: bool = True) -> str | None:
    """What is wrong with an object whose `type` says which fields it has, path first.

    [R] pydantic-ai, test_bedrock_count_tokens: `tools.0: Input tag 'web_search_20250305' found using 'type' does not
    match any of the expected tags: 'bash_20250124', 'custom', …`; and test_multimodal_tool_returns for the path:
    `messages.2.content.2.document.source.type: Field required`.

    Args:
        block: the object.
        kinds: the fields of each type; None where they are not looked at.
        closed: whether other types are refused.
    """
    if not isinstance(block, dict):
        return f": {DICTIONARY}"
    kind = block.get("type", MISSING)
    if kind is MISSING:
        return f".type: {REQUIRED}"
    if not isinstance(kind, str) or kind not in kinds:
        if isinstance(kind, str) and not closed:
            return None
        expected = ", ".join(f"'{one}'" for one in sorted(kinds))
        return f": Input tag '{kind}' found using 'type' does not match any of the expected tags: {expected}"
    fields = kinds[kind]
    problem = fields.problem(block) if fields else None
    return f".{kind}{problem}" if problem else None
