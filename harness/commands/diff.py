"""`harness diff`: what became of traces between two sides, or of all cases in the last run, in any format."""

from __future__ import annotations

import fnmatch
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from harness.commands.common import complete_case, echo_lines, project_option, select
from harness.errors import HarnessError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.project import Project
    from harness.report.entries import Report

__all__ = ["command"]

_FORMATS: Final = ("terminal", "markdown", "html", "json", "github", "gitlab")

_SUMMARY_LIMIT: Final = 1_000_000
"""Bytes of a job summary.  GitHub drops one of more than 1 MiB whole, with all that other steps wrote to it."""

_SMALLEST: Final = 4_000
"""Bytes below which a report says nothing."""


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion: the sides that have names, branches left to the user, and cases."""
    words = [word for word in ("golden", "pending", "git:") if word.startswith(incomplete)]
    return [*words, *complete_case(ctx, param, incomplete)]


@click.command(short_help="Show what changed between goldens, traces, branches; reports for CI.")
@click.argument("sides", nargs=-1, metavar="[OLD] [NEW]", shell_complete=_complete)
@click.option("--run", "of_run", is_flag=True,
              help="Report the last run instead: cases against goldens, goldens against the base branch.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(_FORMATS), default="terminal", show_default=True,
              help="How to report.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write to FILE, whole or not at all, instead of stdout.")  # fmt: skip
@click.option("--summary", is_flag=True, help="Append Markdown to the job summary of GitHub Actions as well.")
@click.option("--case", "cases", multiple=True, metavar="GLOB", shell_complete=complete_case,
              help="Only these cases; may be repeated.")  # fmt: skip
@click.option("--base", metavar="REF", help="The branch that this one is compared with (default: its target branch).")
@click.option("--exact/--policy", default=None,
              help="Overlook nothing, or what cases overlook (default: exact but for what is pending).")  # fmt: skip
@click.option("--lines", type=click.IntRange(min=0), default=120, show_default=True, metavar="N",
              help="Lines of calls in each comparison at a terminal; 0 for all.")  # fmt: skip
@click.option("--exit-zero", is_flag=True, help="Exit with 0 although something differs.")
@project_option
def command(
    sides: tuple[str, ...],
    of_run: bool,
    form: str,
    output: Path | None,
    summary: bool,
    cases: tuple[str, ...],
    base: str | None,
    exact: bool | None,
    lines: int,
    exit_zero: bool,
    root: Path | None,
) -> None:
    """Compare OLD with NEW.  Without arguments: what this branch did to the goldens, committed or not.

    A side is a file, a folder, golden (the working tree), pending (what the last run observed), git:REF (the goldens
    at a commit) or git:REF:PATH.  The id of a case, or a glob, compares its golden with what is pending.  One side
    alone is compared with the goldens of the working tree.

    Exit code 0: nothing differs; 1: something does, or with --run: a case did not pass; 2: bad input.

    \b
      harness diff                                 this branch against its target branch
      harness diff git:main                        all goldens against another branch
      harness diff git:v1.0 git:HEAD --case 'notes/*'
      harness diff notes/weekly_summary            what the last run did otherwise
      harness diff old.json new.json
      harness diff --run --format markdown -o comment.md
      harness diff --run --format github --summary
    """
    from harness.project import Project

    project = Project.find(root)
    report = _run_report(project, sides, base, exact) if of_run else _diff_report(project, sides, base, exact)
    report = _of_cases(report, cases)
    _write(report, form, output, lines or None)
    if summary:
        _append_summary(report)
    differs = bool(report.failing) if report.ran else any(entry.change.differs for entry in report.entries)
    sys.exit(int(differs and not exit_zero))


def _run_report(project: Project, sides: Sequence[str], base: str | None, exact: bool | None) -> Report:
    from harness.results_record import read_results
    from harness.run_report import run_report

    if sides:
        raise HarnessError(f"--run reports the last run; it takes no side such as {sides[0]!r} (--case selects cases)")
    if exact is not None:
        raise HarnessError("--run compares each case as its file says; --exact and --policy are for two sides")
    if not read_results(project):
        raise HarnessError("no run has left a record here; run the cases first: pytest, or harness run")
    report = run_report(project, base=base)
    if report.unbased:
        click.echo(f"note: goldens are not compared with a base branch: {report.unbased}", err=True)
    return report


def _diff_report(project: Project, sides: Sequence[str], base: str | None, exact: bool | None) -> Report:
    from harness.diff_report import GOLDEN, compare_branch, compare_cases, compare_sides, is_side
    from harness.gate import Gate

    if not sides:
        if exact is False:
            raise HarnessError("what a branch did to its goldens is compared exactly; --policy is for runs")
        return compare_branch(project, base)
    if base is not None:
        raise HarnessError(f"--base is for a diff without sides; to compare with a commit: harness diff git:{base}")
    strangers = [word for word in sides if not is_side(word)]
    if len(strangers) == len(sides):
        known = sorted({*Gate(project).pending_cases(), *_golden_cases(project)})
        try:
            chosen = select(sides, known, project)
        except HarnessError as error:
            hint = "a side is a file or folder that exists, golden, pending, git:REF or git:REF:PATH"
            raise HarnessError(f"{error}; {hint}") from None
        return compare_cases(project, chosen, exact=bool(exact))
    if strangers or len(sides) > 2:
        word = strangers[0] if strangers else sides[2]
        raise HarnessError(
            f"{word!r} cannot stand beside {sides[0] if word != sides[0] else sides[1]!r}: two sides are compared "
            "(files, folders, git:REF, golden, pending), or cases, which stand alone; --case selects cases of two sides"
        )
    if len(sides) == 2:
        return compare_sides(project, sides[0], sides[1], exact=exact)
    if sides[0] == GOLDEN:
        raise HarnessError("golden is one side; name the other one, as in: harness diff git:main golden")
    if sides[0].startswith("git:"):
        return compare_sides(project, sides[0], GOLDEN, exact=exact)
    return compare_sides(project, GOLDEN, sides[0], exact=exact)


def _golden_cases(project: Project) -> set[str]:
    from harness.changes import folder_side

    return set(folder_side(project.golden_traces, "golden").traces)


def _of_cases(report: Report, globs: Sequence[str]) -> Report:
    """The report of some cases, found by their ids or by those that they had."""
    if not globs:
        return report
    names = {entry.case: [entry.case] for entry in report.entries}
    for entry in report.entries:
        names[entry.case] += [change.was for change in (entry.change, entry.branch) if change and change.was]
    wanted: set[str] = set()
    for glob in globs:
        found = {case for case, known in names.items() if any(fnmatch.fnmatchcase(one, glob) for one in known)}
        if not found:
            raise HarnessError(f"no case here matches {glob!r}; there are: {', '.join(sorted(names)[:8]) or 'none'}")
        wanted |= found
    return replace(report, entries=tuple(entry for entry in report.entries if entry.case in wanted))


def _write(report: Report, form: str, output: Path | None, lines: int | None) -> None:
    from harness.report.formats import render
    from harness.report.line import plain_text
    from harness.report.terminal import report_lines

    if form == "terminal":
        shown = report_lines(report, lines, "harness diff --lines 0")
        if output is None:
            echo_lines(shown)
            return
        text = plain_text(shown)
    else:
        text = render(report, form, _whole_report())
    data = text.encode("utf-8", "backslashreplace")  # in JSON, too, \\udc80 is what a lone surrogate looks like
    if output is None:
        click.echo(data.decode("utf-8"), nl=False)
        return
    from harness.atomic import write_output

    try:
        write_output(output, data)
    except OSError as error:
        raise HarnessError(f"{output} could not be written: {error.strerror or error}") from None


def _append_summary(report: Report) -> None:
    """A summary is a help: that it cannot be written must not change a verdict."""
    from harness.report.markdown import render_markdown

    name = os.environ.get("GITHUB_STEP_SUMMARY")
    if not name:
        click.echo("note: no job summary was written: GITHUB_STEP_SUMMARY is not set", err=True)
        return
    try:
        path = Path(name)
        room = _SUMMARY_LIMIT - (path.stat().st_size if path.exists() else 0)
        if room < _SMALLEST:
            click.echo("note: no job summary was written: what is there already leaves no room", err=True)
            return
        text = render_markdown(report, room, _whole_report())
        with path.open("ab") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        click.echo(f"note: no job summary was written: {error.strerror or error}", err=True)


def _whole_report() -> str:
    """Where the artifacts of this job are, as the two large forges say it; empty elsewhere."""
    env = os.environ
    if all(name in env for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")):
        return f"{env['GITHUB_SERVER_URL']}/{env['GITHUB_REPOSITORY']}/actions/runs/{env['GITHUB_RUN_ID']}"
    return env.get("CI_JOB_URL", "")
