"""What several subcommands share: the project, the selection of cases, styled lines."""

from __future__ import annotations

import difflib
import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from harness.errors import HarnessError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harness.project import Project
    from harness.report.lines import Line

__all__ = ["complete_case", "complete_pending", "echo_lines", "project_option", "select", "styled_text"]

_STYLES: Final[dict[str, dict[str, Any]]] = {
    "added": {"fg": "green"},
    "changed": {"fg": "yellow"},
    "faint": {"dim": True},
    "moved": {"fg": "cyan"},
    "removed": {"fg": "red"},
    "title": {"bold": True},
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
    """Print styled lines; colours only where the stream is a terminal and NO_COLOR is not set."""
    for line in lines:
        click.echo(indent + _styled(line), err=err)


def styled_text(lines: Iterable[Line]) -> str:
    """The lines as a terminal shows them, for a pager."""
    return "".join(f"{_styled(line)}\n" for line in lines)


def _styled(line: Line) -> str:
    return click.style(line.text, **_STYLES.get(line.style, {}))


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
    path = Path(word).absolute()
    if path.suffix in (".yaml", ".yml") and path.is_relative_to(project.cases):
        return path.relative_to(project.cases).with_suffix("").as_posix()
    return project.root.joinpath(word).relative_to(project.cases).as_posix() if _is_below(path, project) else word


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
