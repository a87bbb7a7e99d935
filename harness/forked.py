"""Work in a child that is forked from a warm parent: bounded in time and output, and never let back in.

Starting an interpreter and importing the SDK takes 1 to 3 s; a fork of a process that has done so takes milliseconds.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import math
import os
import select
import signal
import sys
import time
import traceback
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO

from harness.orphans import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Death", "Ending", "ask_forked", "fork", "run_forked"]

_MOST_OUTPUT: Final = 100_000
"""Bytes of a child's output that are kept; one that floods its output is read on, and forgotten."""

_FAULT: Final = 70
"""Exit code of a child in which the harness itself failed (EX_SOFTWARE)."""


@dataclass(frozen=True, slots=True)
class Death:
    """How a child ended.

    Args:
        code: its exit code, or None when a signal ended it.
        signal: that signal, or None.
        timed_out: it did not end within its limit and was killed from outside.
        output: what it wrote to stdout and stderr, the first part of it.
        seconds: how long it lived.
        began: when, on the monotonic clock, which all processes share.
        struck: it was killed from outside at the moment that was wanted.
    """

    code: int | None
    signal: int | None
    timed_out: bool
    output: str
    seconds: float
    began: float = 0.0
    struck: bool = False

    @property
    def words(self) -> str:
        """The exit code, or the signal by its name."""
        if self.signal is None:
            return f"exit code {self.code}"
        try:
            return signal.Signals(self.signal).name
        except ValueError:  # real-time signals have no name
            return f"signal {self.signal}"


@dataclass(frozen=True, slots=True)
class Ending:
    """How work that was asked for a value ended: with a JSON value, or without one and why."""

    kind: Literal["answered", "died", "hung"]
    value: Any = None
    why: str = ""


def fork() -> int:
    """`os.fork`; from 3.12 on it warns when there are threads, which in a test session there may be.

    They are not needed in the child, and those that the harness knows of (xdist's, the model server's) hold no lock
    that the child takes.  A lock that another one held would make the child hang, which is what its limit is for.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def ask_forked(work: Callable[[], Any], answer: Path, *, limit: float) -> Ending:
    """Do `work` in a forked child, and return what it returned.  What it leaves in its process group is ended with it.

    Args:
        work: returns a JSON value.
        answer: a file, not existing yet, through which the value travels.  A pipe would stay open as long as any
            process that the work has started.
        limit: seconds.
    """
    death = run_forked(lambda: _put(answer, json.dumps(work())), limit=limit, ends_group=True)
    if death.timed_out:
        return Ending("hung", why=f"no answer within {limit:g} s")
    try:
        return Ending("answered", json.loads(answer.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return Ending("died", why=f"ended its process with {death.words}")


def _put(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")


def run_forked(
    work: Callable[[], None],
    *,
    limit: float,
    kill_after: float | None = None,
    ends_group: bool = False,
    reaps_all: bool = False,
) -> Death:
    """Do `work` in a forked child and wait for its end.

    Whatever happens in the child, it leaves by `os._exit`.  It has a session of its own, and no input.

    Args:
        work: what the child does.
        limit: seconds; then the child and its group are killed.
        kill_after: seconds after which the child is killed, and it alone, wherever it is then; None for never.
        ends_group: kill what the child leaves in its group.  Without that it goes on, as it would after a real kill.
        reaps_all: take leave of every child of this process that ends meanwhile, such as the orphans that a reaper
            inherits: to those who ask for them, a zombie is still alive.  Only where nobody else waits for children.
    """
    parent = os.getpid()
    reading, writing = os.pipe()
    began = time.monotonic()
    child = fork()
    if child == 0:
        exit_code = _FAULT
        try:
            os.close(reading)
            _settle_in(writing, parent)
            work()
            exit_code = 0
        except BaseException:  # noqa: BLE001 (nothing may pass: above are the frames of the parent)
            with contextlib.suppress(BaseException):
                traceback.print_exc()
        finally:
            with contextlib.suppress(BaseException):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(exit_code)
    os.close(writing)
    output = bytearray()
    try:
        strike = math.inf if kill_after is None else began + kill_after
        status, timed_out, struck = _wait(child, reading, began + limit, strike, output, reaps_all=reaps_all)
    except BaseException:
        _kill(child)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
        raise
    finally:
        os.close(reading)
        if ends_group:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)
    signaled = os.WIFSIGNALED(status)
    code = None if signaled else os.WEXITSTATUS(status)
    ended_by = os.WTERMSIG(status) if signaled else None
    seconds = time.monotonic() - began
    return Death(code, ended_by, timed_out, output.decode(errors="replace"), seconds, began, struck and signaled)


def _settle_in(output: int, parent: int) -> None:
    """Cut the child loose from what belongs to its parent: session, streams, timers, handlers of signals."""
    os.setsid()
    die_with_parent(signal.SIGKILL, parent)
    signal.setitimer(signal.ITIMER_REAL, 0)
    faulthandler.cancel_dump_traceback_later()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(output)
    # The parent's own objects may be captures that write elsewhere, and their buffers are the parent's.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 (a descriptor, and it lives as long as the child)
    sys.stdout = sys.__stdout__ = _stream(1)  # type: ignore[misc, assignment]
    sys.stderr = sys.__stderr__ = _stream(2)  # type: ignore[misc, assignment]


def _stream(descriptor: int) -> TextIO:
    return open(descriptor, "w", buffering=1, errors="backslashreplace", closefd=False)


def _wait(
    child: int, reading: int, until: float, strike: float, output: bytearray, *, reaps_all: bool
) -> tuple[int, bool, bool]:
    """Read what comes until the child has ended; its status, whether it had to be killed, and whether it was struck."""
    os.set_blocking(reading, False)
    handle = _handle_of(child)
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    if handle is not None:
        poll.register(handle, select.POLLIN)
    timed_out = struck = False
    most = 50 if handle is not None else 2
    try:
        while True:
            ahead = math.inf if struck else strike - time.monotonic()
            ready = dict(poll.poll(max(0, min(most, ahead * 1000 - 1))))
            if not struck and strike - time.monotonic() < 0.001:  # poll knows no shorter time
                time.sleep(max(0.0, strike - time.monotonic()))
                struck = True
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            if reading in ready and not _read(reading, output):
                poll.unregister(reading)
            for pid, status in _ended(-1 if reaps_all else child):
                if pid == child:
                    _read(reading, output)
                    return status, timed_out, struck
            if not timed_out and time.monotonic() > until:
                timed_out = True
                _kill(child)
    finally:
        if handle is not None:
            os.close(handle)


def _kill(child: int) -> None:
    for kill in (os.killpg, os.kill):  # the group is not there when the child has not come to make it
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(child, signal.SIGKILL)


def _handle_of(pid: int) -> int | None:
    """A descriptor that becomes readable when a process ends, where the system has such (Linux)."""
    opened = getattr(os, "pidfd_open", None)
    try:
        return None if opened is None else opened(pid)
    except OSError:
        return None


def _read(reading: int, output: bytearray) -> bool:
    """Take what is there; False at its end."""
    try:
        chunk = os.read(reading, 1 << 16)
    except BlockingIOError:
        return True
    output += chunk[: max(0, _MOST_OUTPUT - len(output))]
    return bool(chunk)


def _ended(which: int) -> list[tuple[int, int]]:
    """Pid and status of each child that has ended: of one, or of any (-1)."""
    if which > 0:
        one = os.waitpid(which, os.WNOHANG)
        return [one] if one != (0, 0) else []
    found = []
    with contextlib.suppress(ChildProcessError):
        while (one := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            found.append(one)
    return found
