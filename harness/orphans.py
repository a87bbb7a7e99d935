"""What the kernel offers to keep a tree of processes in hand: who inherits orphans, and who dies with whom.

Elsewhere than on Linux these do nothing, and cleaning up rests on process groups alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import Final

__all__ = ["adopt_orphans", "die_with_parent", "end_all_children"]

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_LINUX: Final = bool(sys.platform.startswith("linux"))
# Looked up once, in the parent: a forked child has no business in the loader.
_PRCTL: Final = ctypes.CDLL(None).prctl if _LINUX else None

_ROUNDS: Final = 200
"""How often to look again for children of children; a loop that forks faster than it is killed ends here."""


def adopt_orphans() -> None:
    """From now on this process inherits every orphan among its descendants, also one that left its group."""
    if _PRCTL is not None:
        _PRCTL(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(number: signal.Signals, parent: int) -> None:
    """This process gets a signal when its parent ends, however that ends.

    Args:
        number: the signal.
        parent: its pid: when that is gone already, the signal comes at once.
    """
    if _PRCTL is not None:
        _PRCTL(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def end_all_children() -> int:
    """Kill and reap every child of this process, and theirs as they come up; how many there were.

    Only for a process whose children are all its own making.
    """
    ended: set[int] = set()
    for _ in range(_ROUNDS):
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            break
        for pid in _children():
            ended.add(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    return len(ended)


def _children() -> list[int]:
    own = str(os.getpid())
    found = []
    for entry in Path("/proc").iterdir() if _LINUX else ():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                # After the name, which may hold anything: state, then the parent.
                if (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[1] == own:
                    found.append(int(entry.name))
    return found
