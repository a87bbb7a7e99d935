"""Which cases are the same under another id."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from harness.changes import Side, find_renames
from harness.trace import Context
from tests.report.drifts import GOLDEN, GROWN, ROWS, SEVEN

if TYPE_CHECKING:
    from harness.trace import Trace

OTHER_PROMPT = dataclasses.replace(GROWN, context=Context("00000000", None, {"refund": "1"}))


def side(**traces: Trace) -> Side:
    return Side("side", {case: dataclasses.replace(one, case=case) for case, one in traces.items()})


def test_a_case_that_went_and_one_that_came_with_the_same_trace_are_one() -> None:
    """Whatever else went and came."""
    assert find_renames(side(a=GOLDEN, stays=GROWN), side(b=GOLDEN, stays=GROWN)) == {"b": "a"}
    assert find_renames(side(a=GOLDEN, x=OTHER_PROMPT), side(b=GOLDEN)) == {"b": "a"}


def test_a_case_that_was_renamed_and_changed_is_known_by_what_it_sent() -> None:
    """The prompt and the tools are those that it had; the same path with another prompt is another case."""
    assert find_renames(side(a=GOLDEN), side(b=GROWN)) == {"b": "a"}
    assert find_renames(side(a=GOLDEN), side(b=OTHER_PROMPT)) == {}


def test_the_closest_match_is_taken_before_the_likely_one() -> None:
    """Two cases of one prompt are told apart by their paths."""
    assert find_renames(side(a=GOLDEN, b=GROWN), side(c=GROWN, d=GOLDEN)) == {"c": "b", "d": "a"}
    assert find_renames(side(a=GOLDEN, b=GROWN), side(c=SEVEN["swapped"], d=GOLDEN)) == {"d": "a", "c": "b"}


def test_a_guess_is_not_made() -> None:
    """Two candidates on either side are none."""
    assert find_renames(side(a=GOLDEN), side(b=GOLDEN, c=GOLDEN)) == {}
    assert find_renames(side(a=GOLDEN, b=GOLDEN), side(c=GOLDEN)) == {}
    assert find_renames(side(a=GOLDEN), side(b=GROWN, c=SEVEN["write"])) == {}


def test_an_id_that_both_sides_know_was_not_renamed() -> None:
    """Two cases that changed places are two changes; a file that cannot be read is still there."""
    assert find_renames(side(a=GOLDEN, b=OTHER_PROMPT), side(a=OTHER_PROMPT, b=GOLDEN)) == {}
    broken = Side("side", crashes={"a": ROWS})
    assert find_renames(side(a=GOLDEN), dataclasses.replace(side(b=GOLDEN), crashes=broken.crashes)) == {}


def test_without_a_prompt_only_the_same_path_is_a_match() -> None:
    """Traces of which nothing else is known are not likely to be one."""
    bare = dataclasses.replace(GOLDEN, context=Context())
    assert find_renames(side(a=bare), side(b=dataclasses.replace(GROWN, context=Context()))) == {}
    assert find_renames(side(a=bare), side(b=bare)) == {"b": "a"}
