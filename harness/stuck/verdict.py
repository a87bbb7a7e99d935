"""What is decided about a call, with the evidence for it, and the words that a model is told at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from harness.stuck.sighting import Via

__all__ = ["FALLBACK_TEXT", "STOPPED_STUCK", "Evidence", "Kind", "Verdict", "severity", "stop_message"]

Kind: TypeAlias = Literal["continue", "nudge", "force_stop"]

STOPPED_STUCK: Final = "stopped_stuck"
"""The status of a run that was ended by force.  Never "completed": elsewhere a stuck run was reported so and its ticket
closed (frankbria/codeframe#740)."""

FALLBACK_TEXT: Final = (
    "The run was ended because it had stopped making progress, and the model gave no report. Calls were executed; what "
    "they achieved has not been checked."
)
"""The text of a run whose last word, with tools switched off, did not come.  It claims nothing."""

_SEVERITY: Final[dict[Kind, int]] = {"continue": 0, "nudge": 1, "force_stop": 2}


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a verdict was given, so that a person can check it.

    Args:
        tool: the tool of the call that it was given at.
        rule: what was counted, as the predicate of "N steps ...".
        count: how many steps.
        limit: the count that was reached.
        stop: the count at which the run ends; None when the detector only advises.
        calls: the numbers of the calls that prove it, oldest first, from 1.
        call_ids: their ids, where they have any.
        otherwise: what would have made it not fire.
        nudges: for an escalation, the calls at which the earlier nudges were given.
    """

    tool: str
    rule: str
    count: int
    limit: int
    stop: int | None
    calls: tuple[int, ...]
    call_ids: tuple[str, ...]
    otherwise: str
    nudges: tuple[int, ...] = ()

    def sentence(self) -> str:
        """The finding in one sentence."""
        steps = "1 step" if self.count == 1 else f"{self.count} steps"
        text = f"{self.tool[:80]}: {steps} {self.rule}"
        if self.nudges:
            text += f"; after the nudges at {_numbers(self.nudges)}"
        return text

    def explanation(self) -> str:
        """Which calls, which threshold, and what would have made it not fire."""
        stop = "" if self.stop is None or self.stop == self.limit else f", stop at {self.stop}"
        return f"{_numbers(self.calls)}; limit {self.limit}{stop}; would not fire with: {self.otherwise}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is decided at one call.

    Args:
        kind: `continue`, `nudge` (tell the model something) or `force_stop` (end the run).
        at_call: the number of the call, from 1.
        detector: whose verdict it is; None with `continue`.
        via: what made it; None with `continue`.
        message: what the model is told; empty with `continue`.
        evidence: why; None with `continue`.
    """

    kind: Kind
    at_call: int
    detector: str | None = None
    via: Via | None = None
    message: str = ""
    evidence: Evidence | None = None

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON.  It holds counts and names, neither arguments nor results."""
        data: dict[str, Any] = {
            "verdict": self.kind,
            "detector": self.detector,
            "at_call": self.at_call,
            "via": self.via,
        }
        if self.evidence is not None:
            evidence = self.evidence
            data |= {
                "tool": evidence.tool,
                "rule": evidence.rule,
                "count": evidence.count,
                "limit": evidence.limit,
                "stop": evidence.stop,
                "calls": list(evidence.calls),
                "otherwise": evidence.otherwise,
            }
            if evidence.nudges:
                data["nudges"] = list(evidence.nudges)
        return data


def severity(verdict: Verdict) -> int:
    """How bad it is: 0 continue, 1 nudge, 2 force_stop.  The worst verdict of a step is the step's."""
    return _SEVERITY[verdict.kind]


def stop_message(evidence: Evidence) -> str:
    """What the model is told before its last word, for which tools are switched off."""
    return (
        f"This run is being ended: {evidence.sentence()}. Tools are off now. The calls above did run, and "
        "their effects stand. Write a last report: what is done, what is still open, and what you do not know. Being "
        "stopped is no proof of success."
    )


def _numbers(calls: tuple[int, ...]) -> str:
    """`call 3`, `calls 3, 5, 8`; of many the first and the last ones."""
    shown = list(map(str, calls if len(calls) <= 8 else calls[:3]))
    if len(calls) > 8:
        shown += ["…", *map(str, calls[-3:])]
    return f"call{'s' if len(calls) != 1 else ''} {', '.join(shown)}"
