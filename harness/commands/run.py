"""`harness run`: the cases without pytest."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.commands.common import complete_case, echo_lines, project_option, select
from harness.commands.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.case.run import Run
    from harness.errors import Problem
    from harness.gate import Gate, Verdict
    from harness.project import Project
    from harness.report.lines import Line

__all__ = ["command"]


@click.command(short_help="Run cases and compare their traces with the goldens.")
@click.argument("cases", nargs=-1, shell_complete=complete_case)
@click.option("--update-golden", is_flag=True, help="Accept what the cases do now, and list what changed.")
@click.option("-x", "--exitfirst", is_flag=True, help="Stop at the first case that does not pass.")
@click.option("--min-cases", type=click.IntRange(min=0), default=1, show_default=True, metavar="N",
              help="Fail when fewer cases than this ran.")  # fmt: skip
@click.option("--verify", is_flag=True,
              help="Run nothing: check that the last pytest run covered every case file as it is now.")  # fmt: skip
@click.option("--report", "page", metavar="FILE", default=None, help="Write the run as one HTML page, too.")
@click.option("-v", "--verbose", is_flag=True, help="Name the cases that passed, too.")
@project_option
def command(
    cases: tuple[str, ...],
    update_golden: bool,
    exitfirst: bool,
    min_cases: int,
    verify: bool,
    page: str | None,
    verbose: bool,
    root: Path | None,
) -> None:
    """Run CASES (ids, globs or files; all by default) and compare each trace with its golden.

    Exit code 0: all passed; 1: a case drifted, failed or was not run; 2: bad input.

    \b
      harness run
      harness run 'notes/*' -v
      harness run cases/notes/weekly_summary.yaml --update-golden
      harness run --report page.html
      pytest && harness run --verify      in CI: pytest cannot have skipped the gate
    """
    from harness.project import Project

    project = Project.find(root)
    if verify:
        sys.exit(_verify(project))
    path = None if page is None else _page_file(page)
    code = _run(project, cases, update_golden, exitfirst, min_cases, verbose)
    if path is not None:
        _write_page(project, path)
    sys.exit(code)


def _page_file(given: str) -> Path:
    from harness.page_file import page_file

    return page_file(given, Path.cwd())


def _write_page(project: Project, path: Path) -> None:
    from harness.page_file import shown_file, write_run_page

    write_run_page(project, path)
    click.echo(f"report: {shown_file(path, Path.cwd())}", err=True)


def _verify(project: Project) -> int:
    from harness.last_run import unverified

    lines = unverified(project)
    for line in lines:
        click.echo(line)
    one = len(lines) == 1
    told = (
        f"{len(lines)} case file{' is' if one else 's are'} not covered"
        if lines
        else "every case file was run and passed"
    )
    click.echo(told, err=True)
    return 1 if lines else 0


def _run(
    project: Project, wanted: tuple[str, ...], update: bool, exitfirst: bool, min_cases: int, verbose: bool
) -> int:
    from harness.case.ids import find_cases, find_collisions
    from harness.errors import CaseError
    from harness.gate import Gate
    from harness.report.failure import failure_lines
    from harness.report.lines import Line
    from harness.report.summary import summary_lines
    from harness.results_record import forget_results
    from harness.session_results import verdict_facts

    paths = find_cases(project.cases)
    collisions = find_collisions(paths, project.cases)
    files = {path.relative_to(project.cases).with_suffix("").as_posix(): path for path in paths}
    chosen = select(wanted, list(files), project)
    gate = Gate(project, update=update)
    results: list[dict[str, str]] = []
    broken = failed = 0
    forget_results(project)
    with _kept(project, results, update=update), Progress(len(chosen)) as progress:
        for case in chosen:
            try:
                verdict, run, error, printed = _judge(files[case], collisions.get(files[case]), project, gate)
            except CaseError as problem:
                broken += 1
                progress.show(lambda problem=problem: click.echo(str(problem)))
                results.append({"case": case, "verdict": "broken", "headline": "the case file is wrong"})
            else:
                results.append(verdict_facts(verdict))
                if not verdict.passed:
                    failed += 1
                    first, *rest = failure_lines(verdict, error, run.failures if run else None)
                    shown = [Line(f"{case}: {first.text}", "removed", hang=2), *rest, *_printed(printed), Line("")]
                    progress.show(lambda shown=shown: echo_lines(shown))
                elif verbose:
                    progress.show(lambda one=verdict: click.echo(f"{one.status:<9} {one.case}"))
            progress.advance(case)
            if exitfirst and (failed or broken):
                break
    echo_lines(summary_lines(results, project, update=update))
    not_run = [] if exitfirst else [case for case in chosen if case not in {one["case"] for one in results}]
    for case in not_run:
        click.echo(f"not run: {case}")
    if len(results) < min_cases:
        hint = "" if files else "; to set up cases: harness init"
        click.echo(
            f"{len(results)} cases ran in {_shown(project)}, at least {min_cases} are wanted (--min-cases){hint}"
        )
        return 1
    return 2 if broken else 1 if failed or not_run else 0


@contextlib.contextmanager
def _kept(project: Project, results: Sequence[Mapping[str, str]], *, update: bool) -> Iterator[None]:
    """Keep what was said of the cases that ran, also when somebody stops the run."""
    from harness.results_record import write_results
    from harness.review.decisions import note_updates

    try:
        yield
    finally:
        if results:
            write_results(project, results)
        if update:
            note_updates(project, results)


def _shown(project: Project) -> str:
    return project.cases.relative_to(project.root).as_posix() if project.cases.is_relative_to(project.root) else "cases"


def _printed(text: str) -> list[Line]:
    """What the loop wrote to stdout and stderr, for a case that did not pass."""
    from harness.report.lines import Line

    if not text.strip():
        return []
    return [Line(""), Line("the loop printed:", "faint"), *(Line(f"  {one}", "faint") for one in text.splitlines())]


def _judge(
    path: Path, collision: Problem | None, project: Project, gate: Gate
) -> tuple[Verdict, Run | None, BaseException | None, str]:
    from harness.case.ids import shown_path
    from harness.case.load import load_case
    from harness.case.run import run_case
    from harness.case.verdict import error_line
    from harness.errors import CaseError, HarnessError
    from harness.gate import Verdict

    if collision:
        raise CaseError(shown_path(path), [collision])
    case = load_case(path, project.cases)
    printed = _Printed()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            run = run_case(case, project)
        except (KeyboardInterrupt, HarnessError):
            raise
        except BaseException as error:  # noqa: BLE001 (SystemExit, pytest.skip(), …)
            # What ends a process must not end the gate, least of all with the exit code 0.
            verdict = Verdict(case.id, "failed", error_line(error, project.root))
            return verdict, None, error, printed.getvalue()
    # What is expected to fail is never accepted, as under pytest.
    update = False if "xfail" in case.marks else None
    verdict = gate.judge(run.trace, case.policy(gate.policy), update=update)
    return verdict, run, run.error, printed.getvalue()


class _Printed(io.StringIO):
    """What a loop prints; one that closes its stdout closes nothing of ours."""

    def close(self) -> None:
        """Stay open."""
