"""A run that is broken off and called again in the same process, while a call of it still executes."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from harness.agent import Tool, arun, tool
from harness.agent.live_calls import begin, end, outlast
from harness.errors import RunInterrupted
from harness.model.local import LocalModel
from harness.model.script import Script
from harness.model.transport import async_client

if TYPE_CHECKING:
    from pathlib import Path

SEND = {"call": {"send": {}}}
DONE = {"say": "Done."}


class Mailbox:
    """An honest `verify`, and tools that have their effect `seconds` after they began, whatever becomes of the run."""

    def __init__(self, seconds: float) -> None:
        self.sent = 0
        self.seconds = seconds

    def deliver(self) -> str:
        time.sleep(self.seconds)
        self.sent += 1
        return "sent"

    def verify(self) -> bool:
        return self.sent > 0

    def blocking(self, **contract: Any) -> Tool:
        return tool(name="send", verify=self.verify, **contract)(self.deliver)

    def in_a_thread(self) -> Tool:
        async def send() -> str:
            return await asyncio.to_thread(self.deliver)

        return tool(verify=self.verify)(send)

    def shielded(self) -> Tool:
        async def deliver() -> str:
            await asyncio.sleep(self.seconds)
            self.sent += 1
            return "sent"

        async def send() -> str:
            return await asyncio.shield(asyncio.ensure_future(deliver()))

        return tool(verify=self.verify)(send)


def told(result: Any) -> str:
    """The one tool_result."""
    ((content,),) = [
        [block["content"] for block in message["content"]]
        for message in result.messages
        if message["role"] == "user" and isinstance(message["content"], list)
    ]
    return str(content)


def timed_out_and_called_again(send: Tool, state_dir: Path, patience: float) -> str:
    model = LocalModel(Script.parse([SEND, DONE]))
    options: Any = {"client": async_client(model), "model": "m", "toolset": [send], "state_dir": state_dir}

    async def both() -> str:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.15):
                await arun("x", **options)
        answer = told(await arun("x", patience=patience, **options))
        await asyncio.sleep(0.5)  # time for what was left running to have its effect
        return answer

    return asyncio.run(both())


@pytest.mark.parametrize("make", [Mailbox.blocking, Mailbox.in_a_thread, Mailbox.shielded])
def test_a_call_that_outlives_its_cancelled_run_is_not_made_twice(make: Any, tmp_path: Path) -> None:
    """`verify` truthfully finds nothing while the first call is at work: it is not asked, and mail goes out once."""
    mailbox = Mailbox(0.45)
    assert "execution status unknown" in timed_out_and_called_again(make(mailbox), tmp_path, patience=0.05)
    assert mailbox.sent == 1


def test_a_call_that_ends_within_patience_is_verified(tmp_path: Path) -> None:
    """Waiting for the first call to end gives the honest answer back to `verify`."""
    mailbox = Mailbox(0.4)
    assert "took effect" in timed_out_and_called_again(mailbox.blocking(), tmp_path, patience=5)
    assert mailbox.sent == 1


def test_ctrl_c_and_again_does_not_make_a_call_twice(play: Any, tmp_path: Path) -> None:
    """In a notebook: past its grace time the run gives up waiting for a thread, which goes on all the same."""
    mailbox = Mailbox(0.6)
    send = mailbox.blocking(timeout=30)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(RunInterrupted):
        play([SEND, DONE], toolset=[send], grace=0.05)
    timer.join()
    assert "execution status unknown" in told(play([SEND, DONE], toolset=[send], patience=0.05))
    time.sleep(0.5)
    assert mailbox.sent == 1


def test_a_write_that_still_executes_is_not_executed_beside_itself(tmp_path: Path) -> None:
    """Idempotent is not enough: the late first execution would undo what was written after it."""
    begun = []

    @tool(effect="idempotent")
    def send() -> str:
        begun.append(True)
        time.sleep(0.45)
        return "put"

    assert "execution status unknown" in timed_out_and_called_again(send, tmp_path, patience=0.05)
    assert begun == [True]


def test_calls_are_told_apart_and_forgotten_when_they_end() -> None:
    """The same call in execution twice is live until both have ended; another run's call of that name never is."""
    begin("run-1", "one")
    begin("run-1", "one")
    end("run-1", "one")
    assert outlast("run-1", ["one", "two"], patience=0) == {"one"}
    assert outlast("run-2", ["one", "two"], patience=5) == frozenset()
    threading.Timer(0.05, end, ("run-1", "one")).start()
    assert outlast("run-1", ["one", "two"], patience=5) == frozenset()
