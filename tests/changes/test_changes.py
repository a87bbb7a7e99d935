"""What became of each case between two sides."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from harness.changes import Change, CrashChange, Side, changes_between, commit_side, folder_side
from harness.changes.conflict import Conflict
from harness.errors import GoldenError
from harness.golden import dump_trace
from harness.policy import Policy
from harness.repository import Repository
from harness.trace import Context
from tests.report.drifts import BROKEN_ROWS, GOLDEN, GROWN, ROWS, SEVEN, call, trace

if TYPE_CHECKING:
    from harness.crash_golden import Row
    from harness.trace import Trace
    from tests.changes.repositories import GitFolder

READ_ONLY = trace(call(1, "search", query="x"), context=Context("11111111"))
EDITED = GoldenError("golden_traces/a.json was edited by hand", "edited")


def side(name: str = "side", **traces: Trace) -> Side:
    return Side(name, {case: dataclasses.replace(one, case=case) for case, one in traces.items()})


def only(before: Side, after: Side) -> Change:
    (change,) = changes_between(before, after)
    return change


def facts(change: Change) -> tuple[str, str, str, str]:
    return (change.case, change.kind, change.was, change.drift.headline if change.drift is not None else "-")


def test_every_case_of_either_side_is_one_change_by_id() -> None:
    """New, deleted, changed, renamed, the same."""
    before = side(same=GOLDEN, changed=GOLDEN, gone=READ_ONLY, old=GROWN)
    after = side(same=GOLDEN, changed=SEVEN["write"], moved=GROWN, fresh=trace(context=Context("22222222")))
    changes = changes_between(before, after)
    assert [facts(one)[:3] for one in changes] == [
        ("changed", "changed", ""),
        ("fresh", "new", ""),
        ("gone", "deleted", ""),
        ("moved", "renamed", "old"),
        ("same", "same", ""),
    ]
    assert [one.differs for one in changes] == [True, True, True, True, False]
    assert [one.touches_writes for one in changes] == [True, False, False, False, False]
    assert changes_between(Side("a"), Side("b")) == []


def test_a_renamed_case_that_changed_tells_both() -> None:
    """One entry with a drift, not a deleted case and a new one."""
    change = only(side(a=GOLDEN), side(b=GROWN))
    assert facts(change)[:3] == ("b", "renamed", "a")
    assert change.drift
    assert change.drift.headline.startswith("4 more calls (6 → 10, +67%): ")
    assert change.after == dataclasses.replace(GROWN, case="b")


def test_a_side_that_cannot_be_used_is_said_to_be() -> None:
    """Which one, and what is known of the other."""
    broken = Side("now", problems={"a": EDITED})
    assert only(side(a=GOLDEN), broken) == Change(
        "a", "unusable", dataclasses.replace(GOLDEN, case="a"), problem=str(EDITED)
    )
    assert only(broken, side(a=GOLDEN)).problem == str(EDITED)


def test_a_broken_crash_golden_does_not_hide_the_drift_of_the_trace() -> None:
    """A refund too much is seen, whatever else is wrong."""
    after = dataclasses.replace(side(a=SEVEN["write"]), problems={"a": EDITED})
    change = only(side(a=GOLDEN), after)
    assert (change.kind, change.problem, change.touches_writes) == ("unusable", str(EDITED), True)


def test_a_conflict_is_one_of_the_side_that_has_it_now() -> None:
    """Compared from ours to theirs; one that was committed and is resolved since keeps the old side from being used."""
    conflicted = Side("main", conflicts={"a": Conflict(GOLDEN, GROWN, "HEAD", "topic")})
    change = only(side(a=GOLDEN), conflicted)
    assert (change.kind, change.before, change.after, change.names) == ("conflict", GOLDEN, GROWN, ("HEAD", "topic"))
    assert change.drift
    later = only(conflicted, side(a=GOLDEN))
    assert (later.kind, later.problem) == ("unusable", "main holds an unresolved merge conflict in it")


def test_other_keys_cannot_be_compared() -> None:
    """All digests differ, and it means nothing."""
    change = only(side(a=GOLDEN), side(a=dataclasses.replace(GOLDEN, digest_key="abcd")))
    assert (change.kind, change.drift) == ("unusable", None)
    assert change.problem == "the digests of the two sides were made with different keys (HARNESS_DIGEST_KEY)"


def test_what_was_sent_is_worth_showing_though_the_path_is_the_same() -> None:
    """No drift, but not nothing."""
    sent = dataclasses.replace(GOLDEN, context=dataclasses.replace(GOLDEN.context, prompt="00000000"))
    change = only(side(a=GOLDEN), side(a=sent))
    assert (change.kind, bool(change.drift), change.differs) == ("same", False, True)


@pytest.mark.parametrize("traces", [{"a": GOLDEN}, {}], ids=["with a trace", "without"])
@pytest.mark.parametrize(("before", "after"), [(ROWS, ROWS), (ROWS, BROKEN_ROWS), (None, ROWS), (ROWS, None)])
def test_crash_goldens_are_part_of_the_change(
    traces: dict[str, Trace], before: tuple[Row, ...] | None, after: tuple[Row, ...] | None
) -> None:
    """The path is the same; that something differs is seen all the same."""
    old, new = (Side("side", traces, {} if rows is None else {"a": rows}) for rows in (before, after))
    change = only(old, new)
    assert (change.kind, change.differs) == ("same", before != after)
    assert change.crash == CrashChange(before, after)


def test_a_renamed_case_takes_its_crash_golden_along() -> None:
    """It is compared with the one of the old id."""
    before = dataclasses.replace(side(a=GOLDEN), crashes={"a": ROWS})
    after = dataclasses.replace(side(b=GOLDEN), crashes={"b": BROKEN_ROWS})
    assert only(before, after).crash == CrashChange(ROWS, BROKEN_ROWS)


def test_a_policy_decides_what_a_change_is() -> None:
    """By case; without one, all that changed counts."""
    lax = Policy.parse({"order": "unordered"})
    swapped = (side(a=GOLDEN), side(a=SEVEN["swapped"]))
    assert [one.kind for one in changes_between(*swapped)] == ["changed"]
    assert [one.kind for one in changes_between(*swapped, policy=lambda case: lax)] == ["same"]


def test_a_branch_against_its_base_in_a_real_repository(shop: GitFolder) -> None:
    """A golden that was accepted anew, one that moved, one that went, one that came, in a folder below the root."""

    def text(case: str, one: Trace) -> str:
        return dump_trace(dataclasses.replace(one, case=case))

    folder = "agents/golden_traces"
    shop.commit(
        "base",
        {
            f"{folder}/blessed.json": text("blessed", GOLDEN),
            f"{folder}/there.json": text("there", SEVEN["write"]),
            f"{folder}/gone.json": text("gone", READ_ONLY),
        },
    )
    shop.git("checkout", "-q", "-b", "topic")
    shop.commit("accept", {f"{folder}/blessed.json": text("blessed", GROWN), f"{folder}/gone.json": None})
    shop.write({f"{folder}/there.json": None, f"{folder}/moved/here.json": text("moved/here", SEVEN["write"])})
    repository = Repository.around(shop.root / folder)
    before = commit_side(repository, repository.merge_base(), shop.root / folder, "main")
    changes = changes_between(before, folder_side(shop.root / folder, "now"))
    assert [facts(one)[:3] for one in changes] == [
        ("blessed", "changed", ""),
        ("gone", "deleted", ""),
        ("moved/here", "renamed", "there"),
    ]
