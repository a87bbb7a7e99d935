"""One tool that keeps failing in one way, whatever it is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.stuck.limits import Limits
from harness.stuck.sighting import Sighting
from harness.stuck.window import steps_of

if TYPE_CHECKING:
    from harness.stuck.window import Placed, View

__all__ = ["SameToolError"]


@dataclass(frozen=True, slots=True)
class SameToolError:
    """A tool fails with one class of error although its arguments change.

    Rule: judged when the newest call failed.  Walk back over the calls of this tool to its last success, or to where
    something moved (`View.credited`), and count the steps that failed with the newest call's class.  Classes of passing
    trouble (`transient_classes`) have the higher limits: an outage is not the model's fault, and waiting is sound.

    Incident: 49 variants of one SSH command met one refusal (openclaw/openclaw#34574); patch after patch met the same
    assertion (openJiuwen-ai/jiuwenswarm#3560).

    Exempt: errors of differing classes, which are not one way of failing; a failure that changes after new edits; many
    failures in one step, which are one attempt (dimetron/pi-go#239).
    """

    limits: Limits = Limits(nudges=(6,), stop=12)
    transient: Limits = Limits(nudges=(12,), stop=18)
    transient_classes: frozenset[str] = frozenset({"timeout", "rate_limit", "unavailable"})

    def judge(self, view: View) -> Sighting | None:
        """Count the failures since anything worked."""
        latest = view.latest.record
        if latest.ok:
            return None
        failures: list[Placed] = []
        newer: Placed | None = None
        for one in reversed(view.window):
            if one.tool != latest.tool:
                continue
            if one.record.ok or (newer is not None and view.credited(one, newer)):
                break
            if one.record.error_class == latest.error_class and not one.free:
                failures.append(one)
            newer = one
        error = latest.error_class or "other"
        return Sighting(
            incident=(latest.tool, error),
            steps=steps_of(failures),
            limits=self.transient if error in self.transient_classes else self.limits,
            calls=failures,
            rule=f"failed with an error of class {error}, and none of this tool succeeded",
            otherwise="a success of this tool, an error of another class, or another error after a new write",
        )

    def advice(self, sighting: Sighting) -> str:
        """Name tool, class and count; another method, or a question."""
        newest = sighting.calls[0].record
        return (
            f"`{newest.tool[:80]}` has failed {sighting.steps} times with the same kind of error "
            f"({newest.error_class or 'other'}). Variants of the call have not helped: change the method, or ask for "
            "what is missing."
        )
