"""Loops that are broken on purpose: each is caught, by the invariant that it breaks; the right loop passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.faults.sweep import Sweep

LOOP = Path(__file__).with_name("planted_loop.py").read_text()

BUGS = {
    "run every pending call again": "executed_twice",
    "drop the dangling assistant message": "executed_twice",
    "answer only the first of several": "protocol",
    "reset turns on resume": "counters",
    "count tokens from zero": "counters",
    "save before the result is appended": "executed_twice",
    "write the checkpoint in place": "unreadable",
    "take a stray draft for the state": "unreadable",
    "record completion before execution": "made_up",
    "record no intent": "executed_twice",
    "say unknown for calls that never started": "needless_unknown",
    "keep state only in a finally": "executed_twice",
    "checkpoint before the effect": "made_up",
    "have effects without any key": "executed_twice",
    "reuse the recorded result of another call": "made_up",
    "make a new idempotency key on retry": "executed_twice",
}


def planted(bug: str) -> str:
    assert LOOP.count('BUG = ""') == 1
    assert LOOP.count(f'BUG == "{bug}"') + LOOP.count(f'BUG != "{bug}"') >= 1
    return LOOP.replace('BUG = ""', f'BUG = "{bug}"')


def test_the_right_loop_passes(swept: Callable[..., Sweep]) -> None:
    """A loop that keeps a ledger breaks nothing anywhere, and says "unknown" where nobody can know."""
    found = swept(LOOP)
    assert [(one.kills, one.breaches) for one in found.broken] == []
    assert Counter(one.outcome for one in found.crashes)["unknown"] == 6
    assert [one.kills[0] for one in found.crashes] == list(found.points)


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(swept: Callable[..., Sweep], bug: str) -> None:
    """The sweep finds the bug, and calls it by the invariant that it breaks."""
    found = swept(planted(bug), exitfirst=True, points=("*.after",))
    assert {one.outcome for one in found.broken} == {BUGS[bug]}
