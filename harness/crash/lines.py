"""A sweep as styled lines: the matrix, what is broken and its story."""

from __future__ import annotations

import shlex
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.errors import HarnessError
from harness.report.lines import Line
from harness.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.faults.crashes import Crash
    from harness.faults.sweep import Sweep
    from harness.report.lines import Style

__all__ = ["breach_lines", "matrix_lines", "reproducer"]

_STORIES: Final = 2
"""Histories that are told whole; the others are named."""

_NAMED: Final = 12

_MARKS: Final = {"same": ".", "unknown": "?", "not_tried": " "}


def matrix_lines(sweep: Sweep) -> list[Line]:
    """One line a turn: its points in order, `.` same, `?` unknown, `X` broken; and what they add up to."""
    groups: dict[str, list[Crash]] = {}
    for crash in sweep.crashes:
        groups.setdefault(crash.kills[0].partition(".")[0], []).append(crash)
    width = max(map(len, groups), default=0)
    lines = []
    for group, crashes in groups.items():
        marks = "".join(_MARKS.get(crash.outcome, "X") for crash in crashes)
        style: Style = "removed" if "X" in marks else "plain"
        lines.append(Line(f"  {group:<{width}}  {marks}", style))
    counts = Counter(crash.outcome for crash in (*sweep.crashes, *sweep.pairs))
    total = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
    what = f"{len(sweep.crashes)} points{_pairs(sweep)}"
    if sweep.seed is not None:
        places = len({crash.kills[0].partition(" + ")[0] for crash in sweep.crashes})
        what = f"{len(sweep.crashes)} random moments, seed {sweep.seed}, behind {places} of {len(sweep.points)} points"
    lines.append(Line(f"  {what}: {total}", "faint"))
    left = sum(crash.left for crash in (*sweep.crashes, *sweep.pairs))
    if left:
        lines.append(Line(f"  {left} processes were left running by the loop or its tools, and were ended", "changed"))
    return lines


def _pairs(sweep: Sweep) -> str:
    if not sweep.pairs:
        return ""
    if len(sweep.pairs) < sweep.all_pairs:
        return f" and {len(sweep.pairs):,} of {sweep.all_pairs:,} pairs, drawn by the seed"
    return f" and all {len(sweep.pairs):,} pairs"


def breach_lines(case: str, sweep: Sweep) -> Iterator[Line]:
    """What is broken, told for the first ones, with a command that does it again."""
    if not any(".save" in point for point in sweep.points):
        yield Line(
            "the loop saved nothing: it must take `state_dir` and keep there what a resumed process needs", "title"
        )
        yield Line("")
    told: set[str] = set()
    others: list[Crash] = []
    for crash in sweep.broken:
        if crash.outcome in told or len(told) >= _STORIES:
            others.append(crash)
            continue
        told.add(crash.outcome)
        yield Line(f"killed at {', then at '.join(crash.kills)}", "title")
        for breach in crash.breaches:
            yield Line(f"  {breach.invariant}: {breach.message}", "removed")
        for line in crash.story:
            yield Line(f"  {line}", "changed" if "KILLED" in line else "plain")
        if crash.output.strip():
            yield Line("  the loop printed:", "faint")
            for line in crash.output.strip().splitlines()[-15:]:
                yield Line(f"    {line}", "faint")
        yield Line(f"  again: {reproducer(case, crash)}", "faint")
        yield Line("")
    for crash in others[:_NAMED]:
        yield Line(f"{crash.outcome:<16}  {', then '.join(crash.kills)}", "removed")
    if len(others) > _NAMED:
        yield Line(f"… and {len(others) - _NAMED} more", "removed")
    if sweep.not_tried:
        yield Line(f"{sweep.not_tried} points were not tried: enough lives had hung, or failed", "changed")


def reproducer(case: str, crash: Crash) -> str:
    """The command line that lives a history again, and the commit that it was found on.

    A random moment is had again as nearly as this machine keeps time.
    """
    commit = _commit()
    at = f"   # commit {commit}" if commit else ""
    if crash.seed is not None:
        return f"harness crash {shlex.quote(case)} --random 1 --seed {crash.seed}{at}"
    points = " ".join(f"--point {shlex.quote(point)}" for point in crash.kills[:1])
    then = "".join(f" --then {shlex.quote(point)}" for point in crash.kills[1:])
    return f"harness crash {shlex.quote(case)} {points}{then}{at}"


@cache
def _commit() -> str:
    """The commit that is checked out, where there is one; a `+` when something is not committed."""
    try:
        return Repository.around(Path.cwd()).describe()
    except (OSError, HarnessError):
        return ""
