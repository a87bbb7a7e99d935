"""What stops a loop that does not stop by itself.

A golden never blesses a run that breaks its limits, but that is judged when the run is over.  A little above its limits
a run is refused model and tools, politely, as an API would; a loop that asks on regardless is interrupted.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from harness.errors import ToolError
from harness.model.local import LocalModel
from harness.model.protocol import Violation, parse_body
from harness.model.reply import error_reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from harness.faults.probe import Probe
    from harness.model.reply import Reply

__all__ = ["DEFAULT_CALLS", "DEFAULT_TURNS", "BoundedModel", "Bounds", "RunawayError"]

DEFAULT_TURNS: Final = 200
DEFAULT_CALLS: Final = 2000
MARGIN: Final = 5
"""Turns or calls above the limit before anything is refused, so that the report can tell 25 of 24 from 2,400 of 24."""
MOST_IN_VAIN: Final = 1000
"""Refused requests or calls in a row, after which the loop does not listen to refusals.  No back-off gets that far."""

F = TypeVar("F", bound="Callable[..., Any]")


class RunawayError(BaseException):
    """Stops a loop that goes on whatever it is told; no `except Exception` of its own can swallow it."""


class Bounds:
    """Counts one run against its limits.  Safe to use from several threads.

    Args:
        turns: the most model responses.
        calls: the most tool calls.

    Attributes:
        stopped: why the loop was interrupted, if it was.
    """

    def __init__(self, turns: int, calls: int) -> None:
        self.turns = turns
        self.calls = calls
        self.stopped: str | None = None
        self._lock = threading.Lock()
        self._answered = 0
        self._called = 0
        self._vain_requests = 0
        self._vain_calls = 0
        self._thread: int | None = None

    def request(self) -> str | None:
        """Counts a request to the model; why it is refused, or None.

        Raises:
            RunawayError: the loop goes on asking.
        """
        with self._lock:
            self._vain_requests += 1
            if self._vain_requests > MOST_IN_VAIN:
                raise self._stop(f"the loop was stopped after {MOST_IN_VAIN:,} requests in a row without an answer")
            if self._answered < self.turns + MARGIN:
                return None
        return f"the run has had {self._answered} turns and its limit is {self.turns}: the model answers no more"

    def answered(self) -> None:
        """Counts a whole answer of the model."""
        with self._lock:
            self._answered += 1
            self._vain_requests = 0

    def watch(self, function: F) -> F:
        """A tool or dispatcher, sync or async, whose calls are counted and refused beyond the limit."""
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def watched_coroutine(*args: Any, **kwargs: Any) -> Any:
                self._call()
                return await function(*args, **kwargs)

            return cast("F", watched_coroutine)

        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            self._call()
            return function(*args, **kwargs)

        return cast("F", watched)

    @contextmanager
    def running(self) -> Iterator[None]:
        """The loop runs in this thread, from here to the end of the block."""
        with self._lock:
            self._thread = threading.get_ident()
        try:
            yield
        finally:
            try:
                self._leave()
            except RunawayError:  # an interruption that comes too late must not hit the harness
                self._leave()

    def _leave(self) -> None:
        with self._lock:
            self._thread = None
        # Nobody interrupts from here on.  One that is still pending is delivered at a jump back, so here, not later.
        # (Taking it back by SetAsyncExc(NULL) leaves CPython 3.11's eval breaker set for good: every later instruction
        # of the process is slow, and under a profiler the interpreter spins for ever.)
        for _ in range(2):
            pass

    def interrupt(self) -> None:
        """Raises `RunawayError` in the thread of the loop, from another one.

        An ugly way, and the only one for a loop that talks to the model over HTTP: it is deaf to every answer, and
        otherwise runs until somebody kills the whole session.
        """
        with self._lock:
            if self._thread is not None and self._thread != threading.get_ident():
                _raise_in(self._thread, RunawayError)

    def _stop(self, why: str) -> RunawayError:
        self.stopped = why
        return RunawayError(why)

    def _call(self) -> None:
        with self._lock:
            self._called += 1
            if self._called <= self.calls + MARGIN:
                return
            self._vain_calls += 1
            if self._vain_calls > MOST_IN_VAIN:
                raise self._stop(f"the loop was stopped after {MOST_IN_VAIN:,} tool calls that were refused")
        raise ToolError(
            f"the run has made {self._called - 1} tool calls and its limit is {self.calls}: no tool runs any more"
        )


class BoundedModel(LocalModel):
    """A local model that stops answering when a run is over its bounds.

    Args:
        bounds: what counts.
        probe: passes the crash points of each request, where the run is one that may be killed.
        options: as for `LocalModel`.
    """

    def __init__(self, bounds: Bounds, *args: Any, probe: Probe | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self._bounds = bounds
        self._probe = probe

    def handle(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answers one HTTP request, as `LocalModel.handle` does, or refuses it.

        Raises:
            RunawayError: the loop goes on asking.
        """
        refusal = self._bounds.request()
        if refusal is not None:
            return error_reply(400, refusal, "req_over_the_limit")
        if self._probe is None or not target.partition("?")[0].endswith("/messages"):
            return super().handle(method, target, headers, body)
        request = parse_body(body)
        answer = functools.partial(super().handle, method, target, headers, body)
        reply: Reply = self._probe.model({} if isinstance(request, Violation) else request, answer)
        self._probe.refused(self.faults)
        return reply


class ServedModel(BoundedModel):
    """The same behind a server, where the loop cannot be reached by raising: it is interrupted in its own thread."""

    def handle(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answers one HTTP request, or refuses it."""
        try:
            return super().handle(method, target, headers, body)
        except RunawayError as error:
            self._bounds.interrupt()
            return error_reply(400, str(error), "req_over_the_limit")


def _raise_in(thread: int, error: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
