"""The report of the last run in a project: results, goldens, pending traces, sweeps, and what git knows of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.changes import Change, CrashChange, changes_between, commit_side, folder_side, golden_side
from harness.drift import compare
from harness.errors import CaseError, GoldenError, HarnessError
from harness.gate import PASSED, Gate
from harness.golden import load_trace
from harness.golden_history import histories
from harness.normalize import DIGEST_KEY_VARIABLE
from harness.report.entries import Entry, Report, RunStatus
from harness.repository import Repository, path_names
from harness.results_record import Result, file_digest, path_digest, read_results
from harness.rule_changes import rule_changes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.changes import Side
    from harness.project import Project
    from harness.report.entries import Version
    from harness.stuck.audit import Audit
    from harness.trace import Trace

__all__ = ["run_report"]

_CRASH = ".crash"

_FEWEST, _MOST, _ALTOGETHER = 2, 20, 5_000
"""Versions of each golden, and of all together: each takes a quarter of a millisecond to read and compare."""


def run_report(
    project: Project, *, base: str | None = None, compare_branch: bool = True, history: bool = True
) -> Report:
    """What is known of every case of a project, without running anything.

    Args:
        project: whose.
        base: the branch or commit that goldens are compared with as well (default: the branch that this one will be
            merged into; where there is none, they are not).
        compare_branch: whether to ask git for what became of goldens since the branch began.
        history: whether to ask git for the versions of goldens; where it cannot tell, there are none.

    Raises:
        HarnessError: `base` was named and cannot be used, or a golden cannot be read.
    """
    gathering = _Gathering(project)
    branch, facts = _branch(project, gathering.goldens, base) if compare_branch else ({}, {})
    cases = sorted(gathering.cases() | set(branch))
    versions = _versions(project, cases) if history else {}
    entries = [gathering.entry(case, branch.get(case), versions.get(case, ())) for case in cases]
    return Report.of(project.root.name, "golden", "now", entries, ran=True, **facts)


class _Gathering:
    """All that lies in the folders of a project, read once."""

    def __init__(self, project: Project) -> None:
        from harness.case.ids import find_cases

        self._project = project
        self._gate = Gate(project)
        self._results = read_results(project)
        self._named = path_names(project.root, project.root)
        self._sweeps = folder_side(project.artifacts / "crash", "now").crashes
        self._files = {
            path.relative_to(project.cases).with_suffix("").as_posix(): path for path in find_cases(project.cases)
        }
        self.goldens = golden_side(project, "golden")

    def cases(self) -> set[str]:
        """Every case that anything is known of."""
        ran = {case.removesuffix(_CRASH) for case in self._results}
        return {*self.goldens.cases(), *self._files, *ran, *self._gate.pending_cases()}

    def entry(self, case: str, branch: Change | None, history: tuple[Version, ...] = ()) -> Entry:
        """All that is known of a case."""
        pending = self._pending(case)
        change, problem = self._change(case, pending)
        said = self._said(case, change, pending)
        crash_status, crash_headline = self._swept(case)
        file = self._files.get(case)
        return Entry(
            case,
            change,
            said.status,
            problem or said.headline,
            branch,
            said.counts,
            self._sweeps.get(case),
            crash_status,
            crash_headline,
            self._audit(pending or change.before),
            history=history,
            golden_file=self._named(self._gate.store.path(case)),
            case_file=self._named(file) if file else "",
        )

    def _pending(self, case: str) -> Trace | None:
        path = self._gate.pending_path(case)
        try:
            return load_trace(path, path.name)
        except GoldenError:  # none is there, or a hand was at it: then nothing is known of it
            return None

    def _change(self, case: str, pending: Trace | None) -> tuple[Change, str]:
        """From golden to what was observed, and why the case cannot be compared."""
        # Without a golden there is nothing that a sweep could have changed.
        swept = self.goldens.crashes.get(case)
        crash = CrashChange(swept, None if swept is None else self._sweeps.get(case, swept))
        conflict = self.goldens.conflicts.get(case)
        if conflict is not None:
            drift = compare(conflict.ours, conflict.theirs)
            names = (conflict.ours_name, conflict.theirs_name)
            return Change(case, "conflict", conflict.ours, conflict.theirs, drift, names=names, crash=crash), ""
        if case in self.goldens.problems:
            problem = str(self.goldens.problems[case])
            return Change(case, "unusable", None, pending, problem=problem, crash=crash), ""
        golden = self.goldens.traces.get(case)
        if golden is None or pending is None:
            return Change(case, "same" if pending is None else "new", golden, pending, crash=crash), ""
        fault = _incomparable(case, golden, pending)
        if fault:
            return Change(case, "unusable", golden, pending, problem=fault, crash=crash), ""
        try:
            drift = compare(golden, pending, self._gate.policy_of(case))
        except CaseError as error:
            # A report leaves this machine: it names the file by its place in the project.
            problem = error.problems[0].render(self._named(self._files.get(case, Path(error.file))))
            return Change(case, "changed", golden, pending, compare(golden, pending), crash=crash), problem
        return Change(case, "changed" if drift else "same", golden, pending, drift, crash=crash), ""

    def _said(self, case: str, change: Change, pending: Trace | None) -> Result:
        """What the last run said of a case, as far as that still holds."""
        result = self._results.get(case)
        if result is None or change.kind in ("conflict", "unusable"):
            return self._unrecorded(case, change, pending)
        overtaken = self._overtaken(case, result)
        if not overtaken:
            return result
        if case not in self._files and result.case_file:
            return Result("not_run", overtaken)
        if result.status not in PASSED and pending is not None:
            return self._unrecorded(case, change, pending)  # what waits, against the golden that there is now
        golden = self.goldens.traces.get(case)
        if golden is not None and result.observed == path_digest(golden):
            return Result("accepted", f"accepted since that run: {result.headline}", result.counts)
        return Result("not_run", overtaken)

    def _swept(self, case: str) -> tuple[RunStatus | None, str]:
        """What the last run said of the sweep of a case, as far as that still holds."""
        result = self._results.get(f"{case}{_CRASH}")
        if result is None:
            return None, ""
        overtaken = self._overtaken(f"{case}{_CRASH}", result)
        return ("not_run", overtaken) if overtaken and result.status in PASSED else (result.status, result.headline)

    def _overtaken(self, case: str, result: Result) -> str:
        """Which of the files that a result is about is another one now; empty where it still holds."""
        golden, file = self._gate.store.path(case), self._files.get(case)
        now = (file_digest(golden), "" if file is None else file_digest(file))
        for name, noted, found in zip(("golden", "case file"), (result.golden, result.case_file), now, strict=True):
            if noted is not None and noted != found:
                return f"its {name} {'changed after' if found else 'is gone since'} that run"
        return ""

    def _unrecorded(self, case: str, change: Change, pending: Trace | None) -> Result:
        """What is said of a case that the last run left out: its pending trace is from an earlier one."""
        if change.kind in ("conflict", "unusable"):
            return Result("unusable", change.problem or "an unresolved merge conflict")
        status: RunStatus = "not_run"
        headline = ""
        if case not in self._files and pending is not None and pending.owner is None:
            headline = "its case file is gone"
        elif pending is not None and pending.problems:
            status, headline = "failed", pending.problems[0]
        elif change.kind == "new":
            status, headline = "missing", "no golden yet"
        elif change.drift:
            status, headline = "drift", change.drift.headline
        elif case not in self._files and change.before is None:
            headline = "its case file is gone"
        return Result(status, headline)

    def _audit(self, trace: Trace | None) -> Audit | None:
        if trace is None:
            return None
        from harness.case.named import stuck_settings
        from harness.stuck.audit import audit

        return audit(trace, stuck_settings(trace.case, self._project))


def _incomparable(case: str, golden: Trace, pending: Trace) -> str:
    """Why two traces say nothing of each other, whatever their digests are; empty when they do."""
    for what, one in (("the golden", golden), ("what is pending", pending)):
        if one.case != case:
            return f"{what} is that of another case, {one.case!r}"
    if golden.digest_key != pending.digest_key:
        return f"the digests of golden and run were made with different keys ({DIGEST_KEY_VARIABLE})"
    return ""


def _versions(project: Project, cases: Sequence[str]) -> dict[str, tuple[Version, ...]]:
    limit = max(_FEWEST, min(_MOST, _ALTOGETHER // max(1, len(cases))))
    try:
        return histories(project, cases, limit)
    except HarnessError:
        return {}


def _branch(project: Project, goldens: Side, base: str | None) -> tuple[Mapping[str, Change], dict[str, Any]]:
    """What became of each golden since the branch began; what to call its base or why there is none, and the commit."""
    commit = ""
    try:
        repository = Repository.around(project.golden_traces)
        commit = repository.describe()
        name = repository.target() if base is None else base
        begun = repository.merge_base(name)
        before = commit_side(repository, begun, project.golden_traces, name)
        rules = rule_changes(project, repository, begun)
    except HarnessError as error:
        if base is not None:
            raise
        return {}, {"unbased": str(error), "commit": commit}
    facts = {"base": name, "commit": commit, "rules": rules}
    return {one.case: one for one in changes_between(before, goldens)}, facts
