"""The HTML page as text: data, escaping, policy, size.  What a browser makes of it: tests/browser."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html.parser
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness.report.page as page_package
from harness.changes import Change
from harness.drift import compare
from harness.policy import Policy
from harness.report.entries import Counts, Entry, Report
from harness.report.page import render_page
from harness.report.page.advice import accept_all, accept_one
from harness.report.page.details import entry_details
from harness.report.page.lanes import Block, Row, blocks_of, lone_blocks
from harness.report.page.overview import Cost, overview_of, tone_of
from harness.report.page.rendering import SCRIPTS, embedded_json
from harness.report.wording import headline
from harness.trace import Intervention
from tests.report.drifts import (
    BROKEN_ROWS,
    FIND,
    GOLDEN,
    GROWN,
    HISTORY,
    ROWS,
    SEQUENTIAL,
    SEVEN,
    at,
    call,
    change,
    drifted,
    passed,
    run_of_everything,
    trace,
)


class Page(html.parser.HTMLParser):
    """What a browser would find in the text: elements, and the texts of scripts by their id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self._inside: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside = dict(attrs).get("id") or tag

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside is not None:
            self.scripts[self._inside] = self.scripts.get(self._inside, "") + data

    def json(self, name: str) -> Any:
        return json.loads(self.scripts[name])


EVERYTHING = run_of_everything()
TEXT = render_page(EVERYTHING)


def entry(case: str) -> Entry:
    return next(one for one in EVERYTHING.entries if one.case == case)


def details(case: str) -> dict[str, Any]:
    return entry_details(entry(case), EVERYTHING)


# Lanes.


def rows(blocks: list[Block]) -> list[tuple[int | None, int | None, list[tuple[str, int | None, int | None]]]]:
    return [(one.golden, one.now, [(row.op, row.a, row.b) for row in one.rows]) for one in blocks]


def test_turns_that_share_calls_stand_beside_each_other() -> None:
    """What grew between them stands alone in its lane, and the last turns, which call nothing, answer to each other."""
    assert rows(blocks_of(compare(GOLDEN, GROWN))) == [
        (1, 1, [("equal", 0, 0)]),
        (None, 2, [("added", None, 1)]),
        (2, 3, [("equal", 1, 2), ("equal", 2, 3)]),
        (3, 4, [("equal", 3, 4)]),
        (None, 5, [("added", None, 5)]),
        (None, 6, [("added", None, 6)]),
        (None, 7, [("added", None, 7)]),
        (4, 8, [("equal", 4, 8)]),
        (5, 9, [("equal", 5, 9)]),
        (6, 10, []),
    ]


def test_a_parallel_group_that_was_split_says_where_each_call_went() -> None:
    """A call that is the same but in another turn is neither added nor gone."""
    blocks = blocks_of(compare(GOLDEN, SEQUENTIAL))
    assert blocks[1:3] == [
        Block(2, 2, (Row("equal", 1, 1), Row("regrouped", 2, None, ("now call 3 in turn 3",), partner=2))),
        Block(None, 3, (Row("regrouped", None, 2, ("was call 3 in turn 2",), partner=2),)),
    ]


def test_a_moved_call_is_shown_where_it_was_and_where_it_is() -> None:
    """Each end names the other."""
    blocks = blocks_of(compare(GOLDEN, SEVEN["swapped"]))
    assert blocks[0] == Block(
        1,
        1,
        (
            Row("moved", None, 0, ("was call 4 in turn 3",), partner=3),
            Row("moved", 0, None, ("now call 4 in turn 3",), partner=3),
        ),
    )


def test_a_changed_argument_is_named_with_both_values() -> None:
    """Digests in a golden with digests."""
    (row,) = blocks_of(compare(GOLDEN, SEVEN["argument"]))[3].rows
    assert row == Row("changed", 4, 4, changes=(("cents", "15197cf7", "c5d1866a"),))


