"""What became of one history of kills, judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.faults.branches import branches_of
from harness.faults.invariants import Breach, broken
from harness.faults.story import story

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.faults.history import History

__all__ = ["Crash", "crash_of"]


@dataclass(frozen=True, slots=True)
class Crash:
    """What became of one history of kills.

    Args:
        kills: where the lives were killed.
        outcome: `same`, `unknown`, the name of the first broken invariant, `not_reached` (the run did not come to its
            point, or did not die there) or `not_tried` (too many lives before had hung, or the first flaw was enough).
        breaches: the broken invariants, with what happened.
        executions: by tool that writes, how often it ran.
        unknown: how many calls were given up as unknown.
        turns: of the conversation in the end.
        story: what happened in each life, for a reader; only where something is wrong.
        output: what the lives printed; likewise.
        left: processes that were still running when all was over.
        branches: of reconciling, which of them it took.
        further: the points that the resumed life passed, where that was asked for.
        seed: what drew the moment of a kill at random.
    """

    kills: tuple[str, ...]
    outcome: str
    breaches: tuple[Breach, ...] = ()
    executions: Mapping[str, int] = field(default_factory=dict)
    unknown: int = 0
    turns: int = 0
    story: tuple[str, ...] = ()
    output: str = ""
    left: int = 0
    branches: frozenset[str] = frozenset()
    further: tuple[str, ...] = ()
    seed: int | None = None

    @property
    def held(self) -> bool:
        """Whether every invariant held."""
        return self.outcome in ("same", "unknown")


def crash_of(history: History, smooth: History, kills: tuple[str, ...]) -> Crash:
    """Judge a history.

    Args:
        history: lives that were to be killed, and one that was not.
        smooth: the same run without a kill.
        kills: where they were to be killed.
    """
    missed = next((life for life in history.lives[: len(kills)] if not life.killed), None)
    breaches = [] if missed is not None else broken(history, smooth)
    unknown = len(history.unknown - smooth.unknown)
    if missed is not None:
        outcome = "liveness" if missed.death.timed_out else "not_reached"
        ended = "was still running at its time limit" if missed.death.timed_out else f"ended with {missed.death.words}"
        breaches = [Breach(outcome, f"life {missed.number} did not die at {missed.end}: it {ended}")]
    elif breaches:
        outcome = breaches[0].invariant
    else:
        outcome = "unknown" if unknown else "same"
    wrong = bool(breaches)
    return Crash(
        kills=kills,
        outcome=outcome,
        breaches=tuple(breaches),
        executions=history.writes(),
        unknown=unknown,
        turns=history.turns,
        story=tuple(story(history)) if wrong else (),
        output="".join(life.death.output for life in history.lives)[-4000:] if wrong else "",
        left=history.left,
        branches=frozenset(branches_of(history)),
    )
