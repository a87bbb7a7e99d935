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


LIMIT = 60
"""Seconds after which a test would rather fail than wait on."""


class Mailbox:
    """An honest `verify`, and tools that have their effect once they are let, whatever becomes of the run."""

    def __init__(self) -> None:
        self.sent = 0
        self.begun = threading.Event()
        self.let = threading.Event()
        self.over = threading.Event()

    def deliver(self) -> str:
        self.begun.set()
        self.let.wait(LIMIT)
        return self.delivered()

    def delivered(self) -> str:
        self.sent += 1
        self.over.set()
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
            self.begun.set()
            await asyncio.to_thread(self.let.wait, LIMIT)
            return self.delivered()

        async def send() -> str:
            return await asyncio.shield(asyncio.ensure_future(deliver()))

        return tool(verify=self.verify)(send)

    def overwriting(self) -> Tool:
        return tool(name="send", effect="idempotent")(self.deliver)


def told(result: Any) -> str:
    """The one tool_result."""
    ((content,),) = [
        [block["content"] for block in message["content"]]
        for message in result.messages
        if message["role"] == "user" and isinstance(message["content"], list)
    ]
    return str(content)


def broken_off_and_called_again(mailbox: Mailbox, send: Tool, state_dir: Path, patience: float) -> str:
    """What the second run is told of the call that the first one had begun when it was cancelled."""
    model = LocalModel(Script.parse([SEND, DONE]))
    options: Any = {"client": async_client(model), "model": "m", "toolset": [send], "state_dir": state_dir}

    async def both() -> str:
        first = asyncio.create_task(arun("x", **options))
        assert await asyncio.to_thread(mailbox.begun.wait, LIMIT)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        answer = told(await arun("x", patience=patience, **options))
        mailbox.let.set()
        assert await asyncio.to_thread(mailbox.over.wait, LIMIT)
        return answer

    return asyncio.run(both())


@pytest.mark.parametrize("make", [Mailbox.blocking, Mailbox.in_a_thread, Mailbox.shielded])
def test_a_call_that_outlives_its_cancelled_run_is_not_made_twice(make: Any, tmp_path: Path) -> None:
    """`verify` truthfully finds nothing while the first call is at work: it is not asked, and mail goes out once."""
    mailbox = Mailbox()
    assert "execution status unknown" in broken_off_and_called_again(mailbox, make(mailbox), tmp_path, patience=0.05)
    assert mailbox.sent == 1


def test_a_call_that_ends_within_patience_is_verified(tmp_path: Path) -> None:
    """Waiting for the first call to end gives the honest answer back to `verify`."""
    mailbox = Mailbox()
    timer = threading.Timer(0.4, mailbox.let.set)
    timer.start()
    assert "took effect" in broken_off_and_called_again(mailbox, mailbox.blocking(), tmp_path, patience=LIMIT)
    timer.join()
    assert mailbox.sent == 1


def to_the_process() -> None:
    """As a terminal sends it."""
    os.kill(os.getpid(), signal.SIGINT)


def to_another_thread() -> None:
    """Where it is taken by a thread that cannot act on it, nothing wakes the main one."""
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)


@pytest.mark.parametrize("press", [to_the_process, to_another_thread])
def test_ctrl_c_and_again_does_not_make_a_call_twice(play: Any, tmp_path: Path, press: Any) -> None:
    """In a notebook: past its grace time the run gives up waiting for a thread, which goes on all the same."""
    mailbox = Mailbox()
    send = mailbox.blocking(timeout=LIMIT)

    def press_ctrl_c() -> None:
        if mailbox.begun.wait(LIMIT):
            time.sleep(0.1)  # the main thread waits by now
            press()

    finger = threading.Thread(target=press_ctrl_c)
    finger.start()
    began = time.monotonic()
    with pytest.raises(RunInterrupted):
        play([SEND, DONE], toolset=[send], grace=0.05)
    assert time.monotonic() - began < LIMIT / 2
    finger.join()
    assert "execution status unknown" in told(play([SEND, DONE], toolset=[send], patience=0.05))
    mailbox.let.set()
    assert mailbox.over.wait(LIMIT)
    assert mailbox.sent == 1


def test_a_write_that_still_executes_is_not_executed_beside_itself(tmp_path: Path) -> None:
    """Idempotent is not enough: the late first execution would undo what was written after it."""
    mailbox = Mailbox()
    answer = broken_off_and_called_again(mailbox, mailbox.overwriting(), tmp_path, patience=0.05)
    assert "execution status unknown" in answer
    assert mailbox.sent == 1


def test_calls_are_told_apart_and_forgotten_when_they_end() -> None:
    """The same call in execution twice is live until both have ended; another run's call of that name never is."""
    begin("run-1", "one")
    begin("run-1", "one")
    end("run-1", "one")
    assert outlast("run-1", ["one", "two"], patience=0) == {"one"}
    assert outlast("run-2", ["one", "two"], patience=5) == frozenset()
    threading.Timer(0.05, end, ("run-1", "one")).start()
    assert outlast("run-1", ["one", "two"], patience=5) == frozenset()
