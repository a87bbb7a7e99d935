"""`harness show`: one trace, for people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.commands.common import complete_case, echo_lines, project_option, select
from harness.errors import HarnessError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.project import Project
    from harness.trace import Trace

__all__ = ["command"]


@click.command(short_help="Show a trace: turns, calls, summary.")
@click.argument("trace", shell_complete=complete_case)
@click.option("--pending", is_flag=True, help="The observed trace that waits for a decision, not the golden.")
@project_option
def command(trace: str, pending: bool, root: Path | None) -> None:
    """Show TRACE: the id of a case, or a file.  The golden by default; calls of tools that write say `write`.

    \b
      harness show notes/weekly_summary
      harness show --pending notes/weekly_summary
      harness show .harness/pending/notes/weekly_summary.json
    """
    from harness.case.ids import find_cases
    from harness.gate import Gate
    from harness.golden import load_trace
    from harness.project import Project

    file = Path(trace)
    project = Project.find(root)
    if file.suffix == ".json" and file.is_file():
        _show(load_trace(file), project)
        return
    gate = Gate(project)
    if pending:
        path = gate.pending_path(_one(trace, gate.pending_cases(), project, "pending trace"))
        _show(load_trace(path, gate.store.shown(path)), project)
        return
    cases = [path.relative_to(project.cases).with_suffix("").as_posix() for path in find_cases(project.cases)]
    # A case may have no golden yet, and a golden of a test's fixture has no case.
    known = sorted({*cases, *gate.store.cases(), *gate.pending_cases()})
    _show(gate.store.load(_one(trace, known, project, "case")), project)


def _one(word: str, known: Sequence[str], project: Project, what: str) -> str:
    found = select([word], known, project, what)
    if len(found) > 1:
        raise HarnessError(f"{word!r} names {len(found)} traces; harness show takes one, such as {found[0]!r}")
    return found[0]


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
