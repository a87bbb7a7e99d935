"""docs/reports.md is true: its sessions are what the commands print, its commands exist, its tables are complete."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from harness.commands.diff import command
from harness.report.json_report import report_data
from tests.report.drifts import run_of_everything

if TYPE_CHECKING:
    from harness.testing import MiniProject

DOCUMENT = (Path(__file__).parents[2] / "docs" / "reports.md").read_text(encoding="utf-8")
ENV = {"COLUMNS": "100", "GITHUB_BASE_REF": None, "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": None}


def git(project: MiniProject, *arguments: str) -> None:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    subprocess.run(["git", *who, *arguments], cwd=project.root, check=True, capture_output=True)


def commands() -> list[str]:
    """All lines of shell blocks that diff something."""
    blocks = re.findall(r"```sh\n(.*?)```", DOCUMENT, re.DOTALL)
    lines = [line.partition("#")[0].partition("|")[0] for block in blocks for line in block.splitlines()]
    lines += re.findall(r"(?:run:|-) (harness diff [^\n]*)", DOCUMENT)
    return [line.strip() for line in lines if line.startswith("harness diff")]


@pytest.fixture
def project(mini_project: MiniProject) -> MiniProject:
    """What `harness init` makes, accepted on main, with a script that looks an order up twice on a branch."""
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=mini_project.root, check=True)
    assert mini_project.harness("init").exit_code == 0
    assert mini_project.harness("run", "--update-golden").exit_code == 0
    git(mini_project, "add", "-A")
    git(mini_project, "commit", "-qm", "Begin")
    git(mini_project, "switch", "-qc", "careful")
    look, refund = "    - call: {find_order: {order: A-1}}\n", "    - call: {refund:"
    mini_project.edit("cases/first.yaml", refund, look + refund)
    return mini_project


def test_the_sessions_are_real(project: MiniProject) -> None:
    """Each command prints what the document shows, to the letter; one that shows nothing only has to do its work."""
    assert project.harness("run").exit_code == 1
    blocks = re.findall(r"```text\n(\$ .*?)```", DOCUMENT, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        for session in block.split("$ harness ")[1:]:
            line, _, shown = session.partition("\n")
            outcome = project.harness(*line.split(), env=ENV)
            assert outcome.exit_code in (0, 1), outcome.errors
            assert not shown or outcome.output == shown


def test_every_command_works(project: MiniProject) -> None:
    """Each `harness diff` of the document, in a project that has what it names."""
    assert project.harness("run").exit_code == 1
    git(project, "tag", "v1.0")
    git(project, "branch", "origin/release", "main")
    golden = project.read("golden_traces/first.json")
    project.write({"old.json": golden, "new.json": golden, "exported/first.json": golden})
    found = commands()
    assert len(found) == 11
    for line in found:
        outcome = project.harness(*line.split()[1:], env=ENV)
        assert outcome.exit_code in (0, 1), (line, outcome.errors)


def test_every_option_and_format_is_named() -> None:
    """Nothing that the command takes is left out."""
    options = [option for one in command.params if isinstance(one, click.Option) for option in one.opts[-1:]]
    assert [option for option in options if option not in DOCUMENT and option != "--root"] == []
    form = next(one for one in command.params if one.name == "form")
    assert isinstance(form.type, click.Choice)
    assert re.findall(r"^\| `(\w+)` \|", DOCUMENT.partition("## Formats")[2], re.MULTILINE)[:6] == list(
        form.type.choices
    )


def test_every_key_of_the_json_is_named() -> None:
    """Down to the findings."""
    data = report_data(run_of_everything())
    drift = next(case["change"]["drift"] for case in data["cases"] if case["change"]["drift"])
    branch = next(case["branch"] for case in data["cases"] if case["branch"])
    crash = next(case["crash"] for case in data["cases"] if case["crash"])
    text = DOCUMENT.partition("## JSON")[2]
    parts = (
        data,
        data["summary"],
        data["cases"][0],
        branch,
        crash,
        drift,
        drift["findings"][0],
        data["cases"][0]["files"],
    )
    assert [key for part in parts for key in part if f"`{key}`" not in text] == []
