"""The sweep: run once to find the crash points, then die at each of them and see what becomes of the run."""

from __future__ import annotations

import difflib
import fnmatch
import os
import random
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.errors import HarnessError
from harness.faults.branches import branches_of
from harness.faults.invariants import Breach, broken
from harness.faults.lives import Subject, finish, live, live_and_die, live_through
from harness.faults.probe import Probe
from harness.faults.site import Site
from harness.faults.story import story
from harness.faults.workers import fan_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from harness.faults.history import History, Life
    from harness.faults.journal import Ended

__all__ = ["Crash", "Plan", "Sweep", "enumerate_points", "resume_here", "sweep"]

MOST_PAIRS: Final = 1000
"""Pairs of kills that are tried at depth 2 before a sample is drawn: about 20 s of forks on one core."""

MOST_HUNG: Final = 3
"""Lives that may run into their time limit before a worker gives the rest of its points up."""

HEADROOM: Final = 50
"""How many times the smooth run's time a life may take, within the bounds of `Plan`."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to sweep.

    Args:
        depth: 1 kills once; 2 kills each resumed life as well.
        jobs: processes side by side.
        seed: of the sample of pairs at depth 2, where there are too many.
        points: only these, names or globs over names; None for all.
        then: kill the resumed life here, and the one after that at the next of them, and so on; instead of `depth`.
        limit: the most seconds that one life may take.
        least: the time limit of a life is not set below this many seconds, however fast the smooth run was.
        most_pairs: pairs that are tried at depth 2.
        exitfirst: stop when an invariant is broken.
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


@dataclass(frozen=True, slots=True)
class Crash:
    """What became of one history of kills.

    Args:
        kills: where the lives were killed.
        outcome: `same`, `unknown`, the name of the first broken invariant, `not_reached` (the run did not come to its
            point, or did not die there) or `not_tried` (too many lives before had hung, or the first flaw was enough).
        breaches: the broken invariants, with what happened.
        executions: by tool that writes, how often it ran.
        unknown: how many calls were given up as unknown.
        turns: of the conversation in the end.
        story: what happened in each life, for a reader; only where something is wrong.
        output: what the lives printed; likewise.
        left: processes that were still running when all was over.
    """

    kills: tuple[str, ...]
    outcome: str
    breaches: tuple[Breach, ...] = ()
    executions: Mapping[str, int] = field(default_factory=dict)
    unknown: int = 0
    turns: int = 0
    story: tuple[str, ...] = ()
    output: str = ""
    left: int = 0
    branches: frozenset[str] = frozenset()
    further: tuple[str, ...] = ()

    @property
    def held(self) -> bool:
        """Whether every invariant held."""
        return self.outcome in ("same", "unknown")


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep found.

    Args:
        points: the crash points of the smooth run, in order.
        crashes: one a point, in this order.
        pairs: at depth 2, one a pair.
        all_pairs: how many pairs there are; more than `pairs` when a sample was drawn.
    """

    points: tuple[str, ...]
    crashes: tuple[Crash, ...]
    pairs: tuple[Crash, ...] = ()
    all_pairs: int = 0

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
    with _ground() as ground:
        return _smooth(subject, plan or Plan(), ground).last.points


def sweep(subject: Subject, plan: Plan, tell: Callable[[int, int], None] = _tell_nobody) -> Sweep:
    """Kill a run at each of its points, resume it, and judge what became of it.

    Args:
        subject: the run.
        plan: how.
        tell: called with how many histories are done and how many there are.

    Raises:
        HarnessError: the run does not come to its end even when nobody kills it, or a wanted point is none of its.
    """
    with _ground() as ground:
        smooth = _smooth(subject, plan, ground)
        subject = replace(subject, limit=min(plan.limit, max(plan.least, HEADROOM * smooth.last.death.seconds)))
        points = smooth.last.points
        wanted = list(points if plan.points is None else _chosen(plan.points, points))
        progress = _Progress(len(wanted), tell)
        judge = _Judge(subject, smooth, ground, plan)
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
    with _ground() as ground:
        points = _smooth(subject, Plan(), ground).last.points
        (point,) = _chosen([point], points)[:1]
        site = Site(ground / "0")
        site.clear()
        killed = live(subject, site, (), point, points)
        if not killed.killed:
            raise HarnessError(f"the run did not die at {point}: it ended with {killed.death.words}")
        past = [(killed.number, event) for event in killed.events]
        return subject.live(Probe(site, 2, past, None, subject.digest))


