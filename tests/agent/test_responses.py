"""Only whole responses count: everything that PROTOCOL.md 5 saw the SDK accept, raise or leak."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import pytest

from harness.agent.backoff import delay_before
from harness.agent.effects import Lost, Whole
from harness.agent.requests import unfit
from harness.agent.responses import ask, ask_async, without_own_retries
from harness.agent.state import Call, State
from harness.errors import OffScriptError
from harness.wire import encode_event, stream_events

MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-test",
    "content": [
        {"type": "text", "text": "Writing."},
        {"type": "tool_use", "id": "toolu_1", "name": "write", "input": {"path": "a.txt", "content": "whole"}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 5, "output_tokens": 7},
}
EVENTS = [encode_event(event, data) for event, data in stream_events(MESSAGE)]
REQUEST = {"model": "claude-test", "max_tokens": 10, "messages": [{"role": "user", "content": "x"}]}
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
REFUSED = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}


class Body(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """Bytes, and then perhaps a socket that breaks."""

    def __init__(self, data: bytes, error: Exception | None = None) -> None:
        self.data, self.error = data, error

    def __iter__(self) -> Any:
        yield self.data
        if self.error:
            raise self.error

    async def __aiter__(self) -> Any:
        for part in self:
            yield part


def asked(answer: Callable[[httpx2.Request], httpx2.Response], *, stream: bool) -> Whole | Lost:
    """What both drivers make of an answer; they must agree.  The SDK must not have repeated the request."""
    hits = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        hits.append(request)
        return answer(request)

    async def handle_async(request: httpx2.Request) -> httpx2.Response:
        return handle(request)

    http = httpx2.Client(transport=httpx2.MockTransport(handle))
    client = without_own_retries(anthropic.Anthropic(api_key="k", http_client=http), asynchronous=False)
    one = ask(client, REQUEST, stream=stream, on_text=lambda _: None)
    async_http = httpx2.AsyncClient(transport=httpx2.MockTransport(handle_async))
    async_client = without_own_retries(anthropic.AsyncAnthropic(api_key="k", http_client=async_http), asynchronous=True)
    two = asyncio.run(ask_async(async_client, REQUEST, stream=stream, on_text=lambda _: None))
    assert one == two
    assert len(hits) == 2
    return one


def streamed(*events: bytes, error: Exception | None = None) -> Callable[[httpx2.Request], httpx2.Response]:
    headers = {"content-type": "text/event-stream"}
    return lambda _: httpx2.Response(200, headers=headers, stream=Body(b"".join(events), error))


def body(value: Any, status: int = 200, **headers: str) -> Callable[[httpx2.Request], httpx2.Response]:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return lambda _: httpx2.Response(status, headers={"content-type": "application/json", **headers}, stream=Body(data))


def position(kind: str) -> int:
    """Index of the first event of a kind."""
    return next(index for index, event in enumerate(EVENTS) if event.startswith(f"event: {kind}\n".encode()))


INPUT = next(index for index, event in enumerate(EVENTS) if b"input_json_delta" in event)


def test_a_whole_response_is_taken_as_it_came() -> None:
    """Streamed or not, the message is the one that the API sent."""
    for found in (asked(streamed(*EVENTS), stream=True), asked(body(MESSAGE), stream=False)):
        assert isinstance(found, Whole)
        assert found.message == MESSAGE


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(EVENTS[:-1], id="no message_stop"),
        pytest.param(EVENTS[: position("message_delta")], id="no message_delta"),
        pytest.param(EVENTS[: INPUT + 1], id="ends inside the JSON of a call"),
        pytest.param(EVENTS[:1], id="message_start only"),
        pytest.param([], id="nothing"),
        pytest.param(EVENTS[1:], id="no message_start"),
        pytest.param([event for event in EVENTS if b"content_block_stop" not in event], id="a block without its end"),
        pytest.param(
            [*EVENTS[:INPUT], EVENTS[INPUT].replace(b'"partial_json":"', b'"partial_json":"}{'), *EVENTS[INPUT + 1 :]],
            id="malformed JSON of a call",
        ),
        pytest.param([*EVENTS[:2], encode_event("error", OVERLOADED)], id="error event"),
        pytest.param([encode_event("error", OVERLOADED)], id="error event first"),
    ],
)
def test_a_stream_that_is_not_whole_is_asked_for_again(events: list[bytes]) -> None:
    """Half of a tool's input must never be executed, whatever the SDK makes of it."""
    found = asked(streamed(*events), stream=True)
    assert isinstance(found, Lost)
    assert found.again


@pytest.mark.parametrize(
    "error",
    [
        httpx2.RemoteProtocolError("peer closed"),
        httpx2.ReadTimeout("slow"),
        httpx2.ReadError("reset"),
        OSError("reset"),
    ],
    ids=repr,
)
def test_a_socket_that_breaks_is_asked_again(error: Exception) -> None:
    """Errors of the transport leak through the SDK under their own names."""
    for found in (
        asked(streamed(*EVENTS[: INPUT + 1], error=error), stream=True),
        asked(lambda _: raising(error), stream=False),
    ):
        assert isinstance(found, Lost)
        assert found.again


