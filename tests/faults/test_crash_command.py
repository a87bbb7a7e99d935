"""`harness crash` and the crash golden: exit codes, what is shown, what is written."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from harness.cli import main
from harness.testing import MiniProject

NAIVE = (Path(__file__).parents[2] / "examples" / "naive_resume.py").read_text()

CASE = """\
    agent: {agent}
    prompt: Go.
    tools:
      look: {{effect: read_only, input: {{at: string}}, returns: ok}}
      mail: {{effect: irreversible, input: {{to: string}}, returns: sent}}
    model:
      name: m
      script:
        - call: {{mail: {{to: someone}}}}
          on_unknown: [{{call: {{look: {{at: outbox}}}}}}]
        - say: Done.
    faults: {{crash: {crash}}}
    """

KEY_POINTS = '["turn1.call1.mail.*", "turn1.model.after"]'


@pytest.fixture
def project(mini_project: MiniProject) -> MiniProject:
    mini_project.write({"cases/mail.yaml": CASE.format(agent="harness.agent:run", crash=KEY_POINTS)})
    return mini_project


def crash(project: MiniProject, *arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """Exit code and stdout of `harness crash`, in this process."""
    capsys.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.root)
        patch.setenv("NO_COLOR", "1")
        with pytest.raises(SystemExit) as exit_:
            main(["crash", *arguments])
    return int(exit_.value.code or 0), capsys.readouterr().out.splitlines()


def test_a_sweep_is_accepted_compared_and_drifts(project: MiniProject, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a golden it fails, accepted it is written one line a point, and a changed outcome is a drift."""
    golden = project.root / "golden_traces" / "mail.crash.json"
    code, out = crash(project, capsys=capsys)
    assert code == 1
    assert out[-1] == "1 case, 3 kills: 0 failed, 1 without crash golden"
    assert out[0] == (
        "missing   mail: no crash golden yet: golden_traces/mail.crash.json does not exist; look at the matrix, "
        "then accept it with: harness crash mail --update-golden"
    )
    code, out = crash(project, "--update-golden", capsys=capsys)
    assert (code, out[:3]) == (
        0,
        ["new       mail: 3 crash points", "  turn1  .??", "  3 points: 2 unknown, 1 same"],
    )
    text = golden.read_text()
    assert json.loads(text)["points"][1:] == [
        {"point": "turn1.call1.mail.before", "outcome": "unknown", "executions": {}, "unknown": 1, "turns": 3},
        {"point": "turn1.call1.mail.after", "outcome": "unknown", "executions": {"mail": 1}, "unknown": 1, "turns": 3},
    ]
    assert crash(project, "--update-golden", capsys=capsys)[1][0] == "unchanged mail"
    golden.write_text(
        text.replace('"executions": {"mail": 1}, "unknown": 1', '"executions": {"mail": 2}, "unknown": 1')
    )
    code, out = crash(project, capsys=capsys)
    assert (code, out[:3]) == (
        1,
        [
            "drift     mail: 1 crash point goes another way than golden_traces/mail.crash.json says",
            "~ turn1.call1.mail.after: unknown (mail 2×, 3 turns) → unknown (mail 1×, 3 turns)",
            "accept with: harness crash mail --update-golden",
        ],
    )
    golden.write_text("{")
    assert crash(project, capsys=capsys)[1][0].startswith("unusable  mail: golden_traces/mail.crash.json is not JSON")


def test_points_are_listed_and_one_can_be_had_again(project: MiniProject, capsys: pytest.CaptureFixture[str]) -> None:
    """`--list` names the points in order; `--point` takes one of them, or a glob, and accepts nothing."""
    code, points = crash(project, "--list", capsys=capsys)
    assert code == 0
    assert [one for one in points if ".save" not in one] == [
        "turn1.model.before",
        "turn1.model.after",
        "turn1.call1.mail.before",
        "turn1.call1.mail.after",
        "turn2.model.before",
        "turn2.model.after",
    ]
    code, out = crash(project, "mail", "--point", "turn2.model.after", "--update-golden", capsys=capsys)
    assert (code, out) == (0, ["same      mail", "  turn2  .", "  1 points: 1 same", "1 case, 1 kills: 0 failed"])
    assert not (project.root / "golden_traces" / "mail.crash.json").exists()
    wrong = project.harness("crash", "mail", "--point", "turn2.model.afer")
    assert (wrong.exit_code, wrong.output, wrong.errors) == (
        2,
        "",
        "error: mail: the run has no crash point 'turn2.model.afer'; did you mean 'turn2.model.after'?\n",
    )


