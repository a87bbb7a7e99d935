"""Annotations of GitHub Actions: where they point, and that nothing else can be commanded by a name."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest
from hypothesis import HealthCheck, given, settings

from harness.crash_golden import dump_rows
from harness.golden import dump_trace, line_of
from harness.report.entries import Report
from harness.report.github import render_annotations
from harness.report.places import place_of
from tests.report.drifts import GOLDEN, GROWN, ROWS, SEQUENTIAL, SEVEN, change, drifted, passed, run_of_everything
from tests.report.hostile import reports
from tests.report.snapshot import check_snapshot


def test_a_run_of_everything() -> None:
    """An error a case that does not pass, a notice or a warning for each golden that was accepted anew."""
    check_snapshot("annotations.txt", render_annotations(run_of_everything()))


@pytest.mark.parametrize(
    ("name", "points_at"),
    {
        "swapped": '"search"',
        "argument": '"refund"',
        "repeated": '"find_order"',
        "dropped": '"search"',
        "stop_reason": '"stop_reasons": [',
        "write": '"send_email"',
        "failed": '"read_policy"',
        "grown": '"find_order"',
        "sequential": '"get_customer"',
    }.items(),
)
def test_an_annotation_points_at_the_line_of_the_changed_call(name: str, points_at: str) -> None:
    """In the golden as it is on disk; for a call that came, the call that it stands behind."""
    now = {**SEVEN, "grown": GROWN, "sequential": SEQUENTIAL}[name]
    file, line = place_of(drifted("case", now))
    text = dump_trace(GOLDEN).splitlines()[line - 1]
    assert file == "golden_traces/case.json"
    assert points_at in text.replace('"tool": ', "") or points_at in text


def test_a_golden_accepted_anew_is_annotated_at_what_it_says_now() -> None:
    """The file in the pull request is the new one."""
    entry = dataclasses.replace(passed("blessed"), branch=change("blessed", GROWN))
    _, line = place_of(entry)
    assert '"turn": 2, "tool": "find_order"' in dump_trace(GROWN).splitlines()[line - 1]


def test_a_crash_point_is_annotated_in_the_crash_golden() -> None:
    """At the first point that goes another way."""
    entry = next(entry for entry in run_of_everything().entries if entry.case == "crashing")
    entry = dataclasses.replace(entry, golden_file="golden_traces/crashing.json")
    file, line = place_of(entry)
    assert file == "golden_traces/crashing.crash.json"
    assert json.loads(dump_rows("crashing", ROWS).splitlines()[line - 1].rstrip(","))["point"] == "turn5.request.after"


@pytest.mark.parametrize(
    "trace",
    [GOLDEN, GROWN, dataclasses.replace(GOLDEN, owner="t.py", digest_key="ab", detail="plain"),
     dataclasses.replace(GOLDEN, calls=())],
)  # fmt: skip
def test_lines_are_those_of_the_file(trace: object) -> None:
    """`line_of` knows where `dump_trace` writes each thing."""
    lines = dump_trace(trace).splitlines()  # type: ignore[arg-type]
    for key in ("turns", "stop_reasons", "interventions", "summary"):
        assert lines[line_of(trace, key) - 1].startswith(f'  "{key}": ')  # type: ignore[arg-type]
    for place, call in enumerate(trace.calls):  # type: ignore[attr-defined]
        assert f'"digest": "{call.digest}"' in lines[line_of(trace, "calls", place) - 1]  # type: ignore[arg-type]
    if not trace.calls:  # type: ignore[attr-defined]
        assert lines[line_of(trace, "calls") - 1] == '  "calls": [],'  # type: ignore[arg-type]


def test_those_that_github_would_drop_are_counted() -> None:
    """Ten of a level are shown; the tenth says how many more there are."""
    report = Report.of("shop", "golden", "now", [drifted(f"case{one:02}", GROWN) for one in range(30)], ran=True)
    lines = render_annotations(report).splitlines()
    assert len(lines) == 10
    assert lines[-1].startswith("::error title=21 more cases::case09, case10, ")


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(reports())
def test_a_command_is_one_line_and_no_name_begins_another(report: Report) -> None:
    """Whatever tools, arguments, cases and files are called."""
    text = render_annotations(report)
    lines = text.split("\n")
    assert lines.pop() == ""
    for line in lines:
        assert line.splitlines() == [line]
        found = re.fullmatch(r"::(error|warning|notice) (file=([^,:]*),line=\d+,)?title=([^,:]*)::(.*)", line)
        assert found
