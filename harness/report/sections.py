"""What there is to show of one case: a section for each thing that changed, each with its verdicts, calls and cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from harness.report.costs import cost_text
from harness.report.entries import Counts
from harness.report.line import Line
from harness.report.lines import call_lines, trace_lines, verdicts
from harness.report.point_lines import change_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.changes import Change, CrashChange
    from harness.report.entries import Entry, Report
    from harness.report.line import Style
    from harness.stuck.audit import Audit

__all__ = ["Section", "sections"]

Verdict: TypeAlias = "tuple[str, str, Style]"


@dataclass(frozen=True, slots=True)
class Section:
    """One thing that changed.

    Args:
        title: what is compared with what.
        verdicts: prose with a label: causes, one verdict a facet, or why nothing can be compared.
        calls: the aligned calls, a trace, crash points; the first character of each line marks what became of it.
        cost: calls, turns and writes, each with what it was; empty where that says nothing.
    """

    title: str
    verdicts: Sequence[Verdict] = ()
    calls: Sequence[Line] = ()
    cost: str = ""


def sections(entry: Entry, report: Report, limit: int | None, whole: str = "") -> Iterator[Section]:
    """All that changed in one case, what its run did first, then what its branch did to its golden.

    Args:
        entry: the case.
        report: that it is in.
        limit: lines of calls in each section; None for all.
        whole: where to find those that the limit leaves out.
    """
    change = entry.change
    names = change.names or (report.before, report.after)
    yield from _change_sections(change, f"{names[0]} → {names[1]}", limit, whole)
    if entry.branch is not None and entry.reblessed:
        title = f"golden: {report.base or 'base'} → this branch"
        yield from _change_sections(entry.branch, title, limit, whole)
    if entry.audit is not None and entry.audit.findings and not entry.passed:
        yield Section("stuck-loop detectors", list(_audit_lines(entry.audit)))


def _change_sections(change: Change, title: str, limit: int | None, whole: str) -> Iterator[Section]:
    before, after = change.before, change.after
    cost = cost_text(Counts.of(before), Counts.of(after))
    if change.problem:
        yield Section(title, [("unusable", change.problem, "removed")])
    elif change.drift:
        yield Section(title, verdicts(change.drift), call_lines(change.drift, limit, whole), cost)
    elif change.drift is not None and change.drift.causes:
        yield Section(title, verdicts(change.drift))
    elif change.kind == "renamed":
        yield Section(title, [("renamed", f"was {change.was}; the path is the same", "moved")])
    elif change.kind == "new" and after is not None:
        shown = None if limit is None else max(limit - 2, 1)
        yield Section(title, [("new", cost, "added")], trace_lines(after, shown))
    elif change.kind == "deleted" and before is not None:
        yield Section(title, [("deleted", cost, "removed")])
    if change.crash:
        yield _crash_section(change.crash, limit)


def _crash_section(crash: CrashChange, limit: int | None) -> Section:
    if crash.before is None or crash.after is None:
        rows, word = (crash.after, "new") if crash.before is None else (crash.before, "deleted")
        return Section("crash points", [(word, f"a crash golden of {len(rows or ())} points", "title")])
    lines = change_lines(crash.before, crash.after)
    if limit is not None and len(lines) > limit:
        lines = [*lines[:limit], Line(f"… {len(lines) - limit:,} more points", "title")]
    return Section("crash points", (), lines)


def _audit_lines(audit: Audit) -> Iterator[Verdict]:
    for finding in audit.findings:
        said = finding.verdict
        sentence = "" if said.evidence is None else f": {said.evidence.sentence()}"
        yield (said.kind, f"{said.detector} at call {said.at_call}, turn {finding.turn}{sentence}", "changed")
