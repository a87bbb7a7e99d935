"""A report as GitLab's code quality JSON: one entry a facet, at the golden's line of the changed call.

Fields and severities: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from harness.report.line import printable
from harness.report.places import place_of
from harness.report.wording import NOT_COMPARED, fails, is_shown, reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.changes import Change
    from harness.report.entries import Entry, Report

__all__ = ["render_code_quality"]


def render_code_quality(report: Report) -> str:
    """A JSON list; empty when there is nothing to look at."""
    issues = [issue for entry in report.entries if is_shown(entry) for issue in _issues(entry, report)]
    if report.unbased and report.entries:
        issues.append(_not_compared(report))
    return json.dumps(issues, ensure_ascii=False, indent=2) + "\n"


def _issues(entry: Entry, report: Report) -> Iterator[dict[str, Any]]:
    failing = entry.status is not None and fails(entry)
    change: Change | None = entry.change if failing or entry.status is None else entry.branch
    drift = None if change is None or change.kind == "conflict" else change.drift
    crashed = failing and entry.word().startswith("crash sweep")
    if drift and not crashed:
        for facet, verdict in drift.verdicts.items():
            yield _issue(entry, facet, verdict, _severity(failing, facet == "writes"), report)
    else:
        check = "crash" if crashed else entry.word().replace(" ", "_") if failing else change.kind if change else "same"
        yield _issue(entry, check, reason(entry) or entry.word(), _severity(failing, entry.touches_writes), report)


def _not_compared(report: Report) -> dict[str, Any]:
    """That no golden is known to be unchanged; a file there must be, so it stands at the first one that there is."""
    path, line = place_of(report.entries[0])
    return {
        "description": printable(f"{NOT_COMPARED.capitalize()}: {report.unbased}"),
        "check_name": "harness/base",
        "fingerprint": hashlib.sha256(NOT_COMPARED.encode()).hexdigest(),
        "severity": "info",
        "location": {"path": printable(path), "lines": {"begin": line}},
    }


def _severity(failing: bool, writes: bool) -> str:
    if failing:
        return "critical" if writes else "major"
    return "minor" if writes else "info"


def _issue(entry: Entry, check: str, text: str, severity: str, report: Report) -> dict[str, Any]:
    path, line = place_of(entry, check)
    blessed = f" (golden {entry.branch_word(report.base)})" if entry.reblessed else ""
    # Neither line nor wording is in it: GitLab compares the fingerprints of two branches to say what is new.
    fingerprint = hashlib.sha256(f"{entry.case}\0{check}\0{entry.reblessed}".encode("utf-8", "surrogatepass"))
    return {
        "description": printable(f"{entry.case}: {text}{blessed}"),
        "check_name": f"harness/{check}",
        "fingerprint": fingerprint.hexdigest(),
        "severity": severity,
        "location": {"path": printable(path), "lines": {"begin": line}},
    }
