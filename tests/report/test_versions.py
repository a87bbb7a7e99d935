"""Versions of goldens as lines."""

from __future__ import annotations

import pytest

from harness.report.entries import Counts, Version
from harness.report.lines import plain_text
from harness.report.versions import ASCII_BARS, BARS, plain_ascii, version_lines
from tests.report.drifts import HISTORY


def versions(*calls: int | None) -> list[Version]:
    """Newest last."""
    return [Version("c" * 40, 0, "Ada", "", None if count is None else Counts(count, 1)) for count in reversed(calls)]


def plot(*calls: int | None, width: int = 80, bars: str = BARS) -> str:
    return version_lines("a", versions(*calls), width, bars)[1].text


def test_a_history_reads_from_the_plot_to_the_first_commit() -> None:
    """The whole text."""
    assert plain_text(version_lines("drifts/grown", HISTORY, 80)) == (
        "drifts/grown: 3 versions\n"
        "calls     ▅▅▅▅▅▅███  5 → 10 (+100%)\n"
        "turns     ▅▅▅▅▅▅███  5 → 10 (+100%)\n"
        "writes    █████████  2\n"
        "\n"
        "                      calls  turns  writes\n"
        "now       2026-11-30     10     10       2  not committed\n"
        "          4 more calls (6 → 10, +67%)\n"
        "a2dbd735  2026-11-18      6      6       2  Ada: Look the order up first\n"
        "          1 more call (5 → 6, +20%): `find_order`\n"
        "1ddd4661  2026-11-07      5      5       2  Grace: Add the refund case\n"
    )


@pytest.mark.parametrize(
    ("calls", "bars"),
    [
        ((0, 0), "▁▁▁▁▁▁"),
        ((7, 0, 7), "███▁▁▁███"),
        ((1, 2, 3, 4, 5, 6, 7), "▂▂▂▃▃▃▄▄▄▅▅▅▆▆▆▇▇▇███"),
        ((100, 101), "██████"),
        ((7, None, 7), "███   ███"),
    ],
)
def test_heights_are_counted_from_zero(calls: tuple[int | None, ...], bars: str) -> None:
    """Twice as high is twice as much; a version without counts is a gap."""
    assert plot(*calls).split("  ", 1)[1].strip().startswith(bars)


@pytest.mark.parametrize("width", [20, 40, 80, 500])
@pytest.mark.parametrize("count", [2, 19, 400])
def test_the_plot_fits_the_terminal(width: int, count: int) -> None:
    """It leaves out the oldest before it breaks a line; it does not grow without need."""
    line = plot(*range(1, count + 1), width=width)
    assert len(line) <= max(width, 34)
    assert line.count("█") <= 3 * count


def test_one_version_needs_no_plot() -> None:
    """Nor do versions of which at most one can be read."""
    assert len(version_lines("a", versions(3), 80)) == 4
    assert version_lines("a", versions(None, 3, None), 80)[1].text == ""


def test_ascii_is_ascii() -> None:
    """Whatever comes in."""
    line = plot(1, 7, bars=ASCII_BARS)
    assert plain_ascii(line) == "calls     ...###  1 -> 7 (+600%)"
    assert plain_ascii("é 漢 × …") == "? ? x ..."
