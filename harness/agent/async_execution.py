"""Executing calls, for the asynchronous driver: coroutines as tasks, blocking tools in threads of their own."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar

from harness.agent.effects import Outcome
from harness.agent.execution import being_cancelled, finding_of, perform_async, result_or_error
from harness.agent.live_calls import begin, end
from harness.agent.processes import CURRENT_CALL, RunningCall, end_groups
from harness.agent.results import ToolResult, error_result

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harness.agent.effects import Launch, Verify
    from harness.agent.state import OwnProcess

__all__ = ["AsyncHands", "in_thread"]

T = TypeVar("T")


class AsyncHands:
    """`Hands` for an event loop."""

    def __init__(self, record: Callable[[str, OwnProcess], None], run_id: str) -> None:
        self._record = record
        self._run_id = run_id
        self._running: dict[asyncio.Task[ToolResult], tuple[Launch, RunningCall, float | None]] = {}

    def launch(self, launch: Launch) -> None:
        """Begin to execute a call."""
        call, tool = launch.call, launch.tool
        running = RunningCall(call.tool_use_id, lambda process: self._record(call.tool_use_id, process))
        context = contextvars.copy_context()
        context.run(CURRENT_CALL.set, running)
        perform = self._perform_async if tool.is_async else self._perform_blocking
        task = asyncio.get_running_loop().create_task(perform(launch), name=f"tool {tool.name}", context=context)
        until = None if tool.timeout is None else time.monotonic() + tool.timeout
        self._running[task] = (launch, running, until)

    async def collect(self) -> Outcome:
        """Wait until a launched call has ended, or has run out of time.

        Raises:
            BaseException: What a tool raised that is no `Exception`: it was meant for the process.
        """
        ends = [(until, task) for task, (_, _, until) in self._running.items() if until is not None]
        until, late = min(ends, key=lambda end: end[0], default=(None, None))
        left = None if until is None else max(0.0, until - time.monotonic())
        done, _ = await asyncio.wait(self._running, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if done:
            # Several may have ended at once: the order of launching decides, so that the ledger does not depend on
            # chance.
            task = next(task for task in self._running if task in done)
            launch, _, _ = self._running.pop(task)
            return Outcome(launch.call.tool_use_id, task.result())
        assert late is not None  # noqa: S101 (`wait` returns empty-handed only at a deadline)
        launch, running, _ = self._running.pop(late)
        _abandon(late)
        await in_thread(lambda: end_groups(running.processes, patience=0.0))
        return Outcome(launch.call.tool_use_id, ToolResult("", is_error=True), timed_out=True)

    async def verify(self, verify: Verify) -> bool | ToolResult | None:
        """Ask a tool whether a call took effect."""
        probe = verify.tool.verify
        try:
            if inspect.iscoroutinefunction(probe):
                answer = await probe(**verify.arguments)
            else:
                answer = await in_thread(lambda: probe(**verify.arguments) if probe else None)
                answer = await answer if inspect.isawaitable(answer) else answer
        except (Exception, asyncio.CancelledError) as error:  # a probe that fails has found nothing out
            if being_cancelled(error):
                raise
            return None
        return finding_of(lambda: answer, verify)

    async def close(self) -> None:
        """Cancel calls that are still running and end their processes."""
        for task, (_, running, _) in self._running.items():
            _abandon(task)
            end_groups(running.processes, patience=0.0)

    async def _perform_async(self, launch: Launch) -> ToolResult:
        return await self._awaited(perform_async(launch), launch)

    async def _perform_blocking(self, launch: Launch) -> ToolResult:
        name = (self._run_id, launch.call.tool_use_id)
        limit = launch.tool.max_result_chars

        def body() -> Any:
            try:
                return launch.tool.function(**launch.arguments)
            finally:
                end(*name)

        begin(*name)
        try:
            value = await in_thread(body)
            value = await self._awaited(value, launch) if inspect.isawaitable(value) else value
        except (Exception, asyncio.CancelledError) as error:  # a tool's exception becomes is_error
            if being_cancelled(error):
                raise
            return error_result(error, limit=limit)
        return result_or_error(value, limit)

    async def _awaited(self, value: Awaitable[T], launch: Launch) -> T:
        name = (self._run_id, launch.call.tool_use_id)
        begin(*name)
        try:
            result = await value
        except BaseException as error:
            # One that was cancelled may leave a thread or a shielded task at work, where nobody sees it end.
            if not being_cancelled(error):
                end(*name)
            raise
        end(*name)
        return result


async def in_thread(function: Callable[[], Any]) -> Any:
    """Call a blocking function in a thread of its own.

    Not `asyncio.to_thread`: its threads are joined when the interpreter ends, and a tool that hangs would keep a
    process alive that was asked to stop.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, fault: BaseException | None) -> None:
        if future.cancelled():
            return
        if fault is None:
            future.set_result(value)
        else:
            future.set_exception(fault)

    def body() -> None:
        value, fault = None, None
        try:
            value = context.run(function)
        except BaseException as error:  # noqa: BLE001 (raised again where the future is awaited)
            # A future refuses StopIteration, which a tool may well leak.
            fault = RuntimeError("the tool raised StopIteration") if isinstance(error, StopIteration) else error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, fault)

    threading.Thread(target=body, name="blocking tool", daemon=True).start()
    return await future


def _abandon(task: asyncio.Task[Any]) -> None:
    """Cancel a task that nobody will await, and take notice of its end so that asyncio does not complain."""
    task.cancel()
    task.add_done_callback(lambda ended: None if ended.cancelled() else ended.exception() and None)
