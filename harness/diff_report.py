"""The report of a diff: two sides that a user names, or what a branch did to its goldens."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.changes import Side, changes_between, commit_side, file_side, folder_side, golden_side, side_of
from harness.errors import HarnessError
from harness.gate import Gate
from harness.golden import decode_trace
from harness.report.entries import Entry, Report
from harness.report.wording import PENDING
from harness.repository import Repository, path_names

if TYPE_CHECKING:
    from collections.abc import Collection

    from harness.project import Project

__all__ = ["GOLDEN", "compare_branch", "compare_cases", "compare_sides", "is_side"]

GOLDEN: Final = "golden"
_GIT: Final = "git:"


def is_side(word: str) -> bool:
    """Whether a word names a side by itself: `golden`, `pending`, `git:…`, a file or a folder that exists."""
    return word in (GOLDEN, PENDING) or word.startswith(_GIT) or Path(word).exists()


def compare_branch(project: Project, base: str | None = None) -> Report:
    """What this branch did to its goldens, committed or not.

    Args:
        project: whose goldens.
        base: the branch or commit that this one began at (default: the branch that it will be merged into).

    Raises:
        HarnessError: there is no repository, no such branch, no common commit.
    """
    repository = Repository.around(project.golden_traces)
    name = repository.target() if base is None else base
    before = commit_side(repository, repository.merge_base(name), project.golden_traces, name)
    return _report(project, before, golden_side(project, "working tree"), exact=True)


def compare_cases(project: Project, cases: Collection[str], *, exact: bool = False) -> Report:
    """The goldens of some cases, and what the last run observed of them.

    Args:
        project: whose cases.
        cases: their ids.
        exact: whether to overlook nothing; else each case is compared as its file says.

    Raises:
        HarnessError: nothing is pending for a case, or its file is wrong.
    """
    pending = folder_side(project.pending, PENDING)
    for case in sorted(cases):
        if case not in pending.cases():
            raise HarnessError(f"nothing is pending for {case!r}: its last run passed, or it has not run yet")
    golden = golden_side(project, GOLDEN)
    return _report(project, _only(golden, cases), _only(pending, cases), exact=exact)


def compare_sides(project: Project, old: str, new: str, *, exact: bool | None = None) -> Report:
    """Two sides, case by case.  Two files are compared with each other, whatever cases they name.

    Args:
        project: what `golden`, `pending` and `git:REF` mean.
        old: the first side: a file, a folder, `golden`, `pending`, `git:REF`, `git:REF:PATH`.
        new: the second side, likewise.
        exact: whether to overlook nothing; None: except for what is pending, which is compared as the cases say.

    Raises:
        HarnessError: a side is nothing of these, or cannot be read.
    """
    before, after = _side(old, project), _side(new, project)
    if _is_one_trace(old, before) and _is_one_trace(new, after):
        (one,), (case,) = before.traces.values(), after.traces
        before = Side(before.name, {case: replace(one, case=case)})
    for word, side in ((old, before), (new, after)):
        # A file is one case, and what is pending are those that did not pass: the others were not deleted.
        if word == PENDING or _is_one_trace(word, side):
            before, after = _only(before, side.traces), _only(after, side.traces)
    lenient = PENDING in (old, new) if exact is None else not exact
    return _report(project, before, after, exact=not lenient)


def _side(word: str, project: Project) -> Side:
    if word == GOLDEN:
        return golden_side(project, GOLDEN)
    if word == PENDING:
        side = folder_side(project.pending, PENDING)
        if not side.cases():
            raise HarnessError("nothing is pending: every case of the last run passed, or none has run yet")
        return side
    if word.startswith(_GIT):
        return _git_side(word, project)
    path = Path(word)
    if path.is_dir():
        side = folder_side(path, word)
        if not side.cases():
            raise HarnessError(f"{word} holds no traces: a folder of *.json as golden_traces/ is one")
        return side
    if path.is_file():
        return file_side(path, word)
    raise HarnessError(
        f"{word!r} is no side of a diff: neither a file or folder, nor git:REF, git:REF:PATH, {GOLDEN} or {PENDING}"
    )


def _git_side(word: str, project: Project) -> Side:
    reference, _, path = word.removeprefix(_GIT).partition(":")
    if not reference:
        raise HarnessError(f"{word!r} names no commit; write git:main, git:HEAD~2 or git:REF:PATH")
    repository = Repository.around(project.golden_traces)
    commit = repository.commit(reference)
    if not path:
        return commit_side(repository, commit, project.golden_traces, word)
    # As in git itself: from the root of the repository, or with ./ from where one stands.
    place = Path.cwd() / path if path.startswith(("./", "../")) else repository.root / path
    files = repository.files(commit, place)
    if not files:
        raise HarnessError(
            f"{reference} has no {path!r}; paths are relative to the root of the repository, or begin with ./"
        )
    if set(files) == {""}:
        trace = decode_trace(files[""], word)
        return Side(word, {trace.case: trace})
    return side_of(word, files, word)


def _is_one_trace(word: str, side: Side) -> bool:
    """Whether a side was asked for as a single file."""
    if word.startswith(_GIT):
        return word.endswith(".json") and word.count(":") > 1 and len(side.traces) == 1
    return word not in (GOLDEN, PENDING) and Path(word).is_file()


def _only(side: Side, cases: Collection[str]) -> Side:
    """Some cases of a side, without their crash goldens: what is compared here are runs."""
    return Side(
        side.name,
        {case: trace for case, trace in side.traces.items() if case in cases},
        {},
        {case: problem for case, problem in side.problems.items() if case in cases},
        {case: conflict for case, conflict in side.conflicts.items() if case in cases},
    )


def _report(project: Project, before: Side, after: Side, *, exact: bool) -> Report:
    from harness.case.named import case_file

    gate = Gate(project)
    named = path_names(project.root, project.root)
    entries: list[Entry] = []
    for change in changes_between(before, after, None if exact else gate.policy_of):
        file = case_file(change.case, project)
        golden = gate.store.path(change.case)
        shown = named(golden) if golden.is_file() or change.kind == "deleted" else ""
        entries.append(Entry(change.case, change, golden_file=shown, case_file=named(file) if file else ""))
    return Report.of(project.root.name, before.name, after.name, entries)
