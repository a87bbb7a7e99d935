"""Any script, any tools, any kills and restarts: the durable loop keeps every rule, and a wrong loop is shrunk to a
case.

The machine writes a case step by step, runs it in real processes, kills it, restarts it, and kills it again.
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from harness.case.load import load_case
from harness.crash.subject import subject_of
from harness.crash.warm import warm_up
from harness.faults.history import History
from harness.faults.invariants import Breach, broken
from harness.faults.lives import Subject, live_and_die
from harness.faults.site import Site
from harness.faults.sweep import Plan, sweep
from harness.faults.workers import fan_out
from harness.project import Project

PLANTED = Path(__file__).with_name("planted_loop.py").read_text()

NAMES = {"irreversible": "mail", "idempotent": "put", "read_only": "look"}  # what is most at stake is simplest

RETURNS = {"returns": "ok"}
ANSWERS = (RETURNS, {"raises": "no"}, {"sequence": [{"raises": "not yet"}, {"returns": "one"}, {"returns": "two"}]})


@dataclass(frozen=True)
class Restart:
    """What became of a run that was killed and then left alone.

    Args:
        points: those that the last life passed: where the next kill may be.
        breaches: the rules that were broken.
    """

    points: tuple[str, ...]
    breaches: list[Breach]


class AnyHistory(RuleBasedStateMachine):
    """A case, and a run of it that is killed, restarted, and killed again; every restart keeps every rule."""

    agent = "harness.agent:run"
    answers: Sequence[dict[str, Any]] = ANSWERS
    loop = ""
    seen: dict[tuple[str, tuple[str, ...]], Restart]
    smooth_runs: dict[str, History]

    tools = Bundle("tools")

    def __init__(self) -> None:
        super().__init__()
        memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
        self.folder = Path(tempfile.mkdtemp(dir=memory)).resolve()
        self.stubs: dict[str, dict[str, Any]] = {}
        self.script: list[dict[str, Any]] = []
        self.kills: list[str] = []
        self.references: list[tuple[str, ...]] = []
        self.text = ""
        self.subject: Subject
        self.smooth: History

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    @precondition(lambda self: not self.kills and len(self.stubs) < 3)
    @rule(target=tools, data=st.data(), effect=st.sampled_from(list(NAMES)))
    def declare(self, data: st.DataObject, effect: str) -> str:
        """One more tool: what it does to the world, and what it answers."""
        name = NAMES[effect]
        name = name if name not in self.stubs else f"{name}{len(self.stubs)}"
        answers = data.draw(st.sampled_from(self.answers))
        self.stubs[name] = {"effect": effect, "input": {"at": "string"}, **answers}
        return name

    @precondition(lambda self: not self.kills and self.stubs and len(self.script) < 3)
    @rule(calls=st.lists(st.tuples(tools, st.sampled_from("ab")), min_size=1, max_size=3))
    def turn(self, calls: list[tuple[str, str]]) -> None:
        """One more response of the model; several calls are parallel."""
        self.script.append({"call": [{tool: {"at": at}} for tool, at in calls]})

    @precondition(lambda self: self.script and not self.kills)
    @rule(pick=st.integers(0, 63))
    def run_and_kill(self, pick: int) -> None:
        """Run the case and kill it at one of its points, then restart it."""
        project = Project.at(self.folder)
        path = project.cases / "found.yaml"
        path.parent.mkdir()
        (self.folder / "loop.py").write_text(self.loop)
        path.write_text(self.case())
        self.subject = subject_of(load_case(path, project.cases), project)
        self.text = path.read_text()
        if self.text not in self.smooth_runs:
            self.smooth_runs[self.text] = self.live([])
        self.smooth = self.smooth_runs[self.text]
        assert self.smooth.last.ended is not None, self.smooth.last.death
        self.kill(pick, self.smooth.last.points)

    @precondition(lambda self: self.kills)
    @rule(pick=st.integers(0, 63))
    def restart_and_kill(self, pick: int) -> None:
        """Kill the restarted process as well, and restart it again."""
        self.kill(pick, self.seen[self.text, tuple(self.kills)].points)

    def kill(self, pick: int, points: tuple[str, ...]) -> None:
        if not points:
            return  # nothing of a finished run is done again
        self.kills.append(points[pick % len(points)])
        self.references.append(points)
        history = self.text, tuple(self.kills)
        if history not in self.seen:  # shrinking comes by the same histories again and again
            self.seen[history] = self.restart()
        if breaches := self.seen[history].breaches:
            raise AssertionError(self.report(breaches))

    def live(self, kills: Sequence[str]) -> History:
        return live_and_die(self.subject, Site(self.folder / "site"), kills, self.references)

    def restart(self) -> Restart:
        history = self.live(self.kills)
        assert all(life.killed for life in history.lives[:-1])
        return Restart(history.last.points, broken(history, self.smooth))

    def case(self) -> str:
        """The case as it can be committed: with the tools that its script calls."""
        called = {tool for step in self.script for call in step["call"] for tool in call}
        case = {
            "description": f"Killed at {', then at '.join(self.kills)}.",
            "agent": self.agent,
            "prompt": "Go.",
            "tools": {name: stub for name, stub in self.stubs.items() if name in called},
            "model": {"name": "m", "script": [*self.script, {"say": "Done."}]},
            "faults": {"crash": self.kills[:1] or "every_point"},
        }
        return yaml.safe_dump(case, sort_keys=False, width=120)

    def report(self, breaches: list[Breach]) -> str:
        first, *then = map(shlex.quote, self.kills)
        told = "\n".join(f"{breach.invariant}: {breach.message}" for breach in breaches)
        again = f"harness crash found --point {first}" + "".join(f" --then {point}" for point in then)
        return f"{told}\ncommit this as cases/found.yaml:\n---\n{self.case()}---\nand see it again: {again}"


BOUNDED = settings(
    max_examples=12,
    stateful_step_count=7,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

QUICK = settings(
    BOUNDED,
    max_examples=300,  # most of so short ones come to no kill, and cost nothing
    stateful_step_count=4,
    derandomize=True,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    report_multiple_bugs=False,
)


def falsify(bounds: settings, **loop: Any) -> str | None:
    """What the smallest history says that breaks a rule, or None.  The machine runs in a worker, which owns all that
    its lives leave behind.
    """

    def work(_: int, machine: type[AnyHistory]) -> str | None:
        try:
            run_state_machine_as_test(machine, settings=bounds)
        except AssertionError as error:
            return str(error)
        return None

    warm_up()
    (found,) = fan_out([type("Machine", (AnyHistory,), {"seen": {}, "smooth_runs": {}, **loop})], work, jobs=1)
    return found


def test_the_durable_loop_keeps_every_rule() -> None:
    """Law: whatever the model asks for, whatever the tools are and wherever the processes die, no rule is broken."""
    found = falsify(BOUNDED)
    assert found is None, found


@pytest.mark.parametrize(
    ("bug", "invariant"),
    [("run every pending call again", "executed_twice"), ("reset turns on resume", "counters")],
)
def test_a_wrong_loop_is_shrunk_to_a_case(tmp_path: Path, bug: str, invariant: str) -> None:
    """A planted bug is found, and shrunk to the smallest case that has it: one turn, one kill, and no call too many.
    The case that is printed has it as well.
    """
    loop = PLANTED.replace('BUG = ""', f'BUG = "{bug}"')
    told, text, again = str(falsify(QUICK, agent="loop:run", answers=[RETURNS], loop=loop)).split("---\n")
    assert told.startswith(f"{invariant}: ")
    case = yaml.safe_load(text)
    step, done = case["model"]["script"]
    assert (len(step["call"]), done) == (1, {"say": "Done."})
    assert [stub["effect"] for stub in case["tools"].values()] == ["irreversible"]
    (point,) = case["faults"]["crash"]
    assert again.splitlines()[0] == f"and see it again: harness crash found --point {point}"

    (tmp_path / "loop.py").write_text(loop)
    path = tmp_path / "cases" / "found.yaml"
    path.parent.mkdir()
    path.write_text(text)
    project = Project.at(tmp_path)
    found = sweep(subject_of(load_case(path, project.cases), project), Plan(points=(point,)))
    assert [crash.outcome for crash in found.crashes] == [invariant]