def test_a_point_that_the_case_names_wrongly_is_the_fault_of_its_file(
    project: MiniProject, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the line of it, unlike a point that was asked for on the command line."""
    project.edit("cases/mail.yaml", "turn1.model.after", "turn1.model.afer")
    code, out = crash(project, capsys=capsys)
    assert code == 2
    assert out[0].startswith("cases/mail.yaml:12:10: the run has no crash point 'turn1.model.afer'; did you mean")


def test_a_sweep_of_some_points_is_not_kept_as_the_whole(
    project: MiniProject, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the last whole sweep saw is what a report shows, and what an acceptance looks at."""
    crash(project, capsys=capsys)
    kept = project.read(".harness/crash/mail.crash.json")
    crash(project, "mail", "--point", "turn2.model.after", capsys=capsys)
    assert project.read(".harness/crash/mail.crash.json") == kept
    assert len(json.loads(kept)["points"]) == 3


def test_a_resumed_life_is_killed_as_well(project: MiniProject, capsys: pytest.CaptureFixture[str]) -> None:
    """At depth 2 each resumed life dies at each of its points; too many pairs are sampled, and it says so."""
    code, out = crash(project, "mail", "--point", "turn1.call1.mail.after", "--depth", "2", capsys=capsys)
    assert code == 0
    assert out[2].startswith("  1 points and all ")
    code, out = crash(
        project, "mail", "--point", "turn1.call1.mail.after", "--depth", "2", "--pairs", "3", capsys=capsys
    )
    assert (code, out[2].split(" pairs")[0].partition(" of ")[0]) == (0, "  1 points and 3")
    code, out = crash(
        project, "mail", "--point", "turn1.call1.mail.after", "--then", "turn2.model.before", capsys=capsys
    )
    assert (code, out[2]) == (0, "  1 points and all 1 pairs: 2 unknown")
    twice = ("--then", "turn2.model.before") * 2
    code, out = crash(project, "mail", "--point", "turn1.call1.mail.after", *twice, capsys=capsys)
    assert (code, out[2]) == (0, "  1 points and all 1 pairs: 2 unknown")
    code, out = crash(project, "mail", "--point", "turn1.call1.mail.after", *twice, "--then", "no", capsys=capsys)
    after = "turn1.call1.mail.after, then at turn2.model.before, then at turn2.model.before"
    assert (code, out[0].partition(": ")[2]) == (
        2, f"life 4 passes no crash point 'no', after a kill at {after} (at faults)"
    )  # fmt: skip


def test_the_naive_example_is_caught(project: MiniProject, capsys: pytest.CaptureFixture[str]) -> None:
    """The loop that runs every pending call again mails twice, and no golden can bless it."""
    project.write({"naive.py": NAIVE, "cases/mail.yaml": CASE.format(agent="naive:run_agent", crash="every_point")})
    code, out = crash(project, "--update-golden", capsys=capsys)
    assert code == 1
    assert out[0] == (
        "failed    mail: killed at turn1.call1.mail.after: executed_twice: `mail` (turn 1, call 1) ran 2 times, "
        "in lives 1 and 2: it cannot be taken back (and 5 more)"
    )
    assert any(one.startswith("  again: harness crash mail --point turn1.call1.mail.after") for one in out)
    assert not (project.root / "golden_traces" / "mail.crash.json").exists()
    observed = json.loads((project.root / ".harness" / "crash" / "mail.crash.json").read_text())["points"]
    assert sum(one["outcome"] == "executed_twice" for one in observed) == 6


def test_no_value_is_told(project: MiniProject, capsys: pytest.CaptureFixture[str]) -> None:
    """What goes to a terminal, a log or a golden names tools and outcomes; arguments, results and errors do not."""
    raises = "    if len(messages) > 2: raise ValueError('canary')\n    while True:"
    loop = NAIVE.replace("    while True:", raises, 1)
    case = CASE.format(agent="naive:run_agent", crash='["turn1.call1.mail.after", "turn1.save2.rename.after"]')
    project.write({"naive.py": loop, "cases/mail.yaml": case.replace("sent", "canary").replace("someone", "canary")})
    code, out = crash(project, capsys=capsys)
    assert code == 1
    assert "the loop raised ValueError at naive.py" in "\n".join(out)
    observed = (project.root / ".harness" / "crash" / "mail.crash.json").read_text()
    assert "canary" not in "\n".join(out) + observed


def test_what_cannot_be_swept_says_why(project: MiniProject, capsys: pytest.CaptureFixture[str]) -> None:
    """A case that is wrong before anybody is killed is bad input, told at its place in the file."""
    broken = "def run(client):\n    raise RuntimeError('as always')\n"
    project.write({"broken.py": broken, "cases/mail.yaml": CASE.format(agent="broken:run", crash="every_point")})
    code, out = crash(project, capsys=capsys)
    assert code == 2
    assert out[0].endswith(
        "the run is not right even when nobody kills it: the loop raised RuntimeError at broken.py:2 (at faults)"
    )
    project.write({"cases/mail.yaml": CASE.format(agent="harness.agent:run", crash="none")})
    capsys.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.root)
        with pytest.raises(SystemExit) as exit_:
            main(["crash"])
    assert exit_.value.code == 2
    assert capsys.readouterr().err == (
        "error: no case asks for crashes; name one, or give it: faults: {crash: every_point}\n"
    )