def test_long_plain_values_are_cut_to_what_tells_them_apart() -> None:
    """Two documents that differ in their last word do not look the same."""
    ours, theirs = (
        dataclasses.replace(FIND, digest=end, args={"text": "word " * 50 + end, "more": {"a": [1]}})
        for end in ("old", "new")
    )
    (row,) = blocks_of(compare(trace(ours, detail="plain"), trace(theirs, detail="plain")))[0].rows
    (name, before, now), *others = row.changes
    assert (name, before[0], before[-3:], now[-3:], others) == ("text", "…", "old", "new", [])
    assert max(len(before), len(now)) <= 62


def test_another_outcome_of_the_same_call_is_a_difference() -> None:
    """With the word that says which way it went."""
    group = blocks_of(compare(GOLDEN, SEVEN["failed"]))[1]
    assert group.rows == (Row("equal", 1, 1), Row("differs", 2, 2, ("failed, golden: succeeded",)))


def test_what_a_policy_lets_pass_is_marked_as_allowed() -> None:
    """A reader sees it, and that it is no reason for the verdict; a write always counts."""
    now = trace(FIND, at(2, call(1, "search", query="x")), *(at(one.turn + 1, one) for one in GOLDEN.calls[1:]))
    policy = Policy.parse({"order": {"ignore": ["search"]}, "turns": "ignore", "stop_reasons": "ignore"})
    drift = compare(
        GOLDEN, dataclasses.replace(now, calls=now.calls[:-1], turns=6, stop_reasons=now.stop_reasons[:6]), policy
    )
    found = [(row.op, row.allowed) for block in blocks_of(drift) for row in block.rows if row.op != "equal"]
    assert found == [("added", True), ("removed", False)]


def test_a_trace_alone_fills_one_lane() -> None:
    """Of a case without a golden, or one that passes."""
    one = trace(at(0, FIND), FIND)
    assert lone_blocks(one, now=True) == [
        Block(None, 0, (Row("equal", None, 0),)),
        Block(None, 1, (Row("equal", None, 1),)),
        Block(None, 2),
    ]
    assert [block.golden for block in lone_blocks(one, now=False)] == [0, 1, 2]


CALLS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.booleans()), max_size=12)


@given(ours=CALLS, theirs=CALLS)
def test_every_call_stands_in_its_lane_once_and_in_order(
    ours: list[tuple[str, int, bool]], theirs: list[tuple[str, int, bool]]
) -> None:
    """Turns of either lane only go up, and no call is lost or shown twice, whatever was compared."""

    def made(calls: list[tuple[str, int, bool]]) -> Any:
        turn, some = 0, []
        for tool, number, fresh in calls:
            turn += fresh or not turn
            some.append(call(turn, tool, n=number))
        return trace(*some)

    golden, now = made(ours), made(theirs)
    blocks = blocks_of(compare(golden, now))
    for side, turns, whole in (("a", [one.golden for one in blocks], golden), ("b", [one.now for one in blocks], now)):
        assert [turn for turn in turns if turn is not None] == list(range(1, whole.turns + 1))
        places = [getattr(row, side) for block in blocks for row in block.rows if getattr(row, side) is not None]
        assert sorted(places) == list(range(len(whole.calls)))
        assert [whole.calls[place].turn for place in places] == sorted(one.turn for one in whole.calls)
    assert [row.b for block in blocks for row in block.rows if row.b is not None] == list(range(len(now.calls)))


# What is said at the top.


def test_the_top_answers_the_four_questions() -> None:
    """Did the path change, what changed, what it costs, how to accept it."""
    top = overview_of(EVERYTHING)
    assert top.tone == "bad"
    assert top.sentence == f"{headline(EVERYTHING)}."
    assert top.sentence.startswith("The path changed in 10 of 21 cases, 5 more did not pass; ")
    assert top.further == (
        "4 of them touch writes.",
        "4 goldens are not what main has: 1 accepted anew, 1 deleted, 1 renamed, 1 new.",
        "1 was skipped.",
        "1 was not run.",
    )
    assert top.facets == (
        ("writes", 2), ("order", 7), ("arguments", 1), ("outcomes", 1), ("duplicates", 2), ("turns", 4),
        ("stop_reasons", 5), ("crash points", 1),
    )  # fmt: skip
    assert top.costs == (Cost("calls", 90, 91), Cost("turns", 90, 91), Cost("writes: refund", 15, 14))
    assert top.advice == (
        ("One by one, what touches writes first:", "harness review"),
        ("Without those that touch writes, 7 at once:", "harness accept '*'"),
        ("4 more cannot be accepted: they failed, or their golden is unusable.", ""),
    )


