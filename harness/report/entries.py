"""What a report shows of each case, whatever its format: one entry a case, the most urgent first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.changes import Change
    from harness.crash_golden import Row
    from harness.stuck.audit import Audit
    from harness.trace import Trace

__all__ = ["BRANCH_WORDS", "CHANGE_WORDS", "RUN_WORDS", "Counts", "Entry", "Report", "RunStatus", "Version"]

RunStatus: TypeAlias = Literal[
    "drift", "failed", "missing", "unusable", "broken", "skipped", "not_run",
    "same", "new", "accepted", "unchanged",
]  # fmt: skip

RUN_WORDS: Final[Mapping[RunStatus, str]] = {
    "drift": "drifted",
    "failed": "failed",
    "missing": "no golden",
    "unusable": "unusable golden",
    "broken": "broken case file",
    "skipped": "skipped",
    "not_run": "not run",
    "same": "matches",
    "new": "new golden",
    "accepted": "accepted",
    "unchanged": "unchanged",
}
"""What the last run said of a case, in the order of urgency."""

CHANGE_WORDS: Final[Mapping[str, str]] = {
    "conflict": "merge conflict",
    "unusable": "unusable",
    "changed": "changed",
    "deleted": "deleted",
    "renamed": "renamed",
    "new": "new",
    "same": "same",
}
"""What a change between two sides is, in the order of urgency."""

BRANCH_WORDS: Final[Mapping[str, str]] = {
    "conflict": "merge conflict",
    "unusable": "unusable golden",
    "changed": "accepted anew in this branch",
    "deleted": "deleted in this branch",
    "renamed": "renamed in this branch",
    "new": "new in this branch",
    "same": "as in {base}",
}
"""What became of a golden since the branch began: one that was accepted anew is never simply green."""

_PASSING: Final = frozenset({"same", "new", "accepted", "unchanged"})
_LEFT_OUT: Final = ("skipped", "not_run")
_URGENCY: Final = {word: rank for rank, word in enumerate(RUN_WORDS)}
_KINDS: Final = {word: rank for rank, word in enumerate(CHANGE_WORDS)}


@dataclass(frozen=True, slots=True)
class Counts:
    """How long a path is: what a run costs."""

    calls: int
    turns: int
    writes: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, trace: Trace | None) -> Counts | None:
        """Of a trace, if there is one."""
        return None if trace is None else cls(len(trace.calls), trace.turns, trace.write_counts)


@dataclass(frozen=True, slots=True)
class Version:
    """A golden as one commit left it.

    Args:
        commit: its whole id; empty for the working tree.
        time: of the commit, in seconds since the epoch.
        author: a name, as the commit has it.
        subject: the first line of its message.
        counts: of the golden; None where it was deleted, or cannot be read.
        headline: what changed against the version before.
    """

    commit: str
    time: int
    author: str
    subject: str
    counts: Counts | None
    headline: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One case in a report.

    Args:
        case: its id.
        change: from its golden to what it does now; in a plain diff, from one side to the other.
        status: what the run said of it; None in a plain diff.
        headline: the reason in one line.
        branch: from its golden where the branch began to its golden now; None where there is no base to compare with.
        counts: of what ran last, also where its trace was not kept because it passed.
        crash_rows: what the last sweep saw at each crash point; its golden is in `change.crash.before`.
        crash_status: what the run said of the sweep, if there was one.
        crash_headline: the reason in one line.
        audit: what the stuck-loop detectors say of the trace now.
        history: its golden over time, newest first.
        golden_file: its golden, relative to the root of the repository, `/` between parts.
        case_file: its case file, likewise.
    """

    case: str
    change: Change
    status: RunStatus | None = None
    headline: str = ""
    branch: Change | None = None
    counts: Counts | None = None
    crash_rows: tuple[Row, ...] | None = None
    crash_status: RunStatus | None = None
    crash_headline: str = ""
    audit: Audit | None = None
    history: tuple[Version, ...] = ()
    golden_file: str = ""
    case_file: str = ""

    @property
    def passed(self) -> bool:
        """Whether it lets the build go on; in a plain diff, whether nothing differs."""
        if self.status is None:
            return not self.change.differs
        return self.status in _PASSING and self.crash_status in (None, "skipped", *_PASSING)

    @property
    def reblessed(self) -> bool:
        """Whether its golden is not the one that the branch began with."""
        return self.branch is not None and self.branch.kind != "same"

    @property
    def before(self) -> Counts | None:
        """What the golden, or the first side, holds."""
        return Counts.of(self.change.before)

    @property
    def now(self) -> Counts | None:
        """What ran last, or the second side holds."""
        return self.counts or Counts.of(self.change.after)

    @property
    def touches_writes(self) -> bool:
        """Whether a write came, went, moved or changed, now or in this branch."""
        return self.change.touches_writes or (self.branch is not None and self.branch.touches_writes)

    @property
    def urgency(self) -> tuple[int, ...]:
        """What sorts entries: what fails before what was accepted anew before the rest, and in each writes first."""
        if not self.passed and self.status not in _LEFT_OUT:
            group = 0
        elif self.reblessed:
            group = 1
        elif self.status in _LEFT_OUT:
            group = 2
        else:
            group = 3
        said = [_URGENCY[one] for one in (self.status, self.crash_status) if one is not None]
        return (group, not self.touches_writes, min(said, default=_KINDS[self.change.kind]))

    def word(self) -> str:
        """What it is, in a word or two."""
        if self.change.kind == "conflict":
            return CHANGE_WORDS["conflict"]
        if self.status is not None:
            if self.status in _PASSING and not self.passed and self.crash_status is not None:
                return f"crash sweep {RUN_WORDS[self.crash_status]}"
            return RUN_WORDS[self.status]
        if self.change.kind == "same" and self.change.differs:
            return "crash golden changed" if self.change.crash else "sent something else"
        return CHANGE_WORDS[self.change.kind]

    def branch_word(self, base: str) -> str:
        """What became of its golden since the branch began; empty where that is not known.

        Args:
            base: what to call the other branch.
        """
        if self.branch is None:
            return ""
        word = BRANCH_WORDS[self.branch.kind].format(base=base)
        if self.branch.drift is not None and self.branch.drift.touches_writes:
            word += ", writes changed"
        return f"{word} (was {self.branch.was})" if self.branch.was else word


