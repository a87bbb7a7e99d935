"""What a drift looks like at a terminal: as wide as the window, coloured where wanted, readable at any length."""

from __future__ import annotations

import dataclasses
import io
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from harness.commands.common import echo_lines
from harness.drift import compare
from harness.policy import FACETS
from harness.report.alignment import CallRow, aligned_turns
from harness.report.entries import Report
from harness.report.line import Line, fitted
from harness.report.lines import call_lines, drift_lines, plain_text, trace_lines
from harness.report.terminal import report_lines
from harness.trace import Call, Intervention
from tests.report.drifts import (
    FIND,
    GOLDEN,
    GROWN,
    HOSTILE,
    MAIL,
    SEQUENTIAL,
    SEVEN,
    call,
    run_of_everything,
    trace,
)
from tests.report.snapshot import check_snapshot

DRIFTS = {**SEVEN, "grown": GROWN, "sequential": SEQUENTIAL, "hostile": HOSTILE}


def in_window(lines: list[Line], width: int) -> str:
    return "".join(f"{text}\n" for line in lines for text in fitted(line, width))


@pytest.mark.parametrize("name", DRIFTS)
def test_each_drift_reads_as_it_should(name: str) -> None:
    """The verdict a facet, the turns with their calls, the cost: nothing more."""
    check_snapshot(f"drift_{name}.txt", plain_text(drift_lines(compare(GOLDEN, DRIFTS[name]))))


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_run_of_everything(width: int) -> None:
    """Every kind of case, in windows of three widths."""
    check_snapshot(f"terminal_{width}.txt", in_window(report_lines(run_of_everything()), width))


def test_long_values_give_way_to_what_is_said_of_the_call() -> None:
    """In a narrow window a long value is shortened, a wide one shows it whole, and the notes are never cut."""
    golden = trace(dataclasses.replace(MAIL, turn=1, args={"body": "Dear all, " * 10, "to": "a@example.com"}))
    lines = [line for line in call_lines(compare(golden, trace())) if "send_email" in line.text]
    assert fitted(lines[0], 80) == ["-     1         send_email(body=Dear all, Dear all, D…, to=a@example.com)  write"]
    assert fitted(lines[0], 56) == ["-     1         send_email(body=Dear…, to=a@ex…)  write"]
    assert fitted(lines[0], 40) == ["-     1         send_email(…)  write"]
    assert fitted(lines[0], 200)[0].count("Dear all, ") == 10


def test_two_long_values_are_cut_where_they_differ() -> None:
    """What two values begin with in common is not told, or both would be cut before their difference."""
    body = "Dear customer, we are sorry that your parcel is late and send you "
    before, now = (
        dataclasses.replace(MAIL, turn=1, digest=str(cents), args={"body": f"{body}{cents} cents"})
        for cents in (1200, 12000)
    )
    lines = call_lines(compare(trace(before), trace(now)))
    assert [line.text.strip("~ ") for line in lines if "→" in line.text] == [
        "body: …end you 1200 cents → …end you 12000 cents"
    ]


@given(
    st.lists(st.tuples(st.text(), st.text(max_size=90)), max_size=5),
    st.text(),
    st.text(max_size=30),
    st.integers(40, 200),
)
def test_a_call_is_never_wider_than_the_window(
    values: list[tuple[str, str]], before: str, after: str, width: int
) -> None:
    """Whatever is in it: wide characters, no characters, more than fits."""
    line = Line.of_parts(before, values, after)
    (text,) = fitted(line, width)
    assert cell_len(text) <= width
    assert Line.from_data(line.data()) == line


@given(st.text(), st.sampled_from(["plain", "removed"]))
def test_a_line_is_one_line(text: str, style: str) -> None:
    """No name can break a line, move a cursor or change a colour."""
    line = Line(text, style)  # type: ignore[arg-type]
    assert line.text.isprintable()


def test_where_the_order_counts_turns_are_told() -> None:
    """A turn that came, one that went, and one that is another turn now."""
    texts = [line.text for line in call_lines(compare(GOLDEN, GROWN))]
    assert "+             turn 2  tool_use" in texts
    assert "              turn 3 (was 2)  tool_use" in texts
    texts = [line.text for line in call_lines(compare(GROWN, GOLDEN))]
    assert "-             turn 2  tool_use" in texts
    assert "              turn 2 (was 3)  tool_use" in texts


def test_interventions_stand_behind_their_turn() -> None:
    """What the guard said on one side only is a difference."""
    nudged = dataclasses.replace(GOLDEN, interventions=(Intervention(1, "nudge", "ExactDuplicate"),))
    assert [line.text for line in call_lines(compare(GOLDEN, nudged))][1:4] == [
        "              turn 1  tool_use",
        "      1     1   find_order(id=266aa588)",
        "+               nudge by ExactDuplicate",
    ]
    assert any(line.text == "-               nudge by ExactDuplicate" for line in call_lines(compare(nudged, GOLDEN)))
    grown = dataclasses.replace(GROWN, interventions=(Intervention(1, "nudge", "ExactDuplicate"),))
    assert any(line.text == "                nudge by ExactDuplicate" for line in call_lines(compare(nudged, grown)))


