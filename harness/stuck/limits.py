"""At which counts an incident is nudged, and at which it is stopped."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from harness.errors import StuckConfigError

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The counts, in steps, at which a detector speaks.

    Args:
        nudges: each count that is worth a nudge, ascending; a later one is said more firmly.
        stop: the count that ends the run; `None` when the detector only ever advises.

    Raises:
        StuckConfigError: a count is below 1, or a nudge could never be heard because a stop comes first.
    """

    nudges: tuple[int, ...] = ()
    stop: int | None = None

    def __post_init__(self) -> None:
        counts = (*self.nudges, *(() if self.stop is None else (self.stop,)))
        if any(count < 1 for count in counts):
            raise StuckConfigError(f"a limit is a count of steps, at least 1, not {min(counts)}")
        if any(later <= earlier for earlier, later in pairwise(counts)):
            shown = ", ".join(map(str, counts))
            raise StuckConfigError(f"limits must ascend, nudges before the stop, or one of them is dead: {shown}")

    @property
    def highest(self) -> int:
        """The largest count that has a consequence; 0 when there is none."""
        return self.stop or (self.nudges[-1] if self.nudges else 0)

    @property
    def lowest(self) -> int | None:
        """The smallest count that has a consequence; None when there is none."""
        return self.nudges[0] if self.nudges else self.stop

    def tier(self, count: int) -> int:
        """How many of the nudges a count has reached."""
        tier = 0
        for limit in self.nudges:
            if count < limit:
                break
            tier += 1
        return tier
