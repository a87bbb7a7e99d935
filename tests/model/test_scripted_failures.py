"""Scripted failures, as the SDK's sync, async and streaming clients meet them."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import anthropic
import httpx2
import pytest

from harness.model.local import LocalModel
from harness.model.script import Script
from harness.model.transport import MODEL_URL, async_client, sync_client
from harness.wire import encode_event, stream_events

CALL = {"call": {"write_file": {"path": "a.txt", "content": "a long text that is cut in its middle"}}}
REQUEST: dict[str, Any] = {
    "model": "claude-sonnet-5",
    "max_tokens": 1024,
    "messages": [{"role": "user", "content": "Begin."}],
    "tools": [{"name": "write_file", "input_schema": {"type": "object"}}],
}


class Counted(LocalModel):
    """A local model that counts HTTP requests."""

    hits = 0

    def handle(self, *request: Any) -> Any:
        self.hits += 1
        return super().handle(*request)


def create(model: LocalModel, **options: Any) -> Any:
    return sync_client(model, **options).messages.create(**REQUEST)


def stream(model: LocalModel, **options: Any) -> Any:
    with sync_client(model, **options).messages.stream(**REQUEST) as events:
        return events.get_final_message()


def create_async(model: LocalModel, **options: Any) -> Any:
    async def ask() -> Any:
        async with async_client(model, **options) as client:
            return await client.messages.create(**REQUEST)

    return asyncio.run(ask())


def stream_async(model: LocalModel, **options: Any) -> Any:
    async def ask() -> Any:
        async with async_client(model, **options) as client, client.messages.stream(**REQUEST) as events:
            return await events.get_final_message()

    return asyncio.run(ask())


WHOLE = [create, create_async]
STREAMED = [stream, stream_async]
every_client = pytest.mark.parametrize("ask", WHOLE + STREAMED)


def model_of(*steps: dict[str, Any]) -> Counted:
    return Counted(Script.parse(list(steps)))


def called(message: Any) -> Any:
    """The input of the one call, if the message is whole."""
    assert message.stop_reason == "tool_use"
    [block] = message.content
    return block.input


@every_client
@pytest.mark.parametrize(
    ("status", "kind", "error", "hits"),
    [
        (400, "invalid_request_error", anthropic.BadRequestError, 1),
        (401, "authentication_error", anthropic.AuthenticationError, 1),
        (402, "billing_error", anthropic.PaymentRequiredError, 1),
        (403, "permission_error", anthropic.PermissionDeniedError, 1),
        (404, "not_found_error", anthropic.NotFoundError, 1),
        (409, "conflict_error", anthropic.ConflictError, 3),
        (413, "request_too_large", anthropic.ContentTooLargeError, 1),
        (429, "rate_limit_error", anthropic.RateLimitError, 3),
        (500, "api_error", anthropic.InternalServerError, 3),
        (504, "timeout_error", anthropic.GatewayTimeoutError, 3),
        (529, "overloaded_error", anthropic.OverloadedError, 3),
    ],
)
def test_statuses_are_those_of_the_api(ask: Any, status: int, kind: str, error: type[Exception], hits: int) -> None:
    """Each status comes with its type and class, is retried by the SDK or not, and is no fault of the loop."""
    model = model_of({"fail": status, "times": 9, "message": "As scripted."}, CALL)
    with pytest.raises(anthropic.APIStatusError) as caught:
        ask(model)
    assert type(caught.value) is error
    assert (caught.value.status_code, caught.value.type, model.hits) == (status, kind, hits)
    assert caught.value.body["error"]["message"] == "As scripted."
    assert model.faults == []


@every_client
def test_the_sdk_retries_past_a_failure_without_sleeping(ask: Any) -> None:
    """The SDK's own retry gets the answer behind the failures, and no test waits for its back-off."""
    model = model_of({"fail": 529}, {"fail": 429}, CALL)
    started = time.monotonic()
    assert called(ask(model)) == CALL["call"]["write_file"]
    assert time.monotonic() - started < 0.4
    assert model.hits == 3


