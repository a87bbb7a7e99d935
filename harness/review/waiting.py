"""The traces that wait for a decision, those that change writes first, and why some cannot be accepted."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.changes import Change
from harness.drift import compare
from harness.errors import CaseError, GoldenError, HarnessError
from harness.golden import decode_trace
from harness.results_record import read_results

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.gate import Gate
    from harness.policy import Policy
    from harness.results_record import Result
    from harness.trace import Trace

__all__ = ["Waiting", "waiting_for", "waiting_traces"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """The trace of one case that did not pass.

    Args:
        case: whose.
        sha256: of the file that holds it: who decides, decides on these bytes.
        change: from its golden to the trace.
        policy: how it is compared.
        refused: why it cannot be accepted; empty when it can.
        note: what else to know of its golden, where that cannot be used.
    """

    case: str
    sha256: str
    change: Change
    policy: Policy
    refused: str = ""
    note: str = ""

    @property
    def trace(self) -> Trace | None:
        """What was observed; None when its file cannot be read."""
        return self.change.after

    @property
    def touches_writes(self) -> bool:
        """Whether a write came, went, moved or changed against the golden.  A first golden changes nothing."""
        return self.change.drift is not None and self.change.touches_writes

    @property
    def facets(self) -> tuple[str, ...]:
        """The facets that drifted."""
        return tuple(self.change.drift.verdicts) if self.change.drift is not None else ()

    def writing(self, facet: str) -> bool:
        """Whether the drift in a facet concerns a call that writes."""
        found = self.change.drift.findings if self.change.drift is not None else ()
        return any(one.write or facet == "writes" for one in found if one.facet == facet)

    @property
    def headline(self) -> str:
        """What is to be decided, in one line."""
        if self.refused:
            return self.refused
        if self.change.drift is not None:
            return self.change.drift.headline or "within its policy"
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
    digest = hashlib.sha256(data).hexdigest()
    try:
        trace = decode_trace(data, gate.store.shown(path))
    except GoldenError as error:
        return Waiting(case, digest, Change(case, "unusable", problem=str(error)), gate.policy, str(error))
    policy = gate.policy
    try:
        policy = gate.policy_of(case)
        swept = _invariants(case, read_results(gate.project) if results is None else results)
        refused = next(iter(trace.problems), "") or _limits(case, trace, gate) or swept
    except CaseError as error:
        refused = str(error)
    try:
        golden = gate.store.load(case)
    except GoldenError as error:
        note = "" if error.kind == "missing" else str(error)
        return Waiting(case, digest, Change(case, "new", None, trace), policy, refused, note)
    drift = compare(golden, trace, policy)
    return Waiting(case, digest, Change(case, "changed" if drift else "same", golden, trace, drift), policy, refused)


def _invariants(case: str, results: Mapping[str, Result]) -> str:
    """That the case breaks an invariant when it is killed: no path of it is right."""
    status, headline, _ = results.get(f"{case}.crash", ("same", "", None))
    return f"its crash sweep failed: {headline}" if status == "failed" else ""


def _limits(case: str, trace: Trace, gate: Gate) -> str:
    """That the run breaks a limit as it stands in the case now; it may have been lowered since."""
    from harness.case.named import case_named
    from harness.case.verdict import limit_lines

    found = case_named(case, gate.project)
    return next(iter(limit_lines(trace, found.limits)), "") if found is not None else ""
