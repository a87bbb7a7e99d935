"""The versions of goldens as lines for a terminal, with a small plot of how long their paths became."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from harness.report.line import Line, Style, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.report.entries import Counts, Version

__all__ = ["ASCII_BARS", "BARS", "Overview", "day", "overview_lines", "plain_ascii", "version_lines"]

BARS: Final = "▁▂▃▄▅▆▇█"
ASCII_BARS: Final = "_.-=+*%#"
"""Eight heights, for an output that cannot hold the others."""

_ASCII: Final = str.maketrans({"→": "->", "×": "x", "…": "...", "–": "-", "·": "-"})
_LABEL: Final = 8
_GAP: Final = "  "


@dataclass(frozen=True, slots=True)
class Overview:
    """One golden from its first version to its last.

    Args:
        case: its id now.
        versions: how many there are.
        first: the oldest.
        last: the newest.
    """

    case: str
    versions: int
    first: Version
    last: Version

    @property
    def growth(self) -> float:
        """How many times as many calls there are now as first; 1 where that is not known."""
        first, last = self.first.counts, self.last.counts
        return last.calls / first.calls if first is not None and last is not None and first.calls else 1.0


def version_lines(case: str, versions: Sequence[Version], width: int, bars: str = BARS) -> list[Line]:
    """A plot from the oldest to the newest version, then each of them, newest first.

    Args:
        case: whose they are.
        versions: newest first.
        width: of the terminal, in characters; only the plot is fitted to it.
        bars: signs for heights, from the lowest.
    """
    count = f"{len(versions)} version{'s' * (len(versions) != 1)}"
    lines = [Line(f"{case}: {count}", "title"), *_plots(versions, width, bars), Line("")]
    lines.append(Line(f"{'':<{_LABEL}}  {'':<10}  calls  turns  writes", "faint"))
    for version in versions:
        lines.append(_version_line(version))
        if version.headline:
            style: Style = "removed" if version.counts is None else "changed"
            lines.append(Line(f"{'':<{_LABEL}}{_GAP}{version.headline}", style, hang=_LABEL + len(_GAP)))
    return lines


def overview_lines(overviews: Sequence[Overview], shown: int) -> list[Line]:
    """A table: how often each golden changed, what its path was first and is now, who changed it last.

    Args:
        overviews: in the order of the table.
        shown: how many rows at most.
    """
    rows = [_overview_row(one) for one in overviews[:shown]]
    heads = ("case", "versions", "calls", "turns", "writes", "last change")
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = [Line(_table_row(heads, widths), "faint"), *(Line(_table_row(row, widths)) for row in rows)]
    left = len(overviews) - len(rows)
    return [*lines, Line(f"… {left:,} more case{'s' * (left != 1)}", "faint")] if left else lines


def day(version: Version) -> str:
    """The date of a version, in UTC; empty where it is not known."""
    return datetime.fromtimestamp(version.time, UTC).date().isoformat() if version.time else ""


def plain_ascii(text: str) -> str:
    """The text for an output that holds nothing but ASCII."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def _version_line(version: Version) -> Line:
    name = version.commit[:_LABEL] or "now"
    counts = version.counts
    numbers = ("–", "–", "–") if counts is None else (counts.calls, counts.turns, _writes(counts))
    calls, turns, writes = numbers
    who = f"{version.author}: {version.subject}" if version.commit else "not committed"
    start = f"{name:<{_LABEL}}  {day(version):<10}  {calls:>5}  {turns:>5}  {writes:>6}  "
    return Line(f"{start}{who}", hang=len(start))


def _plots(versions: Sequence[Version], width: int, bars: str) -> list[Line]:
    """One line each for calls, turns and writes, oldest first; a version without counts leaves a gap."""
    counts = [version.counts for version in reversed(versions)]
    known = [one for one in counts if one is not None]
    if len(known) < 2:
        return []
    series = {
        "calls": [None if one is None else one.calls for one in counts],
        "turns": [None if one is None else one.turns for one in counts],
        "writes": [None if one is None else _writes(one) for one in counts],
    }
    lines: list[Line] = []
    for name, values in series.items():
        numbers = [value for value in values if value is not None]
        tail = _span(numbers[0], numbers[-1])
        room = max(1, width - _LABEL - len(_GAP) - len(tail) - len(_GAP))
        lines.append(Line(f"{name:<{_LABEL}}{_GAP}{_sparkline(values, room, bars)}{_GAP}{tail}"))
    return lines


def _sparkline(values: Sequence[int | None], room: int, bars: str) -> str:
    """Bars from zero, so that twice as high is twice as much; each several columns wide where there is room."""
    values = values[-room:]
    highest = max((value for value in values if value is not None), default=0)
    wide = max(1, min(3, room // len(values)))
    signs = (
        " " if value is None else bars[round(value * (len(bars) - 1) / highest) if highest else 0] for value in values
    )
    return "".join(sign * wide for sign in signs)


def _overview_row(one: Overview) -> tuple[str, ...]:
    first, last = one.first.counts, one.last.counts
    who = f"{one.last.commit[:_LABEL]} {one.last.author}" if one.last.commit else "not committed"
    counts = ("–", "–", "–")
    if first is not None and last is not None:
        counts = (
            _span(first.calls, last.calls),
            _span(first.turns, last.turns),
            _span(_writes(first), _writes(last)),
        )
    return (printable(one.case), str(one.versions), *counts, printable(f"{day(one.last)} {who}".strip()))


def _table_row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return _GAP.join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def _span(first: int, last: int) -> str:
    if first == last:
        return str(last)
    return f"{first} → {last}" + (f" ({(last - first) * 100 / first:+.0f}%)" if first else "")


def _writes(counts: Counts) -> int:
    return sum(counts.writes.values())
