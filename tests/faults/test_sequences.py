"""Tools that answer otherwise each time: what a kill changes of that, and what is no fault of the loop."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.faults.sweep import Sweep

STUBS = """\
agent: harness.agent:run
prompt: Go.
tools:
  poll:
    effect: read_only
    input: {}
    sequence: [{returns: queued}, {returns: running 10 %}, {raises: down}, {returns: passed}]
  pay:
    effect: irreversible
    input: {amount: number}
    sequence: [{returns: P-1}, {returns: P-2}]
model:
  name: claude-test
  script:
    - call: {poll: {}}
    - call:
        - poll: {}
        - pay: {amount: 1}
        - poll: {}
    - call:
        - pay: {amount: 2}
        - poll: {}
    - say: Done.
"""


def test_a_call_that_runs_again_is_answered_as_before(swept: Callable[..., Sweep]) -> None:
    """The place in a `sequence` belongs to the call: killed in the third of four polls, a run is told "down" by the
    third again, and "passed" by the fourth; what it paid was the first payment or the second, however often it was
    killed.
    """
    found = swept("", STUBS, points=("*.call*", "*.model.after"), depth=2, most_pairs=60)
    assert [(one.kills, one.breaches) for one in found.broken] == []
    assert {one.outcome for one in found.crashes if ".poll." in one.kills[0]} == {"same"}
    assert {one.outcome for one in found.crashes if ".pay." in one.kills[0]} == {"unknown"}


MOVING = """\
from pathlib import Path
from harness.agent import tool

@tool(effect="read_only")
def poll() -> str:
    asked = Path("asked")
    times = len(asked.read_text()) if asked.exists() else 0
    asked.write_text("x" * (times + 1))
    return ["queued", "running, and 10 % done", "running, and 90 % done", "passed"][min(times, 3)]

TOOLS = [poll]
"""

POLLS = """\
agent: {agent}
prompt: Go.
tools: loop:TOOLS
workspace: {{}}
model:
  name: claude-test
  script:
    - call: {{poll: {{}}}}
    - call: {{poll: {{}}}}
    - say: Done.
"""


@pytest.mark.parametrize("point", ["turn1.call1.poll.after", "turn2.call1.poll.after"])
def test_a_world_that_moved_on_is_no_fault_of_the_loop(swept: Callable[..., Sweep], point: str) -> None:
    """A tool that reads again after a kill may be given what a later call was given without it: nothing is made up, and
    other tokens are no lost ones.  That it was asked more often is the world's to tell.
    """
    (crash,) = swept(MOVING, POLLS.format(agent="harness.agent:run"), points=(point,)).crashes
    assert {breach.invariant for breach in crash.breaches} == {"world"}
    assert crash.breaches[0].message == "the workspace is another one: changed: ['asked']"