def test_retry_after_is_sent_as_it_is_scripted() -> None:
    """A scripted `retry_after` is the only wait that is asked for; otherwise it is one millisecond."""
    headers = []
    for step in ({"fail": 429, "retry_after": 1.5}, {"fail": 429}, {"fail": 401}):
        with pytest.raises(anthropic.APIStatusError) as caught:
            create(model_of(step, CALL), max_retries=0)
        sent = caught.value.response.headers
        headers.append((sent.get("retry-after"), sent.get("retry-after-ms")))
    assert headers == [("1.5", None), (None, "1"), (None, None)]


@every_client
@pytest.mark.parametrize(
    ("kind", "error"), [("disconnect", anthropic.APIConnectionError), ("timeout", anthropic.APITimeoutError)]
)
def test_connections_that_end_before_they_answer(ask: Any, kind: str, error: type[Exception]) -> None:
    """A dropped connection and a timeout are what the SDK makes of the real ones; the next attempt is answered."""
    model = model_of({"fail": kind}, CALL)
    with pytest.raises(anthropic.APIConnectionError) as caught:
        ask(model, max_retries=0)
    assert type(caught.value) is error
    assert called(ask(model)) == CALL["call"]["write_file"]
    assert (model.hits, model.faults) == (2, [])


@pytest.mark.parametrize("ask", STREAMED)
def test_an_error_in_the_middle_of_a_stream(ask: Any) -> None:
    """It comes as the base class with status 200 and is not retried: the case that `except OverloadedError` misses."""
    model = model_of({"fail": "mid_stream"}, CALL)
    with pytest.raises(anthropic.APIStatusError) as caught:
        ask(model)
    assert type(caught.value) is anthropic.APIStatusError
    assert (caught.value.status_code, caught.value.type, model.hits) == (200, "overloaded_error", 1)
    assert called(ask(model)) == CALL["call"]["write_file"]


@pytest.mark.parametrize("ask", WHOLE)
def test_a_body_cut_in_its_middle(ask: Any) -> None:
    """Without streaming, `mid_stream` cuts the connection inside the JSON body."""
    model = model_of({"fail": "mid_stream"}, CALL)
    with pytest.raises(anthropic.APIConnectionError) as caught:
        ask(model, max_retries=0)
    assert isinstance(caught.value.__cause__, httpx2.RemoteProtocolError)
    assert called(ask(model)) == CALL["call"]["write_file"]


@pytest.mark.parametrize("ask", STREAMED)
def test_a_truncated_stream_is_taken_for_an_answer_by_the_sdk(ask: Any) -> None:
    """The trap that a loop must see for itself: no exception, no stop_reason, and part of the tool's input."""
    model = model_of({"fail": "truncated"}, CALL)
    message = ask(model)
    assert message.stop_reason is None
    assert message.content[0].input == {"path": "a.txt"}
    assert called(ask(model)) == CALL["call"]["write_file"]
    assert model.hits == 2


@pytest.mark.parametrize("ask", WHOLE)
def test_a_truncated_body_is_no_json(ask: Any) -> None:
    """Without streaming, `truncated` ends the body cleanly in its middle."""
    model = model_of({"fail": "truncated"}, CALL)
    with pytest.raises(ValueError, match="column"):
        ask(model)
    assert called(ask(model)) == CALL["call"]["write_file"]


