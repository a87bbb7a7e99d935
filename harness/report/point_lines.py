"""What became of the crash points of a case, as styled lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.report.line import Line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.crash_golden import Row
    from harness.report.line import Style

__all__ = ["change_lines", "changed_points"]


_NAMED: Final = 3
"""Points that are named of those that changed alike."""


def change_lines(golden: Sequence[Row], rows: Sequence[Row]) -> list[Line]:
    """What points are gone, new, or go another way: one line for those that changed alike, and their names below it."""
    before = {row.point: row for row in golden}
    now = {row.point: row for row in rows}
    groups: dict[tuple[str, Style, str], list[str]] = {}
    for point, row in before.items():
        if point not in now:
            groups.setdefault(("-", "removed", _shown(row)), []).append(point)
    for point, row in now.items():
        if point not in before:
            groups.setdefault(("+", "added", _shown(row)), []).append(point)
        elif before[point] != row:
            change = f"{_shown(before[point])} → {_shown(row)}"
            groups.setdefault(("~", "changed", change), []).append(point)
    return [line for group, points in groups.items() for line in _group_lines(*group, points)]


def changed_points(golden: Sequence[Row], rows: Sequence[Row]) -> int:
    """How many points are gone, new, or go another way."""
    before = {row.point: row for row in golden}
    now = {row.point: row for row in rows}
    return sum(before.get(point) != now.get(point) for point in {*before, *now})


def _group_lines(mark: str, style: Style, what: str, points: Sequence[str]) -> Iterator[Line]:
    if len(points) == 1:
        yield Line(f"{mark} {points[0]}: {what}", style)
        return
    yield Line(f"{mark} {len(points)} points: {what}", style)
    more = f", and {len(points) - _NAMED} more" if len(points) > _NAMED else ""
    yield Line(f"    {', '.join(points[:_NAMED])}{more}", "faint")


def _shown(row: Row) -> str:
    ran = ", ".join(f"{tool} {count}×" for tool, count in row.executions.items())
    return f"{row.outcome} ({ran or 'no writes'}, {row.turns} turns)"
