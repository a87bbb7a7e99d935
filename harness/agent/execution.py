"""Executing calls, for the blocking driver: in the caller's thread where that is possible, else in threads of their
own.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import queue
import threading
import time
from typing import TYPE_CHECKING, Any

from harness.agent.contract import Confirmed
from harness.agent.effects import Outcome
from harness.agent.live_calls import begin, end
from harness.agent.processes import CURRENT_CALL, RunningCall, end_groups
from harness.agent.results import ToolResult, error_result, result_of
from harness.agent.signals import LOOK

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future

    from harness.agent.effects import Launch, Verify
    from harness.agent.state import OwnProcess

__all__ = ["Hands", "being_cancelled", "finding_of", "perform_async", "result_or_error"]


class Hands:
    """Launches calls and collects their results, in the order in which they end.

    A call that is alone, synchronous and without a timeout runs in the thread of the caller: tools may be bound to it
    (a GUI, a database connection).  Asynchronous tools share one event loop for the whole run, so that their clients
    and connections live on from call to call.
    """

    def __init__(self, record: Callable[[str, OwnProcess], None], run_id: str) -> None:
        self._record = record
        self._run_id = run_id
        self._inline: Launch | None = None
        self._running: dict[str, tuple[Launch, RunningCall, float | None]] = {}
        self._ended: queue.SimpleQueue[tuple[str, ToolResult | BaseException]] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None

    def launch(self, launch: Launch) -> None:
        """Begin to execute a call; one that runs in this thread begins when it is collected."""
        tool, call = launch.tool, launch.call
        running = RunningCall(call.tool_use_id, lambda process: self._record(call.tool_use_id, process))
        until = None if tool.timeout is None else time.monotonic() + tool.timeout
        self._running[call.tool_use_id] = (launch, running, until)
        if launch.alone and tool.timeout is None and not tool.is_async:
            self._inline = launch
            return
        context = contextvars.copy_context()
        context.run(CURRENT_CALL.set, running)
        begin(self._run_id, call.tool_use_id)
        if tool.is_async:
            coroutine = perform_async(launch)
            context.run(
                asyncio.run_coroutine_threadsafe, self._reporting(coroutine, call.tool_use_id), self._event_loop()
            )
        else:
            target = self._in_thread
            threading.Thread(target=context.run, args=(target, launch), name=f"tool {tool.name}", daemon=True).start()

    def collect(self) -> Outcome:
        """Wait until a launched call has ended, or has run out of time.

        Raises:
            BaseException: What a tool raised that is no `Exception` (`SystemExit`): it was meant for the process.
        """
        if self._inline is not None:
            launch, self._inline = self._inline, None
            _, running, _ = self._running[launch.call.tool_use_id]
            context = contextvars.copy_context()
            context.run(CURRENT_CALL.set, running)
            result = context.run(self._call, launch)
            del self._running[launch.call.tool_use_id]
            return Outcome(launch.call.tool_use_id, result)
        while True:
            until, tool_use_id = min(
                ((until, tool_use_id) for tool_use_id, (_, _, until) in self._running.items() if until is not None),
                default=(None, ""),
            )
            try:
                left = LOOK if until is None else min(LOOK, max(0.0, until - time.monotonic()))
                ended, result_or_fault = self._ended.get(timeout=left)
            except queue.Empty:
                if until is None or until > time.monotonic():
                    continue
                _, running, _ = self._running.pop(tool_use_id)
                end_groups(running.processes, patience=0.0)
                return Outcome(tool_use_id, ToolResult("", is_error=True), timed_out=True)
            if ended not in self._running:
                continue  # it ended after all, when nobody was waiting for it any more
            del self._running[ended]
            if isinstance(result_or_fault, BaseException):
                raise result_or_fault
            return Outcome(ended, result_or_fault)

    def verify(self, verify: Verify) -> bool | ToolResult | None:
        """Ask a tool whether a call took effect."""

        def found() -> Any:
            answer = verify.tool.verify(**verify.arguments) if verify.tool.verify else None
            if inspect.isawaitable(answer):
                return _settled(asyncio.run_coroutine_threadsafe(_await(answer), self._event_loop()))
            return answer

        return finding_of(found, verify)

    def close(self) -> None:
        """End the processes of calls that are still running, and leave their threads to themselves."""
        for _, running, _ in self._running.values():
            end_groups(running.processes, patience=0.0)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _call(self, launch: Launch) -> ToolResult:
        limit = launch.tool.max_result_chars
        try:
            value = launch.tool.function(**launch.arguments)
            if inspect.isawaitable(value):  # a wrapper that does not look asynchronous
                value = _settled(asyncio.run_coroutine_threadsafe(_await(value), self._event_loop()))
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 (a tool's exception becomes is_error)
            return error_result(error, limit=limit)
        return result_or_error(value, limit)

    def _in_thread(self, launch: Launch) -> None:
        try:
            outcome: ToolResult | BaseException = self._call(launch)
        except BaseException as fault:  # noqa: BLE001 (raised again by `collect`, in the thread that waits for it)
            outcome = fault
        end(self._run_id, launch.call.tool_use_id)
        self._ended.put((launch.call.tool_use_id, outcome))

    async def _reporting(self, coroutine: Coroutine[Any, Any, ToolResult], tool_use_id: str) -> None:
        try:
            outcome: ToolResult | BaseException = await coroutine
        except BaseException as fault:  # noqa: BLE001 (as above)
            outcome = fault
        # A coroutine that was cancelled may leave a thread or a shielded task at work, where nobody sees it end.
        if not isinstance(outcome, asyncio.CancelledError):
            end(self._run_id, tool_use_id)
        self._ended.put((tool_use_id, outcome))

    def _event_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._run_loop, args=(self._loop,), name="async tools", daemon=True).start()
        return self._loop

    @staticmethod
    def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            for task in asyncio.all_tasks(loop):
                task.cancel()
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()


def result_or_error(value: Any, limit: int) -> ToolResult:
    """What a tool returned, as a result; an iterator that fails while it is read is a failure of the tool.

    Nothing else raises here: a value that cannot be converted is described, as the call itself did succeed.
    """
    try:
        return result_of(value, limit=limit)
    except Exception as error:  # noqa: BLE001 (as above)
        return error_result(error, limit=limit)


def finding_of(verify: Callable[[], Any], effect: Verify) -> bool | ToolResult | None:
    """What a tool's `verify` found; one that fails, or answers anything else, cannot say."""
    try:
        answer = verify()
    except (Exception, asyncio.CancelledError):  # noqa: BLE001 (a probe that fails has found nothing out)
        return None
    if isinstance(answer, Confirmed):
        return result_or_error(answer.result, effect.tool.max_result_chars)
    return answer if isinstance(answer, bool) else None


async def perform_async(launch: Launch) -> ToolResult:
    """Execute one asynchronous call; what it raises becomes its result."""
    limit = launch.tool.max_result_chars
    try:
        value = await launch.tool.function(**launch.arguments)
    except (Exception, asyncio.CancelledError) as error:  # as above
        if being_cancelled(error):
            raise
        return error_result(error, limit=limit)
    return result_or_error(value, limit)


def being_cancelled(error: BaseException) -> bool:
    """Whether the current task is what was cancelled, and not something that it had awaited."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _settled(future: Future[Any]) -> Any:
    while True:
        try:
            return future.result(timeout=LOOK)
        except TimeoutError:  # also one that the coroutine raised
            if future.done():
                raise


async def _await(value: Any) -> Any:
    return await value
