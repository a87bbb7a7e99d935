"""A report as JSON, `harness.report/1`: all that a script needs, keys in a fixed order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from harness.report.entries import Counts
from harness.report.wording import headline, reason

if TYPE_CHECKING:
    from harness.changes import Change, CrashChange
    from harness.crash_golden import Row
    from harness.drift import Drift
    from harness.report.entries import Entry, Report

__all__ = ["SCHEMA", "render_json", "report_data"]

SCHEMA: Final = "harness.report/1"


def render_json(report: Report) -> str:
    """The text of `report_data`."""
    return json.dumps(report_data(report), ensure_ascii=False, indent=2) + "\n"


def report_data(report: Report) -> dict[str, Any]:
    """Plain data.  Calls are indices from 0 into the `calls` of the golden and of the observed trace."""
    entries = report.entries
    return {
        "schema": SCHEMA,
        "title": report.title,
        "before": report.before,
        "after": report.after,
        "base": report.base or None,
        "unbased": report.unbased or None,
        "commit": report.commit or None,
        "rules": list(report.rules),
        "ran": report.ran,
        "headline": headline(report),
        "summary": {
            "cases": len(entries),
            "failing": len(report.failing) if report.ran else None,
            "differing": sum(entry.change.differs for entry in entries),
            "reblessed": sum(entry.reblessed for entry in entries),
            "touching_writes": sum(entry.touches_writes for entry in entries),
        },
        "cases": [_entry(entry, report) for entry in entries],
    }


def _entry(entry: Entry, report: Report) -> dict[str, Any]:
    return {
        "case": entry.case,
        "verdict": entry.word(),
        "status": entry.status,
        "passed": entry.passed,
        "headline": reason(entry),
        "touches_writes": entry.touches_writes,
        "counts": {"golden": _counts(entry.before), "now": _counts(entry.now)},
        "change": _change(entry.change),
        "branch": None
        if entry.branch is None
        else {"state": entry.branch_word(report.base), "reblessed": entry.reblessed, **_change(entry.branch)},
        "crash": None
        if entry.crash_status is None and not entry.change.crash
        else {
            "status": entry.crash_status,
            "headline": entry.crash_headline,
            "points": _points(entry.change.crash),
        },
        "stuck": None if entry.audit is None else entry.audit.to_data(),
        "files": {"golden": entry.golden_file or None, "case": entry.case_file or None},
    }


def _counts(counts: Counts | None) -> dict[str, Any] | None:
    if counts is None:
        return None
    return {"calls": counts.calls, "turns": counts.turns, "writes": dict(counts.writes)}


def _change(change: Change) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "was": change.was or None,
        "problem": change.problem or None,
        "sides": None if change.names is None else list(change.names),
        "before": _counts(Counts.of(change.before)),
        "after": _counts(Counts.of(change.after)),
        "drift": _drift(change.drift) if change.drift or (change.drift is not None and change.drift.causes) else None,
    }


def _drift(drift: Drift | None) -> dict[str, Any] | None:
    if drift is None:
        return None
    return {
        "causes": list(drift.causes),
        "facets": drift.verdicts,
        "findings": [
            {
                "facet": one.facet,
                "kind": one.kind,
                "message": one.message,
                "tool": one.tool,
                "write": one.write,
                "golden_call": one.golden_call,
                "call": one.call,
            }
            for one in drift.findings
        ],
    }


def _points(crash: CrashChange) -> list[dict[str, Any]]:
    """The points that go another way, came or went."""
    before, after = ({row.point: row for row in rows or ()} for rows in (crash.before, crash.after))
    return [
        {"point": point, "golden": _row(before.get(point)), "now": _row(after.get(point))}
        for point in dict.fromkeys((*before, *after))
        if before.get(point) != after.get(point)
    ]


def _row(row: Row | None) -> dict[str, Any] | None:
    return None if row is None else {key: value for key, value in row.data().items() if key != "point"}
