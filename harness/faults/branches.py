"""What a resumed loop did about each call that a kill had left pending: the branches of its reconciling, seen from
outside.

A sweep in which a branch was never taken proves nothing about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.faults.history import says_unknown
from harness.faults.journal import Answered, Asked

if TYPE_CHECKING:
    from harness.faults.history import History

__all__ = ["BRANCHES", "branches_of"]

BRANCHES: Final = (
    "read_only: run",
    "read_only: run again",
    "read_only: recorded",
    "idempotent: run",
    "idempotent: run again",
    "idempotent: recorded",
    "irreversible: run",
    "irreversible: recorded",
    "irreversible: unknown",
    "verify: took effect",
    "verify: did not take effect",
    "verify: cannot say",
    "failed: recorded",
)
"""Every branch of the durable loop's table, as far as it can be told from outside."""

_FOUND: Final = {True: "verify: took effect", False: "verify: did not take effect", None: "verify: cannot say"}


def branches_of(history: History) -> set[str]:
    """The branches that were taken in one history."""
    taken = {_FOUND[verdict.found] for _, verdict in history.verdicts}
    verified = {verdict.call for _, verdict in history.verdicts if verdict.found}
    for life in history.lives[1:]:
        for call, effect in _pending(history, life.number).items():
            runs = history.runs(call)
            earlier = [one for one in runs if one.life < life.number]
            sent = [result for number, result in history.results.get(call, ()) if number >= life.number]
            if any(one.life == life.number for one in runs):
                taken.add(f"{effect}: run again" if earlier else f"{effect}: run")
            elif sent and says_unknown(sent[0]):
                taken.add(f"{effect}: unknown")
            elif sent and earlier and call not in verified:
                ran = earlier[-1].ran
                taken.add(f"{effect}: recorded" if ran is not None and ran.ok else "failed: recorded")
    return taken


def _pending(history: History, life: int) -> dict[str, str]:
    """The calls, with their effects, that had been asked for and not been answered when a life began."""
    pending: dict[str, str] = {}
    for number, event in history.events():
        if number >= life:
            break
        if isinstance(event, Answered):
            for call in event.calls:
                known = history.executions.get(call["id"])
                pending[call["id"]] = known[0].began.effect if known else "irreversible"
        elif isinstance(event, Asked):
            for answered in event.results:
                pending.pop(answered, None)
    return pending
