"""One side of a comparison: traces and crash goldens by case, and the files that hold none."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from harness.changes.conflict import Conflict, find_conflict
from harness.crash_golden import CRASH_SUFFIX, Row, parse_rows
from harness.errors import GoldenError, HarnessError
from harness.golden import decode_trace
from harness.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from harness.project import Project
    from harness.trace import Trace

__all__ = [
    "Side",
    "case_of",
    "commit_side",
    "file_side",
    "folder_side",
    "golden_side",
    "is_golden",
    "side_of",
    "with_whole_conflicts",
]

_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class Side:
    """Traces by case.

    Args:
        name: what to call it: `main`, `golden_traces/`, `now`.
        traces: by case.
        crashes: crash goldens by case.
        problems: by case, why its file holds no trace; `kind` says what it is.
        conflicts: by case, both versions in a file that an unresolved merge left.
    """

    name: str
    traces: Mapping[str, Trace] = field(default_factory=dict)
    crashes: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)
    problems: Mapping[str, GoldenError] = field(default_factory=dict)
    conflicts: Mapping[str, Conflict] = field(default_factory=dict)

    def cases(self) -> set[str]:
        """All cases that it says something of."""
        return {*self.traces, *self.crashes, *self.problems, *self.conflicts}


def side_of(name: str, files: Mapping[str, bytes | GoldenError], source: str = "") -> Side:
    """The side that the files of a folder make.

    Args:
        name: what to call it.
        files: contents, or why there is none, by path relative to the folder; only `*.json` counts, hidden files do
            not.
        source: the folder, as messages name it.
    """
    traces: dict[str, Trace] = {}
    crashes: dict[str, tuple[Row, ...]] = {}
    problems: dict[str, GoldenError] = {}
    conflicts: dict[str, Conflict] = {}
    for path, data in files.items():
        if not is_golden(path):
            continue
        shown = f"{source.rstrip('/')}/{path}" if source else path
        case = case_of(path)
        try:
            if isinstance(data, GoldenError):
                raise data
            if path.endswith(CRASH_SUFFIX):
                crashes[case] = tuple(parse_rows(data, shown, case))
            else:
                traces[case] = decode_trace(data, shown)
        except GoldenError as error:
            conflict = find_conflict(data, shown) if error.kind == "conflict" and isinstance(data, bytes) else None
            if conflict is not None:
                conflicts[case] = conflict
            elif case not in problems or not path.endswith(CRASH_SUFFIX):
                problems[case] = error  # of two, the one of the trace
    return Side(name, traces, crashes, problems, conflicts)


def is_golden(path: str) -> bool:
    """Whether a path, relative to the folder, is one of a trace or a crash golden."""
    return path.endswith(_SUFFIX) and not path.rpartition("/")[2].startswith(".")


def case_of(path: str) -> str:
    """The case that a golden, or a crash golden, belongs to by its path relative to the folder."""
    return path.removesuffix(CRASH_SUFFIX if path.endswith(CRASH_SUFFIX) else _SUFFIX)


def folder_side(folder: Path, name: str) -> Side:
    """The traces below a folder; none when it does not exist.  A file that cannot be read is a problem of its case."""
    files: dict[str, bytes | GoldenError] = {}
    for path in sorted(folder.rglob(f"*{_SUFFIX}")):
        below = path.relative_to(folder).as_posix()
        try:
            files[below] = path.read_bytes()
        except IsADirectoryError:
            continue
        except OSError as error:
            reason = f"{folder.name}/{below} cannot be read: {error.strerror or error}"
            files[below] = GoldenError(reason, "unreadable")
    return side_of(name, files, folder.name)


def golden_side(project: Project, name: str) -> Side:
    """A project's goldens as they lie there; of one in conflict both versions as git has them, where git can be asked.

    Raises:
        HarnessError: a file cannot be read.
    """
    folder = project.golden_traces
    side = folder_side(folder, name)
    if any(problem.kind == "conflict" for problem in side.problems.values()) or side.conflicts:
        with contextlib.suppress(HarnessError):
            return with_whole_conflicts(side, Repository.around(folder), folder)
    return side


def with_whole_conflicts(side: Side, repository: Repository, folder: Path) -> Side:
    """The side of a working tree, its conflicts as git's index has them.

    A merge of text takes what only one branch changed into both versions, and marks the rest; what stands in the file
    then is often neither branch's golden.  The index keeps both whole.

    Raises:
        HarnessError: git cannot tell.
    """
    wanted = {*side.conflicts, *(case for case, problem in side.problems.items() if problem.kind == "conflict")}
    if not wanted:
        return side
    both = {
        case_of(path): (ours, theirs)
        for path, (ours, theirs) in repository.unmerged(folder).items()
        if case_of(path) in wanted and not path.endswith(CRASH_SUFFIX) and ours is not None and theirs is not None
    }
    contents = repository.contents([blob for pair in both.values() for blob in pair])
    conflicts, problems = dict(side.conflicts), dict(side.problems)
    for case, pair in both.items():
        known = conflicts.get(case)
        try:
            ours, theirs = (decode_trace(contents.get(blob, b""), case) for blob in pair)
        except GoldenError:
            continue
        names = (known.ours_name, known.theirs_name) if known else ("ours", "theirs")
        conflicts[case] = Conflict(ours, theirs, *names)
        problems.pop(case, None)
    return replace(side, conflicts=conflicts, problems=problems)


def commit_side(repository: Repository, commit: str, folder: Path, name: str) -> Side:
    """The traces below a folder, as they were at a commit.

    Raises:
        HarnessError: git cannot tell.
    """
    return side_of(name, repository.files(commit, folder), f"{name}:{folder.name}")


def file_side(path: Path, name: str) -> Side:
    """The one trace in a file, under the id that it names.

    Raises:
        GoldenError: the file holds no trace: it was asked for by name.
        HarnessError: it cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise HarnessError(f"{name} cannot be read: {error.strerror or error}") from None
    trace = decode_trace(data, name)
    return Side(name, {trace.case: trace})