def test_a_golden_accepted_anew_is_never_simply_good() -> None:
    """All cases match, and still the page says first that the branch changed what they match."""
    blessed, quiet = entry("blessed"), entry("quiet")
    top = overview_of(Report.of("shop", "golden", "now", [blessed, quiet], base="main", ran=True))
    assert (tone_of(blessed), tone_of(quiet)) == ("warn", "good")
    assert top.tone == "warn"
    assert top.sentence == "Every case passed; 1 golden changed in this branch."
    assert top.further == ("1 golden is not what main has: 1 accepted anew.",)
    assert top.verdicts == (("accepted anew", "warn", 1), ("matches", "good", 1))
    branch = details("blessed")["branch"]
    assert branch["word"] == "accepted anew in this branch"
    assert branch["names"] == ["main", "golden now"]
    assert [facet for facet, *_ in branch["facets"]] == ["order", "duplicates", "turns", "stop_reasons"]
    assert branch["costs"][:2] == [["calls", 6, 10], ["turns", 6, 10]]


NOT_AGAIN = "as it is now, without running again."
ADVICE = {
    "drifts/grown": (f"Accept it {NOT_AGAIN}", "harness accept drifts/grown"),
    "drifts/write": (
        f"It touches writes: look at them first. Then accept it {NOT_AGAIN}",
        "harness accept drifts/write",
    ),
    "conflict": (
        "Run the case on the merged code, look, and accept what it does now.",
        "harness accept conflict",
    ),
    "edited": ("Restore the golden, or accept a run that was looked at.", "harness accept edited"),
    "raised": ("This run cannot be accepted. Mend the cause, and run it again.", "harness run raised"),
    "gone": ("Its case file is gone, and so is its golden.", ""),
    "unwanted": ("It did not run, so nothing new is known of it.", ""),
    "quiet": None,
    "blessed": (
        "Its golden changed in this branch: who approves the branch approves this. To take it back:",
        "git checkout main -- golden_traces/blessed.json",
    ),
    "fresh": ("Its golden is new in this branch: who approves the branch approves this path.", ""),
    "crashing": ("A broken rule cannot be accepted. Mend it, and sweep again.", "harness crash crashing"),
}


@pytest.mark.parametrize("case", ADVICE)
def test_each_kind_of_case_says_what_to_do(case: str) -> None:
    """A command only where it would work."""
    wanted = ADVICE[case]
    assert accept_one(entry(case), "main") == ([] if wanted is None else [wanted])


def test_a_case_of_a_python_test_is_run_by_pytest() -> None:
    """Its golden says which file it belongs to; one that nothing owns is an orphan."""
    owned = Change("one", "same", dataclasses.replace(GOLDEN, owner="tests/test_one.py"))
    assert accept_one(Entry("one", owned, "not_run"), "")[0][1] == "pytest tests/test_one.py"
    assert accept_one(Entry("one", Change("one", "same", GOLDEN), "not_run"), "")[0][1] == "harness prune"


def test_a_few_cases_are_accepted_by_name() -> None:
    """Quoted for a shell, whatever they are called."""
    one = drifted("x", GROWN)
    report = Report.of("s", "golden", "now", [one, dataclasses.replace(one, case="a b")], ran=True)
    assert accept_all(report)[1] == ("All 2 at once:", "harness accept 'a b' x")
    assert accept_all(Report.of("s", "golden", "now", [passed("y")], ran=True)) == (
        ("There is nothing to accept.", ""),
    )


# Details of a case.


