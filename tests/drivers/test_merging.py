"""Which two versions of a golden can be merged, and what is left where they cannot."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.changes.conflict import Conflict, find_conflict
from harness.crash_golden import dump_rows
from harness.drivers.merging import Merged, merge_goldens
from harness.golden import decode_trace, dump_trace
from harness.trace import Context, Trace
from tests.report.drifts import BROKEN_ROWS, GOLDEN, GROWN, ROWS, SEVEN

NAMES = ("HEAD", "topic")
PATH = "golden_traces/refund.json"


def text(trace: Trace) -> bytes:
    return dump_trace(trace).encode()


def sends(trace: Trace = GOLDEN, model: str = "claude-sonnet-5", **context: Any) -> Trace:
    return dataclasses.replace(trace, model=model, context=dataclasses.replace(trace.context, **context))


def merge(base: Trace | None, ours: Trace, theirs: Trace, path: str = PATH) -> Merged:
    merged = merge_goldens(path, b"" if base is None else text(base), text(ours), text(theirs), NAMES)
    assert merged is not None
    return merged


TOOLS = GOLDEN.context.tools
OTHER_REFUND = {**TOOLS, "refund": "11111111"}
OTHER_MAIL = {**TOOLS, "send_email": "22222222"}


@pytest.mark.parametrize("change", [GROWN, SEVEN["argument"], sends(prompt="00000000")])
def test_one_change_is_taken(change: Trace) -> None:
    """Of either side, or of both."""
    for ours, theirs in ((change, GOLDEN), (GOLDEN, change), (change, change)):
        assert merge(GOLDEN, ours, theirs) == Merged(text(change), clean=True)
    assert merge(None, change, change) == Merged(text(change), clean=True)


@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        (sends(tools=OTHER_REFUND), sends(tools=OTHER_MAIL), sends(tools=OTHER_REFUND | {"send_email": "22222222"})),
        (sends(prompt="00000000"), sends(system="33333333"), sends(prompt="00000000", system="33333333")),
        (sends(model="claude-opus-5"), sends(prompt="00000000"), sends(model="claude-opus-5", prompt="00000000")),
        (sends(tools={}), sends(tools=TOOLS | {"new": "4"}), sends(tools={"new": "4"})),
        (sends(GROWN), sends(tools=OTHER_MAIL), sends(GROWN, tools=OTHER_MAIL)),
        (sends(tools=OTHER_MAIL), sends(GROWN, tools=OTHER_REFUND),
         sends(GROWN, tools=OTHER_REFUND | {"send_email": "22222222"})),
    ],
)  # fmt: skip
def test_what_is_sent_is_merged_entry_by_entry_beside_a_path_that_is_taken_whole(
    ours: Trace, theirs: Trace, merged: Trace
) -> None:
    """And whoever merges is told that no run has made this golden yet."""
    note = f"{PATH}: merged what HEAD and topic send; run the case to see that it is so"
    assert merge(GOLDEN, ours, theirs) == Merged(text(merged), clean=True, lines=(note,))
    assert merge(GOLDEN, theirs, ours).data == text(merged)


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [
        (GOLDEN, GROWN, SEVEN["argument"]),
        (GOLDEN, SEVEN["argument"], SEVEN["stop_reason"]),
        (GOLDEN, sends(prompt="00000000"), sends(prompt="11111111")),
        (GOLDEN, sends(tools=OTHER_REFUND), sends(tools={"send_email": TOOLS["send_email"]})),
        (GOLDEN, sends(tools=TOOLS | {"new": "4"}), dataclasses.replace(GOLDEN, digest_key="abcd")),
        (None, GOLDEN, GROWN),
        (None, GOLDEN, sends(tools=OTHER_REFUND)),
    ],
)
def test_two_changes_that_no_run_made_together_are_a_conflict(base: Trace | None, ours: Trace, theirs: Trace) -> None:
    """Both versions are left whole, between markers."""
    merged = merge(base, ours, theirs)
    assert not merged.clean
    assert find_conflict(merged.data, PATH) == Conflict(ours, theirs, *NAMES)


def test_a_conflict_says_what_each_side_did_and_the_way_out() -> None:
    """In the words of a drift."""
    assert merge(GOLDEN, SEVEN["argument"], SEVEN["stop_reason"]).lines == (
        "golden_traces/refund.json: HEAD and topic accepted different goldens",
        "  HEAD   `refund` (call 5): `cents` changed",
        "  topic  stop_reason of turn 6: `end_turn` → `max_tokens`",
        "  No run of the merged code made either.  Finish merging the code, then:",
        "    harness run refund",
        "    harness accept refund   when what it shows is right",
        "    git add golden_traces/refund.json",
    )
    assert merge(None, GOLDEN, GROWN).lines[1:3] == (
        "  HEAD   added it: 6 calls, 6 turns",
        "  topic  added it: 10 calls, 10 turns",
    )
    reworded = merge(GOLDEN, sends(tools=OTHER_REFUND), sends(tools=TOOLS | {"refund": "5"}))
    assert reworded.lines[1] == "  HEAD   the definition of `refund` changed"


def test_a_base_that_is_no_golden_does_not_make_a_path() -> None:
    """An older schema, or a file that was edited: nothing is known of who changed what."""
    merged = merge_goldens(PATH, b"{}", text(GOLDEN), text(GROWN), NAMES)
    assert merged is not None
    assert not merged.clean
    assert merged.lines[1] == "  HEAD   added it: 6 calls, 6 turns"


@pytest.mark.parametrize(
    "theirs", [b'{"a": 2}', b"", text(GOLDEN)[:-9], text(GROWN).replace(b'"calls": 10', b'"calls": 9')]
)
def test_what_is_no_golden_is_left_to_a_merge_of_text(theirs: bytes) -> None:
    """It may be anything."""
    assert merge_goldens(PATH, b'{"a": 0}', text(GOLDEN), theirs, NAMES) is None
    assert merge_goldens("golden_traces/a.crash.json", b"{}", theirs, text(GOLDEN), NAMES) is None


def test_crash_goldens_are_never_mixed() -> None:
    """Each outcome depends on the whole path."""
    path, base = "golden_traces/refund.crash.json", dump_rows("refund", ROWS[:3]).encode()
    ours, theirs = (dump_rows("refund", rows).encode() for rows in (ROWS, BROKEN_ROWS))
    assert merge_goldens(path, base, base, theirs, NAMES) == Merged(theirs, clean=True)
    assert merge_goldens(path, base, ours, ours + b"\n", NAMES) == Merged(ours, clean=True)
    merged = merge_goldens(path, base, ours, theirs, NAMES)
    assert merged is not None
    assert merged.data == b"<<<<<<< HEAD\n" + ours + b"=======\n" + theirs + b">>>>>>> topic\n"
    assert merged.lines == (
        "golden_traces/refund.crash.json: HEAD and topic accepted different crash goldens",
        "  No sweep of the merged code made either.  Finish merging the code, then:",
        "    harness crash refund",
        "    harness crash refund --update-golden   when what it shows is right",
        "    git add golden_traces/refund.crash.json",
    )


PATHS = st.sampled_from([GOLDEN, GROWN, *SEVEN.values()])
DIGESTS = st.sampled_from([None, "00000000", "11111111"])
SENT = st.builds(
    sends,
    PATHS,
    st.sampled_from(["a", "b"]),
    prompt=DIGESTS,
    system=DIGESTS,
    tools=st.dictionaries(st.sampled_from(["refund", "search"]), st.sampled_from(["1", "2"])),
)


@settings(deadline=None)
@given(SENT, SENT, SENT)
def test_a_merge_is_a_golden_whose_path_one_side_accepted(base: Trace, ours: Trace, theirs: Trace) -> None:
    """Never a path of pieces; each thing that is sent is one that a side sends; and the sides can change places."""
    merged, mirrored = merge(base, ours, theirs), merge(base, theirs, ours)
    assert merged.clean == mirrored.clean
    if not merged.clean:
        assert find_conflict(merged.data, PATH) == Conflict(ours, theirs, *NAMES)
        return
    assert mirrored.data == merged.data
    trace = decode_trace(merged.data, PATH)
    accepted = [dataclasses.replace(one, model=None, context=Context()) for one in (ours, theirs)]
    assert dataclasses.replace(trace, model=None, context=Context()) in accepted
    for name in {*trace.context.tools, *ours.context.tools, *theirs.context.tools}:
        value = trace.context.tools.get(name)
        assert value in (ours.context.tools.get(name), theirs.context.tools.get(name))
