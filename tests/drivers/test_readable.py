"""A golden as text for `git diff`."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.crash_golden import Row, dump_rows
from harness.drivers.readable import readable
from harness.golden import dump_trace
from harness.trace import Call, Context, Intervention, Trace
from tests.report.drifts import BROKEN_ROWS, GOLDEN, GROWN, HOSTILE

NAMES = st.one_of(
    st.sampled_from(["search", "a b", "-", "5", 'say "hi"', "a=b, c", "\n", "é\u2028", "<x>", ""]), st.text()
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | NAMES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    detail = draw(st.sampled_from(["args", "digest", "plain"]))
    turns = draw(st.integers(0, 3))
    values = {"args": st.dictionaries(NAMES, NAMES, max_size=2), "plain": st.dictionaries(NAMES, PLAIN, max_size=2)}
    calls = [
        Call(
            turn,
            draw(NAMES),
            draw(NAMES),
            draw(st.booleans()),
            draw(values.get(detail, st.none())),
            draw(st.none() | NAMES),
        )
        for turn in sorted(draw(st.lists(st.integers(1, turns), max_size=4)) if turns else [])
    ]
    for _ in range(draw(st.integers(0, 2))):
        calls.insert(draw(st.integers(0, len(calls))), Call(0, draw(NAMES), "d", args=None))
    return Trace(
        draw(NAMES),
        tuple(calls),
        turns,
        tuple(draw(st.none() | NAMES) for _ in range(turns)),
        tuple(
            Intervention(turn, "nudge", draw(NAMES))
            for turn in sorted(draw(st.lists(st.integers(0, turns), max_size=2)))
        ),
        frozenset(draw(st.sets(st.sampled_from([one.tool for one in calls]))) if calls else ()),
        draw(st.none() | NAMES),
        Context(draw(st.none() | NAMES), draw(st.none() | NAMES), draw(st.dictionaries(NAMES, NAMES, max_size=2))),
        detail,
        draw(st.none() | NAMES),
        tuple(draw(st.lists(NAMES, max_size=1))),
        draw(st.none() | NAMES),
    )


def text(trace: Trace) -> bytes:
    return dump_trace(trace).encode()


def test_a_trace_reads_as_a_run() -> None:
    """Turns with their stop_reasons, the calls in them, what is a write, how it adds up."""
    trace = dataclasses.replace(
        GOLDEN,
        calls=(*GOLDEN.calls[:3], dataclasses.replace(GOLDEN.calls[4], turn=3, ok=False)),
        turns=4,
        stop_reasons=("tool_use", "tool_use", "tool_use", "end_turn"),
        interventions=(Intervention(3, "nudge", "ExactDuplicate"),),
        writes=frozenset({"refund"}),
    )
    assert readable(text(trace)).decode() == (
        "case       refund\n"
        "model      claude-sonnet-5\n"
        "prompt     6b7d21fa\n"
        "system     -\n"
        "tool       refund 93aa0b1e\n"
        "tool       send_email 0a1f77c2\n"
        "\n"
        "turn  tool_use\n"
        "    find_order(id=266aa588)  389bf6f649e1\n"
        "turn  tool_use\n"
        "    get_customer(id=6b51d431)  718b2f8ec964\n"
        "    read_policy(name=dfb461f6)  8621a625ed2b\n"
        "turn  tool_use\n"
        "    refund(cents=15197cf7, id=266aa588)  56b68f669567  write  failed\n"
        "    nudge by ExactDuplicate\n"
        "turn  end_turn\n"
        "\n"
        "calls      4\n"
        "turns      4\n"
        "writes     refund 1\n"
    )


def test_a_crash_golden_reads_as_a_line_a_point() -> None:
    """What became of the run, what was done how often, how long it took."""
    assert readable(dump_rows("refund", BROKEN_ROWS[12:15]).encode()).decode() == (
        "case       refund\n"
        "\n"
        "turn5.request.before  same  refund 1  send_email 1  6 turns\n"
        "turn5.request.after  executed_twice  refund 1  send_email 2  7 turns\n"
        "turn5.save_a  unknown  refund 1  send_email 1  unknown 1  8 turns\n"
    )


def test_one_more_turn_is_two_more_lines() -> None:
    """In JSON the number of every later turn changes as well."""
    more = GROWN.calls[:2] + tuple(dataclasses.replace(one, turn=one.turn + 1) for one in GOLDEN.calls[1:])
    grown = dataclasses.replace(GOLDEN, calls=more, turns=7, stop_reasons=("tool_use",) * 6 + ("end_turn",))
    before, after = (readable(text(one)).split(b"\n\n")[1].splitlines() for one in (GOLDEN, grown))
    assert after[2:] == before
    assert after[:2] == before[:2]


@settings(deadline=None)
@given(traces(), traces())
def test_no_change_of_the_data_is_hidden(one: Trace, other: Trace) -> None:
    """Two traces have the same text exactly when they are the same trace."""
    assert (readable(text(one)) == readable(text(other))) == (text(one) == text(other))


@settings(deadline=None)
@given(traces(), st.data())
def test_a_change_of_one_value_shows(trace: Trace, data: st.DataObject) -> None:
    """Any value anywhere in the file, also one that the harness would never write."""
    content = json.loads(text(trace))
    paths = list(_leaves(content))
    path = data.draw(st.sampled_from(paths))
    _set(content, path, data.draw(PLAIN))
    changed = json.dumps(content).encode()
    same = json.dumps(content) == json.dumps(json.loads(text(trace)))
    assert (readable(changed) == readable(text(trace))) == same


def _leaves(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    if isinstance(value, dict | list) and value:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return [one for key, inner in pairs for one in _leaves(inner, (*path, key))]
    return [path]


def _set(content: dict, path: tuple[str | int, ...], value: object) -> None:
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value


@settings(deadline=None)
@given(traces())
def test_the_text_is_lines_that_a_terminal_can_show(trace: Trace) -> None:
    """No name moves a cursor or begins a line of its own."""
    lines = readable(text(trace)).decode().split("\n")
    assert all(line.isprintable() for line in lines)
    assert readable(text(HOSTILE)) != text(HOSTILE)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\x00",
        b"[" * 100_000,
        b"null",
        b"[]",
        b'{"schema": "harness.trace/2"}',
        text(GOLDEN)[:-20],
        b"<<<<<<< HEAD\n" + text(GOLDEN),
        text(GOLDEN).replace(b'"turns": 6', b'"turns": 5'),
        text(GOLDEN).replace(b'"turn": 1', b'"turn": 3'),
        text(GOLDEN).replace(b'"turns": 6', b'"turns": 6, "turns": 6'),
        text(GOLDEN).replace(b'"turns": 6', b'"turns": 6, "more": 6'),
        text(GOLDEN).replace(b'"ok": true}', b'"ok": true, "more": 1}'),
        dump_rows("a", [Row("p", "same")]).replace('"turns": 0', '"turns": null').encode(),
    ],
)
def test_what_is_no_golden_is_shown_as_it_is(data: bytes) -> None:
    """Byte for byte: git's own diff of it then is right."""
    assert readable(data) == data
