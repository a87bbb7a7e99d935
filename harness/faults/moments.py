"""Moments at which a process is killed from outside, wherever it is: in the middle of a tool, or of a write.

A crash point is between two operations.  What happens inside of one is found only by kills that nobody has placed.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING

from harness.faults.journal import Reached

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.faults.history import Life

__all__ = ["moments", "timeline"]


def timeline(smooth: Life) -> list[float]:
    """When a life passed its points, in seconds since its beginning; last, when it ended."""
    passed = [event.at - smooth.death.began for event in smooth.events if isinstance(event, Reached)]
    return [*passed, max([smooth.death.seconds, *passed])]


def moments(passed: Sequence[float], seed: int, count: int) -> list[float]:
    """Moments within a run, drawn by a seed.

    Half of them are spread over its time, so that a tool that takes long is met, and half over what is between its
    points, so that a commit is met which takes no time at all.  Before the first point nothing has happened yet.

    Args:
        passed: as `timeline` has it.
        seed: any number; the same gives the same draws.
        count: how many.

    Returns:
        Seconds since the beginning of the run.
    """
    draw = random.Random(seed)  # noqa: S311 (a sample, not a secret)
    gaps = list(pairwise(passed)) or [(0.0, passed[0])]
    whole = (gaps[0][0], gaps[-1][1])
    return [draw.uniform(*(whole if draw.random() < 0.5 else draw.choice(gaps))) for _ in range(count)]