def raising(error: Exception) -> httpx2.Response:
    raise error


@pytest.mark.parametrize(
    ("status", "again"),
    [
        (400, False),
        (401, False),
        (402, False),
        (403, False),
        (404, False),
        (408, True),
        (409, True),
        (413, False),
        (422, False),
        (429, True),
        (500, True),
        (502, True),
        (504, True),
        (529, True),
    ],
)
def test_a_status_tells_whether_it_is_worth_another_request(status: int, again: bool) -> None:
    """PROTOCOL.md 3: what is temporary is repeated, what is refused is not."""
    found = asked(body(OVERLOADED if again else REFUSED, status), stream=False)
    assert isinstance(found, Lost)
    assert (found.again, found.status) == (again, status)


def test_an_error_event_of_a_refused_request_is_not_repeated() -> None:
    """Inside a stream the status is 200, and only the type tells."""
    found = asked(streamed(*EVENTS[:2], encode_event("error", REFUSED)), stream=True)
    assert found == Lost("200 invalid_request_error: no", again=False, status=200)


@pytest.mark.parametrize(("said", "again"), [("true", True), ("false", False)])
def test_the_server_knows_better(said: str, again: bool) -> None:
    """`x-should-retry` decides, as it does for the SDK."""
    found = asked(body(REFUSED, 400 if again else 529, **{"x-should-retry": said}), stream=False)
    assert isinstance(found, Lost)
    assert found.again is again


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_a_server_asks_for_is_read(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds or a date."""
    found = asked(body(OVERLOADED, 429, **headers), stream=False)
    assert isinstance(found, Lost)
    assert found.retry_after == seconds


@pytest.mark.parametrize(
    "data", [b'{"id": "msg', b"<html>bad gateway</html>", json.dumps({**MESSAGE, "stop_reason": None})]
)
def test_a_body_that_is_no_whole_message_is_asked_for_again(data: Any) -> None:
    """Half of a JSON body, a proxy's page, or a message without a stop_reason."""
    found = asked(body(data if isinstance(data, bytes) else data.encode()), stream=False)
    assert isinstance(found, Lost)
    assert found.again


def test_a_fault_of_the_local_model_is_no_fault_of_the_network() -> None:
    """What the harness itself raises goes through unchanged, also from inside the SDK."""
    with pytest.raises(OffScriptError, match="left the script"):
        asked(lambda _: raising_fault(), stream=False)


def raising_fault() -> httpx2.Response:
    try:
        raise OffScriptError("left the script")
    except OffScriptError as error:
        raise httpx2.ConnectError("wrapped") from error


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"role": "user"}, "the response is no assistant message"),
        ({"content": "text"}, "the response is no assistant message"),
        ({"stop_reason": None}, "the response ended without a stop_reason"),
        ({"content": ["text"]}, "the response holds something that is no content block"),
        (
            {"content": [{"type": "tool_use", "id": "a:b", "name": "t", "input": {}}]},
            "the response calls a tool under the id 'a:b', which the API would not take back",
        ),
        (
            {"content": [{"type": "tool_use", "id": "toolu_0", "name": "t", "input": {}}]},
            "the response calls a tool under the id 'toolu_0', which is taken",
        ),
        (
            {"content": [{"type": "tool_use", "id": "toolu_2", "name": "t", "input": "{"}]},
            "the call 'toolu_2' has no name or no input",
        ),
        (
            {"content": [{"type": "text", "text": "\ud800"}]},
            "the response holds half of a character (a lone surrogate), which the API would not take back",
        ),
        ({}, None),
    ],
)  # fmt: skip
def test_a_response_that_would_spoil_the_conversation_is_discarded(change: dict[str, Any], said: str | None) -> None:
    """Everything that would fail every later request is found before it becomes durable."""
    state = State("run", calls={"toolu_0": Call("toolu_0", 1, 0, "t", {}, "read_only")})
    assert unfit({**MESSAGE, **change}, state) == said


def test_waits_grow_to_a_limit_and_differ_by_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second, doubling to eight, shortened by up to a quarter; the server's own wish goes first."""
    monkeypatch.undo()  # the waits of tests are shorter
    for attempt, most in ((2, 0.5), (3, 1.0), (4, 2.0), (5, 4.0), (6, 8.0), (20, 8.0)):
        waits = {delay_before(attempt, f"run {number}", None) for number in range(50)}
        assert len(waits) == 50
        assert 0.75 * most <= min(waits) <= max(waits) <= most
    assert delay_before(2, "run", 3.5) == 3.5
    assert delay_before(3, "run", None) == delay_before(3, "run", None)
