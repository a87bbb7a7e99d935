"""What the comparison catches, what it stays quiet on, and what each policy relaxes."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import Call, Policy, Trace, compare
from harness.normalize import Normalizer
from harness.trace import Context, Intervention

NORMALIZER = Normalizer()


def call(turn: int, tool: str, ok: bool = True, result: object = None, **arguments: object) -> Call:
    digest, args = NORMALIZER.digest_call(arguments)
    return Call(turn, tool, digest, ok, args, NORMALIZER.digest(result))


def trace(*calls: Call, stop_reasons: tuple[str | None, ...] | None = None, **fields: Any) -> Trace:
    turns = max((one.turn for one in calls), default=0)
    reasons = stop_reasons if stop_reasons is not None else (*["tool_use"] * turns, "end_turn")
    fields.setdefault("writes", frozenset({"issue_refund", "send_email"}) & {one.tool for one in calls})
    return Trace("refund", calls, fields.pop("turns", len(reasons)), reasons, **fields)


LOOKUP = call(1, "get_order", order_id="A-1", request_id="r-1", at="2026-11-30T04:00:58Z")
CUSTOMER = call(2, "get_customer", id=7, options={"a": 1, "b": 2})
POLICY = call(2, "get_policy", kind="refund")
CHECK = call(3, "check_fraud", order_id="A-1", job="6b7d21fa-0000-4000-8000-00000000abcd")
QUOTE = call(4, "quote", a=1, b=2, c=3, d=4, e=5, f=6, g=7, h=8, i=9, j=10, k=11, amount=49.0)
REFUND = call(5, "issue_refund", order_id="A-1", amount=49.99)
MAIL = call(6, "send_email", to="a@example.com", body="done")
GOLDEN = trace(LOOKUP, CUSTOMER, POLICY, CHECK, QUOTE, REFUND, MAIL)
"""A refund: seven turns, seven calls, two of them parallel, two writes."""


def at(turn: int, one: Call) -> Call:
    return dataclasses.replace(one, turn=turn)


CAUGHT = {
    "two calls swapped": (
        trace(LOOKUP, CUSTOMER, POLICY, at(3, QUOTE), at(4, CHECK), REFUND, MAIL),
        {"order": "`check_fraud` moved from call 4 to call 5"},
    ),
    "the amount of a write is tenfold": (
        trace(LOOKUP, CUSTOMER, POLICY, CHECK, QUOTE, call(5, "issue_refund", order_id="A-1", amount=499.9), MAIL),
        {"arguments": "`issue_refund` (call 6): `amount` changed"},
    ),
    "one argument of twelve changed": (
        trace(
            LOOKUP,
            CUSTOMER,
            POLICY,
            CHECK,
            call(4, "quote", a=1, b=2, c=3, d=4, e=5, f=6, g=7, h=8, i=9, j=10, k=12, amount=49.0),
            REFUND,
            MAIL,
        ),
        {"arguments": "`quote` (call 5): `k` changed"},
    ),
    "a read repeated": (
        trace(
            LOOKUP,
            at(2, LOOKUP),
            at(3, CUSTOMER),
            at(3, POLICY),
            at(4, CHECK),
            at(5, QUOTE),
            at(6, REFUND),
            at(7, MAIL),
        ),
        {
            "order": "1 more call (7 → 8, +14%): `get_order`",
            "duplicates": "`get_order` repeated with the same arguments once (golden: never)",
            "turns": "turns 7 → 8 (+14%)",
            "stop_reasons": "stop_reasons: 1 more `tool_use`",
        },
    ),
    "a write repeated": (
        trace(LOOKUP, CUSTOMER, POLICY, CHECK, QUOTE, REFUND, MAIL, at(7, MAIL)),
        {
            "writes": "1 more write: `send_email` (1 → 2)",
            "order": "1 more call (7 → 8, +14%): `send_email`",
            "duplicates": "`send_email` repeated with the same arguments once (golden: never)",
            "turns": "turns 7 → 8 (+14%)",
            "stop_reasons": "stop_reasons: 1 more `tool_use`",
        },
    ),
    "another write": (
        trace(
            LOOKUP, CUSTOMER, POLICY, CHECK, QUOTE, REFUND, MAIL, call(6, "send_email", to="b@example.com", body="x")
        ),
        {"writes": "1 more write: `send_email` (1 → 2)", "order": "1 more call (7 → 8, +14%): `send_email`"},
    ),
    "a call dropped": (
        trace(LOOKUP, CUSTOMER, POLICY, at(3, QUOTE), at(4, REFUND), at(5, MAIL)),
        {
            "order": "1 call fewer (7 → 6, -14%): `check_fraud`",
            "turns": "turns 7 → 6 (-14%)",
            "stop_reasons": "stop_reasons: 1 fewer `tool_use`",
        },
    ),
    "another stop_reason": (
        dataclasses.replace(GOLDEN, stop_reasons=(*["tool_use"] * 6, "max_tokens")),
        {"stop_reasons": "stop_reason of turn 7: `end_turn` → `max_tokens`"},
    ),
    "a turn without tools": (
        trace(*GOLDEN.calls, stop_reasons=(*["tool_use"] * 6, "end_turn", "end_turn")),
        {"turns": "turns 7 → 8 (+14%)", "stop_reasons": "stop_reasons: 1 more `end_turn`"},
    ),
    "a tool fails": (
        trace(LOOKUP, CUSTOMER, POLICY, dataclasses.replace(CHECK, ok=False), QUOTE, REFUND, MAIL),
        {"outcomes": "`check_fraud` (call 4) failed (golden: succeeded)"},
    ),
    "parallel calls became sequential": (
        trace(LOOKUP, CUSTOMER, at(3, POLICY), at(4, CHECK), at(5, QUOTE), at(6, REFUND), at(7, MAIL)),
        {
            "order": "the parallel calls of turn 2 now come one after another: `get_customer`, `get_policy`",
            "turns": "turns 7 → 8 (+14%)",
            "stop_reasons": "stop_reasons: 1 more `tool_use`",
        },
    ),
    "sequential calls became parallel": (
        trace(LOOKUP, CUSTOMER, POLICY, CHECK, at(3, QUOTE), at(4, REFUND), at(5, MAIL)),
        {
            "order": "calls that came one after another now run in parallel in turn 3: `check_fraud`, `quote`",
            "turns": "turns 7 → 6 (-14%)",
            "stop_reasons": "stop_reasons: 1 fewer `tool_use`",
        },
    ),
    "a call in another turn": (
        dataclasses.replace(GOLDEN, calls=(at(0, LOOKUP), *GOLDEN.calls[1:])),
        {"order": "`get_order` came in turn 0, golden: turn 1"},
    ),
    "another tool": (
        trace(LOOKUP, CUSTOMER, POLICY, call(3, "check_risk", order_id="A-1"), QUOTE, REFUND, MAIL),
        {"order": "1 more call: `check_risk`; 1 call fewer: `check_fraud`"},
    ),
    "an intervention": (
        dataclasses.replace(GOLDEN, interventions=(Intervention(3, "nudge", "ExactDuplicate"),)),
        {"interventions": "interventions: 1 more nudge by ExactDuplicate after turn 3"},
    ),
    "nothing at all happened": (
        trace(stop_reasons=()),
        {
            "writes": "1 write fewer: `issue_refund` (1 → 0); 1 write fewer: `send_email` (1 → 0)",
            "order": "7 calls fewer (7 → 0, -100%): "
            "`get_order`, `get_customer`, `get_policy`, `check_fraud` and 3 more tools",
            "turns": "turns 7 → 0 (-100%)",
            "stop_reasons": "stop_reasons: 6 fewer `tool_use`; stop_reasons: 1 fewer `end_turn`",
        },
    ),
}
QUIET = {
    "nothing": GOLDEN,
    "key order": trace(LOOKUP, call(2, "get_customer", options={"b": 2, "a": 1}, id=7), *GOLDEN.calls[2:]),
    "a swap inside a parallel group": trace(LOOKUP, POLICY, CUSTOMER, *GOLDEN.calls[3:]),
    "volatile ids and times": trace(
        call(1, "get_order", order_id="A-1", request_id="r-2", at="2027-01-01 11:12:13.5+02:00"),
        CUSTOMER,
        POLICY,
        call(3, "check_fraud", order_id="A-1", job="{6B7D21FA-0000-4000-8000-00000000FFFF}"),
        *GOLDEN.calls[4:],
    ),
    "reworded final text": dataclasses.replace(GOLDEN),
    "1 and 1.0": trace(
        LOOKUP,
        CUSTOMER,
        POLICY,
        CHECK,
        call(4, "quote", a=1.0, b=2.0, c=3, d=4, e=5, f=6, g=7, h=8, i=9, j=10, k=11, amount=49),
        REFUND,
        MAIL,
    ),
    "other results": trace(call(1, "get_order", result="x", order_id="A-1", at="2026-01-01T00:00Z"), *GOLDEN.calls[1:]),
}


@pytest.mark.parametrize("mutation", CAUGHT)
def test_a_drift_is_caught_and_named(mutation: str) -> None:
    """Each drift fails the gate and says facet by facet what happened."""
    observed, verdicts = CAUGHT[mutation]
    drift = compare(GOLDEN, observed)
    assert drift
    assert drift.verdicts == verdicts


@pytest.mark.parametrize("mutation", QUIET)
def test_what_carries_no_meaning_is_no_drift(mutation: str) -> None:
    """Each benign variation passes the gate in silence."""
    drift = compare(GOLDEN, QUIET[mutation])
    assert not drift
    assert drift.findings == ()


@pytest.mark.parametrize("changed", range(5))
def test_a_changed_argument_in_a_parallel_group_is_a_change(changed: int) -> None:
    """Whatever the digests of its neighbours, it does not read as one call less and one more."""
    for other in range(20):
        golden = trace(*(call(1, "read", n=n) for n in range(5)))
        observed = trace(*(call(1, "read", n=n if n != changed else 100 + other) for n in range(5)))
        assert list(compare(golden, observed).verdicts) == ["arguments"]


def test_the_alignment_of_a_drift_names_the_calls() -> None:
    """The edit script points into the calls of both traces, in their own order."""
    drift = compare(GOLDEN, CAUGHT["one argument of twelve changed"][0])
    assert [(edit.op, edit.a, edit.b) for edit in drift.edits if edit.op != "equal"] == [("changed", 4, 4)]


def test_context_is_named_as_the_cause_and_never_drifts() -> None:
    """Another prompt or tool definition is no drift, but it is what a reviewer wants to know first."""
    golden = dataclasses.replace(GOLDEN, context=Context("p1", None, {"a": "1", "b": "2", "c": "3"}), model="m1")
    observed = dataclasses.replace(GOLDEN, context=Context("p2", "s", {"a": "1", "b": "9", "d": "3"}), model="m2")
    drift = compare(golden, observed)
    assert not drift
    assert drift.causes == (
        "the prompt changed",
        "the system prompt changed",
        "the definition of `b` changed",
        "the tool `c` is no longer offered",
        "the tool `d` is offered now",
        "the model changed from m1 to m2",
    )


def read(turn: int, tool: str = "search", **arguments: object) -> Call:
    return call(turn, tool, **arguments)


SEARCHES = trace(read(1, q="a"), read(2, q="b"), call(3, "send_email", to="x"))

POLICIES: dict[str, tuple[dict[str, Any], Trace, dict[str, str]]] = {
    "unordered: any order of reads": (
        {"order": "unordered"},
        trace(read(1, q="b"), read(2, q="a"), call(3, "send_email", to="x")),
        {},
    ),
    "unordered: a change is a change wherever it stands": (
        {"order": "unordered"},
        trace(read(1, q="c"), read(2, q="a"), call(3, "send_email", to="x")),
        {"arguments": "`search` (call 1): `q` changed"},
    ),
    "unordered: a further read is no order": (
        {"order": "unordered", "turns": "ignore"},
        trace(read(1, q="b"), read(2, q="a"), read(3, q="z"), call(4, "send_email", to="x")),
        {"order": "1 more call (3 → 4, +33%): `search`"},
    ),
    "subsequence: further reads between": (
        {"order": "subsequence", "turns": "ignore"},
        trace(read(1, q="a"), read(2, q="z"), read(3, q="b"), call(4, "send_email", to="x")),
        {},
    ),
    "subsequence: order is kept": (
        {"order": "subsequence"},
        trace(read(1, q="b"), read(2, q="a"), call(3, "send_email", to="x")),
        {"order": "`search` moved from call 1 to call 2"},
    ),
    "subsequence: nothing may be missing": (
        {"order": "subsequence", "turns": "ignore"},
        trace(read(1, q="b"), call(2, "send_email", to="x")),
        {"order": "1 call fewer (3 → 2, -33%): `search`"},
    ),
    "subsequence: a further write is never free": (
        {"order": "subsequence", "turns": "ignore"},
        trace(read(1, q="a"), read(2, q="b"), call(3, "send_email", to="x"), call(4, "send_email", to="y")),
        {"writes": "1 more write: `send_email` (1 → 2)", "order": "1 more call (3 → 4, +33%): `send_email`"},
    ),
    "at most +1 call: one more": (
        {"order": {"at_most": "+1"}, "turns": "ignore"},
        trace(read(1, q="a"), read(2, q="b"), read(3, q="c"), call(4, "send_email", to="x")),
        {},
    ),
    "at most +1 call: two more": (
        {"order": {"at_most": "+1"}, "turns": "ignore"},
        trace(read(1, q="a"), read(2, q="b"), read(3, q="c"), read(4, q="d"), call(5, "send_email", to="x")),
        {"order": "calls 3 → 5, at most 4 (+1)"},
    ),
    "at most +20% turns: within": (
        {"turns": {"at_most": "+50%"}},
        dataclasses.replace(SEARCHES, turns=6, stop_reasons=(*["tool_use"] * 5, "end_turn")),
        {},
    ),
    "at most +20% turns: beyond": (
        {"turns": {"at_most": "+20%"}},
        dataclasses.replace(SEARCHES, turns=6, stop_reasons=(*["tool_use"] * 5, "end_turn")),
        {"turns": "turns 4 → 6, at most 4 (+20%)"},
    ),
    "subsequence: a write keeps its place among the reads": (
        {"order": "subsequence"},
        trace(read(1, q="a"), call(2, "send_email", to="x"), read(3, q="b")),
        {"order": "`search` moved from call 2 to call 3"},
    ),
    "a call in another turn, though arguments are ignored": (
        {"arguments": "ignore"},
        dataclasses.replace(SEARCHES, calls=(SEARCHES.calls[0], at(1, SEARCHES.calls[1]), SEARCHES.calls[2])),
        {"order": "calls that came one after another now run in parallel in turn 1: `search`, `search`"},
    ),
    "ignored tool: may come, go and move": (
        {"order": {"ignore": ["think"]}, "duplicates": {"ignore": "think"}},
        trace(read(1, "think"), read(1, q="a"), read(2, q="b"), read(2, "think"), call(3, "send_email", to="x")),
        {},
    ),
    "ignored argument of a tool": (
        {"arguments": {"ignore": ["search.q"]}},
        trace(read(1, q="other"), read(2, q="words"), call(3, "send_email", to="x")),
        {},
    ),
    "ignored argument: others still count": (
        {"arguments": {"ignore": ["search.q"]}},
        trace(read(1, q="other", limit=3), read(2, q="words"), call(3, "send_email", to="x")),
        {"arguments": "`search` (call 1): `limit` changed"},
    ),
    "ignored arguments never cover a write": (
        {"arguments": "ignore"},
        trace(read(1, q="other"), read(2, q="b"), call(3, "send_email", to="y")),
        {"arguments": "`send_email` (call 3): `to` changed"},
    ),
    "ignored order never covers a write": (
        {"order": "ignore", "turns": "ignore", "stop_reasons": "ignore"},
        trace(call(1, "send_email", to="x"), call(1, "send_email", to="x")),
        {
            "writes": "1 more write: `send_email` (1 → 2)",
            "order": "1 more call (3 → 2, -33%): `send_email`",
            "duplicates": "`send_email` repeated with the same arguments once (golden: never)",
        },
    ),
    "ignored outcomes never cover a write": (
        {"outcomes": "ignore"},
        trace(read(1, q="a"), dataclasses.replace(read(2, q="b"), ok=False), call(3, "send_email", ok=False, to="x")),
        {"outcomes": "`send_email` (call 3) failed (golden: succeeded)"},
    ),
    "duplicates at most": (
        {"duplicates": {"at_most": 1}, "order": "subsequence"},
        trace(read(1, q="a"), read(1, q="a"), read(1, q="a"), read(2, q="b"), call(3, "send_email", to="x")),
        {"duplicates": "repeated calls 0 → 2, at most 1 (1)"},
    ),
    "stop_reasons unordered": (
        {"stop_reasons": "unordered"},
        dataclasses.replace(SEARCHES, stop_reasons=("end_turn", "tool_use", "tool_use", "tool_use")),
        {},
    ),
    "stop_reasons subsequence": (
        {"stop_reasons": "subsequence", "turns": "ignore"},
        dataclasses.replace(SEARCHES, turns=5, stop_reasons=(*["tool_use"] * 3, "pause_turn", "end_turn")),
        {},
    ),
    "results exact": (
        {"results": "exact"},
        trace(dataclasses.replace(read(1, q="a"), result="other"), read(2, q="b"), call(3, "send_email", to="x")),
        {"results": "`search` (call 1) has another result"},
    ),
}


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_relaxes_what_it_says_and_no_write(name: str) -> None:
    """Each policy lets its own variation pass, and nothing else."""
    rules, observed, verdicts = POLICIES[name]
    drift = compare(SEARCHES, observed, Policy.parse(rules))
    assert drift.verdicts == verdicts
    assert bool(drift) == bool(verdicts)


def test_parallel_calls_can_be_made_to_keep_their_order() -> None:
    """`parallel: ordered` makes a swap inside a group a drift."""
    policy = Policy.parse({"order": {"parallel": "ordered"}})
    drift = compare(GOLDEN, QUIET["a swap inside a parallel group"], policy)
    assert drift.verdicts == {"order": "`get_customer` moved from call 2 to call 3"}


def test_without_argument_digests_a_change_is_still_seen() -> None:
    """A golden of `detail: digest` cannot name the argument, but the call still drifts."""
    bare = dataclasses.replace(GOLDEN, calls=tuple(dataclasses.replace(one, args=None) for one in GOLDEN.calls))
    drift = compare(bare, CAUGHT["the amount of a write is tenfold"][0])
    assert drift.verdicts == {"arguments": "`issue_refund` (call 6): the arguments changed"}


def test_the_headline_is_one_line_of_the_worst() -> None:
    """A test summary shows the three facets that cost most, and says that there are more."""
    drift = compare(GOLDEN, CAUGHT["a write repeated"][0])
    assert drift.headline == (
        "1 more write: `send_email` (1 → 2); 1 more call (7 → 8, +14%): `send_email`; "
        "`send_email` repeated with the same arguments once (golden: never); 2 more facets"
    )


calls = st.lists(
    st.builds(
        lambda asked, one: dataclasses.replace(one, asked=asked),
        st.sampled_from([True, True, False]),
        st.builds(
            call,
            st.integers(0, 4),
            st.sampled_from(["search", "read", "send_email"]),
            ok=st.booleans(),
            q=st.integers(0, 1),
        ),
    ),
    max_size=8,
).map(lambda ones: tuple(sorted(ones, key=lambda one: one.turn)))
traces = st.builds(
    lambda ones, reasons: Trace(
        "x", ones, len(reasons), tuple(reasons), writes=frozenset({"send_email"} & {one.tool for one in ones})
    ),
    calls,
    st.lists(st.sampled_from(["tool_use", "end_turn"]), max_size=4),
)
policies = st.fixed_dictionaries(
    {},
    optional={
        "order": st.sampled_from(
            ["exact", "unordered", "subsequence", "ignore", {"at_most": "+1"}, {"ignore": ["read"]}]
        ),
        "arguments": st.sampled_from(["exact", "ignore", {"ignore": ["search.q"]}]),
        "turns": st.sampled_from(["exact", "ignore", {"at_most": "+50%"}]),
        "stop_reasons": st.sampled_from(["unordered", "subsequence"]),
        "outcomes": st.sampled_from(["exact", "ignore"]),
    },
)


@given(traces, traces)
def test_the_quick_verdict_and_the_findings_agree(golden: Trace, observed: Trace) -> None:
    """An exact comparison drifts exactly when it has something to say."""
    drift = compare(golden, observed)
    assert bool(drift) == bool(drift.findings)


@given(traces, policies)
def test_a_trace_never_drifts_from_itself(golden: Trace, rules: dict[str, Any]) -> None:
    """Whatever the policy."""
    assert compare(golden, golden, Policy.parse(rules)).findings == ()


@given(traces, traces, policies)
def test_relaxing_never_adds_a_facet_that_was_quiet(golden: Trace, observed: Trace, rules: dict[str, Any]) -> None:
    """A policy can only let more pass: what was no drift stays none."""
    if not compare(golden, observed):
        assert not compare(golden, observed, Policy.parse(rules))


@given(traces, traces, policies)
def test_no_policy_lets_another_sequence_of_writes_pass(golden: Trace, observed: Trace, rules: dict[str, Any]) -> None:
    """Tool, arguments and outcome of every write, in order, are compared whatever is relaxed."""

    def writes(side: Trace) -> list[tuple[object, ...]]:
        groups = [sorted((c.tool, c.digest, c.ok) for c in group if c.tool == "send_email") for group in side.groups()]
        return [tuple(group) for group in groups if group]

    if writes(golden) != writes(observed):
        assert compare(golden, observed, Policy.parse(rules))


def test_a_call_that_nobody_asked_for_is_not_the_one_that_was_asked_for() -> None:
    """One `tool_use` that the loop executed twice is not two parallel ones, though tools and arguments are the same."""
    twice = trace(REFUND, REFUND)
    retried = trace(REFUND, dataclasses.replace(REFUND, asked=False))
    assert compare(twice, retried).verdicts == {
        "order": "`issue_refund` (call 2) was not asked for (golden: asked for)"
    }
    assert compare(retried, twice).verdicts == {"order": "`issue_refund` (call 2) was asked for (golden: not)"}
    assert not compare(retried, retried)
    assert [finding.write for finding in compare(twice, retried).findings] == [True]


def test_what_came_without_being_asked_for_is_said() -> None:
    """Then it is the loop that grew."""
    retried = trace(LOOKUP, dataclasses.replace(LOOKUP, asked=False), REFUND, MAIL)
    assert compare(trace(LOOKUP, REFUND, MAIL), retried).verdicts["order"] == (
        "1 more call (3 → 4, +33%): `get_order` (not asked for by the model)"
    )


def test_a_retry_is_no_parallel_group() -> None:
    """The one call that was asked for in its turn stays alone in it."""
    sequential = trace(at(1, LOOKUP), at(2, CHECK))
    retried = trace(at(1, LOOKUP), dataclasses.replace(at(1, CHECK), asked=False), turns=3)
    assert "now run in parallel" not in compare(sequential, retried).headline
