"""Kills from outside, wherever the process is: what no crash point can find, since points are between operations."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from harness.commands.crash import command
from harness.errors import HarnessError
from harness.faults.history import History
from harness.faults.journal import Began, Journal, Ran, Reached, read_journal
from harness.faults.lives import Subject, finish, live
from harness.faults.moments import moments
from harness.faults.site import Site
from harness.faults.sweep import Sweep
from harness.faults.workers import fan_out
from harness.forked import run_forked

CASE = """\
agent: {agent}
prompt: Go.
tools: loop:TOOLS
workspace: {{}}
model:
  name: claude-test
  script:
    - call: {{{tool}: {{to: a}}}}
      on_unknown: [{{say: I do not know.}}]
    - say: Done.
"""

TOOLS = """\
import time
from pathlib import Path
from harness.agent import tool

def append(line):
    with open("outbox", "a") as outbox:
        outbox.write(line + "\\n")

@tool
def mail(to: str) -> str:
    # two steps, and a while between them
    append("begin")
    time.sleep(0.2)
    append("end")
    return "mailed"

@tool(effect="idempotent")
def put(to: str) -> str:
    # said to be idempotent, and is, unless it is torn in the middle
    if not Path("outbox").exists() or "end" not in Path("outbox").read_text():
        append("begin")
        time.sleep(0.2)
        append("end")
    return "put"

TOOLS = [mail, put]
"""

NAIVE = (
    TOOLS
    + """
import json

def run(prompt, client, toolset, state_dir):
    file = Path(state_dir, "messages.json")
    messages = json.loads(file.read_text()) if file.exists() else [{"role": "user", "content": prompt}]
    tools = {one.name: one for one in toolset}
    while True:
        if messages[-1]["role"] == "user":
            given = [one.definition() for one in toolset]
            answer = client.messages.create(model="m", max_tokens=9, tools=given, messages=messages).to_dict()
            messages.append({"role": "assistant", "content": answer["content"]})
            draft = file.with_suffix(".tmp")
            draft.write_text(json.dumps(messages))
            draft.replace(file)
        uses = [block for block in messages[-1]["content"] if block["type"] == "tool_use"]
        if not uses:
            return
        results = [(use["id"], tools[use["name"]].function(**use["input"])) for use in uses]
        messages.append(
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": id, "content": text} for id, text in results],
            }
        )
"""
)


def case(tool: str, agent: str = "harness.agent:run") -> str:
    return CASE.format(agent=agent, tool=tool)


def test_a_tool_that_is_killed_in_its_middle_is_unknown(swept: Callable[..., Sweep]) -> None:
    """The durable loop says "unknown" of a call that was torn, and never begins it again."""
    found = swept(TOOLS, case("mail"), random=8)
    assert [(one.kills, one.breaches) for one in found.broken] == []
    torn = [one for one in found.crashes if one.kills[0].startswith("turn1.call1.mail.before + ")]
    assert torn
    assert {(one.outcome, one.unknown) for one in torn} == {("unknown", 1)}
    assert found.seed == 0


def test_a_torn_call_that_is_begun_again_is_found(swept: Callable[..., Sweep]) -> None:
    """Neither execution came to its end before the second began, and the first half of the effect is there twice."""
    found = swept(NAIVE, case("mail", "loop:run"), random=8)
    torn = [one for one in found.crashes if one.kills[0].startswith("turn1.call1.mail.before + ")]
    assert torn
    assert [(one.breaches[0].invariant, one.breaches[0].message) for one in torn] == [
        ("executed_twice", "`mail` (turn 1, call 1) was begun 2 times, in lives 1 and 2: it cannot be taken back")
    ] * len(torn)
    assert any("KILLED at turn1.call1.mail.before + " in line for line in torn[0].story)


def test_what_only_a_kill_in_the_middle_shows_is_found(swept: Callable[..., Sweep]) -> None:
    """A tool that is not as idempotent as it says: no kill between operations can tell, and one in the middle does."""
    placed = swept(TOOLS, case("put"), points=("turn1.call1.*", "turn1.model.after"))
    assert {one.outcome for one in placed.crashes} == {"same"}
    struck = swept(TOOLS, case("put"), random=8)
    assert {one.outcome for one in struck.broken} == {"world"}
    assert "the workspace is another one: changed: ['outbox']" in struck.broken[0].breaches[0].message


READY = """\
agent: harness.agent:run
prompt: Go.
tools:
  look: {effect: read_only, input: {}, returns: ok}
workspace: {a/one: "1", b/two: "2", c/three: "3"}
model:
  name: claude-test
  script: [{say: Done.}]
