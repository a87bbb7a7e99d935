"""The composite action: its YAML is sound, and its scripts work, in a real project and with a `gh` that records."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from harness.testing import MiniProject

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / ".github/actions/trajectories/action.yml").read_text(encoding="utf-8"))
STEPS: dict[str, dict[str, Any]] = {step["name"]: step for step in ACTION["runs"]["steps"]}
SCRIPTS = {name: step["run"] for name, step in STEPS.items() if "run" in step}
WORKFLOW = (ROOT / "harness/scaffold/workflow.yml.txt").read_text(encoding="utf-8")

LOOP = """\
    def run(prompt, dispatch):
        for page in range(3):
            dispatch("read", {"page": page, "of": prompt})
    """
CASE = """\
    agent: loop:run
    prompt: book
    tools:
      read: {effect: read_only, input: {page: integer, of: string}, returns: text}
    model: {name: claude-sonnet-5, script: [{say: Never asked.}]}
    """

GH = """\
#!/bin/sh
printf '%s\\n' "$*" >> "$GH_LOG"
case "$*" in
  *--paginate*) [ -z "$GH_DENIED" ] || exit 1; printf '%s' "$GH_IDS";;
  *PATCH*) [ -z "$GH_FOREIGN" ] || exit 1;;
  *POST*) [ -z "$GH_READ_ONLY" ] || exit 1;;
