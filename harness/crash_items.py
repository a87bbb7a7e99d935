"""The crash sweep of a case as a pytest item of its own, beside the case: `weekly_summary::crash`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from harness.case_items import CaseItem, FailureRepr, is_expected_to_fail
from harness.errors import CaseError, HarnessError
from harness.report.lines import Line
from harness.session_results import case_facts

if TYPE_CHECKING:
    from _pytest._code.code import ExceptionInfo, TerminalRepr

    from harness.crash.judge import CrashVerdict

__all__ = ["CrashItem"]


class CrashFailedError(HarnessError):
    """A sweep did not pass; carries the verdict for the report."""

    def __init__(self, verdict: CrashVerdict) -> None:
        super().__init__(verdict.headline)
        self.verdict = verdict


class CrashItem(CaseItem):
    """One case, killed at every point: its facts go by `<case>.crash`, as its golden does."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case_id = f"{self.case_id}.crash"
        self.publish(case_facts(self.case_id))

    def runtest(self) -> None:
        """Sweep the case and raise when its verdict does not let the build go on."""
        from harness.crash.cases import sweep_case
        from harness.crash.judge import judge
        from harness.faults.sweep import Plan

        gate = self.run.gate
        # Under xdist the other cores are busy with other tests.
        jobs = 1 if "PYTEST_XDIST_WORKER" in os.environ else os.cpu_count() or 1
        try:
            found = sweep_case(self.case, gate.project, Plan(jobs=jobs))
        except CaseError as error:
            self.publish_broken(error)
            raise
        update = gate.update and not is_expected_to_fail(self)
        verdict = judge(self.case.id, found, gate.project, update=update)
        self.publish(case_facts(self.case_id, verdict.status, verdict.headline))
        if not verdict.passed:
            raise CrashFailedError(verdict)

    def repr_failure(self, excinfo: ExceptionInfo[BaseException], style: Any = None) -> str | TerminalRepr:
        """What is broken, and its story."""
        error = excinfo.value
        if isinstance(error, CrashFailedError):
            lines = [Line(f"{error.verdict.status}: {error.verdict.headline}"), Line(""), *error.verdict.lines]
            return FailureRepr(lines, self.nodeid.partition("::")[0])
        return super().repr_failure(excinfo, style)
