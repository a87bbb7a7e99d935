"""The shipped cases lead the durable loop into every branch of its reconciling."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.case.load import Case, load_case
from harness.crash.cases import is_swept, sweep_case, unreached
from harness.faults.branches import BRANCHES
from harness.faults.sweep import Plan, Sweep
from harness.project import Project

PROJECT = Project.at(Path(__file__).parents[2])

KILLS = {
    "durable/payment": (
        "turn2.call1.pay.*",
        "turn3.call2.archive.before",
        "turn4.save3.commit.after",
    ),
    "durable/refund": (
        "turn1.save.commit.after",
        "turn1.call1.find_order.after",
        "turn1.save3.commit.after",
        "turn2.save.commit.after",
        "turn2.call1.refund.after",
        "turn2.save3.commit.after",
        "turn3.save.commit.after",
        "turn3.call1.mark_refunded.after",
        "turn3.save3.commit.after",
    ),
}
"""By case, kills that are enough: the whole sweep, in CI, has 320."""


@pytest.fixture(scope="module")
def found() -> list[tuple[Case, Sweep]]:
    swept = []
    for name, points in KILLS.items():
        case = load_case(PROJECT.cases / f"{name}.yaml", PROJECT.cases)
        assert is_swept(case)
        swept.append((case, sweep_case(case, PROJECT, Plan(points=points, jobs=2))))
    return swept


def test_every_branch_is_reached(found: list[tuple[Case, Sweep]]) -> None:
    """A pass that never came into a branch would say nothing about it."""
    assert [sweep.broken for _, sweep in found] == [[], []]
    assert unreached(found) == []


def test_a_branch_that_is_not_reached_is_named(found: list[tuple[Case, Sweep]]) -> None:
    """The order is that of the table; sweeps of other loops promise nothing."""
    ((payment, sweep), _) = found
    missing = unreached([(payment, sweep)])
    assert missing == [branch for branch in BRANCHES if branch not in sweep.branches] != []
    assert unreached([]) == []