@pytest.mark.parametrize(
    ("step", "left"),
    [
        ({"say": "abcdef"}, [{"type": "text", "text": "abc"}]),
        ({"think": "abcd"}, [{"type": "thinking", "thinking": "abcd"}]),
        (
            {"blocks": [{"type": "text", "text": "ab", "citations": [{"type": "page_location"}]}]},
            [{"type": "text", "text": "ab", "citations": [{"type": "page_location"}]}],
        ),
        ({"blocks": [{"type": "hologram"}]}, []),
        ({"call": {"write_file": {}}}, [{"type": "tool_use", "name": "write_file", "input": {}}]),
    ],
)
@pytest.mark.parametrize("kind", ["truncated", "mid_stream"])
def test_streams_end_inside_any_content(post: Any, reading: Any, step: dict[str, Any], left: Any, kind: str) -> None:
    """Whatever would have been said, a stream that fails ends inside it and is not complete."""
    reader = reading(post(model_of({"fail": kind}, step), REQUEST | {"stream": True}))
    for block in reader.message["content"]:
        block.pop("id", None)
        block.pop("signature", None)
    assert (reader.message["content"], reader.complete) == (left, False)
    assert (reader.error is not None) == (kind == "mid_stream")


def test_failures_with_nothing_behind_them(post: Any, reading: Any) -> None:
    """A script may end in failures; when they are spent there is nothing left to say."""
    model = model_of({"fail": "truncated"}, {"fail": 529, "times": 2})
    replies = [post(model, REQUEST | {"stream": True}) for _ in range(4)]
    assert [reply.status for reply in replies] == [200, 529, 529, 400]
    assert not reading(replies[0]).complete
    assert [fault.kind for fault in model.faults] == ["exhausted"]


def test_failures_are_counted_by_conversation(post: Any) -> None:
    """Another conversation at the same place of the script meets the failure anew; a longer last message does not."""
    model = model_of({"fail": 529}, CALL)
    ask_first = REQUEST["messages"][0]
    again = REQUEST | {"messages": [ask_first, {"role": "user", "content": "Please."}]}
    other = REQUEST | {"messages": [{"role": "user", "content": "Another task."}]}
    assert [post(model, one).status for one in (REQUEST, again, REQUEST, other, other)] == [529, 200, 200, 529, 200]


# What the SDK makes of streams (PROTOCOL section 5): the reasons why a loop must judge completeness itself ------------

MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-5",
    "content": [{"type": "tool_use", "id": "toolu_1", "name": "write_file", "input": CALL["call"]["write_file"]}],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 5, "output_tokens": 5},
}
EVENTS = list(stream_events(MESSAGE))


def over(events: list[Any], *, cut: bool = False) -> Any:
    """What `get_final_message` gives for a body of these events."""

    def body() -> Any:
        yield b"".join(encode_event(*event) for event in events)
        if cut:
            raise httpx2.RemoteProtocolError("peer closed connection")

    class Canned(httpx2.BaseTransport):
        def handle_request(self, _request: httpx2.Request) -> httpx2.Response:
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body())

    client = anthropic.Anthropic(api_key="x", base_url=MODEL_URL, http_client=httpx2.Client(transport=Canned()))
    with client.messages.stream(**REQUEST) as stream:
        return stream.get_final_message()


def delta(text: str) -> Any:
    event = {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}}
    return ("content_block_delta", event)


def test_what_the_sdk_returns_for_streams_that_are_not_whole() -> None:
    """It returns what came, without an exception, however little that is."""
    assert over(EVENTS).to_dict()["content"] == MESSAGE["content"]
    assert over(EVENTS[:-1]).stop_reason == "tool_use"
    assert over(EVENTS[:-2]).stop_reason is None
    assert over(EVENTS[:3]).content[0].input == {}
    partial = over([*EVENTS[:3], delta('{"path": "a.txt", "con')])
    assert (partial.stop_reason, partial.content[0].input) == (None, {"path": "a.txt"})


def test_what_the_sdk_raises_for_streams_that_are_not_whole() -> None:
    """What it raises is often no APIError, so a loop has to catch more."""
    error = ("error", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    with pytest.raises(httpx2.RemoteProtocolError):
        over([*EVENTS[:3], delta('{"pa')], cut=True)
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        over([error])
    with pytest.raises(ValueError, match="Unable to parse tool parameter JSON"):
        over([*EVENTS[:3], delta("{]"), *EVENTS[-3:]])
    with pytest.raises(AssertionError):
        over([])
