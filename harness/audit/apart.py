"""Work in a process of its own: bounded in time, and however it ends, it ends nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Ending", "run_apart"]

_NO_ANSWER: Final = 70
"""Exit code of a child that could not answer (EX_SOFTWARE)."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How the work ended: with a JSON value, or without one and why."""

    kind: Literal["answered", "died", "hung"]
    value: Any = None
    why: str = ""


def run_apart(work: Callable[[], Any], answer: Path, *, limit: float) -> Ending:
    """Fork, do `work` in the child, and return what it returned.

    Whatever the child started and left in its process group is killed with it; it has no terminal and no input, and
    what it prints is dropped.

    Args:
        work: returns a JSON value.
        answer: a file, not existing yet, through which the value travels.  A pipe would stay open as long as any
            process that the work has started.
        limit: seconds.
    """
    pid = _fork()
    if pid == 0:
        _live(work, answer)
    code: int | None = None
    try:
        code = _wait(pid, limit)
    finally:
        for end in (os.killpg, os.kill):  # the group is not there when the child has not come to make it
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if end is os.killpg or code is None:
                    end(pid, signal.SIGKILL)
        if code is None:
            os.waitpid(pid, 0)
    if code is None:
        return Ending("hung", why=f"no answer within {limit:g} s")
    try:
        return Ending("answered", json.loads(answer.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return Ending("died", why=f"ended its process with {_code_words(code)}")


def _fork() -> int:
    with warnings.catch_warnings():
        # From 3.12 on a fork beside threads warns.  A lock that such a thread held would make the child hang, which is
        # what the limit is for; starting an interpreter and importing the tools for each call would take minutes.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _live(work: Callable[[], Any], answer: Path) -> None:
    code = _NO_ANSWER
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        answer.write_text(json.dumps(work()), encoding="utf-8")
        code = 0
    finally:
        os._exit(code)


def _wait(pid: int, limit: float) -> int | None:
    """The exit code, negative for a signal; None when the time is over."""
    until = time.monotonic() + limit
    pause = 0.001
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            return None
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)


def _code_words(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:  # real-time signals have no name
        return f"signal {-code}"
