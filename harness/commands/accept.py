"""`harness accept`: take what the last run did as the new golden, without running again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from harness.commands.common import complete_pending, echo_lines, project_option, select
from harness.errors import HarnessError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["command"]


@click.command(short_help="Accept the traces of the last run as goldens.")
@click.argument("cases", nargs=-1, required=True, shell_complete=complete_pending)
@project_option
def command(cases: tuple[str, ...], root: Path | None) -> None:
    """Accept the pending traces of CASES (ids or globs) as their goldens, and show what was accepted.

    A run that broke a limit, raised, or left its script is never accepted.

    \b
      harness accept notes/weekly_summary
      harness accept 'notes/*'
    """
    from harness.gate import Gate
    from harness.project import Project
    from harness.report.lines import Line

    project = Project.find(root)
    gate = Gate(project)
    refused = 0
    for case in select(cases, gate.pending_cases(), project, "pending trace"):
        try:
            verdict = gate.accept_pending(case, gate.policy_of(case))
        except HarnessError as error:
            refused += 1
            click.echo(f"refused   {case}: {error}", err=True)
            continue
        name = gate.store.shown(gate.store.path(case))
        title = Line(f"{verdict.status:<9} {name}  {verdict.headline}", "changed", hang=10)
        echo_lines([title, *verdict.lines])
    sys.exit(2 if refused else 0)
