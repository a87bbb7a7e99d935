"""The JSON report, `harness.report/1`: all that a script needs, in a fixed order."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings

from harness.report.entries import Report
from harness.report.json_report import render_json
from tests.report.drifts import GOLDEN, GROWN, SEVEN, drifted, run_of_everything
from tests.report.hostile import reports
from tests.report.snapshot import check_snapshot


def test_a_run_of_everything() -> None:
    """Every kind of case."""
    check_snapshot("report.json", render_json(run_of_everything()))


@pytest.mark.parametrize("name", [*SEVEN, "grown"])
def test_findings_point_at_calls(name: str) -> None:
    """Indices from 0 into the calls of the golden and of the observed trace."""
    now = {**SEVEN, "grown": GROWN}[name]
    data = json.loads(render_json(Report.of("shop", "golden", "now", [drifted("case", now)], ran=True)))
    (case,) = data["cases"]
    findings = case["change"]["drift"]["findings"]
    assert findings
    for one in findings:
        for key, trace in (("golden_call", GOLDEN), ("call", now)):
            if one[key] is not None and one["tool"] is not None:
                assert trace.calls[one[key]].tool == one["tool"]


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(reports())
def test_any_report_is_valid_json_of_one_shape(report: Report) -> None:
    """Lone surrogates included, as they are written to a file; the keys of each case are the same, in one order."""
    data = json.loads(render_json(report).encode("utf-8", "backslashreplace"))
    assert data["schema"] == "harness.report/1"
    assert len({tuple(case) for case in data["cases"]}) <= 1
    assert [case["case"] for case in data["cases"]] == [entry.case for entry in report.entries]
