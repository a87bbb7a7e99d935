"""What became of one case between two sides: the same, changed, new, deleted, renamed, in conflict, unusable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from harness.changes.renames import find_renames
from harness.drift import Drift, compare

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.changes.side import Side
    from harness.crash_golden import Row
    from harness.policy import Policy
    from harness.trace import Trace

__all__ = ["Change", "CrashChange", "Kind", "changes_between"]

Kind: TypeAlias = Literal["same", "changed", "new", "deleted", "renamed", "conflict", "unusable"]


@dataclass(frozen=True, slots=True)
class CrashChange:
    """The crash golden of a case on both sides; None where there is none.  Falsy when it is the same."""

    before: tuple[Row, ...] | None
    after: tuple[Row, ...] | None

    def __bool__(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one case.

    Args:
        case: its id; after the change, where it was renamed.
        kind: what it is.  `renamed` may have a drift as well; `same` may differ in what it sent (`drift.causes`).
        before: its trace on the first side; of a conflict: ours.
        after: its trace on the second side; of a conflict: theirs.
        drift: the comparison, where both sides hold a trace.
        was: the id that it had before, where it was renamed.
        problem: why a side is unusable, in one sentence.
        names: of the two sides, where a conflict names them.
        crash: its crash golden.
    """

    case: str
    kind: Kind
    before: Trace | None = None
    after: Trace | None = None
    drift: Drift | None = None
    was: str = ""
    problem: str = ""
    names: tuple[str, str] | None = None
    crash: CrashChange = CrashChange(None, None)

    @property
    def differs(self) -> bool:
        """Whether there is anything to show."""
        # A drift without findings is falsy, and may still have causes.
        return self.kind != "same" or bool(self.crash) or (self.drift is not None and bool(self.drift.causes))

    @property
    def touches_writes(self) -> bool:
        """Whether a call of a tool that writes came, went, moved or changed: what a reviewer must see first."""
        if self.drift is not None:
            return self.drift.touches_writes
        present = self.after or self.before
        return self.kind != "same" and present is not None and bool(present.write_counts)


def changes_between(before: Side, after: Side, policy: Callable[[str], Policy] | None = None) -> list[Change]:
    """One change a case, by id; what is the same is among them.

    Args:
        before: the first side.
        after: the second side.
        policy: how strict to be, by case (default: exact).  A reviewer of goldens wants all that changed in them.
    """
    renames = find_renames(before, after)
    old_ids = {case: renames.get(case, case) for case in {*before.cases(), *after.cases()} - set(renames.values())}
    return [_change(case, old_ids[case], before, after, policy) for case in sorted(old_ids)]


def _change(case: str, old: str, before: Side, after: Side, policy: Callable[[str], Policy] | None) -> Change:
    crash = CrashChange(before.crashes.get(old), after.crashes.get(case))
    conflict = after.conflicts.get(case)
    if conflict is not None:
        drift = compare(conflict.ours, conflict.theirs)
        names = (conflict.ours_name, conflict.theirs_name)
        return Change(case, "conflict", conflict.ours, conflict.theirs, drift, names=names, crash=crash)
    ours, theirs = before.traces.get(old), after.traces.get(case)
    problem = _problem(case, old, before, after)
    if problem:
        known = None
        if ours is not None and theirs is not None and ours.digest_key == theirs.digest_key:
            known = compare(ours, theirs, policy(case) if policy else None)
        return Change(case, "unusable", ours, theirs, known, problem=problem, crash=crash)
    if ours is None or theirs is None:
        present: Kind = "deleted" if ours is not None else "new"
        kind: Kind = "same" if ours is theirs else present  # neither has a trace: the crash golden tells all
        return Change(case, kind, ours, theirs, crash=crash)
    if ours.digest_key != theirs.digest_key:
        problem_text = "the digests of the two sides were made with different keys (HARNESS_DIGEST_KEY)"
        return Change(case, "unusable", ours, theirs, problem=problem_text, crash=crash)
    drift = compare(ours, theirs, policy(case) if policy else None)
    if old != case:
        return Change(case, "renamed", ours, replace(theirs, case=case), drift, was=old, crash=crash)
    return Change(case, "changed" if drift else "same", ours, theirs, drift, crash=crash)


def _problem(case: str, old: str, before: Side, after: Side) -> str:
    """Why the case cannot be compared as a whole, whichever side it is; empty when it can."""
    problem = after.problems.get(case) or before.problems.get(old)
    if problem is None and old in before.conflicts:
        return f"{before.name} holds an unresolved merge conflict in it"
    return "" if problem is None else str(problem)
