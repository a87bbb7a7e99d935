"""Accepting some facets of a run: the golden takes those, and nothing else."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness import Call, Trace, compare
from harness.composition import compose
from harness.errors import HarnessError
from harness.policy import FACETS
from harness.trace import Intervention
from tests.report.drifts import CUSTOMER, FIND, GOLDEN, GROWN, MAIL, POLICY, SEARCH, SEVEN, at, call, trace

DEAR = call(4, "refund", id="7", cents=12000)
BOTH = trace(FIND, CUSTOMER, POLICY, at(3, FIND), at(4, SEARCH), at(5, DEAR), at(6, MAIL), last="max_tokens")
"""One call more, one write with another amount, another stop_reason."""


def left(golden: Trace, now: Trace) -> set[str]:
    return set(compare(golden, now).verdicts)


def test_an_argument_is_accepted_without_the_calls_that_came() -> None:
    """The golden's call has the new amount; the further call is still drift."""
    golden = compose(GOLDEN, BOTH, ["arguments"])
    assert [one.digest for one in golden.calls] == [one.digest for one in (FIND, CUSTOMER, POLICY, SEARCH, DEAR, MAIL)]
    assert left(GOLDEN, golden) == {"arguments"}
    assert left(golden, BOTH) == {"order", "duplicates", "turns", "stop_reasons"}


def test_calls_that_came_are_accepted_without_the_argument() -> None:
    """The tenfold refund is still drift."""
    golden = compose(GOLDEN, BOTH, ["order", "duplicates", "turns", "stop_reasons"])
    assert (left(golden, BOTH), len(golden.calls)) == ({"arguments"}, 7)


def test_what_hangs_together_is_named() -> None:
    """Calls that came cannot be accepted without the turns in which they came."""
    with pytest.raises(HarnessError) as refused:
        compose(GOLDEN, GROWN, ["order"])
    assert str(refused.value) == (
        "`order` cannot be accepted without `duplicates`, `turns`, `stop_reasons`: they come from the same calls; "
        "name them as well, or accept the whole run"
    )


def test_a_facet_without_drift_is_a_mistake() -> None:
    """Who names it expects something that is not there."""
    with pytest.raises(HarnessError) as refused:
        compose(GOLDEN, SEVEN["failed"], ["outcomes", "turns"])
    assert str(refused.value) == "no drift in 'turns'; facets that drifted: outcomes"


def test_whether_a_tool_writes_is_a_facet_of_its_own() -> None:
    """A tool that counts as a write now is one in the golden when `writes` is accepted, and only then."""
    now = dataclasses.replace(SEVEN["failed"], writes=GOLDEN.writes | {"search"})
    assert compose(GOLDEN, now, ["outcomes"]).writes == GOLDEN.writes
    assert compose(GOLDEN, now, ["writes"]).writes == now.writes


CALLS = st.lists(
    st.builds(
        lambda turn, tool, number, ok, asked: dataclasses.replace(call(turn, tool, n=number), ok=ok, asked=asked),
        st.integers(1, 5),
        st.sampled_from(["read", "search", "send_email"]),
        st.integers(0, 2),
        st.booleans(),
        st.booleans(),
    ),
    max_size=6,
).map(lambda calls: sorted(calls, key=lambda one: one.turn))


@st.composite
def runs(draw: st.DrawFn) -> Trace:
    calls: list[Call] = draw(CALLS)
    guards = draw(st.lists(st.sampled_from([Intervention(1, "nudge", "ExactDuplicate")]), max_size=1))
    last = draw(st.sampled_from(["end_turn", "max_tokens"]))
    return trace(*calls, last=last, turns=6, interventions=tuple(guards))


@given(runs(), runs(), st.sets(st.sampled_from(FACETS), min_size=1))
def test_nothing_else_is_accepted(golden: Trace, now: Trace, facets: set[str]) -> None:
    """Whatever is accepted, the golden changes in these facets alone, and no longer drifts from the run in them."""
    drifted = left(golden, now)
    facets &= drifted
    assume(facets)
    try:
        composed = compose(golden, now, facets)
    except HarnessError:
        return
    assert left(golden, composed) <= facets
    assert not left(composed, now) & facets


@given(runs(), runs())
def test_all_facets_together_are_the_run(golden: Trace, now: Trace) -> None:
    """Accepting every facet that drifted never fails, and leaves no drift."""
    drifted = left(golden, now)
    assume(drifted)
    assert not compare(compose(golden, now, drifted), now)
