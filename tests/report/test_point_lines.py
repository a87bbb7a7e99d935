"""What became of crash points: those that changed alike are told once."""

from __future__ import annotations

from dataclasses import replace

from harness.report.point_lines import change_lines, changed_points
from tests.report.drifts import ROWS


def told(before: object, now: object) -> list[str]:
    return [line.text for line in change_lines(before, now)]


def test_points_that_changed_alike_are_one_line_with_the_first_names() -> None:
    """Fifty points that an effect changed are one thing to look at, and all of them count."""
    now = [replace(row, turns=row.turns + 1, executions={"search": 2}) for row in ROWS[:9]] + list(ROWS[9:])
    assert told(ROWS, now) == [
        "~ 9 points: same (refund 0×, send_email 0×, 6 turns) → same (search 2×, 7 turns)",
        "    turn1.request.before, turn1.request.after, turn1.save_a, and 6 more",
    ]
    assert changed_points(ROWS, now) == 9


def test_each_way_of_changing_is_told_apart() -> None:
    """Gone, new, another outcome; a single point by its name."""
    first, second, *rest = ROWS
    now = [replace(second, outcome="unknown", unknown=1), *rest, replace(first, point="turn7.save_a")]
    assert told(ROWS, now) == [
        "- turn1.request.before: same (refund 0×, send_email 0×, 6 turns)",
        "~ turn1.request.after: same (refund 0×, send_email 0×, 6 turns) → unknown (refund 0×, send_email 0×, 6 turns)",
        "+ turn7.save_a: same (refund 0×, send_email 0×, 6 turns)",
    ]
    assert (changed_points(ROWS, now), told(ROWS, ROWS), changed_points(ROWS, ROWS)) == (3, [], 0)
