"""One process at a time on one state: an flock that the kernel releases when its holder dies."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING, Final

from harness.agent.disk import cannot
from harness.errors import StateError, StateLockedError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["LOCK_NAME", "StateLock"]

LOCK_NAME: Final = "lock"

_PID_BYTES: Final = 16
"""The first line: the pid of the last holder, padded with spaces.  What follows is the note of the last holder."""

_NOTE_BYTES: Final = 256


class StateLock:
    """Holds the lock of a state directory from `acquire` to `release`.

    A child that was forked from the holder, and still runs, keeps the lock after the holder's death.  That is wanted:
    it may be a tool that has not finished.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory.absolute() / LOCK_NAME
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock, or fail at once.

        Raises:
            StateLockedError: Another process holds it; the message names its pid.
            StateError: The lock file cannot be made.
        """
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise cannot("lock", self._path, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._refusal(descriptor) from None
        except OSError as error:
            os.close(descriptor)
            raise cannot("lock", self._path, error) from error
        try:
            os.pwrite(descriptor, f"{os.getpid():<{_PID_BYTES - 1}}\n".encode(), 0)
        except OSError as error:
            os.close(descriptor)
            raise cannot("write", self._path, error) from error
        self._descriptor = descriptor

    def check(self) -> None:
        """Make sure that the lock file is still the one that we locked.

        Raises:
            StateError: Somebody removed or replaced it, so that another process may be running.
        """
        try:
            now = os.stat(self._path)  # noqa: PTH116
            same = self._descriptor is not None and os.path.samestat(os.fstat(self._descriptor), now)
        except FileNotFoundError:
            same = False
        if not same:
            raise StateError(
                f"the lock {str(self._path)!r} was removed or replaced while this process held it; another process may "
                "be running on this state. Nothing was written. Start one process again.",
                kind="fenced",
            )

    def read_note(self) -> str:
        """What was noted last, by this holder or one before it; empty when nothing was.

        Raises:
            StateError: The lock is not held, or its file cannot be read.
        """
        try:
            return os.pread(self._held(), _NOTE_BYTES, _PID_BYTES).decode(errors="replace").rstrip("\x00 \n")
        except OSError as error:
            raise cannot("read", self._path, error) from error

    def write_note(self, note: str) -> None:
        """Replace the note, in one write that a kill cannot cut in two.  It is not forced to the disk.

        Args:
            note: One line of text, at most 255 bytes.

        Raises:
            StateError: The lock is not held, or its file cannot be written.
        """
        try:
            os.pwrite(self._held(), f"{note:<{_NOTE_BYTES - 1}}\n".encode(), _PID_BYTES)
        except OSError as error:
            raise cannot("write", self._path, error) from error

    def _held(self) -> int:
        if self._descriptor is None:
            raise StateError(f"the lock {str(self._path)!r} is not held", kind="io")
        return self._descriptor

    def release(self) -> None:
        """Give the lock back.  Its file stays: removing it would let two processes lock two files of one name."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _refusal(self, descriptor: int) -> StateLockedError:
        try:
            pid = int(os.pread(descriptor, _PID_BYTES, 0))
        except (OSError, ValueError):
            pid = None
        finally:
            os.close(descriptor)
        where = str(self._path.parent)
        if pid is None:
            return StateLockedError(f"another process is running on {where!r}; wait for it, or end it first", None)
        if not _alive(pid):
            return StateLockedError(
                f"process {pid} was running on {where!r} and is gone, but a process that it started still is; "
                "wait for that one, or end it first",
                pid,
            )
        return StateLockedError(f"process {pid} is running on {where!r}; wait for it, or end it first", pid)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
