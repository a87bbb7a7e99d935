"""The rules of the Messages API: each one broken, through the SDK's own client, gives its status, type and wording."""

from __future__ import annotations

import typing
from typing import Any

import anthropic
import pytest
import typing_extensions
from anthropic.types import ContentBlockParam, Message, ToolParam, tool_result_block_param
from anthropic.types.beta import BetaContentBlockParam, BetaToolParam
from anthropic.types.beta.message_create_params import MessageCreateParamsBase as BetaParams
from anthropic.types.message_create_params import MessageCreateParamsBase as Params

from harness.model.fields import BETA_FIELDS, BLOCKS, CUSTOM_TOOL, REQUEST_FIELDS, RESULT_CONTENT
from harness.model.local import LocalModel, ModelFault
from harness.model.protocol import Facts, Violation, check, parse_body
from harness.model.script import Script
from harness.model.transport import sync_client

TOOL = {"name": "read_file", "input_schema": {"type": "object"}}
BASE: dict[str, Any] = {"model": "claude-sonnet-5", "max_tokens": 2048, "tools": [TOOL]}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def use(identifier: str, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": identifier, "name": "read_file", "input": {}} | fields


def result(identifier: str, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identifier, "content": "ok"} | fields


def thinking(value: str = "Hm.", signature: str = "c2ln") -> dict[str, Any]:
    return {"type": "thinking", "thinking": value, "signature": signature}


HI = user(text("Hi"))
ASK = {"type": "enabled", "budget_tokens": 1024}
EXTRA = "Extra inputs are not permitted"
NO_PREFILL = "This model does not support assistant message prefill. The conversation must end with a user message."
MISSING_A_B = (
    "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_A, toolu_B. Each"
    " `tool_use` block must have a corresponding `tool_result` block in the next message."
)
MISSING_A = MISSING_A_B.replace("toolu_A, toolu_B", "toolu_A")
MISSING_B = MISSING_A_B.replace("toolu_A, toolu_B", "toolu_B")
UNEXPECTED = (
    "{place}: unexpected `tool_use_id` found in `tool_result` blocks: toolu_X. Each `tool_result` block must have a"
    " corresponding `tool_use` block in the previous message."
)
THINKING_FIRST = (
    "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is"
    " enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use`"
    " and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this"
    " requirement, disable `thinking`. Please consult our documentation at"
    " https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
)


def tags(kinds: typing.Iterable[str]) -> str:
    return ", ".join(f"'{kind}'" for kind in sorted(kinds))


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    # Shapes.
    "no model": ({"model": ...}, "model: Field required"),
    "model is no text": ({"model": 5}, "model: Input should be a valid string"),
    "model is empty": ({"model": ""}, "model: String should have at least 1 character"),
    "no max_tokens": ({"max_tokens": ...}, "max_tokens: Field required"),
    "max_tokens is no number": ({"max_tokens": "9"}, "max_tokens: Input should be a valid integer"),
    "max_tokens is true": ({"max_tokens": True}, "max_tokens: Input should be a valid integer"),
    "max_tokens is negative": ({"max_tokens": -1}, "max_tokens: Input should be greater than or equal to 0"),
    "no messages": ({"messages": ...}, "messages: Field required"),
    "messages is no list": ({"messages": "Hi"}, "messages: Input should be a valid list"),
    "messages is empty": ({"messages": []}, "messages: at least one message is required"),
    "a message is no object": ({"messages": ["Hi"]}, "messages.0: Input should be a valid dictionary"),
    "a message without role": ({"messages": [{"content": "Hi"}]}, "messages.0.role: Field required"),
    "a role that is none": (
        {"messages": [{"role": "tool", "content": "Hi"}]},
        "messages.0.role: Input should be 'user' or 'assistant'",
    ),
    "a message without content": ({"messages": [{"role": "user"}]}, "messages.0.content: Field required"),
    "content is null": (
        {"messages": [{"role": "user", "content": None}]},
        "messages.0.content: Input should be a valid list",
    ),
    "a field that a message does not have": ({"messages": [HI | {"name": "Ann"}]}, f"messages.0.name: {EXTRA}"),
    "a block without type": ({"messages": [user({"text": "Hi"})]}, "messages.0.content.0.type: Field required"),
    "a block that is no object": (
        {"messages": [user("Hi")]},
        "messages.0.content.0: Input should be a valid dictionary",
    ),
    "a block of another API": (
        {"messages": [user({"type": "image_url", "image_url": "x"})]},
        "messages.0.content.0: Input tag 'image_url' found using 'type' does not match any of the expected tags: "
        + tags(BLOCKS),
    ),
    "a text block without text": (
        {"messages": [user({"type": "text"})]},
        "messages.0.content.0.text.text: Field required",
    ),
    "a field that a block does not have": (
        {"messages": [HI, assistant(text("Yes") | {"parsed_output": None}), HI]},
        f"messages.1.content.0.text.parsed_output: {EXTRA}",
    ),
    "characters that an id cannot have": (
        {"messages": [HI, assistant(use("call:1")), user(result("call:1"))]},
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    "tool input that is no object": (
        {"messages": [HI, assistant(text("a"), use("toolu_A", input="{}")), user(result("toolu_A"))]},
        "messages.1.content.1.tool_use.input: Input should be a valid dictionary",
    ),
    "a result whose content is an object": (
        {"messages": [HI, assistant(use("toolu_A")), user(result("toolu_A", content={"ok": 1}))]},
        "messages.2.content.0.tool_result.content: Input should be a valid list",
    ),
    "a result with a block that results do not have": (
        {"messages": [HI, assistant(use("toolu_A")), user(result("toolu_A", content=[use("toolu_B")]))]},
        "messages.2.content.0.tool_result.content.0: Input tag 'tool_use' found using 'type' does not match any of the"
        f" expected tags: {tags(RESULT_CONTENT)}",
    ),
    "a result with text that is none": (
        {"messages": [HI, assistant(use("toolu_A")), user(result("toolu_A", content=[{"type": "text", "text": 1}]))]},
        "messages.2.content.0.tool_result.content.0.text.text: Input should be a valid string",
    ),
    "is_error is text": (
        {"messages": [HI, assistant(use("toolu_A")), user(result("toolu_A", is_error="yes"))]},
        "messages.2.content.0.tool_result.is_error: Input should be a valid boolean",
    ),
    "thinking without signature": (
        {"messages": [HI, assistant({"type": "thinking", "thinking": "Hm."}), HI]},
        "messages.1.content.0.thinking.signature: Field required",
    ),
    "a field that requests do not have": ({"tool_choices": {}}, f"tool_choices: {EXTRA}"),
    "a field of the beta API": ({"context_management": {}}, f"context_management: {EXTRA}"),
    "stream is text": ({"stream": "yes"}, "stream: Input should be a valid boolean"),
    "system is a number": ({"system": 5}, "system: Input should be a valid list"),
    "system has an empty block": ({"system": [text("")]}, "system: text content blocks must be non-empty"),
    "system has an image": (
        {"system": [{"type": "image"}]},
        "system.0: Input tag 'image' found using 'type' does not match any of the expected tags: 'text'",
    ),
    "tools is an object": ({"tools": {"read_file": TOOL}}, "tools: Input should be a valid list"),
    "a tool without schema": ({"tools": [{"name": "a"}]}, "tools.0.custom.input_schema: Field required"),
    "a tool in the form of another API": (
        {"tools": [{"type": "custom", "name": "a", "parameters": {}, "input_schema": {"type": "object"}}]},
        f"tools.0.custom.parameters: {EXTRA}",
    ),
    "a tool name with a dot": (
        {"tools": [TOOL | {"name": "files.read"}]},
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    ),
    "a tool schema without type": (
        {"tools": [TOOL | {"input_schema": {}}]},
        "tools.0.custom.input_schema.type: Field required",
    ),
    "a tool schema that is a list": (
        {"tools": [TOOL | {"input_schema": {"type": "array"}}]},
        "tools.0.custom.input_schema.type: Input should be 'object'",
    ),
    "a tool schema with anyOf at the top": (
        {"tools": [TOOL, TOOL | {"name": "b", "input_schema": {"type": "object", "anyOf": []}}]},
        "tools.1.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
    ),
    "two tools of one name": ({"tools": [TOOL, TOOL]}, "tools: Tool names must be unique."),
    "thinking of no known type": (
        {"thinking": {"type": "on"}},
        "thinking: Input tag 'on' found using 'type' does not match any of the expected tags: 'enabled', 'disabled',"
        " 'between_tools', 'adaptive'",
    ),
    "thinking without budget": (
        {"thinking": {"type": "enabled"}},
        "thinking.enabled.budget_tokens: Field required",
    ),
    "thinking with a small budget": (
        {"thinking": {"type": "enabled", "budget_tokens": 100}},
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    ),
    "thinking with a budget beyond max_tokens": (
        {"thinking": {"type": "enabled", "budget_tokens": 2048}},
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
    ),
    "tool_choice of no known type": (
        {"tool_choice": {"type": "required"}},
        "tool_choice: Input tag 'required' found using 'type' does not match any of the expected tags: 'auto', 'any',"
        " 'tool', 'none'",
    ),
    "tool_choice without tools": (
        {"tool_choice": {"type": "auto"}, "tools": ...},
        "tool_choice may only be specified while providing tools",
    ),
    "tool_choice names no tool": ({"tool_choice": {"type": "tool"}}, "tool_choice.tool.name: Field required"),
    "tool_choice names another tool": (
        {"tool_choice": {"type": "tool", "name": "b"}},
        "Tool 'b' not found in provided tools",
    ),
    "a forced tool with thinking": (
        {"tool_choice": {"type": "any"}, "thinking": ASK},
        "Thinking may not be enabled when tool_choice forces tool use.",
    ),
    # Pairs.
    "nothing but system messages": (
        {"messages": [{"role": "system", "content": "Note."}]},
        'messages: first message must use the "user" role',
    ),
    "an assistant first": (
        {"messages": [assistant(text("Hi")), HI]},
        'messages: first message must use the "user" role',
    ),
    "an empty message": (
        {"messages": [HI, assistant(), HI]},
        "messages.1: all messages must have non-empty content except for the optional final assistant message",
    ),
    "an empty string": (
        {"messages": [{"role": "user", "content": ""}]},
        "messages.0: all messages must have non-empty content except for the optional final assistant message",
    ),
    "empty text": ({"messages": [user(text(""))]}, "messages: text content blocks must be non-empty"),
    "blank text": (
        {"messages": [HI, assistant(text("\n"), use("toolu_A")), user(result("toolu_A"))]},
        "messages: text content blocks must contain non-whitespace text",
    ),
    "a blank string": (
        {"messages": [{"role": "user", "content": " "}]},
        "messages: text content blocks must contain non-whitespace text",
    ),
    "tool_use of a user": (
        {"messages": [user(use("toolu_A"))]},
        "messages.0.content.0: `tool_use` blocks can only be in `assistant` messages",
    ),
    "tool_result of an assistant": (
        {"messages": [HI, assistant(result("toolu_A")), HI]},
        "messages.1.content.0: `tool_result` blocks can only be in `user` messages",
    ),
    "one id twice in a message": (
        {"messages": [HI, assistant(use("toolu_A"), use("toolu_A")), user(result("toolu_A"))]},
        "messages.1.content.1: `tool_use` ids must be unique",
    ),
    "tool blocks without tools": (
        {"messages": [HI, assistant(use("toolu_A")), user(result("toolu_A"))], "tools": []},
        "Requests which include `tool_use` or `tool_result` blocks must define tools",
    ),
    "no result at all": ({"messages": [HI, assistant(use("toolu_A"), use("toolu_B")), HI]}, MISSING_A_B),
    "text before the results": (
        {"messages": [HI, assistant(use("toolu_A")), user(text("Here"), result("toolu_A"))]},
        MISSING_A,
    ),
    "text between the results": (
        {
            "messages": [
                HI,
                assistant(use("toolu_A"), use("toolu_B")),
                user(result("toolu_A"), text("x"), result("toolu_B")),
            ]
        },
        MISSING_B,
    ),
    "one result of two": (
        {"messages": [HI, assistant(use("toolu_A"), use("toolu_B")), user(result("toolu_B"))]},
        MISSING_A,
    ),
    "results after another message": (
        {"messages": [HI, assistant(use("toolu_A")), HI, user(result("toolu_A"))]},
        MISSING_A,
    ),
    "ends with calls": ({"messages": [HI, assistant(use("toolu_A"), use("toolu_B"))]}, MISSING_A_B),
    "a result of nothing": (
        {"messages": [user(result("toolu_X"))]},
        UNEXPECTED.format(place="messages.0.content.0"),
    ),
    "a result too many": (
        {"messages": [HI, assistant(use("toolu_A")), user(result("toolu_A"), result("toolu_X"))]},
        UNEXPECTED.format(place="messages.2.content.1"),
    ),
    "a result of an earlier turn": (
        {
            "messages": [
                *(HI, assistant(use("toolu_X")), user(result("toolu_X"))),
                *(assistant(text("Done")), user(result("toolu_X"))),
            ]
        },
        UNEXPECTED.format(place="messages.4.content.0"),
    ),
    "two results of one call": (
        {"messages": [HI, assistant(use("toolu_A")), user(result("toolu_A")), user(result("toolu_A"))]},
        "messages.3.content.0: each tool_use must have a single result. Found multiple `tool_result` blocks with id:"
        " toolu_A",
    ),
    "a server result of nothing": (
        {
            "messages": [
                *(HI, assistant({"type": "advisor_tool_result", "tool_use_id": "srvtoolu_X", "content": []})),
                HI,
            ]
        },
        "messages.1.content.0: unexpected `tool_use_id` found in `advisor_tool_result` blocks: srvtoolu_X. Each"
        " `advisor_tool_result` block must have a corresponding `server_tool_use` block before it.",
    ),
    "a signature that was never given": (
        {"messages": [HI, assistant(thinking(signature="bm8=")), HI]},
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    "ends with the assistant": ({"messages": [HI, assistant(text("The answer is"))]}, NO_PREFILL),
    "shape before pairs": (
        {"messages": [assistant(use("toolu_A")), HI], "max_tokens": ...},
        "max_tokens: Field required",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_broken_rule_is_refused_in_the_words_of_the_api(name: str) -> None:
    """A request that breaks one rule gets a 400 with the API's wording, once, and the model remembers it."""
    patch, message = REFUSED[name]
    body = {key: value for key, value in ({"messages": [HI]} | BASE | patch).items() if value is not ...}
    model = LocalModel(Script.parse([{"say": "Never."}]))
    with pytest.raises(anthropic.BadRequestError) as caught:
        sync_client(model).post("/v1/messages", body=body, cast_to=Message)
    error = caught.value
    assert (error.status_code, error.type, error.body["error"]["message"]) == (400, "invalid_request_error", message)
    assert error.request_id is not None
    assert error.request_id == error.body["request_id"]
    assert model.faults == [ModelFault("protocol", message)]


ACCEPTED: dict[str, dict[str, Any]] = {
    "a string": {"messages": [{"role": "user", "content": "Hi"}]},
    "consecutive roles, which are merged": {"messages": [HI, HI, assistant(text("a")), assistant(text("b")), HI]},
    "results over two messages": {
        "messages": [HI, assistant(use("toolu_A"), use("toolu_B")), user(result("toolu_A")), user(result("toolu_B"))]
    },
    "calls over two messages": {
        "messages": [
            HI,
            assistant(use("toolu_A")),
            assistant(use("toolu_B")),
            user(result("toolu_B"), result("toolu_A")),
        ]
    },
    "text after the results": {"messages": [HI, assistant(use("toolu_A")), user(result("toolu_A"), text("More"))]},
    "results without content, and with blocks": {
        "messages": [
            *(HI, assistant(use("toolu_A"), use("toolu_B"))),
            user(
                {"type": "tool_result", "tool_use_id": "toolu_A"},
                result("toolu_B", content=[text("x"), {"type": "image", "source": {}}], is_error=True),
            ),
        ]
    },
    "nulls that the SDK writes out": {
        "messages": [
            HI,
            assistant(text("a") | {"citations": None}, use("toolu_A", caller=None, toolset_name=None)),
            user(result("toolu_A")),
        ]
    },
    "a block of the assistant that nobody knows": {"messages": [HI, assistant({"type": "hologram", "rays": 3}), HI]},
    "a pending server call beside a client call": {
        "messages": [
            HI,
            assistant(
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}, use("toolu_A")
            ),
            user(result("toolu_A")),
            assistant({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}),
            HI,
        ]
    },
    "system messages in between": {
        "messages": [HI, assistant(use("toolu_A")), {"role": "system", "content": "Note"}, user(result("toolu_A"))]
    },
    "tools of the API's own": {"tools": [TOOL, {"type": "bash_20250124", "name": "bash"}]},
    "system as text blocks": {"system": [text("Be brief.") | {"cache_control": {"type": "ephemeral"}}]},
    "a forced tool": {"tool_choice": {"type": "tool", "name": "read_file"}},
    "an id of an earlier message, answered again": {
        "messages": [
            *(HI, assistant(use("toolu_A")), user(result("toolu_A"))),
            *(assistant(use("toolu_A")), user(result("toolu_A"))),
        ]
    },
    "a forced tool with adaptive thinking": {"tool_choice": {"type": "any"}, "thinking": {"type": "adaptive"}},
    "no thinking when it is optional": {
        "messages": [HI, assistant(use("toolu_A")), user(result("toolu_A"))],
        "thinking": {"type": "adaptive"},
    },
    "fields of older SDKs": {"temperature": 0.5, "top_p": 1, "top_k": 5, "output_format": {"type": "json_schema"}},
    "an empty final assistant message": {"messages": [HI, assistant()]},
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_the_api_takes_is_taken(name: str) -> None:
    """Unusual but legal requests break no rule."""
    assert check({"messages": [HI]} | BASE | ACCEPTED[name], Facts(paused=name.startswith("an empty final"))) is None


def refusal(request: dict[str, Any], facts: Facts) -> str | None:
    violation = check({"messages": [HI]} | BASE | request, facts)
    return violation.message if violation else None


def test_rules_that_depend_on_what_the_model_said() -> None:
    """Thinking must come back first and as it was given; only the model knows what it gave."""
    given = Facts(thinking=(thinking("One."), thinking("Two.")), signatures=frozenset({"c2ln"}))
    changed = (
        "messages.1.content.{at}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be"
        " modified. These blocks must remain as they were in the original response."
    )

    def sent(*content: Any) -> dict[str, Any]:
        return {"messages": [HI, assistant(*content, use("toolu_A")), user(result("toolu_A"))], "thinking": ASK}

    assert refusal(sent(thinking("One."), thinking("Two.")), given) is None
    assert refusal(sent(thinking("One."), thinking("Zwei.")), given) == changed.format(at=1)
    assert refusal(sent(thinking("Two."), thinking("One.")), given) == changed.format(at=0)
    assert refusal(sent(thinking("One.")), given) == changed.format(at=0)
    assert refusal(sent(*[thinking("One."), thinking("Two.")] * 2), given) == changed.format(at=2)
    assert refusal(sent(), given) == THINKING_FIRST
    assert refusal(sent(text("a"), thinking("One."), thinking("Two.")), given) == THINKING_FIRST.replace(
        "found `tool_use`", "found `text`"
    )
    assert refusal(sent(), Facts()) == THINKING_FIRST
    assert refusal(sent(), Facts(thinking=())) is None
    assert refusal(sent() | {"thinking": {"type": "disabled"}}, given) is None


def test_the_end_of_a_conversation() -> None:
    """Only a paused answer, or a model that takes prefill, lets a conversation end with the assistant."""
    answer = {"messages": [HI, assistant(text("The answer is"))]}
    blank_end = {"messages": [HI, assistant(text("The answer is "))]}
    older = (
        "Your API request included an `assistant` message in the final position, which would pre-fill the `assistant`"
        " response. When using tools, pre-filling the `assistant` response is not supported."
    )
    assert refusal(answer, Facts()) == NO_PREFILL
    assert refusal(answer, Facts(paused=True)) is None
    assert refusal(answer, Facts(prefill=True)) == older
    assert refusal(answer | {"tools": []}, Facts(prefill=True)) is None
    assert refusal(blank_end | {"tools": []}, Facts(prefill=True)) == (
        "messages: final assistant content cannot end with trailing whitespace"
    )
    paused_thought = {"messages": [HI, assistant(thinking())], "thinking": {"type": "disabled"}}
    assert refusal(paused_thought, Facts(paused=True)) == (
        "messages.1.content.0: When thinking is disabled, an `assistant` message in the final position cannot contain"
        " `thinking`. To use thinking blocks, enable `thinking` in your request."
    )
    assert refusal({"messages": [assistant(text("Hi")), HI]}, Facts(any_first_role=True)) is None


def test_the_context_window() -> None:
    """Too much input, alone or together with max_tokens, is refused when the model has a window."""
    assert refusal({}, Facts(input_tokens=208_310, context_window=200_000)) == (
        "prompt is too long: 208310 tokens > 200000 maximum"
    )
    assert refusal({}, Facts(input_tokens=199_000, context_window=200_000)) == (
        "input length and `max_tokens` exceed context limit: 199000 + 2048 > 200000, decrease input length or"
        " `max_tokens` and try again"
    )
    assert refusal({}, Facts(input_tokens=100, context_window=200_000)) is None


def test_the_number_of_messages_is_limited() -> None:
    """The documented limit of 100,000 messages holds, before any of them is looked at."""
    assert refusal({"messages": [HI] * 100_000}, Facts()) is None
    assert refusal({"messages": [None] * 100_001}, Facts()) == (
        "messages: List should have at most 100000 items after validation, not 100001"
    )


def test_fields_of_the_beta_api_are_taken_where_it_is_asked_for() -> None:
    """`context_management` and its like need the beta API; counting tokens needs no max_tokens."""
    request = {"messages": [HI], **BASE, "context_management": {}}
    assert check(request, beta=True) is None
    assert (
        check({key: value for key, value in request.items() if key != "max_tokens"}, beta=True, counting=True) is None
    )


@pytest.mark.parametrize(
    ("body", "violation"),
    [
        (
            rb'{"model": "m", "x": "\ud83d"}',
            "The request body is not valid JSON: no low surrogate in string: line 1 column 28 (char 27)",
        ),
        (rb'["\ud83d\n"]', "The request body is not valid JSON: no low surrogate in string: line 1 column 9 (char 8)"),
        (
            rb'["\ud83d\ud83d\ude00"]',
            "The request body is not valid JSON: no low surrogate in string: line 1 column 9 (char 8)",
        ),
        (rb'["\ude00"]', "The request body is not valid JSON: no low surrogate in string: line 1 column 9 (char 8)"),
        (b'{"model": ', "The request body is not valid JSON: Expecting value: line 1 column 11 (char 10)"),
        (b"[" * 200_000, None),
        (b"[1]", "Input should be a valid dictionary"),
    ],
)
def test_bodies_that_are_no_request(body: bytes, violation: str | None) -> None:
    """What is not JSON, holds half a surrogate pair, or is no object, is refused as such."""
    found = parse_body(body)
    assert isinstance(found, Violation)
    assert (found.status, found.type) == (400, "invalid_request_error")
    assert violation is None or found.message == violation


def test_bodies_that_are_requests() -> None:
    """Whole surrogate pairs, escaped backslashes before a u, and any Unicode are JSON."""
    assert parse_body(rb'{"a": "\ud83d\ude00 \\ud83d \u00e9"}') == {"a": "\U0001f600 \\ud83d \xe9"}
    assert parse_body('{"a": "ü😀"}'.encode()) == {"a": "ü😀"}


def test_a_body_beyond_the_limit_is_too_large() -> None:
    """More than 32 MB are refused with 413 before anything is parsed."""
    assert parse_body(b" " * (32 * 1024 * 1024 + 1)) == Violation(
        413, "request_too_large", "Request exceeds the maximum size"
    )


def typed_dicts(union: Any) -> typing.Iterator[Any]:
    for member in typing.get_args(union):
        if typing_extensions.is_typeddict(member):
            yield member
        else:
            yield from typed_dicts(member)


def kinds(member: Any) -> tuple[str, ...]:
    return typing.get_args(typing_extensions.get_type_hints(member)["type"])


def test_our_lists_of_fields_are_those_of_the_sdk() -> None:
    """Request fields, block types with their fields, tool fields: the literal lists equal what the SDK declares."""
    headers = {"betas", "user_profile_id", "workspace_id"}
    assert Params.__annotations__.keys() - headers | {"stream"} == REQUEST_FIELDS
    assert BetaParams.__annotations__.keys() - Params.__annotations__.keys() - headers == BETA_FIELDS
    blocks: dict[str, set[str]] = {}
    for union in (ContentBlockParam, BetaContentBlockParam):
        for member in typed_dicts(union):
            for kind in kinds(member):
                blocks.setdefault(kind, set()).update(member.__annotations__)
    assert {kind: set(fields.names()) for kind, fields in BLOCKS.items()} == blocks
    content = [kinds(member)[0] for member in typed_dicts(tool_result_block_param.Content)]
    assert sorted(RESULT_CONTENT) == sorted(content)
    assert CUSTOM_TOOL.names() == ToolParam.__annotations__.keys() == BetaToolParam.__annotations__.keys()
