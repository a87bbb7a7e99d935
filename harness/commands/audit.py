"""`harness audit`: what tools answer to calls that their schemas forbid."""

from __future__ import annotations

import json
import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.commands.common import echo_lines, project_option
from harness.errors import HarnessError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harness.audit.targets import Target

__all__ = ["command"]


@click.command(short_help="Call tools with missing, empty and wrong fields; report what says ok.")
@click.argument("tools")
@click.option(
    "--dispatch", metavar="MODULE:NAME", help="TOOLS are definitions, and this function (name, input) executes them."
)
@click.option(
    "--disposable",
    is_flag=True,
    help="Call tools that may change the world, too. What they can reach may be lost: not only the workspace.",
)
@click.option(
    "--workspace",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="A copy of this folder is the working directory of every call (default: a few small files).",
)
@click.option(
    "--example",
    "examples",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    metavar="FILE.json",
    help='Valid inputs, as {"tool": {"field": value}}, instead of made ones.',
)
@click.option("--allow-empty", multiple=True, metavar="TOOL.FIELD", help="This field may be empty, as in a contract.")
@click.option("--zeros", is_flag=True, help="0 and false count as empty, too; a contract takes them for values.")
@click.option(
    "--draws",
    type=click.IntRange(min=0),
    default=8,
    show_default=True,
    metavar="N",
    help="Invalid values drawn for each field; 0 for none.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the drawing.")
@click.option(
    "--limit",
    type=click.FloatRange(min=0, min_open=True),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Time for one call.",
)
@click.option(
    "--refusal",
    metavar="REGEX",
    help="Answers in which this is found are refusals [default: the marker '[validation error]' at the start].",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["terminal", "json", "markdown", "github"]),
    default="terminal",
    show_default=True,
)
@project_option  # fmt: skip
def command(
    tools: str,
    dispatch: str | None,
    disposable: bool,
    workspace: Path | None,
    examples: tuple[Path, ...],
    allow_empty: tuple[str, ...],
    zeros: bool,
    draws: int,
    seed: int,
    limit: float,
    refusal: str | None,
    form: Any,
    root: Path | None,
) -> None:
    """Call each of TOOLS (module:name of a list or mapping of tools) with every required field missing, null, empty,
    and wrong in drawn ways, and report each call that was not refused: it would destroy or do nothing, and say ok.

    Every call runs in a fresh workspace and a process of its own. Tools that are not declared read_only are called only
    with --disposable.

    Exit code 0: every tool refused every such call; 1: findings; 2: bad input, or a tool was not audited.

    \b
      harness audit mypackage.tools:TOOLS
      harness audit mypackage.tools:TOOLS --disposable --workspace fixtures/notes
      harness audit mypackage.agent:DEFINITIONS --dispatch mypackage.agent:dispatch --disposable
    """
    from harness.audit.auditing import Plan, audit_tools
    from harness.audit.calls import REFUSAL
    from harness.audit.report import audit_lines, exit_code, render
    from harness.audit.targets import load_targets
    from harness.project import Project

    targets = load_targets(tools, dispatch, Project.find(root).root)
    plan = Plan(
        disposable=disposable,
        inputs=_inputs(examples, targets),
        allow_empty=_allowed(allow_empty, targets),
        workspace=workspace,
        zeros=zeros,
        examples=draws,
        seed=seed,
        limit=limit,
        refusal=REFUSAL if refusal is None else _pattern(refusal),
    )
    with _progress() as progress:
        audits = audit_tools(targets, plan, progress)
    if form == "terminal":
        echo_lines(audit_lines(audits))
    else:
        click.echo(render(audits, form), nl=False)
    sys.exit(exit_code(audits))


def _inputs(files: Sequence[Path], targets: Sequence[Target]) -> dict[str, dict[str, Any]]:
    inputs: dict[str, dict[str, Any]] = {}
    for file in files:
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise HarnessError(f"--example {file.name}: no JSON: {error}") from None
        if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
            raise HarnessError(
                f'--example {file.name}: give an input by name of tool, as {{"write_file": {{"path": "a"}}}}'
            )
        for name in found:
            _known(name, targets, f"--example {file.name}")
        inputs |= found
    return inputs


def _allowed(words: Sequence[str], targets: Sequence[Target]) -> dict[str, frozenset[str]]:
    from harness.audit.fields import required_fields

    allowed: dict[str, frozenset[str]] = {}
    for word in words:
        name, _, field = word.partition(".")
        target = _known(name, targets, f"--allow-empty {word}")
        fields = [one.name for one in required_fields(target.schema or {})]
        if field not in fields:
            raise HarnessError(f"--allow-empty {word}: {name!r} requires {', '.join(map(repr, fields)) or 'no field'}")
        allowed[name] = allowed.get(name, frozenset()) | {field}
    return allowed


def _known(name: str, targets: Sequence[Target], where: str) -> Target:
    for target in targets:
        if target.name == name:
            return target
    raise HarnessError(f"{where}: there is no tool {name!r}; there are: {', '.join(one.name for one in targets)}")


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise HarnessError(f"--refusal {text!r} is no regular expression: {error}") from None
    return text


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar on stderr, where that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    # Without refreshing by itself it has no thread, beside which forking would be a risk.
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("", total=None)

        def told(name: str, done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, description=name)
            bar.refresh()

        yield told