@contextmanager
def _ground() -> Iterator[Path]:
    """A directory for all sites, in memory where the system has such: no kill can tell, and a sync costs nothing."""
    memory = Path("/dev/shm")  # noqa: S108 (a directory of our own is made in it)
    place = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    _remove_strays(place or Path(tempfile.gettempdir()))
    prefix = f"harness-crash-{os.getpid()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=place, ignore_cleanup_errors=True) as name:
        yield Path(name).resolve()


def _remove_strays(folder: Path) -> None:
    """What sweeps have left that were themselves killed; their pids stand in the names."""
    for stray in folder.glob("harness-crash-*-*"):
        pid = stray.name.split("-")[2]
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            shutil.rmtree(stray, ignore_errors=True)
        except (ValueError, PermissionError):
            continue


def _smooth(subject: Subject, plan: Plan, ground: Path) -> History:
    """The run without a kill."""
    subject = replace(subject, limit=plan.limit)
    (smooth,) = fan_out([()], lambda _, kills: live_and_die(subject, Site(ground / "0"), kills, ()), jobs=1)
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
            raise HarnessError(f"the run has no crash point {name!r}{meant}")
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

    def __init__(self, subject: Subject, smooth: History, ground: Path, plan: Plan) -> None:
        self.further: Mapping[str, Sequence[str]] = {}
        self._subject = subject
        self._smooth = smooth
        self._ground = ground
        self._plan = plan
        self._hung = 0
        self._broken = 0
        self._first_life: Life | None = None

    def first(self, worker: int, point: str) -> Crash:
        """Killed once."""
        if self._is_enough():
            return Crash((point,), "not_tried")
        site = Site(self._ground / str(worker))
        history = live_and_die(self._subject, site, [point], [self._smooth.last.points])
        crash = self._judged(history, (point,))
        deeper = self._plan.depth > 1 or self._plan.then
        return replace(crash, further=history.last.points) if deeper else crash

    def through(self, worker: int, kills: tuple[str, ...]) -> Crash:
        """Killed as often as wanted."""
        if self._is_enough():
            return Crash(kills, "not_tried")
        site = Site(self._ground / str(worker))
        return self._judged(live_through(self._subject, site, kills, self._smooth.last.points), kills)

    def second(self, worker: int, pair: tuple[str, str]) -> Crash:
        """Killed, and killed again while resuming.  What the first kill left is lived once, and copied."""
        if self._is_enough():
            return Crash(pair, "not_tried")
        site = Site(self._ground / str(worker))
        kept = self._ground / f"{worker} kept"
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

    def _is_enough(self) -> bool:
        return self._hung >= MOST_HUNG or (self._plan.exitfirst and self._broken > 0)

    def _judged(self, history: History, kills: tuple[str, ...]) -> Crash:
        lives = [*history.lives, *([history.again] if history.again else [])]
        self._hung += sum(life.death.timed_out for life in lives)
        breaches = [] if any(not life.killed for life in history.lives[: len(kills)]) else broken(history, self._smooth)
        missed = next((life for life in history.lives[: len(kills)] if not life.killed), None)
        if missed is not None:
            outcome = "liveness" if missed.death.timed_out else "not_reached"
            how = (
                "was still running at its time limit" if missed.death.timed_out else f"ended with {missed.death.words}"
            )
            breaches = [Breach(outcome, f"life {missed.number} did not die at {missed.kill_at}: it {how}")]
        elif breaches:
            outcome = breaches[0].invariant
        else:
            outcome = "unknown" if history.unknown - self._smooth.unknown else "same"
        wrong = bool(breaches)
        self._broken += wrong
        return Crash(
            kills=kills,
            outcome=outcome,
            breaches=tuple(breaches),
            executions=history.writes(),
            unknown=len(history.unknown - self._smooth.unknown),
            turns=history.turns,
            story=tuple(story(history)) if wrong else (),
            output="".join(life.death.output for life in history.lives)[-4000:] if wrong else "",
            left=history.left,
            branches=frozenset(branches_of(history)),
        )
