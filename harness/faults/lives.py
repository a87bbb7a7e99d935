"""Lives a history: killed here, killed there, then left alone; and one more life on the finished run."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.errors import HarnessError
from harness.faults.history import History, Life
from harness.faults.journal import Ended, read_journal
from harness.faults.probe import Probe
from harness.forked import run_forked
from harness.orphans import end_all_children

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from harness.faults.site import Site

__all__ = ["Subject", "finish", "live", "live_and_die", "live_through"]


@dataclass(frozen=True, slots=True)
class Subject:
    """What is killed.

    Args:
        live: one life, in a process of its own: begins or resumes the run under the probe, and says how it ended.
        digest: of arguments and results, without what varies by run.
        limit: seconds that one life may take.
    """

    live: Callable[[Probe], Ended]
    digest: Callable[[object], str]
    limit: float


def live(
    subject: Subject,
    site: Site,
    lives: Sequence[Life] = (),
    kill_at: str | None = None,
    reference: Sequence[str] = (),
    kill_after: float | None = None,
) -> Life:
    """One more life, on what earlier ones left at a site.

    Args:
        subject: what lives.
        site: where.
        lives: those before.
        kill_at: the point to die at, or None.
        reference: the points that it passes when it is not killed.
        kill_after: the time after which it is killed from outside, in seconds, or None.
    """
    number = len(lives) + 1
    past = [(life.number, event) for life in lives for event in life.events]

    def work() -> None:
        os.environ["TMPDIR"] = str(site.temporary)  # what a killed life cannot remove goes with the site
        tempfile.tempdir = None
        probe = Probe(site, number, past, kill_at, subject.digest)
        probe.arm()
        probe.write(subject.live(probe))

    death = run_forked(work, limit=subject.limit, kill_after=kill_after, reaps_all=True)
    events = tuple(event for life, event in read_journal(site.journal, past) if life == number)
    return Life(number, events, death, kill_at, tuple(reference), kill_after)


def live_and_die(
    subject: Subject, site: Site, kills: Sequence[str], references: Sequence[Sequence[str]], kept: Path | None = None
) -> History:
    """A whole history on an empty site.

    Args:
        subject: what is killed.
        site: where.
        kills: the point at which each life is killed, one after another; then one lives on.
        references: for each of them the points that it would pass.
        kept: where to keep a copy of what the first kill left, for further histories that begin with it.
    """
    site.clear()
    lives: list[Life] = []
    for number, (kill_at, reference) in enumerate(zip(kills, references, strict=True), 1):
        lives.append(live(subject, site, lives, kill_at, reference))
        if number == 1 and kept is not None:
            site.keep(kept)
    return finish(subject, site, lives)


def live_through(subject: Subject, site: Site, kills: Sequence[str], smooth: Sequence[str]) -> History:
    """A whole history of any number of kills; what each life passes is found by letting it live on first.

    Args:
        subject: what is killed.
        site: where.
        kills: at least one point.
        smooth: the points that the first life passes.

    Raises:
        HarnessError: a life does not pass the point at which it is to be killed.
    """
    references: list[Sequence[str]] = [smooth]
    for number, point in enumerate(kills, 1):
        if point not in references[-1]:
            after = f", after a kill at {', then at '.join(kills[: number - 1])}" if number > 1 else ""
            raise HarnessError(f"life {number} passes no crash point {point!r}{after}")
        history = live_and_die(subject, site, kills[:number], references)
        if not history.lives[number - 1].killed:
            break
        references.append(history.last.points)
    return history


def finish(subject: Subject, site: Site, lives: list[Life]) -> History:
    """Let the run come to its end, look at the world, and resume it once more."""
    if any(not life.killed for life in lives):
        return History(tuple(lives), site.files(), left=end_all_children())
    lives.append(live(subject, site, lives))
    files, saved = site.files(), site.saved()
    again = None
    if lives[-1].ended is not None and not lives[-1].ended.error:
        again = live(subject, site, lives)
    after = site.saved()
    return History(tuple(lives), files, again, (saved, after), end_all_children())
