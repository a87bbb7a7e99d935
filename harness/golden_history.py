"""How the golden of each case changed over the history of its repository, with what is not committed first.

The versions of a golden are followed by content: each commit says what it found and what it left, so that two branches
that changed the same golden do not mix, and a version that a merge threw away is not among them.
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from harness.changes import Side, case_of, find_renames, is_golden
from harness.changes.conflict import find_conflict
from harness.crash_golden import CRASH_SUFFIX, parse_crash
from harness.drift import compare
from harness.errors import GoldenError
from harness.golden import decode_trace
from harness.report.entries import Counts, Version
from harness.report.versions import Overview
from harness.repository import Repository, Revision

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from harness.crash_golden import Row
    from harness.project import Project
    from harness.trace import Trace

__all__ = ["GoldenHistory", "histories"]

_WORK: Final = "work:"


def histories(
    project: Project, cases: Collection[str] | None = None, limit: int | None = 20
) -> dict[str, tuple[Version, ...]]:
    """The versions of goldens, newest first: `GoldenHistory.of(project).versions(cases, limit)`."""
    return GoldenHistory.of(project).versions(cases, limit)


@dataclass(frozen=True, slots=True)
class GoldenHistory:
    """All that is known of a project's goldens over time.  Contents are read when versions are asked for.

    Args:
        present: the cases that have a golden now, committed or not.
        past: the cases that once had one.
        is_shallow: whether the clone was told to leave older commits out.
    """

    present: frozenset[str]
    past: frozenset[str]
    is_shallow: bool
    _followed: _Followed

    @classmethod
    def of(cls, project: Project) -> GoldenHistory:
        """Ask git.

        Raises:
            HarnessError: the goldens are in no git repository, or git failed.
        """
        folder = project.golden_traces
        repository = Repository.around(folder)
        committed = repository.ids("HEAD", folder) if repository.has_commits else {}
        work = _working_tree(folder)
        now = _uncommitted(folder, committed, work)
        revisions = [*([now] if now.files else []), *repository.history(folder)]
        contents = _Contents(repository, {f"{_WORK}{path}": data for path, data in work.items()})
        state = {path: now.files[path][1] if path in now.files else committed.get(path) for path in {*committed, *work}}
        present = frozenset(case_of(path) for path, blob in state.items() if is_golden(path) and blob is not None)
        ever = {case_of(path) for revision in revisions for path in revision.files if is_golden(path)}
        return cls(present, frozenset(ever - present), repository.is_shallow, _Followed(revisions, state, contents))

    def versions(self, cases: Collection[str] | None = None, limit: int | None = 20) -> dict[str, tuple[Version, ...]]:
        """The versions of goldens, newest first, a golden that moved as the same one.

        A version says what changed against the one before it; where only the crash golden changed, that.  One that
        cannot be read has no counts, and says why.  One call of git, or two, however many versions there are.

        Args:
            cases: which (default: those that have a golden now).  A case without any version is left out.
            limit: how many versions of each case at most; None for all.

        Raises:
            HarnessError: git failed.
        """
        steps = self._steps(cases, limit)
        self._followed.fetch(step for chain in steps.values() for step in chain)
        return {case: tuple(self._followed.version(step) for step in chain) for case, chain in steps.items()}

    def overviews(self, cases: Collection[str] | None = None) -> list[Overview]:
        """How often each golden changed, and how long its path was first and is now.

        The most changed come first, of those the most grown.  Contents between the first version and the last are not
        read.
        """
        steps = self._steps(cases, None)
        ends = {case: (chain[-1], chain[0]) for case, chain in steps.items()}
        self._followed.fetch(step for pair in ends.values() for step in pair)
        found = [
            Overview(case, len(steps[case]), self._followed.version(first), self._followed.version(last))
            for case, (first, last) in ends.items()
        ]
        return sorted(found, key=lambda one: (-one.versions, -one.growth, one.case))

    def _steps(self, cases: Collection[str] | None, limit: int | None) -> dict[str, list[_Step]]:
        wanted = self.present if cases is None else cases
        steps = {case: self._followed.steps(case, limit) for case in sorted(wanted)}
        return {case: chain for case, chain in steps.items() if chain}


@dataclass(frozen=True, slots=True)
class _Step:
    """What one revision did to the goldens of a case: ids before and after, None for no file, equal for no change."""

    case: str
    revision: int
    trace: tuple[str | None, str | None]
    crash: tuple[str | None, str | None]
    was: str = ""

    @property
    def blobs(self) -> Iterator[str]:
        return (blob for pair in (self.trace, self.crash) for blob in pair if blob is not None)


@dataclass(slots=True)
class _Contents:
    """What ids stand for, each read and understood once."""

    repository: Repository
    data: dict[str, bytes]
    traces: dict[str, Trace | str] = field(default_factory=dict)

    def fetch(self, blobs: Iterable[str]) -> None:
        """Have git read what is not known yet, in one call."""
        missing = list(dict.fromkeys(blob for blob in blobs if blob not in self.data))
        self.data |= self.repository.contents(missing)

    def trace(self, blob: str) -> Trace | str:
        """The trace with an id, or why there is none."""
        if blob not in self.traces:
            self.traces[blob] = self._read(blob)
        return self.traces[blob]

    def rows(self, blob: str | None) -> Sequence[Row] | None:
        try:
            return None if blob is None else parse_crash(self.data[blob], "it")[1]
        except (GoldenError, KeyError):
            return None

    def _read(self, blob: str) -> Trace | str:
        data = self.data.get(blob)
        if data is None:
            return "its content is not in this clone"
        try:
            return decode_trace(data, "it", strict=False)
        except GoldenError as error:
            conflict = find_conflict(data, "it") if error.kind == "conflict" else None
            if conflict is not None:
                return f"merge conflict: {conflict.ours_name} and {conflict.theirs_name}"
            return "merge conflict" if error.kind == "conflict" else f"unreadable: {error.kind.replace('_', ' ')}"


class _Followed:
    """Follows goldens back through the revisions.

    Args:
        revisions: newest first.
        state: by path, the id that the newest revision left; None, or nothing, where there is no file.
        contents: of all ids.
    """

    def __init__(self, revisions: Sequence[Revision], state: Mapping[str, str | None], contents: _Contents) -> None:
        self._revisions = revisions
        self._state = state
        self._contents = contents
        self._events = _events(revisions)
        self._renames: dict[int, Mapping[str, str]] = {}

    def steps(self, case: str, limit: int | None) -> list[_Step]:
        """What happened to the goldens of a case, newest first."""
        found: list[_Step] = []
        begin = 0
        left = (self._state.get(f"{case}.json"), self._state.get(f"{case}{CRASH_SUFFIX}"))
        while limit is None or len(found) < limit:
            part = self._under_one_name(case, begin, left)
            last = part[-1] if part else None
            was = self._renamed_in(last.revision).get(case) if last is not None and last.trace[0] is None else None
            if last is None or was is None:
                return [*found, *part][:limit]
            files = self._revisions[last.revision].files
            left = (files[f"{was}.json"][0], files.get(f"{was}{CRASH_SUFFIX}", (None, None))[0])
            found += [*part[:-1], _Step(case, last.revision, (left[0], last.trace[1]), (left[1], last.crash[1]), was)]
            case, begin = was, last.revision + 1
        return found[:limit]

    def fetch(self, steps: Iterable[_Step]) -> None:
        """Read what the steps lead from and to."""
        self._contents.fetch(blob for step in steps for blob in step.blobs)

    def version(self, step: _Step) -> Version:
        """A step as a report shows it."""
        revision = self._revisions[step.revision]
        before, after = (None if blob is None else self._contents.trace(blob) for blob in step.trace)
        counts = None if after is None or isinstance(after, str) else Counts.of(after)
        said = [f"was {step.was}"] if step.was else []
        if step.trace[0] != step.trace[1]:
            said.append(self._moved_to(step) or _told(before, after))
        if step.crash[0] != step.crash[1]:
            said.append(self._crash_told(*step.crash))
        headline = "; ".join(one for one in said if one)
        return Version(revision.commit, revision.time, revision.author, revision.subject, counts, headline)

    def _under_one_name(self, case: str, begin: int, left: tuple[str | None, str | None]) -> list[_Step]:
        """Steps up to the one that brought a golden of this name; `left` are the ids that they end with."""
        traces = dict(self._chain(f"{case}.json", begin, left[0]))
        crashes = dict(self._chain(f"{case}{CRASH_SUFFIX}", begin, left[1]))
        oldest = max(traces, default=None)
        trace, crash = left
        steps: list[_Step] = []
        for place in sorted({*traces, *crashes}):
            if oldest is not None and place > oldest:
                break  # a crash golden that came before the golden belongs to nothing that was compared
            step = _Step(case, place, traces.get(place, (trace, trace)), crashes.get(place, (crash, crash)))
            trace, crash = step.trace[0], step.crash[0]
            steps.append(step)
        return steps

    def _chain(self, path: str, begin: int, left: str | None) -> Iterator[tuple[int, tuple[str | None, str | None]]]:
        """The revisions that made a file what it is: each found what the next older one left."""
        for place in self._events.get(path, ()):
            if place < begin:
                continue
            before, after = self._revisions[place].files[path]
            if after == left:
                yield place, (before, after)
                left = before
                if left is None:
                    return

    def _renamed_in(self, place: int) -> Mapping[str, str]:
        """By the new id, the old one, of what one revision renamed."""
        if place not in self._renames:
            files = self._revisions[place].files.items()
            traces = [(path, pair) for path, pair in files if is_golden(path) and not path.endswith(CRASH_SUFFIX)]
            came = {case_of(path): after for path, (before, after) in traces if before is None and after is not None}
            gone = {case_of(path): before for path, (before, after) in traces if after is None and before is not None}
            self._renames[place] = self._matches(gone, came) if came and gone else {}
        return self._renames[place]

    def _moved_to(self, step: _Step) -> str:
        """Where a golden is now that went under its old name; empty where it was deleted."""
        if step.trace[1] is not None:
            return ""
        moved = [new for new, old in self._renamed_in(step.revision).items() if old == step.case]
        return f"renamed to {moved[0]}" if moved else ""

    def _matches(self, gone: Mapping[str, str], came: Mapping[str, str]) -> Mapping[str, str]:
        self._contents.fetch([*gone.values(), *came.values()])
        before, after = (
            Side(
                name,
                {case: one for case, blob in blobs.items() if not isinstance(one := self._contents.trace(blob), str)},
            )
            for name, blobs in (("before", gone), ("after", came))
        )
        return find_renames(before, after)

    def _crash_told(self, before: str | None, after: str | None) -> str:
        if before is None or after is None:
            return "crash golden added" if before is None else "crash golden deleted"
        old, new = self._contents.rows(before), self._contents.rows(after)
        if old is None or new is None:
            return "crash golden changed"
        outcomes = {row.point: row.outcome for row in old}
        changed = sum(outcomes.get(row.point, row.outcome) != row.outcome for row in new)
        points = f"{len(old)} → {len(new)} points" if len(old) != len(new) else ""
        others = f"{changed} other outcome{'s' * (changed != 1)}" if changed else ""
        return f"crash golden: {', '.join(one for one in (points, others) if one) or 'the same outcomes'}"


def _told(before: Trace | str | None, after: Trace | str | None) -> str:
    """What changed from one version to the next."""
    if after is None:
        return "deleted"
    if isinstance(after, str):
        return after
    if before is None:
        return ""
    if isinstance(before, str):
        return "readable again"
    if before.digest_key != after.digest_key:
        return "another digest key" if after.digest_key else "no digest key any more"
    drift = compare(before, after)
    return drift.headline or "; ".join(drift.causes) or "the same path, written in another way"


def _events(revisions: Sequence[Revision]) -> dict[str, list[int]]:
    events: dict[str, list[int]] = {}
    for place, revision in enumerate(revisions):
        for path in revision.files:
            events.setdefault(path, []).append(place)
    return events


def _working_tree(folder: Path) -> dict[str, bytes]:
    """The goldens as they lie there; what cannot be read is not told from what is not there."""
    found: dict[str, bytes] = {}
    for path in folder.rglob("*.json"):
        name = path.relative_to(folder).as_posix()
        try:
            if is_golden(name):
                found[name] = path.read_bytes()
        except OSError:
            continue
    return found


def _uncommitted(folder: Path, committed: Mapping[str, str], work: Mapping[str, bytes]) -> Revision:
    """What differs between the last commit and the working tree, as if it were a commit of the last write."""
    files: dict[str, tuple[str | None, str | None]] = {
        path: (blob, None) for path, blob in committed.items() if is_golden(path) and path not in work
    }
    time = 0
    for path, data in work.items():
        known = committed.get(path)
        if known is None or known != _blob_id(data, known):
            files[path] = (known, f"{_WORK}{path}")
            with contextlib.suppress(OSError):
                time = max(time, int((folder / path).stat().st_mtime))
    return Revision("", time, "", "", files)


def _blob_id(data: bytes, like: str) -> str:
    """The id that git gives a content, in the format of another id."""
    digest = hashlib.sha256 if len(like) == 64 else hashlib.sha1
    return digest(b"blob %d\0%b" % (len(data), data)).hexdigest()