"""


def test_a_kill_before_the_loop_is_called_is_no_kill_of_the_loop(
    subject: Callable[..., Subject], tmp_path: Path
) -> None:
    """While the harness fills the workspace nothing of the run has begun: the next life begins it, with all files."""
    prepared = subject("", READY)
    site = Site(tmp_path.resolve() / "site")

    def work(_: int, kill: float) -> tuple[bool, History]:
        site.clear()
        (site.workspace / "a").mkdir()
        (site.workspace / "a" / "one").write_text("")  # half of a file
        killed = live(prepared, site, kill_after=kill)
        return killed.killed, finish(prepared, site, [killed])

    ((struck, history),) = fan_out([0.0], work, jobs=1)
    assert struck
    assert history.last.ended is not None
    assert (history.last.ended.error, history.last.ended.problems) == (None, ())
    assert sorted(history.files) == ["a/one", "b/two", "c/three"]
    assert history.files["a/one"] != history.files["b/two"]
    assert (site.workspace / "a" / "one").read_text() == "1"


VERIFIED = """\
import time
from pathlib import Path
from harness.agent import tool

def was_sent(to):
    return Path("outbox").exists() and "end" in Path("outbox").read_text()

@tool(verify=was_sent)
def mail(to: str) -> str:
    Path("outbox").write_text("begin")
    time.sleep(0.2)
    Path("outbox").write_text("end")
    return "mailed"

TOOLS = [mail]
"""


def test_a_torn_call_that_its_tool_denies_may_run_again(swept: Callable[..., Sweep]) -> None:
    """The tool says that the torn call did not take effect: beginning it again is no second execution."""
    found = swept(VERIFIED, case("mail"), random=6)
    assert any(one.kills[0].startswith("turn1.call1.mail.before + ") for one in found.crashes)
    assert {one.outcome for one in found.crashes} == {"same"}
    assert "verify: did not take effect" in found.branches


def test_a_seed_names_its_kill(swept: Callable[..., Sweep]) -> None:
    """The k-th kill of a sweep is the only one of the sweep with the seed + k: that is what the reproducer says."""
    passed = [0.01, 0.02, 0.5, 0.51]
    assert moments(passed, 3, 5)[:2] == moments(passed, 3, 2)
    several = swept(TOOLS, case("mail"), random=4, seed=5)
    assert sorted(one.seed for one in several.crashes if one.seed is not None) == [5, 6, 7, 8]


@given(st.lists(st.floats(0, 9), min_size=1, max_size=9).map(sorted), st.integers())
def test_moments_are_within_the_run(passed: list[float], seed: int) -> None:
    """From the first point to the end, whatever the run looks like."""
    first = passed[0] if len(passed) > 1 else 0.0
    assert all(first <= moment <= passed[-1] for moment in moments(passed, seed, 20))


def test_long_and_short_times_are_met() -> None:
    """A second in a tool and a millisecond in a commit are both hit by a few kills."""
    passed = [0.0, 1.0, 1.001, 1.002]
    drawn = [moments(passed, seed, 1)[0] for seed in range(30)]
    assert min(sum(moment < 1.0 for moment in drawn), sum(moment > 1.0 for moment in drawn)) >= 5


def test_a_torn_record_says_nothing(tmp_path: Path) -> None:
    """What a kill has torn off the journal is cut, and the next life's record is whole."""
    path = tmp_path / "journal"
    began = Began("a", 1, 1, "mail", "x", "irreversible", None, False)
    Journal(path, 1).write(began)
    whole = path.stat().st_size
    Journal(path, 1).write(Ran("a", True, "y" * 9000))
    os.truncate(path, whole + 4096)
    assert read_journal(path) == [(1, began)]
    Journal(path, 2).write(Reached("start.save.open.before"))
    assert read_journal(path) == [(1, began), (2, Reached("start.save.open.before"))]


def test_a_strike_hits_the_process_alone(tmp_path: Path) -> None:
    """It comes after the time that was wanted, and what the process had started goes on, as after a real kill."""

    def work() -> None:
        subprocess.Popen(["sh", "-c", f"sleep 0.3; echo late > {tmp_path / 'late'}"])
        time.sleep(30)

    death = run_forked(work, limit=20, kill_after=0.15)
    assert (death.signal, death.struck, death.timed_out) == (9, True, False)
    assert 0.15 <= death.seconds < 5
    until = time.monotonic() + 5
    while not (tmp_path / "late").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    assert not run_forked(lambda: None, limit=20, kill_after=10).struck


def test_the_command_takes_nothing_that_places_a_kill(subject: Callable[..., object]) -> None:
    """`--random` and `--point` contradict each other."""
    subject(TOOLS, case("mail"))
    done = CliRunner().invoke(command, ["--random", "3", "--point", "*"])
    assert isinstance(done.exception, HarnessError)
    with pytest.raises(HarnessError, match="--random chooses where to kill"):
        raise done.exception
