"""`harness check`: the stuck-loop detectors over traces, and over labelled sequences."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from harness.commands.common import complete_case, project_option, select
from harness.errors import HarnessError

if TYPE_CHECKING:
    from harness.stuck.check_report import Format

__all__ = ["command"]


@click.command(short_help="Find stuck loops in traces.")
@click.argument("traces", nargs=-1, shell_complete=complete_case)
@click.option("--labelled", type=click.Path(exists=True, dir_okay=False, path_type=Path), default=None, metavar="FILE",
              help="Run the labelled sequences of FILE instead, and say what comes out otherwise.")  # fmt: skip
@click.option("--pending", is_flag=True, help="The observed traces that wait for a decision, not the goldens.")
@click.option("--format", "form", type=click.Choice(["terminal", "json", "markdown", "github"]), default="terminal",
              show_default=True, help="How to report.")  # fmt: skip
@click.option("--fail-on", type=click.Choice(["nudge", "force_stop", "never"]), default="force_stop", show_default=True,
              help="The mildest verdict that makes the exit code 1.")  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Name the traces without a finding as well.")
@project_option
def command(
    traces: tuple[str, ...],
    labelled: Path | None,
    pending: bool,
    form: str,
    fail_on: str,
    verbose: bool,
    root: Path | None,
) -> None:
    """Run the nine stuck-loop detectors over TRACES: ids of cases, globs, or files; all goldens by default.

    A trace without a finding is named when TRACES are, or with -v. Observed traces (--pending) hold digests of results,
    which tell polling from looping; goldens rarely do. Settings are those of [tool.harness.stuck] and, for a case, its
    own.

    \b
      harness check
      harness check --pending 'notes/*' --fail-on nudge
      harness check .harness/pending/nightly.json --format markdown
      harness check --labelled stuck_cases.yaml     test your thresholds
    """
    if labelled is not None:
        if traces:
            raise HarnessError("--labelled takes the place of traces; name one or the other")
        sys.exit(_labelled(labelled, root, form))
    sys.exit(_traces(traces, pending, form, fail_on, root, quiet=not (traces or verbose)))


def _labelled(file: Path, root: Path | None, form: str) -> int:
    from harness.project import Project
    from harness.stuck.config import Config
    from harness.stuck.labelled import read_labelled
    from harness.stuck.labelled_check import check_labelled, labelled_data, labelled_lines

    if form not in ("terminal", "json"):
        raise HarnessError(f"--labelled is reported as terminal or json, not {form}")
    judged = check_labelled(read_labelled(file), Config.parse(Project.find(root).stuck))
    if form == "json":
        click.echo(json.dumps(labelled_data(judged), ensure_ascii=False, indent=2))
    else:
        click.echo("\n".join(labelled_lines(judged, file.name)))
    return int(any(one.differences for one in judged))


def _traces(wanted: tuple[str, ...], pending: bool, form: str, fail_on: str, root: Path | None, *, quiet: bool) -> int:
    from harness.case.named import stuck_settings
    from harness.gate import Gate
    from harness.golden import load_trace
    from harness.project import Project
    from harness.stuck.audit import audit
    from harness.stuck.check_report import exit_code, render_audits

    project = Project.find(root)
    gate = Gate(project)
    known = gate.pending_cases() if pending else gate.store.cases()
    files = [Path(word) for word in wanted if word.endswith(".json") and Path(word).is_file()]
    ids = [word for word in wanted if Path(word) not in files]
    chosen = select(ids, known, project, "pending trace" if pending else "golden") if ids or not files else []
    paths = [*files, *(gate.pending_path(one) if pending else gate.store.path(one) for one in chosen)]
    loaded = [load_trace(path, gate.store.shown(path.absolute())) for path in paths]
    audits = [audit(trace, stuck_settings(trace.case, project)) for trace in loaded]
    names = [gate.store.shown(path.absolute()) for path in paths]
    click.echo(render_audits(audits, cast("Format", form), names, quiet=quiet), nl=False)
    if fail_on == "never":
        return 0
    return exit_code(audits, "nudge" if fail_on == "nudge" else "force_stop")
