"""The SDK's own loop, `beta.messages.tool_runner`, is recorded like any other."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from anthropic import beta_async_tool, beta_tool

from harness import Recorder
from harness.model.local import LocalModel
from harness.model.reply import Reply
from harness.model.script import Script
from harness.model.transport import async_client, sync_client

SCRIPT = Script.parse(
    [
        {"call": [{"add": {"left": 1, "right": 2}}, {"add": {"left": 3, "right": 4}}]},
        {"call": {"divide": {"left": 1, "right": 0}}},
        {"say": "Three and seven; the last one cannot be."},
    ]
)
EXPECTED = [(1, "add", True), (1, "add", True), (2, "divide", False)]


@beta_tool
def add(left: int, right: int) -> str:
    """Add two numbers."""
    return str(left + right)


@beta_tool
def divide(left: int, right: int) -> str:
    """Divide two numbers."""
    return str(left / right)


@beta_async_tool
async def add_async(left: int, right: int) -> str:
    """Add two numbers."""
    return str(left + right)


@pytest.mark.parametrize("stream", [False, True], ids=["create", "stream"])
def test_a_tool_runner_loop_is_recorded_unmodified(stream: bool) -> None:
    """Turns, stop_reasons, parallel calls and failures, from the middleware alone."""
    recorder = Recorder("sums", writes=())
    client = sync_client(LocalModel(SCRIPT, name="m"), middleware=[recorder.middleware])
    runner = client.beta.messages.tool_runner(
        model="m",
        max_tokens=100,
        tools=[add, divide],
        messages=[{"role": "user", "content": "Go."}],
        stream=stream,
    )
    runner.until_done()
    trace = recorder.trace()
    assert [(call.turn, call.tool, call.ok) for call in trace.calls] == EXPECTED
    assert trace.stop_reasons == ("tool_use", "tool_use", "end_turn")
    assert trace.problems == ()


def test_a_thread_that_the_model_does_not_know_is_sent_again() -> None:
    """A model in another process holds none; the SDK sends the whole conversation, and the trace is the same."""

    class Forgetful(LocalModel):
        def handle(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
            return LocalModel(SCRIPT, name="m").handle(method, target, headers, body)

    recorder = Recorder("sums", writes=())
    client = sync_client(Forgetful(SCRIPT), middleware=[recorder.middleware])
    client.beta.messages.tool_runner(
        model="m", max_tokens=100, tools=[add, divide], messages=[{"role": "user", "content": "Go."}]
    ).until_done()
    assert [(call.turn, call.tool, call.ok) for call in recorder.trace().calls] == EXPECTED


def test_its_tools_can_be_instrumented_one_by_one() -> None:
    """With the functions wrapped, the calls come from their executions instead of the wire."""
    recorder = Recorder("sums", writes=())
    client = sync_client(LocalModel(SCRIPT, name="m"), middleware=[recorder.middleware])
    tools = [
        beta_tool(recorder.instrument_tool("add", add.func)),
        beta_tool(recorder.instrument_tool("divide", divide.func)),
    ]
    client.beta.messages.tool_runner(
        model="m", max_tokens=100, tools=tools, messages=[{"role": "user", "content": "Go."}]
    ).until_done()
    assert [(call.turn, call.tool, call.ok) for call in recorder.trace().calls] == EXPECTED


def test_the_async_tool_runner_is_recorded_too() -> None:
    """`AsyncAnthropic` and `@beta_async_tool`."""
    script = Script.parse([{"call": {"add_async": {"left": 1, "right": 2}}}, {"say": "Three."}])

    async def main() -> Any:
        recorder = Recorder("sums", writes=())
        client = async_client(LocalModel(script, name="m"), middleware=[recorder.middleware])
        runner = client.beta.messages.tool_runner(
            model="m", max_tokens=100, tools=[add_async], messages=[{"role": "user", "content": "Go."}]
        )
        await runner.until_done()
        return recorder.trace()

    trace = asyncio.run(main())
    assert [(call.turn, call.tool, call.ok) for call in trace.calls] == [(1, "add_async", True)]
    assert trace.stop_reasons == ("tool_use", "end_turn")
