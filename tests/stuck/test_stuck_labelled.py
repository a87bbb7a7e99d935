"""Files of labelled sequences: read with positions, run, and compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import LabelledError
from harness.stuck import Config, Event
from harness.stuck.labelled import parse_labelled, read_labelled
from harness.stuck.labelled_check import check_labelled, labelled_data, labelled_lines

SHARED = Path(__file__).parents[3] / "shared" / "cases" / "stuck_cases.yaml"

GOOD = """\
- id: twice
  about: ConsecutiveDuplicate
  source: a/b#1
  calls:
    - {tool: read, args: {p: 1}, ok: true, result: same, read_only: true}
    - {event: compaction}
    - {tool: read, args: {p: 1}, ok: true, result: same, read_only: true, step: 4}
  expect: {verdict: continue, detector: null, at_call: 2, via: null, trace: []}
  why: one below
- id: refused
  calls:
    - {tool: write, args: {}, ok: false, error: '[validation error] p is missing'}
    - {tool: write, args: {}, ok: false, error: '[validation error] p is missing'}
    - {tool: write, args: {}, ok: false, error: '[validation error] p is missing'}
  expect:
    {verdict: force_stop, detector: ConsecutiveDuplicate, at_call: 3, via: validation,
     trace: [[3, force_stop, ConsecutiveDuplicate]]}
"""


def problems(text: str) -> list[str]:
    with pytest.raises(LabelledError) as caught:
        parse_labelled(text, "f.yaml")
    return str(caught.value).splitlines()


def test_a_file_is_read_and_kept() -> None:
    """Calls, events, labels, and where each sequence stands."""
    first, second = parse_labelled(GOOD, "f.yaml")
    assert (first.id, first.about, first.source, first.why, first.line) == (
        "twice", "ConsecutiveDuplicate", "a/b#1", "one below", 1,
    )  # fmt: skip
    assert [getattr(item, "turn", item) for item in first.items] == [None, Event.COMPACTION, 4]
    assert second.line == 10
    assert [one.differences for one in check_labelled([first, second])] == [(), ()]


def test_what_differs_is_told_with_the_evidence() -> None:
    """Each differing field, the missing and the unexpected verdicts, and which calls prove them."""
    wrong = GOOD.replace("at_call: 3, via: validation", "at_call: 2, via: threshold").replace("[[3, ", "[[2, ")
    judged = check_labelled(parse_labelled(wrong, "f.yaml"))
    assert labelled_lines(judged, "f.yaml") == [
        "f.yaml:10: refused",
        "  at_call: expected 2, got 3",
        "  via: expected threshold, got validation",
        "  missing: force_stop by ConsecutiveDuplicate at call 2",
        "  unexpected: force_stop by ConsecutiveDuplicate at call 3",
        "  call 3: force_stop by ConsecutiveDuplicate: write: 3 steps in a row sent arguments that the tool had "
        "refused as invalid",
        "    calls 1, 2, 3; limit 3; would not fire with: arguments that satisfy the tool's schema, or any other call "
        "in between",
        "2 sequences, 1 of them otherwise than labelled",
    ]
    data = labelled_data(judged)
    assert (data["sequences"], [one["id"] for one in data["differences"]]) == (2, ["refused"])
    assert data["differences"][0]["verdicts"][0]["calls"] == [1, 2, 3]


def test_thresholds_can_be_tried() -> None:
    """The same file under other settings tells what they would change."""
    config = Config.parse({"detectors": {"ConsecutiveDuplicate": {"validation": {"stop": 2}}}})
    judged = check_labelled(parse_labelled(GOOD, "f.yaml"), config)
    assert [bool(one.differences) for one in judged] == [False, True]
    assert judged[1].actual.at_call == 2


def test_every_problem_is_told_at_once_where_it_stands() -> None:
    """Unknown keys and values with what was meant, wrong types, missing members, and labels that cannot be."""
    text = """\
- id: a
  call: []
  calls:
    - {tool: read, args: {}, ok: yes please}
    - {tool: read, args: {}, ok: true, read_onyl: true}
    - {tool: read, args: {}, ok: true, traits: [polable], family: net}
    - {tool: read, ok: true}
    - {tool: read, args: {}, ok: true, tool: x}
    - {event: compacted}
    - {tool: read, args: {}, ok: true, error: x}
    - 7
  expect: {verdict: stop, at_call: 99, trace: [[1, nudge]]}
