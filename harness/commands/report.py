"""`harness report`: the last run as one HTML page."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.commands.common import project_option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["command"]

_MANY = 100  # cases; fewer are done before a bar could be read


@click.command(short_help="Write the last run as one HTML page.")
@click.option("-o", "--output", metavar="FILE", default=None,
              help="Where to write it (default: report.html in .harness).")  # fmt: skip
@click.option("--base", metavar="REF", default=None,
              help="Compare the goldens with this branch or commit (default: where this one will land).")  # fmt: skip
@click.option("--no-branch", is_flag=True, help="Do not ask git what became of the goldens in this branch.")
@click.option("--open", "show", is_flag=True, help="Open it in a browser.")
@project_option
def command(output: str | None, base: str | None, no_branch: bool, show: bool, root: Path | None) -> None:
    """Write one self-contained HTML page of what the last run said of every case, and print where it is.

    Nothing runs, and the page loads nothing: it can be mailed, or kept as an artifact of CI.

    \b
      harness report
      harness report -o page.html --base origin/release
      pytest --harness-report=page.html      run and report at once
    """
    from harness.errors import HarnessError
    from harness.page_file import page_file, shown_file, write_page
    from harness.project import Project
    from harness.run_report import run_report

    if base is not None and no_branch:
        raise HarnessError("--base names what to compare with, --no-branch forbids it; give one of them")
    project = Project.find(root)
    here = Path.cwd()
    path = page_file(project.artifacts / "report.html" if output is None else output, here)
    with _progress() as begin:
        report = run_report(project, base=base, compare_branch=not no_branch)
        size = write_page(report, path, begin(len(report.entries)))
    if output is None:
        _keep_out_of_git(project.artifacts)
    click.echo(shown_file(path, here))
    count = len(report.entries)
    click.echo(f"{count:,} case{'s' * (count != 1)}, {len(report.failing):,} failing, {size / 1e6:.1f} MB", err=True)
    if show:
        import webbrowser

        if not webbrowser.open(path.as_uri()):
            click.echo("no browser could be opened", err=True)


def _keep_out_of_git(artifacts: Path) -> None:
    from harness.atomic import write_atomically

    ignore = artifacts / ".gitignore"
    if not ignore.exists():
        with contextlib.suppress(OSError):
            write_atomically(ignore, b"*\n")


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[int], Callable[[], object] | None]]:
    """A bar on stderr, where that is a terminal: first of unknown length, then case by case where there are many."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("gathering", total=None)

        def begin(count: int) -> Callable[[], object] | None:
            bar.update(task, description="rendering", total=count)
            return (lambda: bar.advance(task)) if count >= _MANY else None

        yield begin
