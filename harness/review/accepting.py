"""Accepting what waits, whole or by facets, and taking that back."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.atomic import write_atomically
from harness.errors import HarnessError
from harness.review.decisions import Accepted
from harness.review.waiting import waiting_for

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.gate import Gate, Verdict
    from harness.review.decisions import Decisions
    from harness.review.waiting import Waiting

__all__ = ["Acceptance", "accept"]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """One acceptance, with what it replaced.

    Args:
        case: whose.
        verdict: what was written.
        files: the golden and the pending trace as they were before; None where there was none.
    """

    case: str
    verdict: Verdict
    files: tuple[tuple[Path, bytes | None], ...]

    def undo(self, decisions: Decisions) -> None:
        """Put back what was there before.

        Raises:
            HarnessError: a file could not be written.
        """
        try:
            for path, data in self.files:
                if data is None:
                    path.unlink(missing_ok=True)
                else:
                    write_atomically(path, data)
        except OSError as error:
            raise HarnessError(f"{self.case} could not be put back: {error.strerror or error}") from None
        decisions.accepted.pop(self.case, None)
        decisions.save()


def accept(
    one: Waiting, gate: Gate, decisions: Decisions, facets: Sequence[str] = (), *, writes: bool = False
) -> Acceptance:
    """Make what waits the golden of its case.

    Args:
        one: what was looked at.
        gate: of the project.
        decisions: where the acceptance is noted.
        facets: what to accept of it; empty for the whole run.
        writes: whether a change in writes is meant to be accepted.

    Raises:
        HarnessError: the run must not be accepted; it changes writes and that is not meant; the case was run again
            meanwhile; the facets cannot be taken apart; or a file could not be written.
    """
    if one.refused:
        raise HarnessError(f"{one.case} cannot be accepted: {one.refused}")
    touched = [facet for facet in facets or one.facets if one.writing(facet)]
    if touched and not writes:
        raise HarnessError(
            f"{one.case} changes what it writes ({_told(one, touched)}): name it by its id, or give --writes"
        )
    if waiting_for(one.case, gate).sha256 != one.sha256:
        raise HarnessError(f"{one.case} was run again meanwhile: look at what it does now")
    before = tuple((path, _bytes(path)) for path in (gate.store.path(one.case), gate.pending_path(one.case)))
    verdict = gate.accept_pending(one.case, one.policy, facets)
    status = "new" if verdict.status == "new" else "accepted"
    decisions.accepted[one.case] = Accepted(verdict.headline, status, tuple(facets), bool(touched))
    decisions.rejected.pop(one.case, None)
    decisions.save()
    return Acceptance(one.case, verdict, before)


def _told(one: Waiting, facets: Sequence[str]) -> str:
    verdicts = one.change.drift.verdicts if one.change.drift is not None else {}
    return "; ".join(verdicts[facet] for facet in facets[:2])


def _bytes(path: Path) -> bytes | None:
    with contextlib.suppress(FileNotFoundError):
        return path.read_bytes()
    return None
