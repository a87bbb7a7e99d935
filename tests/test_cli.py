"""The command line: exit codes, then the whole output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import main
from harness.golden import dump_trace
from harness.testing import MiniProject
from harness.trace import Call, Trace

LOOP = """\
    def run(prompt, client, tools, dispatch):
        messages = [{"role": "user", "content": prompt}]
        while True:
            response = client.messages.create(model="m", max_tokens=99, tools=tools, messages=messages)
            messages.append({"role": "assistant", "content": response.content})
            uses = [block for block in response.content if block.type == "tool_use"]
            if not uses:
                return
            print("running", len(uses))
            results = [
                {"type": "tool_result", "tool_use_id": use.id, "content": str(dispatch(use.name, use.input))}
                for use in uses
            ]
            messages.append({"role": "user", "content": results})
    """
CASE = """\
    agent: loop:run
    prompt: Go.
    tools:
      look: {effect: read_only, input: {at: string}, returns: ok}
      mail: {effect: irreversible, input: {to: string}, returns: sent}
    model:
      name: m
      script:
        - call: {look: {at: here}}
        - call: {mail: {to: someone}}
        - say: Done.
    """


@pytest.fixture
def project(mini_project: MiniProject) -> MiniProject:
    mini_project.write({"loop.py": LOOP, "cases/notes/one.yaml": CASE, "cases/two.yaml": CASE})
    return mini_project


def run(project: MiniProject, *arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command that runs no case, in this process."""
    capsys.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.root)
        with pytest.raises(SystemExit) as exit_:
            main(list(arguments))
    captured = capsys.readouterr()
    return int(exit_.value.code or 0), captured.out, captured.err


def test_a_gate_from_the_first_run_to_an_accepted_change(project: MiniProject) -> None:
    """Missing, accepted, green, drifted, accepted from what was pending, green again."""
    missing = project.harness("run")
    assert missing.exit_code == 1
    assert missing.output.splitlines()[0] == (
        "notes/one: no golden yet: golden_traces/notes/one.json does not exist; look at the trace, "
        "then accept it with: pytest --update-golden, or: harness accept notes/one"
    )
    assert missing.output.splitlines()[-1] == "2 cases: 2 without golden"
    assert "running" in missing.output

    updated = project.harness("run", "--update-golden")
    assert (updated.exit_code, updated.output) == (
        0,
        "2 cases: 2 new golden\n"
        "new       golden_traces/notes/one.json  2 calls, 3 turns\n"
        "new       golden_traces/two.json  2 calls, 3 turns\n",
    )
    green = project.harness("run", "-v")
    assert (green.exit_code, green.output) == (
        0,
        "same      notes/one\nsame      two\n2 cases: 2 same as golden\n",
    )
    assert green.changed == {}

    project.edit("cases/two.yaml", "to: someone", "to: everyone")
    drifted = project.harness("run")
    assert drifted.exit_code == 1
    assert drifted.output.splitlines()[0] == "two: drift: `mail` (call 2): `to` changed"
    shown = project.harness("show", "--pending", "two")
    assert shown.exit_code == 0
    assert shown.output.splitlines()[-1] == "2 calls, 3 turns, writes: `mail` 1"
    accepted = project.harness("accept", "two")
    assert accepted.exit_code == 0
    assert accepted.output.splitlines()[0] == "accepted  golden_traces/two.json  `mail` (call 2): `to` changed"
    assert accepted.changed == {"golden_traces/two.json": "changed"}
    assert project.harness("run").exit_code == 0


@pytest.mark.parametrize(
    "arguments", [("run", "notes/one"), ("run", "notes/*"), ("run", "notes"), ("run", "cases/notes/one.yaml")]
)
def test_cases_are_named_by_id_glob_folder_or_file(project: MiniProject, arguments: tuple[str, ...]) -> None:
    """Whatever is at hand selects a case."""
    outcome = project.harness(*arguments, "--update-golden")
    assert outcome.exit_code == 0
    assert list(outcome.changed) == ["golden_traces/notes/one.json"]


def test_broken_files_are_bad_input_and_the_others_still_run(project: MiniProject) -> None:
    """Exit code 2, every problem with its line, and a verdict for the rest."""
    project.harness("run", "--update-golden")
    project.write({"cases/broken.yaml": "agent: loop:run\npromt: Go.\nmodel: {name: m, script: []}\n"})
    outcome = project.harness("run", "-v")
    assert outcome.exit_code == 2
    assert "broken.yaml:2:1: unknown key 'promt'" in outcome.output
    assert "same      two\n" in outcome.output
    assert outcome.output.splitlines()[-1] == "3 cases: 2 same as golden, 1 with a broken case file"


