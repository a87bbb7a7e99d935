"""A golden that takes only some facets from a new run, and keeps the others as they were accepted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from harness.drift import compare
from harness.errors import HarnessError
from harness.policy import FACETS, Policy

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from harness.drift import Drift
    from harness.trace import Call, Trace

__all__ = ["compose"]

_SHAPE: Final = frozenset({"writes", "order", "duplicates", "turns", "stop_reasons"})
"""What follows from which calls there are, and when: these facets hang together."""


def compose(golden: Trace, trace: Trace, facets: Collection[str], *, results: bool = False) -> Trace:
    """The golden with the facets of `facets` as in the run.

    What comes out drifts from the golden in these facets alone, and from the run in the others alone; else it would
    bless what nobody looked at.

    Args:
        golden: the accepted trace.
        trace: the run that differs from it.
        facets: what to take from the run, as in `harness.policy.FACETS`.
        results: whether results are compared, too.

    Raises:
        HarnessError: none of the facets drifted, or they cannot be taken apart from others; the message says which.
    """
    policy = Policy.parse({"results": "exact"} if results else None)
    drift = compare(golden, trace, policy)
    wanted = [facet for facet in FACETS if facet in facets]
    idle = [facet for facet in wanted if facet not in drift.verdicts]
    if idle or not wanted:
        there = ", ".join(drift.verdicts) or "none"
        raise HarnessError(f"no drift in {', '.join(map(repr, idle)) or 'no facet'}; facets that drifted: {there}")
    if golden.detail != trace.detail:
        raise HarnessError(
            f"the golden holds arguments as `detail: {golden.detail}`, the run as {trace.detail}: accept the whole run"
        )
    if len(wanted) == len(drift.verdicts):
        return trace
    hidden: set[str] = set()
    for candidate in _candidates(drift, frozenset(wanted)):
        taken, left = (set(compare(*pair, policy).verdicts) for pair in ((golden, candidate), (candidate, trace)))
        if taken <= set(wanted) and not left & set(wanted):
            return candidate
        hidden |= taken - set(wanted)
    others = [str(facet) for facet in FACETS if facet in hidden] or [one for one in drift.verdicts if one not in wanted]
    raise HarnessError(
        f"{_named(wanted)} cannot be accepted without {_named(others)}: they come from the same calls; "
        f"name them as well, or accept the whole run"
    )


def _named(facets: Sequence[str]) -> str:
    return ", ".join(f"`{facet}`" for facet in facets)


def _candidates(drift: Drift, facets: frozenset[str]) -> Iterator[Trace]:
    """Compositions to try, from the one that keeps most of the golden to the one that takes most of the run."""
    golden, trace = drift.golden, drift.trace
    guards = trace.interventions if "interventions" in facets else golden.interventions
    reasons = trace.stop_reasons if "stop_reasons" in facets else golden.stop_reasons
    writes = _writes(golden, trace, taken="writes" in facets)
    if len(reasons) == golden.turns:
        calls = _golden_calls(drift, facets)
        yield replace(golden, calls=calls, stop_reasons=reasons, interventions=guards, writes=_called(writes, calls))
    if not facets & _SHAPE:
        return
    calls = _observed_calls(drift, facets)
    ran = replace(golden, calls=calls, turns=trace.turns, interventions=guards, writes=_called(writes, calls))
    if len(golden.stop_reasons) == trace.turns:
        yield replace(ran, stop_reasons=golden.stop_reasons)
    yield replace(ran, stop_reasons=trace.stop_reasons)


def _writes(golden: Trace, trace: Trace, *, taken: bool) -> frozenset[str]:
    """The tools that write; of one that both sides called, what the wanted side says."""
    first, second = (trace, golden) if taken else (golden, trace)
    known = {call.tool for call in first.calls}
    return first.writes | {tool for tool in second.writes if tool not in known}


def _called(writes: frozenset[str], calls: tuple[Call, ...]) -> frozenset[str]:
    return writes & {call.tool for call in calls}


def _golden_calls(drift: Drift, facets: frozenset[str]) -> tuple[Call, ...]:
    """The calls of the golden, with what is taken of the calls that answer to them."""
    answers = {edit.a: edit.b for edit in drift.edits if edit.a is not None and edit.b is not None}
    return tuple(
        _mixed(call, drift.trace.calls[answers[index]], facets) if index in answers else call
        for index, call in enumerate(drift.golden.calls)
    )


def _observed_calls(drift: Drift, facets: frozenset[str]) -> tuple[Call, ...]:
    """The calls of the run where and when they came, each with what is kept of the golden's call."""
    answers = {edit.b: edit.a for edit in drift.edits if edit.a is not None and edit.b is not None}
    return tuple(
        replace(_mixed(drift.golden.calls[answers[index]], call, facets), turn=call.turn, asked=call.asked)
        if index in answers
        else call
        for index, call in enumerate(drift.trace.calls)
    )


def _mixed(golden: Call, now: Call, facets: frozenset[str]) -> Call:
    mixed = golden
    if "arguments" in facets:
        mixed = replace(mixed, digest=now.digest, args=now.args)
    if "outcomes" in facets:
        mixed = replace(mixed, ok=now.ok)
    if "results" in facets:
        mixed = replace(mixed, result=now.result)
    return mixed
