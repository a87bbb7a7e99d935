"""What a detector sees at one call, before anything is decided, and what every detector looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.stuck.limits import Limits
    from harness.stuck.window import Placed, View

__all__ = ["Detector", "Sighting", "Via"]

Via: TypeAlias = Literal["threshold", "validation", "escalation"]
"""What made a verdict: the detector's own limit, the short cut for refused arguments, or the third nudge of late."""


class Sighting(NamedTuple):  # several are made at each call, see `Placed`
    """How far one incident has gone.  The fold decides what follows from it.

    Args:
        incident: what repeats, so that one repetition is nudged once; the detector's name is added.
        steps: how often, in steps.
        limits: the counts at which something follows.
        calls: the calls that prove it, newest first.
        rule: what was counted, as the predicate of "N steps ...".
        otherwise: what would have made it not count.
        via: what makes the verdict, once a limit is reached.
        cooldown: steps for which the detector keeps quiet after it has spoken; 0: it does not.
        excused: whether the count, however high, is progress: nothing follows, and it was not seen to fall either.
    """

    incident: tuple[str, ...]
    steps: int
    limits: Limits
    calls: Sequence[Placed]
    rule: str
    otherwise: str
    via: Via = "threshold"
    cooldown: int = 0
    excused: bool = False


class Detector(Protocol):
    """One of the detectors: a frozen dataclass whose class name is its name in data and whose fields are its tuning.

    A field is a `Limits`, a number, or a set of names; `Config.parse` reads them from a mapping by these types.
    """

    def judge(self, view: View) -> Sighting | None:
        """What is seen at the newest call; None when the detector has no business with it."""
        ...

    def advice(self, sighting: Sighting) -> str:
        """What a nudge asks the model to do, in words that do not repeat its arguments.

        Echoed arguments make a model repeat them (MoonshotAI/kimi-code#1518).
        """
        ...
