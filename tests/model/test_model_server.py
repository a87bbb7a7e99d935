"""The local model over real HTTP on loopback."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import socket
import statistics
import threading
import time
from typing import TYPE_CHECKING, Any

import anthropic
import httpx2
import pytest

from harness.errors import ModelError
from harness.model.local import LocalModel
from harness.model.script import Script
from harness.model.server import ModelServer

if TYPE_CHECKING:
    from collections.abc import Iterator

CALL = {"call": {"write_file": {"path": "a.txt", "content": "a long text that is cut in its middle"}}}
REQUEST: dict[str, Any] = {
    "model": "claude-sonnet-5",
    "max_tokens": 1024,
    "messages": [{"role": "user", "content": "Begin."}],
    "tools": [{"name": "write_file", "input_schema": {"type": "object"}}],
}


def model_of(*steps: dict[str, Any]) -> LocalModel:
    return LocalModel(Script.parse(list(steps)))


@pytest.fixture(scope="module")
def served() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="module")
def shared_client(served: ModelServer) -> Iterator[anthropic.Anthropic]:
    """One client for all tests, as the client of a loop's module lives through all cases."""
    http_client = httpx2.Client(verify=False)
    with anthropic.Anthropic(api_key="x", base_url=served.url, max_retries=0, http_client=http_client) as client:
        yield client


@pytest.fixture
def server(served: ModelServer, caplog: pytest.LogCaptureFixture) -> Iterator[ModelServer]:
    """The server, and the promise that nothing it did was logged as an error."""
    served.model = None
    yield served
    served.model = None
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


def stream(client: anthropic.Anthropic) -> Any:
    with client.messages.stream(**REQUEST) as events:
        return events.get_final_message()


def test_the_same_answers_as_in_process(server: ModelServer, shared_client: anthropic.Anthropic) -> None:
    """Whole or streamed, over HTTP comes what the model said."""
    server.model = model_of(CALL)
    for message in (shared_client.messages.create(**REQUEST), stream(shared_client)):
        assert message.content[0].input == CALL["call"]["write_file"]
        assert message.stop_reason == "tool_use"
    assert server.model.faults == []


def test_the_async_client(server: ModelServer) -> None:
    """The async client works over the server too."""
    server.model = model_of({"say": "Hello."})

    async def ask() -> Any:
        http_client = httpx2.AsyncClient(verify=False)
        async with anthropic.AsyncAnthropic(api_key="x", base_url=server.url, http_client=http_client) as client:
            return await client.messages.create(**REQUEST)

    assert asyncio.run(ask()).content[0].text == "Hello."


def test_models_change_while_clients_stay(server: ModelServer, shared_client: anthropic.Anthropic) -> None:
    """Each case sets its model; the client made at import goes on working, and faults go to the right model."""
    for word in ("One.", "Two."):
        server.model = model_of({"say": word})
        assert shared_client.messages.create(**REQUEST).content[0].text == word
    first, server.model = server.model, model_of(CALL)
    with pytest.raises(anthropic.BadRequestError):
        shared_client.messages.create(**REQUEST | {"tools": []})
    assert (len(first.faults), len(server.model.faults)) == (0, 1)


def test_a_request_outside_of_any_case(server: ModelServer, shared_client: anthropic.Anthropic) -> None:
    """Without a model the answer is an error that says so, and that no client retries."""
    with pytest.raises(anthropic.BadRequestError, match="no case is running"):
        shared_client.with_options(max_retries=2).messages.create(**REQUEST)


@pytest.mark.parametrize(
    ("kind", "streaming", "error", "cause"),
    [
        ("disconnect", False, anthropic.APIConnectionError, httpx2.RemoteProtocolError),
        ("disconnect", True, anthropic.APIConnectionError, httpx2.RemoteProtocolError),
        ("mid_stream", False, anthropic.APIConnectionError, httpx2.RemoteProtocolError),
        ("mid_stream", True, anthropic.APIStatusError, None),
        ("truncated", False, ValueError, None),
        ("timeout", False, anthropic.APITimeoutError, httpx2.ReadTimeout),
        ("timeout", True, anthropic.APITimeoutError, httpx2.ReadTimeout),
        (529, False, anthropic.OverloadedError, None),
    ],
)
def test_real_failures(
    server: ModelServer,
    shared_client: anthropic.Anthropic,
    kind: Any,
    streaming: bool,
    error: type[Exception],
    cause: type[Exception] | None,
) -> None:
    """Connections are really cut, streams really end early, and the next attempt is answered."""
    server.model = model_of({"fail": kind}, CALL)
    client = shared_client.with_options(timeout=0.2 if kind == "timeout" else 10)
    with pytest.raises(error) as caught:
        stream(client) if streaming else client.messages.create(**REQUEST)
    if cause is not None:
        assert isinstance(caught.value.__cause__, cause)
    assert client.messages.create(**REQUEST).stop_reason == "tool_use"
    assert server.model.faults == []


