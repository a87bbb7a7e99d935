"""What several subcommands share: the project, the selection of cases, styled lines."""

from __future__ import annotations

import difflib
import fnmatch
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from harness.errors import HarnessError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from harness.project import Project
    from harness.report.line import Line, Style

__all__ = ["complete_case", "complete_pending", "echo_lines", "project_option", "select", "styled_text", "window_width"]

_STYLES: Final[Mapping[Style, str]] = {
    "added": "green",
    "changed": "yellow",
    "faint": "dim",
    "moved": "cyan",
    "removed": "red",
    "title": "bold",
}


def project_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--root DIR`: the project to work on; by default the one around the working directory."""
    return click.option(
        "--root",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        default=None,
        help="Folder of the project (default: the nearest one above that has cases or [tool.harness]).",
    )(function)


def echo_lines(lines: Iterable[Line], *, err: bool = False, indent: str = "") -> None:
    """Print styled lines, in a window as wide as it is.

    Colours only where the stream is a terminal; never with NO_COLOR, always with FORCE_COLOR.
    """
    stream = sys.stderr if err else sys.stdout
    for text in _fitting(lines, stream, indent):
        click.echo(text, err=err, color=True)


def styled_text(lines: Iterable[Line]) -> str:
    """The lines as `echo_lines` prints them to stdout, for a pager."""
    return "".join(f"{text}\n" for text in _fitting(lines, sys.stdout))


def _fitting(lines: Iterable[Line], stream: TextIO, indent: str = "") -> Iterator[str]:
    from harness.report.line import fitted

    width = max(window_width(stream) - len(indent), 0)
    shown = ((indent + text, line.style) for line in lines for text in fitted(line, width))
    if not _wants_colour(stream):
        yield from (text for text, _ in shown)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, force_terminal=True, highlight=False, markup=False, emoji=False)
    for text, style in shown:
        with console.capture() as capture:
            console.print(Text(text, _STYLES.get(style, "")), soft_wrap=True, end="")
        yield capture.get()


def window_width(stream: TextIO) -> int:
    """How many cells a line has: the window's, or what COLUMNS says; 0 for a file, a pipe, the log of a CI job."""
    if stream.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return shutil.get_terminal_size((0, 0)).columns
    return 0


def _wants_colour(stream: TextIO) -> bool:
    """https://no-color.org and https://force-color.org: set to anything but nothing."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def select(wanted: Sequence[str], known: Sequence[str], project: Project, what: str = "case") -> list[str]:
    """The ids that the arguments of a command name: an id, a glob over ids, or the path of a case file.

    Raises:
        HarnessError: an argument names nothing; the nearest id is suggested.
    """
    if not wanted:
        return list(known)
    chosen: list[str] = []
    for word in wanted:
        name = _as_id(word, project)
        found = [name] if name in known else [one for one in known if fnmatch.fnmatchcase(one, name)]
        found = found or [one for one in known if one.startswith(f"{name.rstrip('/')}/")]
        if not found:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are: {', '.join(known[:8]) or 'none'}"
            raise HarnessError(f"no {what} is called {word!r}{hint}")
        chosen += found
    return list(dict.fromkeys(chosen))


def _as_id(word: str, project: Project) -> str:
    path = Path(os.path.normpath(Path(word).absolute()))
    if path.suffix in (".yaml", ".yml") and path.is_relative_to(project.cases):
        return path.relative_to(project.cases).with_suffix("").as_posix()
    return path.relative_to(project.cases).as_posix() if _is_below(path, project) else word


def _is_below(path: Path, project: Project) -> bool:
    return path.is_dir() and path != project.cases and path.is_relative_to(project.cases)


def complete_case(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Shell completion of case ids."""
    from harness.case.ids import find_cases
    from harness.project import Project

    project = Project.find(ctx.params.get("root"))
    ids = [path.relative_to(project.cases).with_suffix("").as_posix() for path in find_cases(project.cases)]
    return [one for one in ids if one.startswith(incomplete)]


def complete_pending(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Shell completion of cases whose last run waits for a decision."""
    from harness.gate import Gate
    from harness.project import Project

    return [one for one in Gate(Project.find(ctx.params.get("root"))).pending_cases() if one.startswith(incomplete)]
