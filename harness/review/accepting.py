"""Accepting what waits, whole or by facets, and taking that back."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
        files: golden and pending trace, each as it was before and as it was left; None where there was none.
        noted: what was noted of the case before, since the last commit.
    """

    case: str
    verdict: Verdict
    files: tuple[tuple[Path, bytes | None, bytes | None], ...]
    noted: Accepted | None = None

    def undo(self, decisions: Decisions) -> None:
        """Put back what was there before.

        Raises:
            HarnessError: a file could not be written, or is no longer what the acceptance left: not ours to undo.
        """
        if any(_bytes(path) != after for path, _, after in self.files):
            raise HarnessError(f"{self.case} cannot be put back: it ran, or its golden changed, after it was accepted")
        self.put_back()
        decisions.take_back(self.case, self.noted)

    def put_back(self) -> None:
        """Write what was there before, whatever is there now.

        Raises:
            HarnessError: a file could not be written.
        """
        try:
            for path, data, _ in self.files:
                if data is None:
                    path.unlink(missing_ok=True)
                else:
                    write_atomically(path, data)
        except OSError as error:
            raise HarnessError(f"{self.case} could not be put back: {error.strerror or error}") from None


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
            meanwhile, or its golden is another one; the facets cannot be taken apart; or a file could not be read or
            written.
    """
    now = waiting_for(one.case, gate)
    if now.sha256 != one.sha256:
        raise HarnessError(f"{one.case} was run again meanwhile: look at what it does now")
    if now.golden_sha256 != one.golden_sha256:
        raise HarnessError(f"the golden of {one.case} changed meanwhile: look at what is new against it now")
    # From here on only what holds now: a limit may have been lowered, a sweep may have failed since it was shown.
    if now.refused or now.trace is None:
        raise HarnessError(f"{now.case} cannot be accepted: {now.refused}")
    touched = now.touched(facets)
    if touched and not writes:
        raise HarnessError(f"{now.case} {touched}: name it by its id, or give --writes")
    paths = (gate.store.path(now.case), gate.pending_path(now.case))
    before = [_bytes(path) for path in paths]
    verdict = gate.accept_pending(now.case, now.trace, now.policy, facets)
    if now.conflict is not None:
        verdict = replace(verdict, headline=now.headline)
    after = [_bytes(path) for path in paths]
    done = Acceptance(now.case, verdict, tuple(zip(paths, before, after, strict=True)))
    status = "new" if verdict.status == "new" else "accepted"
    try:
        noted = decisions.accept(now.case, Accepted(verdict.headline, status, tuple(facets), bool(touched)))
    except HarnessError:
        done.put_back()  # what the commit message cannot tell of is not accepted
        raise
    return replace(done, noted=noted)


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise HarnessError(f"{path.name} cannot be read: {error.strerror or error}") from None
