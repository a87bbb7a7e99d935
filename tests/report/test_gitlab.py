"""GitLab's code quality report: its fields, and fingerprints that are stable and unique."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings

from harness.report.entries import Report
from harness.report.gitlab import render_code_quality
from tests.report.drifts import GROWN, SEVEN, drifted, run_of_everything
from tests.report.hostile import reports
from tests.report.snapshot import check_snapshot


def issues(report: Report) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(render_code_quality(report))
    return found


def test_a_run_of_everything() -> None:
    """One issue a facet; a golden that was accepted anew is one as well."""
    check_snapshot("code_quality.json", render_code_quality(run_of_everything()))


def test_each_drift_names_its_facets() -> None:
    """`check_name` is the facet, writes are critical."""
    for name, now in {**SEVEN, "grown": GROWN}.items():
        entry = drifted(name, now)
        assert entry.change.drift
        found = issues(Report.of("shop", "golden", "now", [entry], ran=True))
        assert [one["check_name"] for one in found] == [f"harness/{facet}" for facet in entry.change.drift.verdicts]
        assert {one["severity"] for one in found if one["check_name"] == "harness/writes"} <= {"critical"}


def test_a_fingerprint_outlives_what_changes_around_it() -> None:
    """The same facet of the same case is the same issue, however much of it there is and in whichever line."""
    one, other = (issues(Report.of("", "", "", [drifted("case", now)], ran=True)) for now in (GROWN, SEVEN["repeated"]))
    prints = [{issue["check_name"]: issue["fingerprint"] for issue in found} for found in (one, other)]
    assert prints[0]["harness/order"] == prints[1]["harness/order"]
    assert prints[0]["harness/order"] != prints[0]["harness/duplicates"]


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(reports())
def test_every_issue_has_what_gitlab_wants(report: Report) -> None:
    """The documented fields, severities that it knows, a line from 1."""
    for issue in issues(report):
        assert list(issue) == ["description", "check_name", "fingerprint", "severity", "location"]
        assert issue["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert issue["location"]["lines"]["begin"] >= 1
        assert issue["location"]["path"]


def test_no_two_issues_are_taken_for_one() -> None:
    """GitLab shows one of those that share a fingerprint."""
    prints = [issue["fingerprint"] for issue in issues(run_of_everything())]
    assert len(prints) == len(set(prints))