@pytest.mark.parametrize("where", ["loop", "tool", "import"])
def test_a_loop_that_exits_does_not_end_the_gate(project: MiniProject, where: str) -> None:
    """`sys.exit(0)` in a loop, in a tool or at import fails its case, and the other cases still run."""
    project.harness("run", "--update-golden")
    body = {
        "loop": "def run(prompt, client):\n    sys.exit(0)\n",
        "import": "sys.exit(0)\n",
        "tool": "from loop import run\ndef look(at):\n    sys.exit(0)\nTOOLS = {'look': look}\n",
    }[where]
    project.write({"exits.py": "import sys\n" + body})
    case = CASE.replace("loop:run", "exits:run")
    if where == "tool":
        tools = case.index("    tools:"), case.index("    model:")
        case = case[: tools[0]] + "    tools: exits:TOOLS\n" + case[tools[1] :]
    project.write({"cases/a.yaml": case})
    outcome = project.harness("run", "-v")
    assert outcome.exit_code == 1
    assert outcome.output.splitlines()[0].startswith("a: the loop raised SystemExit at exits.py:")
    assert "same      notes/one\nsame      two\n" in outcome.output


def test_a_loop_cannot_spoil_the_cases_after_it(project: MiniProject) -> None:
    """What it leaves in the environment is gone, a stdout that it closed is only its own."""
    project.write({
        "spoils.py": """\
            import os, sys
            from loop import run as plain

            def run(prompt, client, tools, dispatch):
                os.environ["LEFT_BEHIND"] = "1"
                plain(prompt, client, tools, dispatch)
                sys.stdout.close()
            """,
        "looks.py": """\
            import os
            from loop import run as plain

            def run(prompt, client, tools, dispatch):
                assert "LEFT_BEHIND" not in os.environ
                plain(prompt, client, tools, dispatch)
            """,
        "cases/a.yaml": CASE.replace("loop:run", "spoils:run"),
        "cases/b.yaml": CASE.replace("loop:run", "looks:run"),
    })  # fmt: skip
    outcome = project.harness("run", "--update-golden")
    assert (outcome.exit_code, outcome.output.splitlines()[0]) == (0, "4 cases: 4 new golden")


def test_two_files_for_one_id_are_bad_input(project: MiniProject) -> None:
    """They would share one golden; neither runs until one of them has another name."""
    project.write({"cases/two.yml": CASE})
    outcome = project.harness("run", "two")
    assert outcome.exit_code == 2
    assert "two.yml" in outcome.output
    assert outcome.output.splitlines()[-1] == "1 case: 1 with a broken case file"


def test_a_gate_that_vanished_is_found(project: MiniProject) -> None:
    """Without a record of a run, with a case that did not run, or that changed since, `--verify` fails."""
    nothing = project.harness("run", "--verify")
    assert nothing.exit_code == 2
    assert nothing.errors.startswith("error: the last pytest run has left no record here: ")
    project.pytest_apart("-q", "--update-golden", "-k", "two")
    partial = project.harness("run", "--verify")
    assert (partial.exit_code, partial.output) == (1, "notes/one: was not run\n")
    project.pytest_apart("-q", "--update-golden")
    assert project.harness("run", "--verify").exit_code == 0
    project.write({"cases/two.yaml": CASE + "# changed\n"})
    assert project.harness("run", "--verify").output == "two: its file changed after it ran\n"


def test_too_few_cases_fail(mini_project: MiniProject) -> None:
    """A run of nothing is not green."""
    outcome = mini_project.harness("run")
    assert (outcome.exit_code, outcome.output) == (
        1,
        "0 cases ran in cases, at least 1 are wanted (--min-cases); to set up cases: harness init\n",
    )


