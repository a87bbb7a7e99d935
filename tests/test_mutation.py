"""The gate proves itself: each kind of drift is tried on a golden, and what a policy lets pass is told."""

from __future__ import annotations

import dataclasses

from hypothesis import given

from harness import Policy, Trace, compare
from harness.mutation import KINDS, SITES, Gap, mutations, prove
from tests.report.drifts import GOLDEN, SEARCH, at, trace
from tests.test_composition import runs

NOTHING = Policy()
LAX = Policy.parse(
    {"order": {"at_most": "+2"}, "turns": {"at_most": "+50%"}, "arguments": {"ignore": ["search.query"]}}
)


def test_an_exact_gate_catches_every_mutation() -> None:
    """Each kind is tried, and nothing passes."""
    proof = prove(GOLDEN, NOTHING)
    assert proof.tried == {
        "write": 3,
        "swap": 4,
        "drop": 6,
        "repeat": 6,
        "argument": 8,
        "outcome": 6,
        "stop_reason": 6,
        "turn": 6,
    }
    assert (proof.caught, proof.gaps, proof.places) == (proof.tried, (), {})
    assert list(proof.tried) == list(KINDS)


def test_a_lax_policy_is_told_with_the_setting_that_is_to_blame() -> None:
    """What could happen tomorrow without a red build: by tool or argument, how often, and why."""
    assert prove(GOLDEN, LAX).gaps == (
        Gap("argument", "search.query", False, 1, 1, {"arguments": "without search.query"}),
        Gap("turn", "", False, 6, 6, {"turns": "at most +50%"}),
    )


def test_writes_never_pass() -> None:
    """However lax a policy is, a write that comes, goes or changes is caught."""
    lax = Policy.parse(
        {
            "order": "ignore",
            "arguments": "ignore",
            "outcomes": "ignore",
            "duplicates": "ignore",
            "turns": "ignore",
            "stop_reasons": "ignore",
        }
    )
    proof = prove(GOLDEN, lax, ["write", "drop", "repeat", "argument", "outcome"])
    assert [gap for gap in proof.gaps if gap.write] == []
    assert proof.caught["write"] == proof.tried["write"] == 3


def test_a_long_golden_is_tried_at_places_spread_over_it() -> None:
    """What was left out is said."""
    long = trace(*(at(turn, SEARCH) for turn in range(1, 500)))
    proof = prove(long, NOTHING, ["drop", "stop_reason"])
    assert proof.tried == {"drop": SITES, "stop_reason": SITES}
    assert proof.places == {"drop": 499, "stop_reason": 500}


@given(runs())
def test_every_mutation_is_a_drift(golden: Trace) -> None:
    """None is a change that an exact comparison would not see, or it would prove nothing."""
    plain = dataclasses.replace(golden, detail="digest", calls=tuple(_bare(one) for one in golden.calls))
    for trace_ in (golden, plain):
        for mutation in mutations(trace_):
            assert compare(trace_, mutation.trace).findings, mutation


def _bare(call):
    return dataclasses.replace(call, args=None)