esac
"""


def test_the_action_is_a_composite_of_whole_steps() -> None:
    """Every script has a shell, every input a description, every secret and name comes by the environment."""
    assert ACTION["runs"]["using"] == "composite"
    assert set(ACTION["inputs"]) == {"args", "working-directory", "python", "base", "comment", "github-token"}
    assert all(one["description"] and "default" in one for one in ACTION["inputs"].values())
    for name, step in STEPS.items():
        assert ("run" in step) != ("uses" in step), name
        assert "run" not in step or step["shell"] == "bash"
        # An expression in a script is code from whoever names a branch.
        assert "${{" not in step.get("run", "")
    for name, script in SCRIPTS.items():
        used = set(STEPS[name]["env"])
        assert all(f"${variable}" in script or f'"{variable}"' in script for variable in used - {"GH_TOKEN"}), name


def test_the_gate_is_judged_last_and_reports_come_first() -> None:
    """Whatever fails, what was found is reported; a run that was cancelled is not."""
    names = list(STEPS)
    assert names[0] == "Run the cases"
    assert names[-1] == "The gate"
    assert all("!cancelled()" in step["if"] for name, step in STEPS.items() if name != "Run the cases")


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_bash(name: str) -> None:
    """`bash -n` finds nothing."""
    done = subprocess.run(["bash", "-n"], input=SCRIPTS[name], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_workflow_of_a_new_project_reports() -> None:
    """`harness init` writes a workflow that needs no action of ours: annotations, summary, traces."""
    steps = yaml.safe_load(WORKFLOW)["jobs"]["cases"]["steps"]
    commands = [step["run"] for step in steps if "run" in step]
    assert "harness diff --run --format github --summary --exit-zero" in commands
    assert steps[0]["with"] == {"fetch-depth": 0}
    for command in commands:
        assert subprocess.run(["bash", "-n"], input=command, text=True, check=False).returncode == 0


class Runner:
    """Runs a step's script as a GitHub runner does."""

    def __init__(self, project: MiniProject, folder: Path) -> None:
        self.project = project
        self.log = folder / "gh.log"
        self.output = folder / "output"
        self.summary = folder / "summary"
        self.comment = folder / "harness-comment.md"
        tools = folder / "bin"
        tools.mkdir()
        (tools / "gh").write_text(GH, encoding="utf-8")
        (tools / "gh").chmod(0o755)
        self.env = {
            "ARGS": "", "BASE": "", "PYTHON": sys.executable, "NUMBER": "7", "FOLDER": ".", "JOB": "ci.cases.0",
            "NAME": "ci.cases.0..", "PASSED": "true", "GH_TOKEN": "t",
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder), "GH_LOG": str(self.log),
            "GITHUB_OUTPUT": str(self.output), "GITHUB_STEP_SUMMARY": str(self.summary), "RUNNER_TEMP": str(folder),
            "GITHUB_REPOSITORY": "shop/agent", "GITHUB_SERVER_URL": "https://github.com", "GITHUB_RUN_ID": "5",
            "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip

    def run(self, name: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", SCRIPTS[name]],
            cwd=self.project.root, env=self.env | env, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    def calls(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []


@pytest.fixture
def runner(mini_project: MiniProject, tmp_path: Path) -> Runner:
    mini_project.write({"loop.py": LOOP, "cases/book.yaml": CASE, "cases/other.yaml": CASE})
    assert mini_project.pytest("--update-golden", "-q").exit_code == 0
    return Runner(mini_project, tmp_path)


def test_from_the_run_to_the_comment(runner: Runner) -> None:
    """Cases run with the arguments given, drift is annotated and summed up, the comment is written, the gate fails."""
    runner.project.edit("loop.py", "range(3)", "range(4)")
    ran = runner.run("Run the cases", ARGS="-q -k 'book or other'")
    assert ran.returncode == 0
    assert "1 more call (3 → 4, +33%): `read`" in ran.stdout
    assert runner.output.read_text(encoding="utf-8") == "name=ci.cases.0..\npassed=false\n"

    reported = runner.run("Annotations, job summary, comment")
    assert reported.returncode == 0
    assert [line.partition(",line")[0] for line in reported.stdout.splitlines()] == [
        "::error file=golden_traces/book.json", "::error file=golden_traces/other.json",
        "::notice title=Goldens are not compared with a base branch::golden_traces/ is in no git repository "
        "(fatal: not a git repository (or any of the parent directories): .git)",
    ]  # fmt: skip
    assert runner.summary.read_text(encoding="utf-8") == runner.comment.read_text(encoding="utf-8")
    assert runner.comment.read_text(encoding="utf-8").startswith(
        "<!-- harness-report -->\n## Trajectories: The path changed in 2"
    )

    gate = runner.run("The gate", PASSED="false")
    assert (gate.returncode, gate.stdout[:8]) == (1, "::error ")
    assert runner.run("The gate", PASSED="").returncode == 1
    assert runner.run("The gate", PASSED="true").returncode == 0


def test_a_run_that_left_out_a_case_does_not_pass(runner: Runner) -> None:
    """The gate cannot be narrowed by arguments, or by a plugin that was switched off."""
    assert runner.run("Run the cases", ARGS="-q -k book").returncode == 0
    assert runner.output.read_text(encoding="utf-8") == "name=ci.cases.0..\npassed=false\n"
    assert runner.run("Run the cases", ARGS="-q").returncode == 0
    assert runner.output.read_text(encoding="utf-8").endswith("passed=true\n")


def test_a_report_is_named_by_its_job_and_its_folder(runner: Runner) -> None:
    """Two projects in one repository, and the jobs of a matrix, do not overwrite each other; no name is a program."""
    runner.run("Run the cases", ARGS="--collect-only", JOB="CI (all).cases.3", FOLDER='a/"b") $(id)\nx')
    assert runner.output.read_text(encoding="utf-8").startswith("name=CI--all-.cases.3.a--b-----id--x\n")
    assert "steps.cases.outputs.name" in STEPS["Keep what the cases did"]["with"]["name"]
    assert "steps.cases.outputs.name" in STEPS["Comment in the pull request"]["env"]["NAME"]


def test_a_base_that_cannot_be_used_is_an_error(runner: Runner) -> None:
    """A comparison that was asked for is never left out in silence."""
    runner.run("Run the cases", ARGS="-q")
    assert runner.run("Annotations, job summary, comment", BASE="main").returncode == 2


POST = "api --method POST repos/shop/agent/issues/7/comments -F body=@{file} --silent"
PATCH = "api --method PATCH repos/shop/agent/issues/comments/41 -F body=@{file} --silent"
WARNING = "::warning title=Trajectories::"


@pytest.mark.parametrize(
    ("env", "calls", "warns"),
    [
        ({}, [POST], False),
        ({"GH_IDS": "41\n42\n"}, [PATCH], False),
        ({"GH_IDS": "41\n", "GH_FOREIGN": "1"}, [PATCH, POST], False),
        ({"GH_READ_ONLY": "1"}, [POST], True),
        ({"GH_DENIED": "1"}, [], True),
    ],
    ids=["none yet", "one of ours", "one of somebody else", "a fork", "no access"],
)
def test_one_comment_is_kept_up_to_date(runner: Runner, env: dict[str, str], calls: list[str], warns: bool) -> None:
    """Written once, found by its first line, updated; where the token may not write, a warning and no failure."""
    runner.comment.write_text("<!-- harness-report -->\n", encoding="utf-8")
    done = runner.run("Comment in the pull request", **env)
    assert done.returncode == 0
    listed, *others = runner.calls()
    assert listed == (
        "api --paginate repos/shop/agent/issues/7/comments --jq "
        '.[] | select(.body | startswith("<!-- trajectories ci.cases.0.. -->")) | .id'
    )
    written = runner.comment.with_name("harness-comment-ci.cases.0...md")
    assert others == [call.format(file=written) for call in calls]
    assert written.read_text(encoding="utf-8") == (
        "<!-- trajectories ci.cases.0.. -->\n<!-- harness-report -->\n\n<sub>ci.cases.0..</sub>\n"
    )
    assert done.stdout.startswith(WARNING) == warns