def test_names_that_exist_nowhere_are_answered_with_the_nearest(
    project: MiniProject, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, and exit code 2."""
    for arguments, message in {
        ("run", "notes/ones"): "error: no case is called 'notes/ones'; did you mean 'notes/one'?\n",
        ("accept", "two"): "error: no pending trace is called 'two'; there are: none\n",
        ("show", "two"): (
            "error: no golden yet: golden_traces/two.json does not exist; look at the trace, "
            "then accept it with: pytest --update-golden, or: harness accept two\n"
        ),
        ("show", "notes/ones"): "error: no case is called 'notes/ones'; did you mean 'notes/one'?\n",
        ("show", "*"): "error: '*' names 2 traces; harness show takes one, such as 'notes/one'\n",
        ("show", "--pending", "two"): "error: no pending trace is called 'two'; there are: none\n",
        ("init", "--agent", "loop.run"): (
            "error: --agent takes module:callable, such as mypackage.agent:run, not 'loop.run'\n"
        ),
    }.items():
        assert run(project, *arguments, capsys=capsys) == (2, "", message)


def test_a_run_with_problems_is_never_accepted(project: MiniProject) -> None:
    """What broke a limit stays pending, and the golden as it was."""
    project.harness("run", "--update-golden")
    project.write({"cases/two.yaml": CASE + "limits: {turns: 2}\n"})
    failed = project.harness("run", "--update-golden", "two")
    assert failed.exit_code == 1
    assert failed.changed == {}
    refused = project.harness("accept", "two")
    assert (refused.exit_code, refused.changed) == (2, {})
    assert refused.errors.startswith("refused   two: two cannot be accepted: ")


def test_prune_removes_goldens_without_a_case_and_nothing_else(
    project: MiniProject, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--check` only lists and fails; without it they go, and so do folders that become empty."""
    project.harness("run", "--update-golden")
    (project.root / "cases/notes/one.yaml").unlink()
    expected = "golden_traces/notes/one.json\n"
    assert run(project, "prune", "--check", capsys=capsys) == (1, f"orphan  {expected}", "")
    assert run(project, "prune", capsys=capsys) == (0, f"removed {expected}", "")
    assert sorted(path.name for path in (project.root / "golden_traces").iterdir()) == ["two.json"]
    assert run(project, "prune", "--check", capsys=capsys) == (0, "", "every golden has a case\n")


def test_prune_without_a_folder_of_cases_removes_nothing(
    mini_project: MiniProject, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the wrong folder every golden would look like an orphan."""
    mini_project.write({"golden_traces/one.json": "{}"})
    code, _, message = run(mini_project, "prune", capsys=capsys)
    assert (code, message) == (
        2,
        "error: there is no folder 'cases' here; refusing to call every golden an orphan\n",
    )
    assert (mini_project.root / "golden_traces/one.json").exists()


def test_init_makes_a_project_that_runs_and_keeps_what_is_there(mini_project: MiniProject) -> None:
    """Two commands from nothing to a green gate; a second `init` changes nothing."""
    mini_project.write({".gitignore": "secrets"})
    first = mini_project.harness("init")
    assert first.exit_code == 0
    assert mini_project.read(".gitignore") == "secrets\n.harness/\n"
    assert mini_project.harness("run", "--update-golden").exit_code == 0
    assert mini_project.harness("run").output == "1 case: 1 same as golden\n"
    second = mini_project.harness("init")
    assert second.changed == {}
    assert set(second.output.splitlines()) == {
        f"kept    {name}" for name in ("cases/first.yaml", "golden_traces/.gitkeep", "agent_loop.py",
                                       ".github/workflows/trajectories.yml", ".gitattributes", ".gitignore")
    }  # fmt: skip


def test_init_warns_of_a_loop_that_cannot_be_found(mini_project: MiniProject) -> None:
    """One line on stderr, since the module may be written next; nothing of the user's is imported to find out."""
    broken = 'raise RuntimeError("imported")'
    mini_project.write({"pkg/__init__.py": broken, "pkg/agent.py": broken, "space/agent.py": broken})
    for agent, missing in {
        "pkg.agent:run": None,
        "space.agent:run": None,
        "harness.agent:run": None,
        "pkg.agnet:run": "pkg.agnet",
        "pkg.agent.loop:run": "pkg.agent.loop",
        "nowhere.agent:run": "nowhere",
    }.items():
        outcome = mini_project.harness("init", "--agent", agent)
        warnings = [line for line in outcome.errors.splitlines() if line.startswith("warning: ")]
        expected = (
            f"warning: there is no module {missing!r} in this folder or on sys.path; the case will not run until "
        )
        assert outcome.exit_code == 0
        assert warnings == ([] if missing is None else [f"{expected}there is (--agent {agent})"])


def test_the_demo_finds_its_drift(mini_project: MiniProject) -> None:
    """Nothing to configure, nothing left behind; it shows a refund that is paid twice, and a mail sent twice."""
    outcome = mini_project.harness("demo")
    assert outcome.exit_code == 0
    assert "first: drift: 1 more write: `refund` (1 → 2)" in outcome.output
    assert "killed at turn2.call1.send_email.after: executed_twice: `send_email`" in outcome.output
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    sample = readme.partition("```text\n4. ")[2].partition("```")[0]
    assert sample.partition(" golden   now\n")[2] in outcome.output
    assert outcome.changed == {}


def test_the_schema_is_json_that_describes_every_key(
    mini_project: MiniProject, capsys: pytest.CaptureFixture[str]
) -> None:
    """Editors get a description for each key of a case."""
    code, output, _ = run(mini_project, "schema", capsys=capsys)
    schema = json.loads(output)
    assert code == 0
    assert [name for name, field in schema["properties"].items() if "description" not in str(field)] == []


def test_help_is_light(mini_project: MiniProject) -> None:
    """`--help` imports neither the SDK nor pydantic, rich, deepdiff or yaml, so that it answers at once."""
    script = (
        "import sys\nfrom harness.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'anthropic', 'pydantic', 'rich', 'deepdiff', 'yaml', 'httpx2', 'rapidfuzz'} & set(sys.modules)))"
    )
    outcome = mini_project.run(sys.executable, "-c", script)
    assert outcome.output.splitlines()[-1] == "[]"


def test_output_in_a_pipe_has_no_colours(project: MiniProject) -> None:
    """What CI logs and files get is plain text, whatever the terminal can do."""
    outcome = project.run(sys.executable, "-m", "harness", "run", env={"NO_COLOR": None, "TERM": "xterm-256color"})
    assert "\x1b" not in outcome.output + outcome.errors


def test_completion_knows_cases(project: MiniProject) -> None:
    """Shells complete ids of cases."""
    command = Path(sys.executable).parent / "harness"
    if not command.exists():
        pytest.skip("the package is not installed with its script")
    env = {"_HARNESS_COMPLETE": "bash_complete", "COMP_WORDS": "harness run no", "COMP_CWORD": "2"}
    outcome = project.run(str(command), env=env)
    assert outcome.output == "plain,notes/one\n"


def test_the_module_is_the_command() -> None:
    """`python -m harness` and `harness` are the same."""
    done = subprocess.run([sys.executable, "-m", "harness", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("harness, version ")


def test_a_folder_that_was_removed_is_one_error(tmp_path: Path) -> None:
    """A shell may stand in one; every command says so."""
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f"cd {gone} && rmdir {gone} && {sys.executable} -m harness run"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "error: the working directory no longer exists; cd to one that does\n",
    )


def test_a_stdout_that_takes_no_more_is_one_error(mini_project: MiniProject) -> None:
    """A full disk, or a stream that was closed: never a traceback."""
    command = f"{sys.executable} -m harness schema"
    full = mini_project.run("sh", "-c", f"{command} > /dev/full")
    assert (full.exit_code, full.errors) == (2, "error: stdout cannot be written: No space left on device\n")
    closed = mini_project.run("sh", "-c", f"{command} >&-")
    assert (closed.exit_code, closed.errors) == (0, "")


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
def test_an_encoding_that_does_not_hold_all_signs_is_no_fault(mini_project: MiniProject, encoding: str) -> None:
    """A pipe on Windows is cp1252: what it does not hold is escaped there."""
    calls = (Call(1, "look", "0" * 12, True, {}), Call(2, "look", "1" * 12, True, {}))
    for name, count in (("old", 1), ("new", 2)):
        one = Trace("a", calls[:count], count, ("tool_use",) * count)
        mini_project.write({f"{name}.json": dump_trace(one)})
    done = mini_project.run(
        sys.executable, "-m", "harness", "diff", "old.json", "new.json",
        env={"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
    )  # fmt: skip
    assert (done.exit_code, done.errors) == (1, "")
    assert done.output.splitlines()[1] in ("old.json → new.json", "old.json \\u2192 new.json")


def test_an_update_accepts_nothing_that_is_expected_to_fail(project: MiniProject) -> None:
    """As under pytest: its golden stays, and that is said."""
    assert project.harness("run", "--update-golden").exit_code == 0
    project.edit("cases/two.yaml", "to: someone", "to: everyone")
    project.edit("cases/two.yaml", "agent:", "marks: [xfail]\nagent:")
    outcome = project.harness("run", "--update-golden")
    assert (outcome.exit_code, outcome.changed) == (1, {})
    assert outcome.output.splitlines()[-2] == "kept      golden_traces/two.json  `mail` (call 2): `to` changed"
