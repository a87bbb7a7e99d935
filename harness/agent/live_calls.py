"""Calls that this process still executes, whoever waits for them: a run that is over does not end its threads.

A run that is cancelled, or broken off after its grace time, gives its state back while a tool of it may still be at
work.  When the same process resumes the run, a tool's `verify` would answer, truthfully, that there is no effect yet,
and the effect would come twice.  So each call is entered here before it begins, and leaves when it has really ended.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from harness.agent.signals import LOOK

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["begin", "end", "outlast"]

_CHANGED: Final = threading.Condition()

_LIVE: Final[Counter[tuple[str, str]]] = Counter()
"""How many times each call is being executed: a read that was left running may have begun again."""


def begin(run_id: str, tool_use_id: str) -> None:
    """Enter a call; before the first moment at which it could have an effect."""
    with _CHANGED:
        _LIVE[run_id, tool_use_id] += 1


def end(run_id: str, tool_use_id: str) -> None:
    """Take a call out; after the last moment at which it could have one."""
    with _CHANGED:
        _LIVE[run_id, tool_use_id] -= 1
        if not _LIVE[run_id, tool_use_id]:
            del _LIVE[run_id, tool_use_id]
        _CHANGED.notify_all()


def outlast(run_id: str, tool_use_ids: Iterable[str], *, patience: float) -> frozenset[str]:
    """Wait until none of these calls is being executed any more.

    Args:
        run_id: The run that they belong to.
        tool_use_ids: The calls.
        patience: Seconds to wait at most.

    Returns:
        Those that are still being executed when patience is at its end.
    """
    until = time.monotonic() + patience
    with _CHANGED:
        while True:
            live = frozenset(name for name in tool_use_ids if (run_id, name) in _LIVE)
            left = until - time.monotonic()
            if not live or left <= 0:
                return live
            _CHANGED.wait(min(left, LOOK))
