"""The local model behind the SDK's own clients, in process."""

from __future__ import annotations

import asyncio
import gc
import socket
import warnings
from typing import Any

import anthropic
import pytest

from harness.errors import NetworkBlockedError
from harness.model.local import LocalModel
from harness.model.script import Script
from harness.model.transport import async_client, sync_client

STEPS: list[dict[str, Any]] = [
    {"think": "First.", "say": "Reading.", "call": {"read_file": {"path": "ü"}}},
    {
        "blocks": [
            {"type": "server_tool_use", "name": "web_search", "input": {"query": "x"}},
            {"type": "web_search_tool_result", "content": []},
            {"type": "redacted_thinking", "data": "ZGF0YQ=="},
        ],
        "call": [{"read_file": {"path": "b"}}, {"read_file": {"path": "c"}}],
    },
    {"say": "Searching", "stop_reason": "pause_turn"},
    {"blocks": [{"type": "hologram", "rays": 3}], "say": "Done."},
]
FIXED: dict[str, Any] = {
    "model": "claude-sonnet-5",
    "max_tokens": 1024,
    "tools": [{"name": "read_file", "input_schema": {"type": "object"}}],
}


def follow_up(messages: list[Any], message: Any) -> bool:
    """Keeps an answer as a loop should, by `to_dict`, and answers its calls; says whether to ask again.

    pydantic warns of block types that the SDK does not know.
    """
    messages.append({"role": "assistant", "content": message.to_dict(warnings=False)["content"]})
    calls = [block for block in message.content if block.type == "tool_use"]
    if calls:
        messages.append(
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "text"} for call in calls],
            }
        )
    return bool(calls) or message.stop_reason == "pause_turn"


def run(api: Any, *, stream: bool) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": "Begin."}]
    while True:
        if stream:
            with api.stream(messages=messages, **FIXED) as events:
                message = events.get_final_message()
        else:
            message = api.create(messages=messages, **FIXED)
        if not follow_up(messages, message):
            return messages


async def run_async(api: Any, *, stream: bool) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": "Begin."}]
    while True:
        if stream:
            async with api.stream(messages=messages, **FIXED) as events:
                message = await events.get_final_message()
        else:
            message = await api.create(messages=messages, **FIXED)
        if not follow_up(messages, message):
            return messages


def without_additions(messages: list[Any]) -> list[Any]:
    """The SDK's streaming helper adds fields of its own to text blocks; everything else must be equal."""
    for message in messages:
        for block in message["content"] if isinstance(message["content"], list) else ():
            block.pop("parsed_output", None)
    return messages


@pytest.mark.parametrize("beta", [False, True])
def test_all_clients_hold_the_same_conversation(beta: bool) -> None:
    """Sync or async, streaming or not, beta or not: the SDK's clients are led through the script to its end."""
    script = Script.parse(STEPS)
    conversations = []
    for stream in (False, True):
        model = LocalModel(script)
        client = sync_client(model)
        conversations.append(run(client.beta.messages if beta else client.messages, stream=stream))
        assert model.faults == []

        async def ask(model: LocalModel, stream: bool) -> list[Any]:
            async with async_client(model) as client:
                return await run_async(client.beta.messages if beta else client.messages, stream=stream)

        conversations.append(asyncio.run(ask(model, stream)))
        assert model.faults == []
    expected = [dict(block) for answer in script.answers() for block in answer.content]
    for conversation in map(without_additions, conversations):
        assert [block for one in conversation if one["role"] == "assistant" for block in one["content"]] == expected


def test_raw_events_are_those_of_the_api() -> None:
    """A loop that iterates over the events itself sees them in the API's order."""
    client = sync_client(LocalModel(Script.parse([{"say": "Hello."}])))
    events = client.messages.create(messages=[{"role": "user", "content": "Hi"}], stream=True, **FIXED)
    assert [event.type for event in events] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_middleware_and_other_options_pass_through() -> None:
    """What is given to the client function reaches the SDK's client."""
    seen = []

    def middleware(request: Any, call_next: Any) -> Any:
        seen.append(request.options.url)
        return call_next(request)

    client = sync_client(LocalModel(Script.parse([{"say": "Hi."}])), middleware=[middleware], max_retries=0)
    client.messages.create(messages=[{"role": "user", "content": "Hi"}], **FIXED)
    assert (seen, client.max_retries, client.api_key) == (["/v1/messages"], 0, "harness")


def test_counting_tokens_through_the_sdk() -> None:
    """The SDK's `count_tokens` is answered."""
    client = sync_client(LocalModel(Script.parse([{"say": "Hi."}])))
    assert client.messages.count_tokens(
        model="claude-sonnet-5", messages=[{"role": "user", "content": "Hi"}]
    ).input_tokens


@pytest.mark.parametrize("url", ["https://api.anthropic.com", "http://169.254.169.254:8080"])
def test_no_other_host_is_reached(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request to another host is an error that names it, at once, and is remembered; no socket is opened."""

    def no_socket(*_: Any, **__: Any) -> Any:
        raise AssertionError("a socket was opened")

    model = LocalModel(Script.parse([{"say": "Hi."}]))
    client = sync_client(model).with_options(base_url=url)
    monkeypatch.setattr(socket, "socket", no_socket)
    with pytest.raises(NetworkBlockedError, match=url) as caught:
        client.messages.create(messages=[{"role": "user", "content": "Hi"}], **FIXED)
    assert isinstance(caught.value, anthropic.AnthropicError)
    assert [(fault.kind, fault.message) for fault in model.faults] == [("network", str(caught.value))]


def test_environment_credentials_and_urls_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key or base URL of the environment never reaches a client of the local model."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-real")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://api.anthropic.com")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    client = sync_client(LocalModel(Script.parse([{"say": "Hi."}])))
    assert client.messages.create(messages=[{"role": "user", "content": "Hi"}], **FIXED).stop_reason == "end_turn"
    assert client.api_key == "harness"


def test_a_dropped_client_leaves_nothing_behind() -> None:
    """A client that nobody closes is collected without a warning."""

    async def drop() -> None:
        client = async_client(LocalModel(Script.parse([{"say": "Hi."}])))
        await client.messages.create(messages=[{"role": "user", "content": "Hi"}], **FIXED)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        asyncio.run(drop())
        sync_client(LocalModel(Script.parse([{"say": "Hi."}])))
        gc.collect()
    assert [str(one.message) for one in said] == []