def test_the_details_of_a_drift() -> None:
    """Facets with writes first and marked, costs of both sides, calls written once."""
    data = details("drifts/write")
    assert data["change"]["facets"][0] == ["writes", "1 more write: `send_email` (1 → 2)", True]
    assert data["costs"] == [
        ["calls", 6, 7], ["turns", 6, 6], ["writes: refund", 1, 1], ["writes: send_email", 1, 2],
    ]  # fmt: skip
    assert [data["tools"][number] for number in data["writes"]] == ["refund", "send_email"]
    assert len(data["calls"]) == 7
    assert data["change"]["blocks"][4] == {
        "a": [5, "tool_use"],
        "b": [5, "tool_use"],
        "rows": [[0, 5, 5, 5, 5], [3, -1, -1, 6, 6]],
    }


def test_interventions_stand_at_their_turns() -> None:
    """On the side that had them."""
    nudged = dataclasses.replace(GOLDEN, interventions=(Intervention(3, "nudge", "ExactDuplicate"),))
    report = Report.of("s", "golden", "now", [drifted("one", nudged)], ran=True)
    block = entry_details(report.entries[0], report)["change"]["blocks"][2]
    assert (block["a"], block["b"]) == ([3, "tool_use"], [3, "tool_use", ["nudge by ExactDuplicate"]])


def test_the_crash_matrix_tells_what_is_not_as_in_the_golden() -> None:
    """All points with what ran at each; those that differ with what the golden says."""
    crash = details("crashing")["crash"]
    assert [one["point"] for one in crash["points"]] == [row.point for row in ROWS]
    assert {one["point"]: one["was"]["outcome"] for one in crash["points"] if "was" in one} == {
        "turn5.request.after": "same",
        "turn5.save_a": "same",
    }
    assert crash["points"][13]["outcome"] == "executed_twice"
    assert crash["points"][13]["ran"] == "refund ×1, send_email ×2; 7 turns"
    assert crash["points"][14]["ran"] == "refund ×1, send_email ×1; 1 given up as unknown; 8 turns"
    assert BROKEN_ROWS[13].outcome == "executed_twice"


def test_the_stuck_verdict_comes_with_its_evidence() -> None:
    """The sentence, and what would have made it not fire."""
    looped = trace(*(at(turn, FIND) for turn in range(1, 6)))
    report = Report.of("s", "golden", "now", [drifted("one", dataclasses.replace(looped, calls=tuple(
        dataclasses.replace(one, result="aaaaaaaaaaaa") for one in looped.calls)))], ran=True)  # fmt: skip
    stuck = entry_details(report.entries[0], report)["stuck"]
    assert stuck["verdict"] == "force_stop"
    first = stuck["findings"][0]
    assert first["sentence"].startswith("find_order: ")
    assert "would not fire with:" in first["explanation"]


def test_history_is_shown_where_there_is_one() -> None:
    """Newest first, as it came; nothing where nothing is known."""
    data = details("drifts/grown")
    assert [one["counts"] for one in data["history"]] == [[10, 10, 2], [6, 6, 2], [5, 5, 2]]
    assert [one["commit"] for one in data["history"]] == ["", HISTORY[1].commit[:7], HISTORY[2].commit[:7]]
    assert "history" not in details("drifts/write")


# The page as a whole.


def test_every_case_is_in_the_page_with_its_details() -> None:
    """The index in the report's order, and one piece of data a case."""
    page = Page(TEXT)
    index = page.json("index")
    assert [one["id"] for one in index["cases"]] == [one.case for one in EVERYTHING.entries]
    assert [page.json(f"details-{number}")["files"] for number in range(len(EVERYTHING.entries))] == [
        entry_details(one, EVERYTHING)["files"] for one in EVERYTHING.entries
    ]


