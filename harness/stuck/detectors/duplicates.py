"""The same call again: in one go, or spread over the window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.errors import StuckConfigError
from harness.stuck.limits import Limits
from harness.stuck.sighting import Sighting
from harness.stuck.window import steps_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.stuck.evidence import Record
    from harness.stuck.window import Placed, View

__all__ = ["ConsecutiveDuplicate", "ExactDuplicate"]

_OTHERWISE = (
    "other arguments; a new result of a read; or a new successful write between two of them that changed the result"
)
_OTHERWISE_FAILING = "other arguments, or a success"


@dataclass(frozen=True, slots=True)
class ConsecutiveDuplicate:
    """The same tool with the same arguments, step after step, and nothing new comes of it.

    Rule: count the steps in a row that hold this call.  The run begins anew where something moved (`View.credited`) and
    at a success after an error.  `strict` limits, or `patient` ones when every call of the run failed (retrying takes a
    few attempts), or when all are successful reads of a `pollable` tool.  Short cut: when the last calls were all
    refused for their arguments (`[validation error]`), the run is stopped at `validation` without a nudge: the same
    arguments cannot become valid.

    Incident: an agent wrote a file without its content; the tool wrote zero bytes and said ok, four times, and the file
    was gone after the first.  That one only a typed refusal prevents; the refusal, three times, is what the short cut
    is for (elsewhere a malformed call went on 85 times: NousResearch/hermes-agent#67829).

    Exempt: tools with the trait `dup_exempt`; a call that works for the first time after failing; the one re-read of
    each read that a compaction allows.  Siblings of one step count once (QwenLM/qwen-code#10916).
    """

    strict: Limits = Limits(nudges=(3,), stop=4)
    patient: Limits = Limits(nudges=(6,), stop=7)
    validation: Limits = Limits(stop=3)

    def __post_init__(self) -> None:
        if self.patient.stop is not None and self.validation.highest > self.patient.stop:
            raise StuckConfigError(
                f"a limit of {self.validation.highest} is never reached: errors are stopped at {self.patient.stop} "
                "(patient.stop)",
                ("validation",),
            )

    def judge(self, view: View) -> Sighting | None:
        """Count the run that ends in the newest call."""
        if not _may_judge(view):
            return None
        run = _run(view)
        refused = _refused(run)
        if self.validation.stop is not None and (times := steps_of(refused)) >= self.validation.stop:
            return Sighting(
                incident=view.latest.record.key,
                steps=times,
                limits=self.validation,
                calls=refused,
                rule="in a row sent arguments that the tool had refused as invalid",
                otherwise="arguments that satisfy the tool's schema, or any other call in between",
                via="validation",
            )
        if view.just_recovered:
            return None
        patient = _deserves_patience(run)
        return Sighting(
            incident=view.latest.record.key,
            steps=steps_of(run),
            limits=self.patient if patient else self.strict,
            calls=run,
            rule="in a row made this same call and nothing new came of it",
            otherwise=(_OTHERWISE if view.latest.record.ok else _OTHERWISE_FAILING) + "; or another call in between",
        )

    def advice(self, sighting: Sighting) -> str:
        """Read what is there first."""
        return _advice(sighting.calls[0].record)


@dataclass(frozen=True, slots=True)
class ExactDuplicate:
    """The same call again and again with others in between, and nothing new comes of it.

    Rule: count the steps of the window that hold this call, back to where something moved (`View.credited`).  Limits as
    for `ConsecutiveDuplicate`, higher.

    Incident: two look-ups alternated without change, and a rule that compares neighbours never saw it
    (anomalyco/opencode#47759); two ranges of one file were read in turn (everruns/everruns#2295).

    Exempt: as `ConsecutiveDuplicate`.  A success after errors is let pass once and does not begin the count anew: what
    works and fails in turn gets nowhere.
    """

    strict: Limits = Limits(nudges=(5,), stop=10)
    patient: Limits = Limits(nudges=(10,), stop=20)

    def judge(self, view: View) -> Sighting | None:
        """Count the same calls of the window, newest first, up to the last progress."""
        if not _may_judge(view) or view.just_recovered:
            return None
        chain = [view.same_key[0]]
        for old in view.same_key[1:]:
            if view.credited(old, chain[-1]):
                break
            chain.append(old)
        return Sighting(
            incident=view.latest.record.key,
            steps=steps_of(chain),
            limits=self.patient if _deserves_patience(chain) else self.strict,
            calls=chain,
            rule="of late made this same call and nothing new came of it",
            otherwise=_OTHERWISE if view.latest.record.ok else _OTHERWISE_FAILING,
        )

    def advice(self, sighting: Sighting) -> str:
        """Read what is there first."""
        return _advice(sighting.calls[0].record)


def _may_judge(view: View) -> bool:
    return not view.latest.free and "dup_exempt" not in view.latest.record.traits


def _run(view: View) -> list[Placed]:
    """The same calls of consecutive steps, newest first, up to the last progress or recovery."""
    run = [view.same_key[0]]
    for old in view.same_key[1:]:
        new = run[-1]
        if not view.adjoin(old, new) or (new.record.ok and not old.record.ok) or view.credited(old, new):
            break
        run.append(old)
    return run


def _refused(run: Sequence[Placed]) -> list[Placed]:
    """The newest calls of a run, as far as their arguments were refused."""
    refused = []
    for one in run:
        if one.record.ok or one.record.error_class != "validation":
            break
        refused.append(one)
    return refused


def _deserves_patience(calls: Sequence[Placed]) -> bool:
    """Whether all of them failed, or all are successful reads of a tool that is made for asking again."""
    if not calls[0].record.ok:
        return not any(one.record.ok for one in calls)
    return "pollable" in calls[0].record.traits and all(one.record.ok and one.record.read_only for one in calls)


def _advice(latest: Record) -> str:
    tool = f"`{latest.tool[:80]}`"
    if not latest.ok:
        return (
            f"The same call of {tool} keeps failing; repeating it will not change that. Read its latest error, then "
            "change the arguments or the method, or say what you need."
        )
    return (
        f"Look at the latest result of {tool} before anything else: if it answers the question, finish. An empty "
        "result is an answer as well. If it does not help, do something else; the same call will give the same again."
    )
