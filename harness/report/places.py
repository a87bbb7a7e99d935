"""Where in the files of a repository a finding belongs: the golden's line of the changed call, or the case file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.crash_golden import CRASH_SUFFIX
from harness.golden import line_of
from harness.report.wording import fails

if TYPE_CHECKING:
    from harness.changes import Change, CrashChange
    from harness.drift import Drift
    from harness.facets import Finding
    from harness.report.entries import Entry

__all__ = ["place_of"]

_BEFORE_FIRST_ROW = 5
"""Lines of a crash golden up to its first point, that one included."""


def place_of(entry: Entry, facet: str | None = None) -> tuple[str, int]:
    """File and line, from 1.  A golden that is compared with a run is what the run no longer does, so the line is that
    of the golden's own call; a golden that the branch changed is shown at what it says now.

    Args:
        entry: the case.
        facet: whose first finding is looked for; None for the one that matters most.
    """
    failing = entry.status is not None and fails(entry)
    change: Change | None = entry.change if failing or entry.status is None else entry.branch
    if failing and entry.word().startswith("crash sweep"):
        return entry.golden_file.removesuffix(".json") + CRASH_SUFFIX, _point_line(entry.change.crash)
    if change is None or change.kind in ("new", "deleted") or change.drift is None or change.problem:
        named = entry.golden_file if change is not None and change.kind in ("conflict", "unusable") else ""
        return named or entry.case_file or entry.golden_file or entry.case, 1
    if change.kind == "conflict":
        return entry.golden_file or entry.case_file or entry.case, 1
    return entry.golden_file or entry.case_file or entry.case, _line(change.drift, facet, in_golden=failing)


def _point_line(crash: CrashChange) -> int:
    now = {row.point: row for row in crash.after or ()}
    for place, row in enumerate(crash.before or ()):
        if now.get(row.point) != row:
            return _BEFORE_FIRST_ROW + place
    return 1


def _line(drift: Drift, facet: str | None, *, in_golden: bool) -> int:
    trace = drift.golden if in_golden else drift.trace
    found = [one for one in drift.findings if facet in (None, one.facet)]
    if facet == "writes":  # counted, not placed: the calls that make the count are findings of other facets
        tools = {one.tool for one in found}
        found = [one for one in drift.findings if one.write and one.tool in tools]
    elif facet == "duplicates":
        tools = {one.tool for one in found}
        found = [one for one in drift.findings if one.kind == "added" and one.tool in tools]
    placed = [one for one in found if one.golden_call is not None or one.call is not None]
    if placed:
        first = next((one for one in placed if one.write), placed[0])
        return line_of(trace, "calls", _index(drift, first, in_golden=in_golden))
    facets = {one.facet for one in drift.findings} if facet is None else {facet}
    for key in ("stop_reasons", "turns", "interventions"):
        if key in facets:
            return line_of(trace, key)
    return line_of(trace, "calls")


def _index(drift: Drift, finding: Finding, *, in_golden: bool) -> int:
    """The call on the side that is asked for; for one that is not there, the call that it would stand behind."""
    wanted = finding.golden_call if in_golden else finding.call
    if wanted is not None:
        return wanted
    last = 0
    for edit in drift.edits:
        here, there = (edit.a, edit.b) if in_golden else (edit.b, edit.a)
        if there is not None and there == (finding.call if in_golden else finding.golden_call):
            return last
        last = here if here is not None else last
    return last
