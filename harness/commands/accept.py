"""`harness accept`: take what the last run did as the new golden, without running again."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from harness.commands.common import complete_pending, echo_lines, project_option, select
from harness.errors import HarnessError

if TYPE_CHECKING:
    from pathlib import Path

    from harness.review.decisions import Decisions

__all__ = ["command", "tell_message"]

_FACETS = (
    "writes", "order", "arguments", "outcomes", "duplicates", "turns", "stop_reasons", "interventions", "results",
)  # fmt: skip


@click.command(short_help="Accept the traces of the last run as goldens.")
@click.argument("cases", nargs=-1, required=True, shell_complete=complete_pending)
@click.option("--facet", "facets", type=click.Choice(_FACETS), multiple=True,
              help="Accept this facet of the drift only; the rest stays pending.")  # fmt: skip
@click.option("--writes", is_flag=True, help="Accept changes in writes of cases that a glob or a folder names, too.")
@project_option
def command(cases: tuple[str, ...], facets: tuple[str, ...], writes: bool, root: Path | None) -> None:
    """Accept the pending traces of CASES (ids, globs or folders) as their goldens, and show what was accepted.

    A run that broke a limit or an invariant, raised, or left its script is never accepted. A change in writes is
    accepted only where the case is named by its id, or with --writes.

    Exit code 0: all were accepted; 2: at least one was refused, and the others were accepted all the same.

    \b
      harness accept notes/weekly_summary
      harness accept 'notes/*'
      harness accept refund --facet arguments
      harness review                            one by one, with single keys
    """
    from harness.gate import Gate
    from harness.project import Project
    from harness.report.lines import Line
    from harness.review.accepting import accept
    from harness.review.decisions import Decisions
    from harness.review.waiting import waiting_for

    project = Project.find(root)
    gate = Gate(project)
    decisions = Decisions.of(project)
    pending = gate.pending_cases()
    refused = 0
    for case in select(cases, pending, project, "pending trace"):
        try:
            done = accept(waiting_for(case, gate), gate, decisions, facets, writes=writes or case in cases)
        except HarnessError as error:
            refused += 1
            click.echo(f"refused   {case}: {error}", err=True)
            continue
        name = gate.store.shown(gate.store.path(case))
        verdict = done.verdict
        title = Line(f"{verdict.status:<9} {name}  {verdict.headline}", "changed", hang=10)
        echo_lines([title, *verdict.lines])
        if facets and verdict.drift:
            echo_lines([Line(f"left      {name}  {verdict.drift.headline}", "title", hang=10)])
    tell_message(decisions)
    sys.exit(2 if refused else 0)


def tell_message(decisions: Decisions) -> None:
    """Say where the commit message is, if anything was accepted since the last commit."""
    if decisions.accepted:
        path = os.path.relpath(decisions.message_path)
        click.echo(f"commit with: git commit -eF {path}", err=True)
