"""Cases as pytest items: a file holds one, which is the case or the reason why it is none."""

from __future__ import annotations

import shutil
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

import pytest
from _pytest._code.code import ReprFileLocation, TerminalRepr

from harness.errors import CaseError, HarnessError
from harness.report.failure import failure_lines, user_traceback
from harness.report.line import Line, fitted
from harness.session_results import PREFIX, case_facts, verdict_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from _pytest._code.code import ExceptionInfo
    from _pytest._io import TerminalWriter

    from harness.case.load import Case
    from harness.errors import Problem
    from harness.gate import Gate, Verdict
    from harness.project import Project
    from harness.report.lines import Style

__all__ = ["MARKUP", "BrokenCase", "CaseFile", "CaseItem", "FailureRepr", "ProjectRun", "is_expected_to_fail"]

MARKUP: Final[dict[Style, dict[str, bool]]] = {
    "added": {"green": True},
    "changed": {"yellow": True},
    "faint": {"light": True},
    "moved": {"cyan": True},
    "plain": {},
    "removed": {"red": True},
    "title": {"bold": True},
}
"""The styles of lines in the words of pytest's terminal."""


class ProjectRun:
    """What all cases of a session share.

    Args:
        project: whose cases they are.
        update: whether they are accepted instead of compared.
    """

    def __init__(self, project: Project, *, update: bool) -> None:
        self.project = project
        self._update = update

    @cached_property
    def gate(self) -> Gate:
        """Judges them."""
        from harness.gate import Gate

        return Gate(self.project, update=self._update)

    def load(self, path: Path) -> Case:
        """The case in a file.

        Raises:
            CaseError: it is none, or its golden would be that of another file as well.
        """
        from harness.case.ids import shown_path
        from harness.case.load import load_case

        if path in self._collisions:
            raise CaseError(shown_path(path), [self._collisions[path]])
        return load_case(path, self.project.cases)

    @cached_property
    def _collisions(self) -> dict[Path, Problem]:
        """What is wrong with files that would share a golden.  All files of the project count, selected or not."""
        from harness.case.ids import find_cases, find_collisions

        return find_collisions(find_cases(self.project.cases), self.project.cases)