def test_calls_outside_of_any_turn_need_none() -> None:
    """A loop whose model is not recorded has calls without turns."""
    loose = [dataclasses.replace(one, turn=0) for one in (FIND, MAIL)]
    lines = call_lines(compare(trace(*loose, turns=0), trace(loose[0], *loose, turns=0)))
    assert [line.text for line in lines] == [
        " golden   now",
        "      1     1   find_order(id=266aa588)",
        "+           2   find_order(id=266aa588)",
        "      2     3   send_email(subject=93332252, to=8595b682)  write",
    ]


def test_a_trace_of_ten_thousand_calls_stays_readable() -> None:
    """A screenful of differences, then how many there are more and where."""
    calls = [call(place // 2 + 1, "abcdef"[place % 6], x=place) for place in range(10_000)]
    golden = trace(*calls)
    changed = trace(*(call(one.turn, one.tool, x=-place - 1) for place, one in enumerate(calls)))
    lines = [line.text for line in drift_lines(compare(golden, changed), whole="FILE")]
    assert len(lines) < 130
    assert lines[-3] == "… 9,952 more differences, all of them in FILE"
    one = list(calls)
    del one[5_000]
    lines = [line.text for line in drift_lines(compare(golden, trace(*one)))]
    assert len(lines) < 20
    assert "      …     …  4,998 equal calls" in lines


@settings(deadline=None)
@given(st.randoms(use_true_random=False))
def test_every_call_stands_there_once(rng: random.Random) -> None:
    """Whatever the drift: each call and each turn of both sides has its line, those of the run in their order."""

    def some() -> list[Call]:
        turns = sorted(rng.choices(range(6), k=rng.randrange(9)))
        return [call(turn, rng.choice("ab"), x=rng.randrange(3)) for turn in turns]

    golden, now = trace(*some(), turns=6), trace(*some(), turns=rng.randrange(5, 8))
    rows = [row for block in aligned_turns(compare(golden, now)) for row in block.rows if isinstance(row, CallRow)]
    assert sorted(row.golden for row in rows if row.golden is not None) == list(range(len(golden.calls)))
    assert sorted(row.now for row in rows if row.now is not None) == list(range(len(now.calls)))
    blocks = aligned_turns(compare(golden, now))
    assert [block.now for block in blocks if block.now] == list(range(1, now.turns + 1))
    assert sorted(block.golden for block in blocks if block.golden) == list(range(1, golden.turns + 1))


class Window(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("terminal", "env", "coloured"),
    [
        (False, {}, False),
        (True, {}, True),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colours(terminal: bool, env: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is a terminal; never with NO_COLOR, always with FORCE_COLOR."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    stream = Window() if terminal else io.StringIO()
    monkeypatch.setattr("sys.stdout", stream)
    echo_lines([Line("[red]added", "added"), Line("plain")])
    assert stream.getvalue() == ("\x1b[32m[red]added\x1b[0m\nplain\n" if coloured else "[red]added\nplain\n")


def test_a_pipe_has_no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of a CI job gets whole lines; COLUMNS says otherwise."""
    line = Line("writes         " + "word " * 60, "title", hang=15)
    stream = io.StringIO()
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.delenv("COLUMNS", raising=False)
    echo_lines([line])
    assert stream.getvalue().count("\n") == 1
    monkeypatch.setenv("COLUMNS", "60")
    echo_lines([line])
    assert max(map(len, stream.getvalue().splitlines()[1:])) <= 60


def test_nothing_to_say() -> None:
    """A report without cases, and one in which all is well."""
    assert [line.text for line in report_lines(Report.of("shop", "main", "working tree", []))] == [
        "main → working tree: Nothing differs: 0 cases"
    ]
    quiet = dataclasses.replace(run_of_everything(), entries=run_of_everything().entries[-1:])
    assert [line.text for line in report_lines(quiet)] == ["No path changed", "1 matches"]


def test_a_trace_names_its_turns() -> None:
    """A trace alone is shown as it was."""
    check_snapshot("trace.txt", plain_text(trace_lines(GOLDEN)))


def test_facets_are_named_in_one_column() -> None:
    """Verdicts and cost begin where the longest facet ends."""
    lines = [line.text for line in drift_lines(compare(GOLDEN, GROWN)) if line.hang]
    assert {line[: max(map(len, FACETS)) + 2].strip() for line in lines} == {
        "order",
        "duplicates",
        "turns",
        "stop_reasons",
        "cost",
    }
