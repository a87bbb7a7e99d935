"""From a sweep to a verdict: no invariant is broken, and at every point it goes as the crash golden says."""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from harness.atomic import write_atomically
from harness.crash.lines import breach_lines
from harness.crash_golden import Row, crash_golden_path, dump_rows, load_rows
from harness.errors import GoldenError
from harness.report.line import Line
from harness.report.point_lines import change_lines, changed_points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.faults.crashes import Crash
    from harness.faults.sweep import Sweep
    from harness.project import Project

__all__ = ["CrashVerdict", "Status", "judge"]

Status: TypeAlias = Literal["same", "drift", "missing", "unusable", "failed", "new", "accepted", "unchanged"]

_PASSED: Final = frozenset({"same", "new", "accepted", "unchanged"})


@dataclass(frozen=True, slots=True)
class CrashVerdict:
    """What is said of one sweep.

    Args:
        case: whose.
        status: as of a trace; `failed` when an invariant is broken, which no golden can bless.
        headline: the reason in one line.
        lines: the whole story.
        sweep: what was found.
    """

    case: str
    status: Status
    headline: str
    lines: tuple[Line, ...]
    sweep: Sweep

    @property
    def passed(self) -> bool:
        """Whether the build may go on."""
        return self.status in _PASSED


def judge(case: str, sweep: Sweep, project: Project, *, update: bool = False, partial: bool = False) -> CrashVerdict:
    """Compare a sweep with its golden, or accept it.

    Args:
        case: whose it is.
        sweep: what was found.
        project: where goldens and artifacts are.
        update: accept it as the golden, unless an invariant is broken.
        partial: only some points were wanted: the others of the golden do not count, and nothing is accepted.
    """
    if sweep.seed is not None:  # no golden holds moments
        if sweep.broken or sweep.not_tried:
            return CrashVerdict(case, "failed", _failure(sweep), tuple(breach_lines(case, sweep)), sweep)
        return CrashVerdict(case, "same", "", (), sweep)
    path = crash_golden_path(project.golden_traces, case)
    source = path.relative_to(project.root).as_posix() if path.is_relative_to(project.root) else path.name
    rows = [_row(crash) for crash in sweep.crashes]
    if not partial:
        _keep(case, rows, project)
    if sweep.broken or sweep.not_tried:
        return CrashVerdict(case, "failed", _failure(sweep), tuple(breach_lines(case, sweep)), sweep)
    try:
        golden = load_rows(path, source, case)
    except GoldenError as error:
        if update and not partial:
            return _accept(case, rows, sweep, project, [], replaced=error.kind != "missing")
        if partial and error.kind == "missing":
            return CrashVerdict(case, "same", "", (), sweep)
        return CrashVerdict(case, "missing" if error.kind == "missing" else "unusable", str(error), (), sweep)
    if partial:
        wanted = {row.point for row in rows}
        golden = [row for row in golden if row.point in wanted]
    if update and not partial:
        return _accept(case, rows, sweep, project, golden)
    count = changed_points(golden, rows)
    if not count:
        return CrashVerdict(case, "same", "", (), sweep)
    headline = f"{count} crash point{'s go' if count != 1 else ' goes'} another way than {source} says"
    advice = Line(f"accept with: harness crash {shlex.quote(case)} --update-golden", "faint")
    return CrashVerdict(case, "drift", headline, (*change_lines(golden, rows), advice), sweep)


def _row(crash: Crash) -> Row:
    return Row(crash.kills[0], crash.outcome, crash.executions, crash.unknown, crash.turns)


def _accept(
    case: str, rows: Sequence[Row], sweep: Sweep, project: Project, golden: Sequence[Row], *, replaced: bool = False
) -> CrashVerdict:
    path = crash_golden_path(project.golden_traces, case)
    known = path.exists()
    try:
        changed = write_atomically(path, dump_rows(case, rows).encode())
    except OSError as error:
        problem = f"{path.name} could not be written: {error.strerror or error}; what was there is unchanged"
        return CrashVerdict(case, "unusable", problem, (), sweep)
    if not changed:
        return CrashVerdict(case, "unchanged", "", (), sweep)
    if not known:
        return CrashVerdict(case, "new", f"{len(rows)} crash points", (), sweep)
    if replaced:
        return CrashVerdict(case, "accepted", "replaced", (), sweep)
    headline = f"{changed_points(golden, rows)} crash points changed"
    return CrashVerdict(case, "accepted", headline, tuple(change_lines(golden, rows)), sweep)


def _failure(sweep: Sweep) -> str:
    broken = sweep.broken
    first = broken[0]
    message = first.breaches[0].message if first.breaches else first.outcome
    more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
    left = f"; {sweep.not_tried} points were not tried" if sweep.not_tried else ""
    return f"killed at {', then at '.join(first.kills)}: {first.outcome}: {message}{more}{left}"


def _keep(case: str, rows: Sequence[Row], project: Project) -> None:
    """What was observed, broken or not, beside nothing that is committed."""
    with contextlib.suppress(OSError):
        ignore = project.artifacts / ".gitignore"
        if not ignore.exists():
            write_atomically(ignore, b"*\n")
        write_atomically(crash_golden_path(project.artifacts / "crash", case), dump_rows(case, rows).encode())
