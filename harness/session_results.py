"""What the cases of one pytest session said: gathered from the reports of all processes, told at the end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from harness.errors import HarnessError
from harness.report.lines import Line, printable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest

    from harness.gate import Verdict
    from harness.project import Project

__all__ = ["SessionResults", "case_facts", "verdict_facts"]

PREFIX: Final = "harness."
RESULT: Final = "harness.result"
"""The property of a test that compares runs by the fixture; there may be several, so each is JSON."""


def case_facts(case: str, verdict: str = "", headline: str = "") -> dict[str, str]:
    """What is known of a case: its id, and if there is one its verdict with the reason."""
    return {"case": case, "verdict": verdict, "headline": headline} if verdict else {"case": case}


def verdict_facts(verdict: Verdict, *, expected_to_fail: bool = False) -> dict[str, str]:
    """A verdict as plain texts, for JUnit and for the way from a worker to the controller."""
    reason = f"expected to fail: {verdict.headline}" if expected_to_fail and not verdict.passed else verdict.headline
    facts = case_facts(verdict.case, verdict.status, reason)
    if verdict.status == "accepted" and verdict.drift is not None and verdict.drift.touches_writes:
        facts["writes_changed"] = "true"
    if verdict.trace is not None:
        facts["calls"] = str(len(verdict.trace.calls))
        facts["turns"] = str(verdict.trace.turns)
        facts["writes"] = json.dumps(verdict.trace.write_counts)
    if verdict.drift is not None:
        golden = verdict.drift.golden
        facts["golden_calls"] = str(len(golden.calls))
        facts["golden_turns"] = str(golden.turns)
        facts["golden_writes"] = json.dumps(golden.write_counts)
        facts["facets"] = " ".join(verdict.drift.verdicts if verdict.drift else ())
    return facts


class SessionResults:
    """Collects results where reports arrive: under xdist the controller, elsewhere the one process that there is.

    Args:
        project: whose cases run.
        root: what node ids are relative to.
        update: whether goldens are being accepted.
    """

    def __init__(self, project: Project, root: Path, *, update: bool) -> None:
        self.project = project
        self._root = root
        self._update = update
        # By test and case: a test may compare several runs, and two files may claim one case.
        self._results: dict[tuple[str, str], dict[str, str]] = {}

    def take(self, report: pytest.TestReport) -> None:
        """Read what a test published, and what became of a case that got no verdict."""
        facts: dict[str, str] = {}
        for name, value in report.user_properties:
            if name == RESULT:
                result = json.loads(str(value))
                self._results[report.nodeid, result["case"]] = result
            elif str(name).startswith(PREFIX):
                facts[str(name).removeprefix(PREFIX)] = str(value)
        if not facts and report.failed:
            facts = self._crashed(report)
        if facts and "verdict" not in facts:
            facts |= _without_verdict(report)
        if "verdict" in facts:
            self._results[report.nodeid, facts["case"]] = facts

    def _crashed(self, report: pytest.TestReport) -> dict[str, str]:
        """A worker that died publishes nothing: the node id alone tells which case it was running."""
        from harness.case.ids import is_case_file

        path = self._root / report.nodeid.partition("::")[0]
        if not is_case_file(path) or not path.is_relative_to(self.project.cases):
            return {}
        return case_facts(path.relative_to(self.project.cases).with_suffix("").as_posix())

    def write_record(self) -> None:
        """Leave a record of what ran, for `harness run --verify` and for reports; clear what killed updates left."""
        if self._update:
            from harness.atomic import remove_strays

            remove_strays(self.project.golden_traces)
        if self._results:
            from harness.last_run import write_last_run
            from harness.results_record import write_results
            from harness.review.decisions import note_updates

            if self._update:
                note_updates(self.project, self._results.values())
            write_results(self.project, self._results.values())
            write_last_run(self.project, {one["case"]: one["verdict"] for one in self._results.values()})

    def summary(self) -> list[Line]:
        """How many cases passed, what an update changed, which goldens have no case."""
        from harness.report.summary import summary_lines

        try:
            return summary_lines(list(self._results.values()), self.project, update=self._update)
        except HarnessError as error:  # a folder that cannot be read, a digest key that cannot be used
            return [Line(str(error), "removed")]


def _without_verdict(report: pytest.TestReport) -> Mapping[str, str]:
    """A case that was skipped, timed out, or died of a fault: what the report says of it."""
    if report.skipped:
        return {"verdict": "skipped", "headline": _reason(report)}
    return {"verdict": "failed", "headline": _reason(report)} if report.failed else {}


def _reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        text: Any = report.longrepr[2]
    else:
        crash: Any = getattr(report.longrepr, "reprcrash", None)
        text = report.longrepr if crash is None else crash.message
    return printable(next(iter(str(text).splitlines()), ""))