def test_one_crash_can_be_followed_in_a_debugger(
    project: MiniProject, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--here` kills a real process, and resumes in this one: a `breakpoint()` in the loop is reached here, once."""
    stopped: list[int] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: stopped.append(os.getpid()))
    loop = NAIVE.replace("    while True:", "    breakpoint()\n    while True:", 1)
    project.write({"followed.py": loop, "cases/mail.yaml": CASE.format(agent="followed:run_agent", crash="none")})
    code, out = crash(project, "mail", "--point", "turn1.call1.mail.after", "--here", capsys=capsys)
    assert (code, out) == (0, ["killed at turn1.call1.mail.after, resumed here: it came to its end"])
    assert stopped == [os.getpid()]
    wrong = project.harness("crash", "mail", "--point", "turn9.model.after", "--here")
    assert (wrong.exit_code, wrong.errors.startswith("error: mail: the run has no crash point 'turn9")) == (2, True)


def test_another_callable_can_resume(project: MiniProject, capsys: pytest.CaptureFixture[str]) -> None:
    """`resume:` names what goes on after a crash, where that is not the loop called again."""
    loop = """\
        from pathlib import Path
        from harness.agent import run

        def begin(prompt, client, toolset, model, state_dir):
            if any(Path(state_dir).iterdir()):
                raise RuntimeError("there is a run already")
            run(prompt, client=client, toolset=toolset, model=model, state_dir=state_dir)

        def resume(prompt, client, toolset, model, state_dir):
            run(prompt, client=client, toolset=toolset, model=model, state_dir=state_dir)
        """
    case = CASE.format(agent="loop:begin", crash='["turn1.model.*"]')
    project.write({"loop.py": loop, "cases/mail.yaml": case})
    code, out = crash(project, "--update-golden", capsys=capsys)
    assert (code, "the loop raised RuntimeError at loop.py:6" in "\n".join(out)) == (1, True)
    project.write({"cases/mail.yaml": f"{case.rstrip()}\n    resume: loop:resume\n"})
    assert crash(project, "--update-golden", capsys=capsys)[0] == 0


def test_pytest_sweeps_what_asks_for_it(project: MiniProject) -> None:
    """A case with `faults` is two items: itself and its sweep, each with its golden."""
    outcome = project.pytest("--update-golden", "-q")
    assert outcome.exit_code == 0
    assert outcome.changed == {"golden_traces/mail.json": "added", "golden_traces/mail.crash.json": "added"}
    assert project.pytest("-q").exit_code == 0
    project.write({"naive.py": NAIVE, "cases/mail.yaml": CASE.format(agent="naive:run_agent", crash="every_point")})
    outcome = project.pytest("-q", "-k", "crash")
    assert outcome.exit_code == 1
    assert "failed: killed at turn1.call1.mail.after: executed_twice" in outcome.output
    assert "KILLED at turn1.call1.mail.after" in outcome.output
