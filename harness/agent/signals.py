"""SIGTERM and Ctrl-C: the running tool call may end within a grace time, what it did is saved, then the run stops.

A request to the model, or a pause before the next one, is broken off at once: nothing durable is lost with it.  A
second signal, or the end of the grace time, breaks off whatever runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import threading
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from types import FrameType

__all__ = ["LOOK", "AsyncStop", "Stop", "StopNow", "sleep"]

T = TypeVar("T")

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

LOOK: Final = 0.5
"""Seconds after which whoever waits looks up.

A signal that another thread takes, or that comes between Python's last look and the system call, does not end the call:
the interpreter has noted it, and acts on it when the main thread runs again.
"""

_LOG: Final = logging.getLogger("harness.agent")


def sleep(seconds: float) -> None:
    """`time.sleep` that looks up in between."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, LOOK))


class StopNow(BaseException):
    """Raised where the run happens to be, to break it off.  Like `KeyboardInterrupt`, no tool should swallow it."""


class Stop:
    """Listens for signals during one blocking run.  In any thread but the main one there is nothing to listen for.

    Attributes:
        requested: The number of the signal that asked for the end, or `None`.
        idle: Nothing runs that would be lost; the driver says so around requests and pauses.
        over: The run is being wound up, which takes a few seconds at most; there is nothing left to break off.
    """

    def __init__(self, grace: float) -> None:
        self.requested: int | None = None
        self.idle = False
        self.over = False
        self._grace = grace
        self._timer: threading.Timer | None = None

    @contextlib.contextmanager
    def listening(self, enabled: bool) -> Iterator[None]:
        """Take the signals over, and give them back to whoever had them."""
        if not enabled or threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._heard) for number in _heeded()}
        try:
            yield
        finally:
            if self._timer is not None:
                self._timer.cancel()
            for number, handler in before.items():
                # A handler that was not set from Python cannot be put back from Python.
                signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _heard(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 (the system's signature)
        if self.over:
            return
        if self.requested is not None:
            raise StopNow
        self.requested = number
        if self.idle:
            raise StopNow
        _announce(number, self._grace)
        # The end of the grace time arrives as a second signal: it reaches a main thread that sleeps in a system call.
        self._timer = threading.Timer(self._grace, _signal_main_thread, (number,))
        self._timer.daemon = True
        self._timer.start()


class AsyncStop:
    """`Stop` for an event loop; only a loop in the main thread hears signals.

    Not with `loop.add_signal_handler`: there is one handler a signal and loop, and asyncio tells nobody what it was, so
    that the caller's own could not be put back.  A handler that the caller has set there hears the signal as well.
    """

    def __init__(self, grace: float) -> None:
        self.requested: int | None = None
        self.idle = False
        self._grace = grace
        self._now = asyncio.Event()

    @contextlib.contextmanager
    def listening(self, enabled: bool) -> Iterator[None]:
        """Take the signals over, and give them back to whoever had them, when no run listens any more."""
        if not enabled or threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()

        def hear(number: int) -> None:
            loop.call_soon_threadsafe(self._heard, number)

        if not _LISTENERS:
            _BEFORE.update({number: signal.signal(number, _tell_all) for number in _heeded()})
        _LISTENERS.append(hear)
        try:
            yield
        finally:
            _LISTENERS.remove(hear)
            if not _LISTENERS:
                _give_back()

    def _heard(self, number: int) -> None:
        if self.requested is not None:
            self._now.set()
            return
        self.requested = number
        if self.idle:
            self._now.set()
            return
        _announce(number, self._grace)
        asyncio.get_running_loop().call_later(self._grace, self._now.set)

    async def until_now(self, awaitable: Awaitable[T]) -> T:
        """Await something that a signal may break off.

        Raises:
            StopNow: A signal broke it off.
        """
        task = asyncio.ensure_future(awaitable)
        waiter = asyncio.ensure_future(self._now.wait())
        both: set[asyncio.Future[Any]] = {task, waiter}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise StopNow
            return task.result()
        finally:
            for future in both:
                future.cancel()
            await asyncio.gather(*both, return_exceptions=True)


_LISTENERS: Final[list[Callable[[int], None]]] = []
"""Of the runs that share the main thread; they come and go in any order, so that none can put back what it found."""

_BEFORE: Final[dict[signal.Signals, Any]] = {}
"""What the first of them found."""


def _tell_all(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 (the system's signature)
    for hear in tuple(_LISTENERS):
        hear(number)


def _give_back() -> None:
    for number, handler in _BEFORE.items():
        if signal.getsignal(number) is _tell_all:  # somebody may have set another one meanwhile
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    _BEFORE.clear()


def _heeded() -> list[signal.Signals]:
    """The signals to listen for: one that is ignored (`nohup`, a job in the background) stays so."""
    return [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


def _announce(number: int, grace: float) -> None:
    name = signal.Signals(number).name
    _LOG.warning(
        "%s: the running call may end within %g s, then the run stops; once more stops it at once", name, grace
    )


def _signal_main_thread(number: int) -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, number)
