"""Any script, any tools, any kills: the durable loop keeps every rule; a wrong loop is shrunk to a case to commit."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from harness.case.load import load_case
from harness.crash.subject import subject_of
from harness.crash.warm import warm_up
from harness.faults.invariants import Breach, broken
from harness.faults.lives import live_and_die
from harness.faults.site import Site
from harness.faults.workers import fan_out
from harness.project import Project

PLANTED = Path(__file__).with_name("planted_loop.py").read_text()

TOOLS = {
    "look": {"effect": "read_only", "input": {"at": "string"}, "returns": "seen"},
    "put": {"effect": "idempotent", "input": {"at": "string"}, "returns": "ok"},
    "mail": {"effect": "irreversible", "input": {"at": "string"}, "returns": "sent"},
    "fail": {"effect": "irreversible", "input": {"at": "string"}, "raises": "no"},
}

CALL = st.builds(lambda tool, at: {tool: {"at": at}}, st.sampled_from(sorted(TOOLS)), st.sampled_from("ab"))
STEP = st.builds(lambda calls: {"call": calls}, st.lists(CALL, min_size=1, max_size=3))
SCRIPT = st.builds(lambda steps: [*steps, {"say": "Done."}], st.lists(STEP, max_size=3))
KILLS = st.lists(st.integers(0, 200), min_size=1, max_size=3)


def case_of(script: list[dict[str, Any]], kills: list[str], agent: str) -> str:
    """A case as it can be committed: the tools that the script calls, and where it was killed."""
    called = {tool for step in script for call in step.get("call", []) for tool in call}
    case = {
        "description": f"Killed at {', then at '.join(kills)}.",
        "agent": agent,
        "prompt": "Go.",
        "tools": {tool: TOOLS[tool] for tool in sorted(called)} or {"look": TOOLS["look"]},
        "model": {"name": "m", "script": script},
        "faults": {"crash": kills[:1]},
    }
    return yaml.safe_dump(case, sort_keys=False, width=120)


def live_through(
    folder: Path, script: list[dict[str, Any]], picks: list[int], agent: str
) -> tuple[list[str], list[Breach]]:
    """Kill the run at the picked points, each a number modulo those that the life passes; where, and what broke."""
    warm_up()
    path = folder / "cases" / "any.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(case_of(script, ["turn1.model.after"], agent))
    project = Project.at(folder)
    subject = subject_of(load_case(path, project.cases), project)

    def work(_: int, site: Site) -> tuple[list[str], list[Breach]]:
        smooth = live_and_die(subject, site, (), ())
        kills: list[str] = []
        references: list[tuple[str, ...]] = []
        points = smooth.last.points
        for pick in picks:
            if not points:
                break
            kills.append(points[pick % len(points)])
            references.append(points)
            history = live_and_die(subject, site, kills, references)
            assert all(life.killed for life in history.lives[:-1])
            points = history.last.points
        return kills, broken(history, smooth)

    (found,) = fan_out([Site(folder / "site")], work, jobs=1)
    return found


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(script=SCRIPT, picks=KILLS)
def test_the_durable_loop_keeps_every_rule(script: list[dict[str, Any]], picks: list[int]) -> None:
    """Law: whatever the model asks for and wherever the processes die, no rule is broken."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        kills, breaches = live_through(Path(folder).resolve(), script, picks, "harness.agent:run")
    assert breaches == [], f"commit this as a case:\n{case_of(script, kills, 'harness.agent:run')}"


def test_a_wrong_loop_is_shrunk_to_a_case(tmp_path: Path) -> None:
    """The smallest script that shows a double effect is one irreversible call, and it is printed as a case."""
    (tmp_path / "loop.py").write_text(PLANTED.replace('BUG = ""', 'BUG = "run every pending call again"'))

    def mails_twice(example: tuple[list[dict[str, Any]], list[int]]) -> bool:
        _, breaches = live_through(tmp_path, *example, "loop:run")
        return any(breach.invariant == "executed_twice" for breach in breaches)

    call = st.sampled_from([{"look": {"at": "a"}}, {"mail": {"at": "a"}}])
    short = st.builds(lambda calls: [{"call": calls}, {"say": "Done."}], st.lists(call, min_size=1, max_size=2))
    one_kill = st.tuples(short, st.lists(st.integers(0, 15), min_size=1, max_size=1))
    script, picks = find(one_kill, mails_twice, settings=settings(max_examples=25, deadline=None, database=None))
    kills, _ = live_through(tmp_path, script, picks, "loop:run")
    assert len(script) == 2
    (call,) = script[0]["call"]
    assert call == {"mail": {"at": "a"}}
    text = case_of(script, kills, "loop:run")
    path = tmp_path / "cases" / "found.yaml"
    path.write_text(text)
    assert load_case(path, tmp_path / "cases").faults.crash == kills
