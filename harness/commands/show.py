"""`harness show`: one trace, for people."""

from __future__ import annotations

from pathlib import Path

import click

from harness.commands.common import complete_case, echo_lines, project_option

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
    from harness.report.lines import trace_lines

    file = Path(trace)
    if file.suffix == ".json" and file.is_file():
        echo_lines(trace_lines(load_trace(file)))
        return
    gate = Gate(Project.find(root))
    path = gate.pending_path(trace) if pending else gate.store.path(trace)
    echo_lines(trace_lines(load_trace(path, gate.store.shown(path)) if pending else gate.store.load(trace)))
