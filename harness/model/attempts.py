"""How often an attempt at a place of a script has been spent: the only memory of a scripted model."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Attempts", "FileAttempts"]


class Attempts:
    """Counts in memory.  Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def spend(self, key: str, allowance: int) -> bool:
        """Whether fewer than `allowance` attempts were counted under `key`; if so, this one is counted.

        Args:
            key: a place in one conversation, printable and without white space.
            allowance: how many attempts there are, at least 1.
        """
        with self._lock:
            if self._counts[key] >= allowance:
                return False
            self._counts[key] += 1
            return True


class FileAttempts(Attempts):
    """Counts in a file, one line an attempt, so that a process that takes over after SIGKILL goes on counting.

    What was written before a kill is in the kernel's hands and survives it; no fsync is needed for that.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def spend(self, key: str, allowance: int) -> bool:
        """As in `Attempts`; an exclusive lock on the file makes it one step among all processes."""
        import fcntl

        with self._path.open("a+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            line = key.encode()
            if file.read().split(b"\n").count(line) >= allowance:
                return False
            file.write(line + b"\n")
            return True