@dataclass(frozen=True, slots=True)
class Report:
    """All cases of a run, or of a diff.

    Args:
        title: what it is a report of.
        before: what to call the first side.
        after: what to call the second side.
        entries: by urgency, then by id.
        base: the branch that goldens are compared with as well; empty where there is none.
        unbased: why goldens are not compared with a base branch, where they should be; none of them is known to be
            unchanged then.
        commit: what is checked out, shortened, with `+` where something is not committed; empty outside of git.
        ran: whether it tells of a run (each entry has a status) or of a diff.
        rules: how the rules that decide what fails changed in this branch, one sentence each.
    """

    title: str
    before: str
    after: str
    entries: tuple[Entry, ...]
    base: str = ""
    unbased: str = ""
    commit: str = ""
    ran: bool = False
    rules: tuple[str, ...] = ()

    @classmethod
    def of(cls, title: str, before: str, after: str, entries: Iterable[Entry], **rest: object) -> Report:
        """With the entries in their order."""
        ordered = tuple(sorted(entries, key=lambda entry: (entry.urgency, entry.case)))
        return cls(title, before, after, ordered, **rest)  # type: ignore[arg-type]

    @property
    def left_out(self) -> tuple[Entry, ...]:
        """The entries of cases that nothing was seen of, but for those whose files are gone."""
        return tuple(one for one in self.entries if one.status in _LEFT_OUT and (one.case_file or one.change.before))

    @property
    def failing(self) -> tuple[Entry, ...]:
        """The entries that do not let the build go on; what was not run or skipped was the wish of who ran it."""
        return tuple(entry for entry in self.entries if not entry.passed and entry.status not in _LEFT_OUT)
