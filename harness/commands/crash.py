"""`harness crash`: kill cases at every point, resume them, and see that nothing was lost, repeated or made up."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Self

import click

from harness.commands.common import complete_case, echo_lines, project_option, select
from harness.errors import CaseError, HarnessError

if TYPE_CHECKING:
    from pathlib import Path

    from harness.case.load import Case
    from harness.crash.judge import CrashVerdict
    from harness.faults.sweep import Plan
    from harness.project import Project

__all__ = ["command"]


@click.command(short_help="Kill cases at every point, and resume them.")
@click.argument("cases", nargs=-1, shell_complete=complete_case)
@click.option("--list", "list_only", is_flag=True, help="Show the crash points of the cases, and kill nothing.")
@click.option("--point", "points", multiple=True, metavar="NAME",
              help="Only this crash point, or those that a glob matches; may be repeated.")  # fmt: skip
@click.option("--then", multiple=True, metavar="NAME",
              help="Kill the resumed life as well, at this point; repeated: the one after it, and so on.")  # fmt: skip
@click.option("--here", is_flag=True,
              help="Kill a case at one --point, and resume it in this process, for breakpoint().")  # fmt: skip
@click.option("--depth", type=click.IntRange(1, 2), default=1, show_default=True,
              help="2 also kills every resumed life, at each of its points.")  # fmt: skip
@click.option("-j", "--jobs", type=click.IntRange(min=1), default=None, metavar="N",
              help="Processes side by side (default: one a core).")  # fmt: skip
@click.option("--random", "random_kills", type=click.IntRange(min=1), metavar="N",
              help="Kill N runs from outside, at random moments: in the middle of a tool, or of a write.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True,
              help="Of the moments, and of the sample of pairs where there are too many.")  # fmt: skip
@click.option("--pairs", type=click.IntRange(min=1), default=1000, show_default=True, metavar="N",
              help="Pairs of kills that are tried at depth 2.")  # fmt: skip
@click.option("-x", "--exitfirst", is_flag=True, help="Stop a sweep at the first broken invariant.")
@click.option("--update-golden", is_flag=True, help="Accept what becomes of each point now, and list what changed.")
@project_option
def command(
    cases: tuple[str, ...],
    list_only: bool,
    points: tuple[str, ...],
    then: tuple[str, ...],
    here: bool,
    depth: int,
    jobs: int | None,
    random_kills: int | None,
    seed: int,
    pairs: int,
    exitfirst: bool,
    update_golden: bool,
    root: Path | None,
) -> None:
    """Kill the run of CASES at every crash point, resume it, and judge what became of it.

    Without CASES: all that say `faults: {crash: every_point}`.  Each process is really killed (SIGKILL) and really
    resumed, in about a tenth of a second.  In the matrix `.` is the same as without the kill, `?` an explicit
    "status unknown", `X` a broken invariant.

    Exit code 0: every invariant holds and the crash goldens agree; 1: one does not; 2: bad input.

    \b
      harness crash
      harness crash --list notes/weekly_summary
      harness crash notes/weekly_summary --point turn2.call1.send_email.after
      harness crash notes/weekly_summary --depth 2 -j 4
      harness crash notes/weekly_summary --point turn2.call1.send_email.after --here
      harness crash notes/weekly_summary --random 100 --seed 7
    """
    from harness.faults.sweep import Plan
    from harness.project import Project

    project = Project.find(root)
    plan = Plan(
        depth=depth,
        jobs=jobs or os.cpu_count() or 1,
        seed=seed,
        points=points or None,
        then=then,
        most_pairs=pairs,
        exitfirst=exitfirst,
        random=random_kills or 0,
    )
    if random_kills and (points or then or here or list_only or update_golden or depth > 1):
        raise HarnessError("--random chooses where to kill; it goes with --seed, --jobs and --exitfirst only")
    chosen, broken = _load(cases, project)
    if here:
        if len(chosen) != 1 or len(points) != 1:
            raise HarnessError("--here takes one case and one --point")
        sys.exit(_resume_here(chosen[0], project, points[0]))
    if list_only:
        sys.exit(_list(chosen, project, broken))
    sys.exit(_sweep(chosen, project, plan, broken, update=update_golden, whole=not (cases or points or random_kills)))


def _load(wanted: tuple[str, ...], project: Project) -> tuple[list[Case], int]:
    """The cases to sweep, and how many files are none."""
    from harness.case.ids import find_cases
    from harness.case.load import load_case
    from harness.crash.cases import is_swept

    files = {path.relative_to(project.cases).with_suffix("").as_posix(): path for path in find_cases(project.cases)}
    found: list[Case] = []
    broken = 0
    for name in select(wanted, list(files), project):
        try:
            case = load_case(files[name], project.cases)
        except CaseError as error:
            broken += 1
            click.echo(str(error))
            continue
        if wanted or is_swept(case):
            found.append(case)
    if not found and not broken:
        raise HarnessError("no case asks for crashes; name one, or give it: faults: {crash: every_point}")
    return found, broken


def _resume_here(case: Case, project: Project, point: str) -> int:
    from harness.crash.cases import resume_case_here

    try:
        ended = resume_case_here(case, project, point)
    except CaseError as error:
        click.echo(str(error))
        return 2
    problems = [ended.error] if ended.error else list(ended.problems)
    click.echo(f"killed at {point}, resumed here: {'; '.join(problems) or 'it came to its end'}")
    return 1 if problems else 0


def _list(cases: list[Case], project: Project, broken: int) -> int:
    from harness.crash.cases import list_points

    for case in cases:
        if len(cases) > 1:
            click.echo(f"{case.id}:")
        try:
            for point in list_points(case, project):
                click.echo(point)
        except CaseError as error:
            broken += 1
            click.echo(str(error))
    return 2 if broken else 0


def _sweep(cases: list[Case], project: Project, plan: Plan, broken: int, *, update: bool, whole: bool) -> int:
    from harness.crash.cases import sweep_case, unreached
    from harness.crash.judge import judge
    from harness.crash.lines import matrix_lines
    from harness.gate import PASSED

    swept = []
    failed = unaccepted = 0
    with _Progress() as progress:
        for case in cases:
            progress.begin(case.id)
            try:
                found = sweep_case(case, project, plan, progress.tell)
            except CaseError as error:
                broken += 1
                progress.pause()
                click.echo(str(error))
                continue
            swept.append((case, found))
            verdict = judge(case.id, found, project, update=update, partial=plan.points is not None)
            failed += verdict.status not in ("missing", *PASSED)
            unaccepted += verdict.status == "missing"
            progress.pause()
            _show(verdict)
            echo_lines(matrix_lines(found))
    never = unreached(swept) if whole else []  # a part of the cases need not reach everything
    if never:
        click.echo(f"never reached, so nothing is proven of it: {'; '.join(never)}")
    points = sum(len(found.crashes) + len(found.pairs) for _, found in swept)
    missing = f", {unaccepted} without crash golden" if unaccepted else ""
    click.echo(f"{len(swept)} case{'s' * (len(swept) != 1)}, {points:,} kills: {failed} failed{missing}")
    return 2 if broken else 1 if failed or unaccepted else 0


def _show(verdict: CrashVerdict) -> None:
    echo_lines([_title(verdict), *verdict.lines])


def _title(verdict: CrashVerdict) -> Any:
    from harness.report.lines import Line

    headline = f": {verdict.headline}" if verdict.headline else ""
    return Line(f"{verdict.status:<9} {verdict.case}{headline}", "title" if verdict.passed else "removed")


class _Progress:
    """A bar with rate and remaining time on stderr, where that is a terminal; nothing elsewhere.

    It draws when it is told something, and never from a thread of its own: this process is about to fork.
    """

    def __init__(self) -> None:
        self._bar: Any = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeRemainingColumn(),
                TextColumn("{task.description}"),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
            self._task = self._bar.add_task("", total=None, rate="")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.pause()

    def begin(self, case: str) -> None:
        """A case comes next."""
        if self._bar:
            self._bar.reset(self._task, description=case, rate="")
            self._bar.start()

    def tell(self, done: int, total: int) -> None:
        """So many of so many histories are done."""
        if self._bar:
            speed = self._bar.tasks[0].speed
            rate = f"{speed:.0f} kills/s" if speed else ""
            self._bar.update(self._task, completed=done, total=total, rate=rate, refresh=True)

    def pause(self) -> None:
        """Take the bar away, for what is written to stdout."""
        if self._bar:
            self._bar.stop()
