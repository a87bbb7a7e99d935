"""The sweep: run once to find the crash points, then die at each of them and see what becomes of the run."""

from __future__ import annotations

import difflib
import fnmatch
import random
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from harness.errors import HarnessError, NoSuchPointError
from harness.faults.crashes import Crash, crash_of
from harness.faults.ground import ground
from harness.faults.lives import Subject, finish, live, live_and_die, live_through
from harness.faults.moments import moments, timeline
from harness.faults.probe import Probe
from harness.faults.site import Site
from harness.faults.workers import fan_out

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from harness.faults.history import History, Life
    from harness.faults.journal import Ended

__all__ = ["Plan", "Sweep", "enumerate_points", "resume_here", "sweep"]

MOST_PAIRS: Final = 1000
"""Pairs of kills that are tried at depth 2 before a sample is drawn: about 20 s of forks on one core."""

MOST_HUNG: Final = 3
"""Lives that may run into their time limit before a worker gives the rest of its points up."""

MOST_LATE: Final = 9
"""Moments that are tried for one kill: a run that is quicker than the smooth one has ended before some of them."""

HEADROOM: Final = 50
"""How many times the smooth run's time a life may take, within the bounds of `Plan`."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to sweep.

    Args:
        depth: 1 kills once; 2 kills each resumed life as well.
        jobs: processes side by side.
        seed: of the sample of pairs at depth 2, where there are too many, and of random moments.
        points: only these, names or globs over names; None for all.
        then: kill the resumed life here, and the one after that at the next of them, and so on; instead of `depth`.
        limit: the most seconds that one life may take.
        least: the time limit of a life is not set below this many seconds, however fast the smooth run was.
        most_pairs: pairs that are tried at depth 2.
        exitfirst: stop when an invariant is broken.
        random: kill so many runs from outside, at moments that the seed draws, instead of at points; the k-th of them
        is
            the first that the seed + k draws.
    """

    depth: int = 1
    jobs: int = 1
    seed: int = 0
    points: tuple[str, ...] | None = None
    then: tuple[str, ...] = ()
    limit: float = 60.0
    least: float = 5.0
    most_pairs: int = MOST_PAIRS
    exitfirst: bool = False
    random: int = 0


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep found.

    Args:
        points: the crash points of the smooth run, in order.
        crashes: one a point, in this order.
        pairs: at depth 2, one a pair.
        all_pairs: how many pairs there are; more than `pairs` when a sample was drawn.
        seed: of the moments, where the kills were at random ones.
    """

    points: tuple[str, ...]
    crashes: tuple[Crash, ...]
    pairs: tuple[Crash, ...] = ()
    all_pairs: int = 0
    seed: int | None = None

    @property
    def broken(self) -> list[Crash]:
        """The histories in which an invariant did not hold."""
        return [one for one in (*self.crashes, *self.pairs) if not one.held and one.outcome != "not_tried"]

    @property
    def not_tried(self) -> int:
        """How many histories were left out."""
        return sum(one.outcome == "not_tried" for one in (*self.crashes, *self.pairs))

    @property
    def branches(self) -> frozenset[str]:
        """The branches of reconciling that were taken at least once."""
        return frozenset().union(*(one.branches for one in (*self.crashes, *self.pairs)))


def _tell_nobody(done: int, total: int) -> None:
    """Nobody watches."""


def enumerate_points(subject: Subject, plan: Plan | None = None) -> tuple[str, ...]:
    """The crash points of a run, in the order in which it passes them.

    Raises:
        HarnessError: the run does not come to its end even when nobody kills it.
    """
    with ground() as place:
        return _smooth(subject, plan or Plan(), place).last.points


def sweep(subject: Subject, plan: Plan, tell: Callable[[int, int], None] = _tell_nobody) -> Sweep:
    """Kill a run at each of its points, resume it, and judge what became of it.

    Args:
        subject: the run.
        plan: how.
        tell: called with how many histories are done and how many there are.

    Raises:
        HarnessError: the run does not come to its end even when nobody kills it, or a wanted point is none of its.
    """
    with ground() as place:
        smooth = _smooth(subject, plan, place)
        subject = replace(subject, limit=min(plan.limit, max(plan.least, HEADROOM * smooth.last.death.seconds)))
        points = smooth.last.points
        wanted = list(points if plan.points is None else _chosen(plan.points, points))
        judge = _Judge(subject, smooth, place, plan)
        if plan.random:
            progress = _Progress(plan.random, tell)
            seeds = range(plan.seed, plan.seed + plan.random)
            struck = fan_out(seeds, judge.at_random, jobs=plan.jobs, done=progress.step)
            order = {point: at for at, point in enumerate(points)}
            struck.sort(key=lambda one: order.get(one.kills[0].partition(" + ")[0], -1))
            return Sweep(points, tuple(struck), seed=plan.seed)
        progress = _Progress(len(wanted), tell)
        crashes = fan_out(wanted, judge.first, jobs=plan.jobs, done=progress.step)
        if plan.then:
            chains = [(*first.kills, *plan.then) for first in crashes if plan.then[0] in first.further]
            if not chains:
                raise HarnessError(f"no resumed life passes the crash point {plan.then[0]!r}")
            progress.total += len(chains)
            found = fan_out(chains, judge.through, jobs=plan.jobs, done=progress.step)
            return Sweep(points, tuple(crashes), tuple(found), len(chains))
        if plan.depth < 2:
            return Sweep(points, tuple(crashes))
        every = [(first.kills[0], second) for first in crashes if first.held for second in first.further]
        chosen = every
        if len(every) > plan.most_pairs:
            picked = sorted(random.Random(plan.seed).sample(range(len(every)), plan.most_pairs))  # noqa: S311
            chosen = [every[index] for index in picked]
        judge.further = {first.kills[0]: first.further for first in crashes}
        progress.total += len(chosen)
        pairs = fan_out(chosen, judge.second, jobs=plan.jobs, done=progress.step)
        return Sweep(points, tuple(crashes), tuple(pairs), len(every))


def resume_here(subject: Subject, point: str) -> Ended:
    """Kill a run at one point, and resume it in this process, where a debugger can follow it.

    Its files are not watched, since that would last as long as this process does.

    Raises:
        HarnessError: the run has no such point, or did not die there.
    """
    with ground() as place:
        points = _smooth(subject, Plan(), place).last.points
        (point,) = _chosen([point], points)[:1]
        site = Site(place / "0")
        site.clear()
        killed = live(subject, site, (), point, points)
        if not killed.killed:
            raise HarnessError(f"the run did not die at {point}: it ended with {killed.death.words}")
        past = [(killed.number, event) for event in killed.events]
        return subject.live(Probe(site, 2, past, None, subject.digest))


def _smooth(subject: Subject, plan: Plan, place: Path) -> History:
    """The run without a kill."""
    subject = replace(subject, limit=plan.limit)
    (smooth,) = fan_out([()], lambda _, kills: live_and_die(subject, Site(place / "0"), kills, ()), jobs=1)
    life = smooth.last
    if life.death.timed_out:
        raise HarnessError(f"the run did not end within {plan.limit:g} s, and nobody had killed it")
    ended = life.ended
    if ended is None:
        raise HarnessError(
            f"the run ended by itself ({life.death.words}), and nobody had killed it\n{life.death.output[-2000:]}"
        )
    wrong = ended.error or next(iter(ended.problems), None)
    if wrong is not None:
        raise HarnessError(f"the run is not right even when nobody kills it: {wrong}")
    return smooth


def _chosen(wanted: Sequence[str], points: Sequence[str]) -> list[str]:
    """The points that are named, by themselves or by a glob, in the order of the run."""
    for name in wanted:
        if not fnmatch.filter(points, name):
            near = difflib.get_close_matches(name, points, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else "; harness crash --list shows them"
            raise NoSuchPointError(f"the run has no crash point {name!r}{meant}")
    return [point for point in points if any(fnmatch.fnmatchcase(point, name) for name in wanted)]


class _Progress:
    def __init__(self, total: int, tell: Callable[[int, int], None]) -> None:
        self.total = total
        self._done = 0
        self._tell = tell
        tell(0, total)

    def step(self) -> None:
        self._done += 1
        self._tell(self._done, self.total)


class _Judge:
    """Lives the histories of one worker, and judges them.  Its site is at one path for all of them."""

    def __init__(self, subject: Subject, smooth: History, place: Path, plan: Plan) -> None:
        self.further: Mapping[str, Sequence[str]] = {}
        self._subject = subject
        self._smooth = smooth
        self._place = place
        self._plan = plan
        self._hung = 0
        self._broken = 0
        self._first_life: Life | None = None

    def first(self, worker: int, point: str) -> Crash:
        """Killed once."""
        if self._is_enough():
            return Crash((point,), "not_tried")
        site = Site(self._place / str(worker))
        history = live_and_die(self._subject, site, [point], [self._smooth.last.points])
        crash = self._judged(history, (point,))
        deeper = self._plan.depth > 1 or self._plan.then
        return replace(crash, further=history.last.points) if deeper else crash

    def through(self, worker: int, kills: tuple[str, ...]) -> Crash:
        """Killed as often as wanted."""
        if self._is_enough():
            return Crash(kills, "not_tried")
        site = Site(self._place / str(worker))
        return self._judged(live_through(self._subject, site, kills, self._smooth.last.points), kills)

    def second(self, worker: int, pair: tuple[str, str]) -> Crash:
        """Killed, and killed again while resuming.  What the first kill left is lived once, and copied."""
        if self._is_enough():
            return Crash(pair, "not_tried")
        site = Site(self._place / str(worker))
        kept = self._place / f"{worker} kept"
        first, second = pair
        references = [self._smooth.last.points, self.further[first]]
        if self._first_life is None or self._first_life.kill_at != first:
            shutil.rmtree(kept, ignore_errors=True)
            history = live_and_die(self._subject, site, list(pair), references, kept)
            self._first_life = history.lives[0]
        else:
            site.restore(kept)
            lives = [self._first_life]
            lives.append(live(self._subject, site, lives, second, references[1]))
            history = finish(self._subject, site, lives)
        return self._judged(history, pair)

    def at_random(self, worker: int, seed: int) -> Crash:
        """Killed from outside, at the moment that a seed draws."""
        if self._is_enough():
            return Crash(("start.birth",), "not_tried", seed=seed)
        site = Site(self._place / str(worker))
        struck = smooth = self._smooth.last
        for attempt in range(1, MOST_LATE + 1):
            moment = moments(timeline(struck), seed, attempt)[-1]
            site.clear()
            struck = live(self._subject, site, reference=smooth.points, kill_after=moment)
            if struck.killed or struck.ended is None:
                break  # and else it was quicker than the run before, and had ended
        history = finish(self._subject, site, [struck])
        return replace(self._judged(history, (struck.end,)), seed=seed)

    def _is_enough(self) -> bool:
        return self._hung >= MOST_HUNG or (self._plan.exitfirst and self._broken > 0)

    def _judged(self, history: History, kills: tuple[str, ...]) -> Crash:
        lives = [*history.lives, *([history.again] if history.again else [])]
        self._hung += sum(life.death.timed_out for life in lives)
        crash = crash_of(history, self._smooth, kills)
        self._broken += bool(crash.breaches)
        return crash