def test_nothing_is_loaded_and_nothing_else_may_run() -> None:
    """The policy forbids all but the style and the script by their hashes; no element names an address."""
    page = Page(TEXT)
    policy = next(attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    hashes = {
        name: base64.b64encode(hashlib.sha256(page.scripts[name].encode()).digest()).decode()
        for name in ("style", "script")
    }
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{hashes['script']}'; style-src 'sha256-{hashes['style']}'; "
        "img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    addresses = [
        value for _, attrs in page.tags for name, value in attrs.items() if name in ("src", "href", "action", "srcset")
    ]
    assert [one for one in addresses if not str(one).startswith(("#", "data:image/svg+xml,"))] == []
    assert [name for _, attrs in page.tags for name in attrs if name.startswith("on") or name == "style"] == []
    assert "http://" not in TEXT.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in TEXT


HOSTILE_NAMES = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "a\u2028b\u2029c",
    "\ud800",
    "]]>",
    "&lt;",
    "'\"`${x}",
    "\x00\x1b[31m",
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_are_data(name: str) -> None:
    """Whatever a case, a tool, an argument or a message is called: the elements of the page stay the same."""

    def page(text: str) -> Page:
        now = trace(FIND, call(2, text, **{text: text}), last=text)
        one = dataclasses.replace(drifted("x", now), case=text, headline=text, golden_file=text, case_file=text)
        two = Entry("y", Change("y", "unusable", problem=text), "unusable", text)
        report = Report.of(text, text, text, [one, two], base=text, commit=text, ran=True)
        rendered = render_page(report)
        rendered.encode()
        return Page(rendered)

    harmless, hostile = page("harmless"), page(name)
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in harmless.tags]
    assert all(
        set(text) <= set(map(chr, range(32, 127)))
        for key, text in hostile.scripts.items()
        if key not in ("style", "script")
    )


@given(
    st.recursive(
        st.text() | st.none() | st.booleans(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_embedded_json_reads_back_and_cannot_end_its_element(data: Any) -> None:
    """For any text, lone surrogates and line separators included."""
    text = embedded_json(data)
    assert json.loads(text) == data
    assert not set(text) & set("<>&\u2028\u2029")
    text.encode("ascii")


def test_the_parts_of_the_script_are_all_there_and_nothing_else() -> None:
    """A file that is not listed would never run; none holds what would end its element, or makes markup of text."""
    folder = Path(page_package.__file__).parent / "script"
    assert sorted(path.name for path in folder.iterdir()) == sorted(SCRIPTS)
    text = "".join((folder / name).read_text(encoding="utf-8") for name in SCRIPTS)
    assert (
        re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|</script|<!--", text)
        == []
    )


def test_a_diff_is_a_page_too() -> None:
    """Without verdicts of a run, and without a way to accept what did not run."""
    entries = [
        Entry("one", change("one", GROWN)),
        Entry("two", Change("two", "same", GOLDEN, GOLDEN, compare(GOLDEN, GOLDEN))),
    ]
    report = Report.of("main → HEAD", "main", "HEAD", entries)
    top = overview_of(report)
    assert (top.sentence, top.advice) == ("1 of 2 cases differs.", ())
    page = Page(render_page(report))
    assert [one["shown"] for one in page.json("index")["cases"]] == ["changed", "same"]
    assert page.json("details-0")["advice"] == []


def test_an_empty_report_is_a_page() -> None:
    """A project without cases."""
    page = Page(render_page(Report.of("empty", "golden", "now", [], ran=True)))
    assert page.json("index")["cases"] == []


def test_a_thousand_cases_stay_small() -> None:
    """Equal calls cost a few bytes each: a page of 1,000 cases of 50 calls can be mailed."""
    calls = [call(turn, "read_file", path=f"{turn}") for turn in range(1, 51)]
    grown = trace(*calls, call(51, "read_file", path="1"))
    size = len(
        render_page(
            Report.of("s", "golden", "now", [_grown(f"c{n}", trace(*calls), grown) for n in range(10)], ran=True)
        )
    )
    empty = len(render_page(Report.of("s", "golden", "now", [], ran=True)))
    assert (size - empty) / 10 < 8_000


def _grown(case: str, golden: Any, now: Any) -> Entry:
    drift = compare(golden, now)
    return Entry(case, Change(case, "changed", golden, now, drift), "drift", drift.headline, counts=Counts.of(now))