class CaseFile(pytest.File):
    """A case file: the case, or the reason why it is none; and its crash sweep, where it asks for one."""

    def __init__(self, *, run: ProjectRun, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run

    def collect(self) -> Iterator[pytest.Item]:
        """Load the case.  A broken file is one failing item, so that a typo does not stop all other cases."""
        try:
            case = self.run.load(self.path)
        except CaseError as error:
            yield BrokenCase.from_parent(self, name=self.path.stem, run=self.run, error=error)
        else:
            yield CaseItem.from_parent(self, name=self.path.stem, run=self.run, case=case)
            if case.faults.crash != "none":
                from harness.crash_items import CrashItem

                yield CrashItem.from_parent(self, name=f"{self.path.stem}::crash", run=self.run, case=case)


class CaseFailedError(Exception):
    """A case did not pass; carries the verdict for the report."""

    def __init__(self, verdict: Verdict, cause: BaseException | None, failures: Mapping[int, str]) -> None:
        super().__init__(verdict.headline)
        self.verdict = verdict
        self.cause = cause
        self.failures = failures


class FailureRepr(TerminalRepr):
    """Why a case failed.  Its first line is what the short summary and JUnit show.

    Args:
        lines: the whole story.
        path: the case file.
        line: where in it, from 1.
    """

    def __init__(self, lines: Sequence[Line], path: str, line: int = 1) -> None:
        self.lines = tuple(lines)
        self.reprcrash = ReprFileLocation(path, line, lines[0].text)

    def __str__(self) -> str:
        return "\n".join(line.text for line in self.lines)

    def toterminal(self, tw: TerminalWriter) -> None:
        """Write the lines in the colours of a diff, as wide as the window is."""
        width = shutil.get_terminal_size((0, 0)).columns  # 0: no window, such as the log of a CI job
        for line in self.lines:
            for text in fitted(line, width):
                tw.line(text, **MARKUP[line.style])

    def to_data(self) -> dict[str, Any]:
        """Plain data, for the way from a worker to the controller; pytest by itself would keep the text alone."""
        crash = self.reprcrash
        return {"lines": [one.data() for one in self.lines], "path": crash.path, "line": crash.lineno}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """What `to_data` gave."""
        return cls([Line.from_data(one) for one in data["lines"]], data["path"], data["line"])


class _Item(pytest.Item):
    """What stands in a case file.

    It gets no fixtures, not even autouse ones: those are for tests in Python.
    """

    def __init__(self, *, run: ProjectRun, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run
        self.add_marker("harness")
        self.case_id = self.path.relative_to(run.project.cases).with_suffix("").as_posix()
        self.publish(case_facts(self.case_id))

    def publish(self, facts: Mapping[str, str]) -> None:
        """Plain data for JUnit and, from a worker, for the controller.  What an earlier attempt said is withdrawn."""
        self.user_properties[:] = [pair for pair in self.user_properties if not str(pair[0]).startswith(PREFIX)]
        self.user_properties += [(f"{PREFIX}{name}", value) for name, value in facts.items()]

    def publish_broken(self, error: CaseError) -> None:
        """That the file cannot be run, and why."""
        self.publish(case_facts(self.case_id, "broken", str(error).partition("\n")[0]))

    def repr_failure(self, excinfo: ExceptionInfo[BaseException], style: Any = None) -> str | TerminalRepr:
        """Verdict and first difference in the first line, then the aligned calls; no frames of the harness."""
        from harness.case.verdict import error_line

        error = excinfo.value
        line = 1
        if isinstance(error, CaseFailedError):
            lines = failure_lines(error.verdict, error.cause, error.failures)
        elif isinstance(error, HarnessError):
            lines = [Line(text) for text in str(error).splitlines() or [type(error).__name__]]
            line = _first_line(error) if isinstance(error, CaseError) else 1
        elif isinstance(error, Exception):
            return super().repr_failure(excinfo, style)  # a fault of the harness
        else:  # what passes through a run: a time-out, pytest.fail, sys.exit
            said = isinstance(error, pytest.fail.Exception)
            lines = [Line(str(error) if said else error_line(error, self.run.project.root)), Line("")]
            lines += map(Line, user_traceback(error))
        return FailureRepr(lines, self.nodeid.partition("::")[0], line)


class BrokenCase(_Item):
    """A case file that cannot be run."""

    def __init__(self, *, error: CaseError, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.error = error
        self.publish_broken(error)

    def runtest(self) -> None:
        """Fail with all that is wrong in the file."""
        raise self.error

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the file is broken."""
        return self.path, _first_line(self.error) - 1, f"case {self.case_id}"


class CaseItem(_Item):
    """One case: drive the loop, then let the gate judge its trace."""

    def __init__(self, *, case: Case, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case = case
        self.extra_keyword_matches.update((case.id, *case.id.split("/"), *case.tags))
        for mark in case.marks:
            _register(mark, self.config)
            self.add_marker(mark)

    def runtest(self) -> None:
        """Run the case and raise when its verdict does not let the build go on."""
        from harness.case.run import run_case

        self.publish(case_facts(self.case_id))
        gate = self.run.gate
        try:
            run = run_case(self.case, gate.project)
        except CaseError as error:
            self.publish_broken(error)
            raise
        expected = is_expected_to_fail(self)
        verdict = gate.judge(run.trace, self.case.policy(gate.policy), expected_to_fail=expected)
        self.publish(verdict_facts(verdict, expected_to_fail=expected))
        if not verdict.passed:
            raise CaseFailedError(verdict, run.error, run.failures) from run.error

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The case file, and the id of the case."""
        return self.path, 0, f"case {self.case_id}"


def is_expected_to_fail(item: pytest.Item) -> bool:
    """Whether an `xfail` mark holds.  What a test that is expected to fail did is never accepted.

    A condition as text is taken as true: whether it holds, pytest alone can say.
    """
    if item.config.getoption("runxfail"):
        return False
    for mark in item.iter_markers("xfail"):
        conditions = (mark.kwargs["condition"],) if "condition" in mark.kwargs else mark.args
        if not conditions or any(conditions):
            return True
    return False


def _first_line(error: CaseError) -> int:
    """Where the first problem of a case file is, from 1."""
    return next((problem.line for problem in error.problems if problem.line), 1)


def _register(mark: str, config: pytest.Config) -> None:
    """A mark from YAML has no place in the project's `markers`; a strict run would refuse the whole file."""
    known = {line.partition(":")[0].partition("(")[0].strip() for line in config.getini("markers")}
    if mark not in known:
        config.addinivalue_line("markers", f"{mark}: used by a case")
