"""The traces that wait for a decision, those that change writes first, and why some cannot be accepted."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.changes import Change, golden_side
from harness.crash_golden import crash_golden_path, load_rows
from harness.drift import compare
from harness.errors import CaseError, GoldenError, HarnessError
from harness.gate import NOT_OURS
from harness.golden import decode_trace
from harness.results_record import file_digest, read_results

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.drift import Drift
    from harness.gate import Gate
    from harness.policy import Policy
    from harness.project import Project
    from harness.results_record import Result
    from harness.trace import Trace

__all__ = ["Waiting", "waiting_for", "waiting_traces"]

_HOLDING: Final = ("same", "unknown")
"""Outcomes of a crash point at which every invariant holds; any other is the name of the one that is broken."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The trace of one case that did not pass.

    Args:
        case: whose.
        sha256: of the file that holds it: who decides, decides on these bytes.
        golden_sha256: of the golden's file, likewise; empty where there is none.
        change: from its golden to the trace.
        policy: how it is compared.
        refused: why it cannot be accepted; empty when it can.
        note: what else to know of its golden, where that cannot be used.
        conflict: where a merge left two versions of its golden, the comparison of each with the trace, by the name that
            git gives it; `change` is that with ours.
    """

    case: str
    sha256: str
    golden_sha256: str
    change: Change
    policy: Policy
    refused: str = ""
    note: str = ""
    conflict: Mapping[str, Drift] | None = None

    @property
    def trace(self) -> Trace | None:
        """What was observed; None when its file cannot be read."""
        return self.change.after

    @property
    def touches_writes(self) -> bool:
        """Whether a write came, went, moved or changed against the golden, or may have.

        A first golden changes nothing; one that cannot be used may hold any writes.
        """
        return bool(self.note) or any(drift.touches_writes for drift in self._drifts())

    def _drifts(self) -> list[Drift]:
        if self.conflict is not None:
            return list(self.conflict.values())
        return [] if self.change.drift is None else [self.change.drift]

    @property
    def facets(self) -> tuple[str, ...]:
        """The facets that drifted, to choose among; none of a conflict, which is decided as a whole."""
        if self.conflict is not None:
            return ()
        return tuple(self.change.drift.verdicts) if self.change.drift is not None else ()

    def writing(self, facet: str) -> bool:
        """Whether the drift in a facet concerns a call that writes."""
        found = self.change.drift.findings if self.change.drift is not None else ()
        return any(one.write or facet == "writes" for one in found if one.facet == facet)

    def touched(self, facets: Sequence[str] = ()) -> str:
        """How accepting changes what is written, in a few words; empty when it does not.

        Args:
            facets: what is to be accepted of the run; empty for the whole of it.
        """
        if self.note:
            return f"may change what it writes (its golden cannot be used: {self.note.partition(';')[0]})"
        if self.conflict is not None:
            return f"changes what it writes ({self.headline})" if self.touches_writes else ""
        writing = [facet for facet in facets or self.facets if self.writing(facet)]
        verdicts = self.change.drift.verdicts if self.change.drift is not None else {}
        return f"changes what it writes ({'; '.join(verdicts[facet] for facet in writing[:2])})" if writing else ""

    @property
    def headline(self) -> str:
        """What is to be decided, in one line."""
        if self.refused:
            return self.refused
        if self.conflict is not None:
            sides = (f"against {name}: {drift.headline or 'the same'}" for name, drift in self.conflict.items())
            return f"merge conflict; {'; '.join(sides)}"
        if self.change.drift is not None:
            return self.change.drift.headline or "within its policy"
        if self.note:
            return self.note.partition(";")[0]
        if self.trace is None:
            return "it cannot be read"
        return f"no golden yet: {len(self.trace.calls)} calls, {self.trace.turns} turns"


def waiting_traces(gate: Gate, cases: Iterable[str] | None = None) -> list[Waiting]:
    """What waits in a project: changes in writes first, then the other changes, then what cannot be accepted.

    Args:
        gate: of the project.
        cases: whose traces; all that are pending by default.
    """
    results = read_results(gate.project)
    found = [waiting_for(case, gate, results) for case in (gate.pending_cases() if cases is None else cases)]
    return sorted(found, key=lambda one: (bool(one.refused), not one.touches_writes, one.case))


def waiting_for(case: str, gate: Gate, results: Mapping[str, Result] | None = None) -> Waiting:
    """What waits for one case.

    Args:
        case: its id.
        gate: of the project.
        results: what the last run said, where it was read already.

    Raises:
        HarnessError: nothing is pending for it.
    """
    path = gate.pending_path(case)
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise HarnessError(f"nothing is pending for {case!r}: its last run passed, or it has not run yet") from None
    except OSError as error:
        raise HarnessError(f"{path.name} cannot be read: {error.strerror or error}") from None
    digests = (hashlib.sha256(data).hexdigest(), file_digest(gate.store.path(case)))
    try:
        trace = decode_trace(data, gate.store.shown(path))
    except GoldenError as error:
        return Waiting(case, *digests, Change(case, "unusable", problem=str(error)), gate.policy, str(error))
    policy = gate.policy
    try:
        policy = gate.policy_of(case)
        swept = _invariants(case, gate.project, read_results(gate.project) if results is None else results)
        refused = gate.pending_fault(case, trace) or _limits(case, trace, gate) or swept
    except CaseError as error:
        refused = str(error)
    try:
        golden = gate.store.load(case)
    except GoldenError as error:
        sides = golden_side(gate.project, "golden").conflicts.get(case) if error.kind == "conflict" else None
        if sides is not None:
            drifts = {
                name: compare(one, trace, policy)
                for name, one in ((sides.ours_name, sides.ours), (sides.theirs_name, sides.theirs))
            }
            change = Change(case, "conflict", sides.ours, trace, drifts[sides.ours_name])
            return Waiting(case, *digests, change, policy, refused, conflict=drifts)
        note = "" if error.kind == "missing" else str(error)
        refused = refused or (note if error.kind in NOT_OURS else "")
        return Waiting(case, *digests, Change(case, "new", None, trace), policy, refused, note)
    drift = compare(golden, trace, policy)
    return Waiting(case, *digests, Change(case, "changed" if drift else "same", golden, trace, drift), policy, refused)


def _invariants(case: str, project: Project, results: Mapping[str, Result]) -> str:
    """That the case breaks an invariant when it is killed: no path of it is right.

    What a sweep saw is kept until the case is swept again; the results of a run only until the next run, which may
    leave the case out.
    """
    said = results.get(f"{case}.crash")
    if said is not None and said.status == "failed":
        return f"its crash sweep failed: {said.headline}"
    path = crash_golden_path(project.artifacts / "crash", case)
    try:
        rows = load_rows(path, path.name, case)
    except GoldenError:  # none was kept, or a hand was at it
        return ""
    for row in rows:
        if row.outcome not in _HOLDING:
            seen = f"killed at {row.point}: {row.outcome}"
            return f"its last crash sweep failed: {seen}; mend it, then: harness crash {case}"
    return ""


def _limits(case: str, trace: Trace, gate: Gate) -> str:
    """That the run breaks a limit as it stands in the case now; it may have been lowered since."""
    from harness.case.named import case_named
    from harness.case.verdict import limit_lines

    found = case_named(case, gate.project)
    return next(iter(limit_lines(trace, found.limits)), "") if found is not None else ""
