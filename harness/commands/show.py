"""`harness show`: one trace, for people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.commands.common import complete_case, echo_lines, project_option

if TYPE_CHECKING:
    from harness.project import Project
    from harness.trace import Trace

__all__ = ["command"]


@click.command(short_help="Show a trace: turns, calls, summary.")
@click.argument("trace", shell_complete=complete_case)
@click.option("--pending", is_flag=True, help="The observed trace that waits for a decision, not the golden.")
@project_option
def command(trace: str, pending: bool, root: Path | None) -> None:
    """Show TRACE: the id of a case, or a file.

    \b
      harness show notes/weekly_summary
      harness show --pending notes/weekly_summary
      harness show .harness/pending/notes/weekly_summary.json
    """
    from harness.gate import Gate
    from harness.golden import load_trace
    from harness.project import Project

    file = Path(trace)
    project = Project.find(root)
    if file.suffix == ".json" and file.is_file():
        _show(load_trace(file), project)
        return
    gate = Gate(project)
    if not pending:
        _show(gate.store.load(trace), project)
        return
    path = gate.pending_path(trace)
    _show(load_trace(path, gate.store.shown(path)), project)


def _show(trace: Trace, project: Project) -> None:
    """The trace, and along it what the stuck-loop detectors say."""
    from harness.case.named import stuck_settings
    from harness.report.lines import Line, trace_lines
    from harness.stuck.audit import audit

    notes: dict[int, list[Line]] = {}
    for finding in audit(trace, stuck_settings(trace.case, project)).findings:
        verdict = finding.verdict
        if verdict.evidence is not None:
            notes.setdefault(verdict.at_call, []).extend(
                (
                    Line(f"       {verdict.kind} by {verdict.detector}: {verdict.evidence.sentence()}", "changed"),
                    Line(f"       {verdict.evidence.explanation()}", "faint"),
                )
            )
    echo_lines(trace_lines(trace, notes=notes))
