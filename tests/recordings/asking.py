"""Loops around a real SDK client that is served recorded answers, and everything that such a loop sees."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import anthropic
import httpx2

from harness import Recorder
from tests.recordings.reading import Exchange

__all__ = ["ASYNC_WAYS", "WAYS", "Seen", "async_client", "converse", "converse_async", "sync_client"]

_CHUNK: Final = 1000
"""Bytes a chunk: small enough to cut events, and to let a loop act before the answer is over."""

_REQUEST: Final[dict[str, Any]] = {"model": "claude-sonnet-5", "max_tokens": 1024}


@dataclass
class Seen:
    """What a loop saw and did.

    `views` holds what the SDK gave for each answer, as plain data, or the exception with its text; `calls` what was
    executed, with the number of the answer, counted from 1 over those that were no errors.
    """

    views: list[Any] = field(default_factory=list)
    calls: list[tuple[int, str, Any]] = field(default_factory=list)


class _Chunks(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    def __init__(self, body: bytes) -> None:
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, len(self._body), _CHUNK):
            yield self._body[start : start + _CHUNK]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self:
            yield chunk


def _transport(exchanges: Sequence[Exchange]) -> httpx2.MockTransport:
    """Gives the recorded answers in their order, whatever is asked."""
    left = iter(exchanges)

    def respond(_: httpx2.Request) -> httpx2.Response:
        exchange = next(left)
        return httpx2.Response(exchange.status, headers=dict(exchange.headers), stream=_Chunks(exchange.body))

    return httpx2.MockTransport(respond)


def sync_client(exchanges: Sequence[Exchange], recorder: Recorder | None) -> anthropic.Anthropic:
    """A client that is given the answers of `exchanges`, with or without a recorder."""
    return anthropic.Anthropic(
        api_key="k",
        http_client=httpx2.Client(transport=_transport(exchanges)),
        max_retries=0,
        timeout=60,  # with the default one, the SDK refuses requests that may take long and do not stream
        middleware=[recorder.middleware] if recorder else [],
    )


def async_client(exchanges: Sequence[Exchange], recorder: Recorder | None) -> anthropic.AsyncAnthropic:
    """The same for asyncio."""
    return anthropic.AsyncAnthropic(
        api_key="k",
        http_client=httpx2.AsyncClient(transport=_transport(exchanges)),
        max_retries=0,
        timeout=60,
        middleware=[recorder.middleware] if recorder else [],
    )


# Ways to ask: each returns what the SDK gave, as plain data, and the content to go on with.  `execute` is called with
# the name and the input of each tool_use block, as early as the way allows.

Execute = Callable[[str, Any], None]
Answer = tuple[Any, list[Any]]


def _created(api: Any, execute: Execute, request: dict[str, Any]) -> Answer:
    return _of_message(api.create(**request), execute)


def _raw(api: Any, execute: Execute, request: dict[str, Any]) -> Answer:
    response = api.with_raw_response.create(**request)
    view, content = _of_message(response.parse(), execute)
    return [response.http_response.content, view], content


def _helped(api: Any, execute: Execute, request: dict[str, Any]) -> Answer:
    with api.stream(**request) as stream:
        events = [_plain(event) for event in stream]
        message, content = _of_message(stream.get_final_message(), execute)
    return [*events, message], content


def _streamed(api: Any, execute: Execute, request: dict[str, Any]) -> Answer:
    blocks = _Blocks(execute)
    return [blocks.take(event) for event in api.create(stream=True, **request)], blocks.content


def _bytes(api: Any, _: Execute, request: dict[str, Any]) -> Answer:
    with api.with_streaming_response.create(stream=True, **request) as response:
        return b"".join(response.iter_bytes()), []


async def _acreated(api: Any, execute: Execute, request: dict[str, Any]) -> Answer:
    return _of_message(await api.create(**request), execute)


async def _ahelped(api: Any, execute: Execute, request: dict[str, Any]) -> Answer:
    async with api.stream(**request) as stream:
        events = [_plain(event) async for event in stream]
        message, content = _of_message(await stream.get_final_message(), execute)
    return [*events, message], content


async def _astreamed(api: Any, execute: Execute, request: dict[str, Any]) -> Answer:
    blocks = _Blocks(execute)
    return [blocks.take(event) async for event in await api.create(stream=True, **request)], blocks.content


Ways = Mapping[str, Callable[..., Any]]

WAYS: Final[dict[str, Ways]] = {
    "create": {"whole": _created, "streaming": _streamed},
    "helper": {"whole": _created, "streaming": _helped},
    "raw": {"whole": _raw, "streaming": _bytes},
}
"""How a sync client may be asked for an answer that is whole, and for one that is streaming."""

ASYNC_WAYS: Final[dict[str, Ways]] = {
    "create": {"whole": _acreated, "streaming": _astreamed},
    "helper": {"whole": _acreated, "streaming": _ahelped},
}


def _plain(value: Any) -> Any:
    # An unknown kind of block does not fit the SDK's own types, of which pydantic would warn.
    return value.to_dict(mode="json", warnings=False)


def _of_message(message: Any, execute: Execute) -> Answer:
    for block in message.content:
        if block.type == "tool_use":
            execute(block.name, block.input)
    view = _plain(message)
    return view, view["content"]


class _Blocks:
    """Puts streamed blocks together as eager loops do: a tool runs as soon as its block is whole."""

    def __init__(self, execute: Execute) -> None:
        self.content: list[Any] = []
        self._inputs: dict[int, str] = {}
        self._execute = execute

    def take(self, event: Any) -> Any:
        data = _plain(event)
        if event.type == "message_start":
            self.content += data["message"]["content"]
            for block in self.content:
                self._run(block)
        elif event.type == "content_block_start":
            self._inputs[len(self.content)] = ""
            self.content.append(data["content_block"])
        elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            self._inputs[len(self.content) - 1] += event.delta.partial_json
        elif event.type == "content_block_stop":
            block = self.content[-1]
            if text := self._inputs.pop(len(self.content) - 1):
                block["input"] = json.loads(text)
            self._run(block)
        return data

    def _run(self, block: dict[str, Any]) -> None:
        if block["type"] == "tool_use":
            self._execute(block["name"], block["input"])


# The loop ------------------------------------------------------------------------------------------------------------


class _Conversation:
    """The state of a loop: it goes on for as long as there are answers, whatever they say."""

    def __init__(self, recorder: Recorder | None) -> None:
        self.seen = Seen()
        self.messages: list[Any] = [{"role": "user", "content": "Go."}]
        self._turn = 1
        self._dispatch = recorder.instrument(self._tool) if recorder else self._tool

    def _tool(self, name: str, tool_input: Any) -> str:
        self.seen.calls.append((self._turn, name, copy.deepcopy(tool_input)))
        if isinstance(tool_input, dict):
            tool_input["changed by the tool"] = True
        return "done"

    def execute(self, name: str, tool_input: Any) -> None:
        # A copy, so that what the tool does to its input is no part of what the SDK gave.
        self._dispatch(name, copy.deepcopy(tool_input))

    def request(self) -> dict[str, Any]:
        return {**_REQUEST, "messages": list(self.messages)}

    def answered(self, answer: Answer) -> None:
        view, content = answer
        self.seen.views.append(view)
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "done"}
            for block in content
            if block["type"] == "tool_use"
        ]
        reply = results or [{"type": "text", "text": "Go on."}]
        self.messages += [{"role": "assistant", "content": content}, {"role": "user", "content": reply}]
        self._turn += 1

    def failed(self, error: Exception) -> None:
        self.seen.views.append((type(error).__name__, str(error)))


def _api(client: Any, beta: bool) -> Any:
    return client.beta.messages if beta else client.messages


def _kind(exchange: Exchange) -> str:
    return "streaming" if exchange.streams else "whole"


def converse(exchanges: Sequence[Exchange], ways: Ways, beta: bool, recorder: Recorder | None) -> Seen:
    """Run a loop to the end of the answers.

    Args:
        exchanges: whose answers it gets.
        ways: how to ask: one of `WAYS`.
        beta: whether to ask the beta API.
        recorder: who listens, at the client and at the dispatcher.
    """
    conversation = _Conversation(recorder)
    api = _api(sync_client(exchanges, recorder), beta)
    for exchange in exchanges:
        try:
            answer = ways[_kind(exchange)](api, conversation.execute, conversation.request())
        except (anthropic.AnthropicError, ValueError, RuntimeError) as error:
            conversation.failed(error)
        else:
            conversation.answered(answer)
    return conversation.seen


async def converse_async(exchanges: Sequence[Exchange], ways: Ways, beta: bool, recorder: Recorder | None) -> Seen:
    """The same for asyncio; `ways` is one of `ASYNC_WAYS`."""
    conversation = _Conversation(recorder)
    api = _api(async_client(exchanges, recorder), beta)
    for exchange in exchanges:
        try:
            answer = await ways[_kind(exchange)](api, conversation.execute, conversation.request())
        except (anthropic.AnthropicError, ValueError, RuntimeError) as error:
            conversation.failed(error)
        else:
            conversation.answered(answer)
    return conversation.seen
