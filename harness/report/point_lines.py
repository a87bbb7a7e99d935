"""What became of the crash points of a case, as styled lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.report.line import Line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.crash_golden import Row

__all__ = ["change_lines"]


def change_lines(golden: Sequence[Row], rows: Sequence[Row]) -> list[Line]:
    """One line a point that is gone, new, or goes another way."""
    before = {row.point: row for row in golden}
    now = {row.point: row for row in rows}
    lines = [Line(f"- {row.point}: {_shown(row)}", "removed") for point, row in before.items() if point not in now]
    for point, row in now.items():
        if point not in before:
            lines.append(Line(f"+ {point}: {_shown(row)}", "added"))
        elif before[point] != row:
            lines.append(Line(f"~ {point}: {_shown(before[point])} → {_shown(row)}", "changed"))
    return lines


def _shown(row: Row) -> str:
    ran = ", ".join(f"{tool} {count}×" for tool, count in row.executions.items())
    return f"{row.outcome} ({ran or 'no writes'}, {row.turns} turns)"