- id: b
  calls: {}
"""
    assert problems(text) == [
        "f.yaml:2:3: unknown key 'call'; did you mean 'calls'? (at [0])",
        "f.yaml:4:34: must be true or false, not 'yes please' (at [0].calls[0].ok)",
        "f.yaml:5:40: unknown key 'read_onyl'; did you mean 'read_only'? (at [0].calls[1])",
        "f.yaml:6:48: unknown value 'polable'; did you mean 'pollable'? (at [0].calls[2].traits)",
        "f.yaml:6:67: unknown value 'net'; there are: web, search, browser, gui (at [0].calls[2].family)",
        "f.yaml:7:7: lacks 'args' (at [0].calls[3])",
        "f.yaml:8:40: the key 'tool' stands here twice (at [0].calls[4])",
        "f.yaml:9:15: unknown value 'compacted'; did you mean 'compaction'? (at [0].calls[5].event)",
        "f.yaml:10:47: a call with ok: true has no 'error' (at [0].calls[6].error)",
        "f.yaml:11:7: must be a mapping (at [0].calls[7])",
        "f.yaml:12:21: unknown value 'stop'; there are: continue, nudge, force_stop (at [0].expect.verdict)",
        "f.yaml:12:36: there is no call 99: the sequence has 8 (at [0].expect.at_call)",
        "f.yaml:12:48: must be [call, nudge or force_stop, detector], not [1, 'nudge'] (at [0].expect.trace[0])",
        "f.yaml:13:3: lacks 'expect' (at [1])",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "f.yaml: holds no sequences; it must be a list of them"),
        ("[]", "f.yaml: holds no sequences; it must be a list of them"),
        ("a: 1", "f.yaml:1:1: must be a list of sequences"),
        ("- [", "is no YAML"),
        ("- &a [1]\n- *a", "f.yaml:2:3: aliases are not read; write the value out"),
        ("- {[1]: 2}", "f.yaml:1:4: a key must be a text (at [0])"),
        ("- {id: a, calls: [], expect: {verdict: continue, at_call: 1, trace: []}}", "there is no call 1"),
        (f"{GOOD}{GOOD}", "f.yaml:18:3: the id 'twice' stands already at line 1 (at [2].id)"),
        ("- {id: !!python/name:os.system x, calls: [], expect: {}}", "1:8: cannot be read: could not determine"),
        ("[" * 50_000, "f.yaml"),
    ],
)
def test_a_file_that_is_none(text: str, said: str) -> None:
    """Nothing, no YAML, aliases, tags that would run code: one clear line."""
    assert any(said in line for line in problems(text)), problems(text)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file, a folder and foreign bytes are told, not raised."""
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\xff")
    for name in ("missing.yaml", ".", "bytes.yaml"):
        with pytest.raises(LabelledError, match="cannot be read"):
            read_labelled(tmp_path / name)


def test_scalars_are_taken_as_written() -> None:
    """A number is no text: 10 and '10' are two results, 1 and 1.0 are one argument."""
    text = """\
- id: a
  calls:
    - {tool: r, args: {n: 1}, ok: true, result: 10, read_only: true}
    - {tool: r, args: {n: 1.0}, ok: true, result: '10', read_only: true}
    - {tool: r, args: '{"n": 1}', ok: true, result: {b: 1, a: 2}, read_only: true}
    - {tool: r, args: {n: 1}, ok: true, result: {a: 2, b: 1}, read_only: true}
  expect: {verdict: continue, at_call: 4, trace: []}
"""
    a, b, c, d = parse_labelled(text, "f.yaml")[0].items
    assert (a.key == b.key, a.result_digest == b.result_digest) == (True, False)
    assert (c.key == d.key, c.result_digest == d.result_digest) == (False, True)


@pytest.mark.skipif(not SHARED.is_file(), reason="the shared labelled sequences are not beside this repository")
def test_the_shared_sequences_give_their_verdicts() -> None:
    """Verdict, detector, call, way and trace of every one."""
    judged = check_labelled(read_labelled(SHARED))
    assert len(judged) > 100
    assert labelled_lines(judged, SHARED.name) == [f"{len(judged)} sequences, 0 of them otherwise than labelled"]