def test_a_truncated_stream(server: ModelServer, shared_client: anthropic.Anthropic) -> None:
    """Over HTTP too the SDK takes a stream that ends early for an answer."""
    server.model = model_of({"fail": "truncated"}, CALL)
    message = stream(shared_client)
    assert (message.stop_reason, message.content[0].input) == (None, {"path": "a.txt"})


def test_events_arrive_one_by_one(server: ModelServer) -> None:
    """A stream is sent in chunks, an event each, as clients in other languages expect it."""
    server.model = model_of({"say": "x" * 200})
    connection = http.client.HTTPConnection("127.0.0.1", int(server.url.rpartition(":")[2]), timeout=10)
    connection.request("POST", "/v1/messages", json.dumps(REQUEST | {"stream": True}), {"x-api-key": "any"})
    response = connection.getresponse()
    assert (response.status, response.headers["transfer-encoding"]) == (200, "chunked")
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    body = response.read().decode()
    connection.close()
    assert [line.removeprefix("event: ") for line in body.splitlines() if line.startswith("event: ")] == [
        *("message_start", "ping", "content_block_start"),
        *["content_block_delta"] * 5,
        *("content_block_stop", "message_delta", "message_stop"),
    ]


def test_paths_and_queries_reach_the_model(server: ModelServer) -> None:
    """Beta requests are told by their query; unknown paths are 404 in the API's form."""
    server.model = model_of({"say": "Hi."})
    with httpx2.Client(verify=False) as client:
        beta = client.post(f"{server.url}/v1/messages?beta=true", json=REQUEST | {"context_management": {}})
        missing = client.get(f"{server.url}/v1/models?limit=1")
    assert (beta.status_code, missing.status_code) == (200, 404)
    assert missing.json()["error"] == {"type": "not_found_error", "message": "Not found: GET /v1/models"}


def test_a_proxy_header_does_not_hide_the_connection(server: ModelServer) -> None:
    """A client that names another address is still the one whose connection is cut."""
    server.model = model_of({"fail": "disconnect"}, CALL)
    with httpx2.Client(verify=False) as client, pytest.raises(httpx2.RemoteProtocolError):
        client.post(f"{server.url}/v1/messages", json=REQUEST, headers={"x-forwarded-for": "10.0.0.1"})


def test_answers_do_not_wait_for_acknowledgements(server: ModelServer, shared_client: anthropic.Anthropic) -> None:
    """An answer does not usually take the 40 ms of a delayed acknowledgement."""
    server.model = model_of(CALL)
    times = []
    for _ in range(15):
        started = time.perf_counter()
        shared_client.messages.create(**REQUEST)
        times.append(time.perf_counter() - started)
    assert statistics.median(times) < 0.03


def test_large_bodies(server: ModelServer, shared_client: anthropic.Anthropic) -> None:
    """Requests and answers of megabytes pass."""
    server.model = model_of({"say": "y" * 2_000_000})
    big = REQUEST | {"messages": [{"role": "user", "content": "x" * 3_000_000}]}
    assert len(shared_client.messages.create(**big).content[0].text) == 2_000_000


def test_a_client_that_leaves_in_the_middle_of_its_request(server: ModelServer) -> None:
    """A connection that breaks before the request is whole disturbs nobody."""
    server.model = model_of({"say": "Hi."})
    with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))) as connection:
        connection.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
    with httpx2.Client(verify=False) as client:
        assert client.post(f"{server.url}/v1/messages", json=REQUEST).status_code == 200
    assert server.model.faults == []


def test_stopping_is_quick_and_leaves_no_thread() -> None:
    """Open connections and answers that never come do not hold the server up; it can be started again."""
    server = ModelServer(model_of({"fail": "timeout"}))
    for _ in range(2):
        before = threading.active_count()
        with server:
            waiting = http.client.HTTPConnection("127.0.0.1", int(server.url.rpartition(":")[2]), timeout=10)
            waiting.request("POST", "/v1/messages", json.dumps(REQUEST))
            idle = socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])))
            time.sleep(0.02)
            started = time.monotonic()
        assert time.monotonic() - started < 1
        assert threading.active_count() == before
        waiting.close()
        idle.close()


def test_the_url_belongs_to_a_running_server() -> None:
    """Without a running server there is no URL, and the error says what to do."""
    with pytest.raises(ModelError, match="use it in a `with` block"):
        _ = ModelServer().url


def test_a_port_that_is_taken() -> None:
    """A port that somebody has is named in an error, and only loopback is ever bound."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ModelError, match=f"cannot listen on 127.0.0.1:{port}"), ModelServer(port=port):
            pass
    with ModelServer(port=port) as server:
        assert server.url == f"http://127.0.0.1:{port}"
