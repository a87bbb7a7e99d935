"""`harness report`, `harness run --report` and `pytest --harness-report`: where the page goes, and what is in it."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING

import pytest

from harness.testing import MiniProject
from tests.small_loop import LOOP

if TYPE_CHECKING:
    from pathlib import Path

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
    """Two accepted cases, of which one drifts."""
    mini_project.write({"loop.py": LOOP, "cases/one.yaml": CASE, "cases/two.yaml": CASE, "pyproject.toml": ""})
    assert mini_project.harness("run", "--update-golden").exit_code == 0
    mini_project.edit("cases/two.yaml", "look: {at: here}", "look: {at: there}")
    return mini_project


def shown(path: Path) -> dict[str, str]:
    """The word of each case on a page."""
    text = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="index">(.*?)</script>', text)
    assert found
    return {one["id"]: one["shown"] for one in json.loads(found[1])["cases"]}


DRIFTED = {"one": "matches", "two": "drifted"}


def test_the_last_run_becomes_a_page(project: MiniProject) -> None:
    """In `.harness`, which git ignores; its path on stdout, relative to where the command ran."""
    assert project.harness("run").exit_code == 1
    outcome = project.harness("report")
    assert (outcome.exit_code, outcome.output) == (0, ".harness/report.html\n")
    assert outcome.errors == "2 cases, 1 failing, 0.1 MB\n"
    assert outcome.changed == {}
    assert shown(project.root / ".harness/report.html") == DRIFTED
    assert project.harness("report", folder="cases").output == "../.harness/report.html\n"


def test_a_page_goes_where_it_is_wanted(project: MiniProject) -> None:
    """Folders are made; an older page is replaced."""
    project.harness("run")
    outcome = project.harness("report", "-o", "out/of/here.html")
    assert (outcome.output, outcome.changed) == ("out/of/here.html\n", {"out/of/here.html": "added"})
    assert project.harness("report", "-o", "out/of/here.html").exit_code == 0


def test_a_project_that_never_ran_has_a_page(project: MiniProject) -> None:
    """It says so of every case, and leaves nothing that git would see."""
    for path in (project.root / ".harness").rglob("*"):
        if path.is_file():
            path.unlink()
    assert project.harness("report").exit_code == 0
    assert shown(project.root / ".harness/report.html") == {"one": "not run", "two": "not run"}
    assert (project.root / ".harness/.gitignore").read_text() == "*\n"


def test_a_page_that_cannot_be_written_is_refused_first(project: MiniProject) -> None:
    """Before any case runs for it; the message names the file and the reason."""
    before = (project.root / ".harness/results.json").read_bytes()
    folder = "error: the report cannot be written: 'cases' is a folder; name a file, such as report.html\n"
    below = "error: the report cannot be written to 'loop.py/page.html': 'loop.py' is no folder\n"
    for command in (("report", "-o"), ("run", "--report")):
        for file, message in (("cases", folder), ("loop.py/page.html", below)):
            outcome = project.harness(*command, file)
            assert (outcome.exit_code, outcome.output, outcome.errors) == (2, "", message)
    outcome = project.pytest("--harness-report=cases")
    assert outcome.exit_code == 4
    assert outcome.errors.strip() == f"ERROR: --harness-report: {folder.removeprefix('error: ').strip()}"
    assert (project.root / ".harness/results.json").read_bytes() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="everything is writable for root")
def test_a_folder_that_is_not_writable_is_named(project: MiniProject) -> None:
    """As what it is."""
    (project.root / "shut").mkdir(mode=0o500)
    outcome = project.harness("report", "-o", "shut/page.html")
    assert outcome.errors == (
        "error: the report cannot be written to 'shut/page.html': 'shut' is not writable; name a file elsewhere\n"
    )


def test_a_base_that_is_named_must_exist(project: MiniProject) -> None:
    """Else the page would say nothing of the branch, and nobody would notice; so are two wishes that contradict."""
    assert project.harness("report", "--base", "nowhere").exit_code == 2
    outcome = project.harness("report", "--base", "main", "--no-branch")
    assert outcome.errors == "error: --base names what to compare with, --no-branch forbids it; give one of them\n"


def test_what_the_branch_accepted_anew_is_on_the_page(project: MiniProject) -> None:
    """Against the base that is named; with `--no-branch` nothing is asked."""
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main")
    for command in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "one"), ("checkout", "-qb", "topic")):
        assert project.run(*git, *command).exit_code == 0
    assert project.harness("run", "--update-golden").exit_code == 0
    assert project.run(*git, "commit", "-qam", "two").exit_code == 0
    project.harness("run")
    assert project.harness("report", "--base", "main").exit_code == 0
    assert shown(project.root / ".harness/report.html") == {"one": "matches", "two": "accepted anew"}
    assert project.harness("report", "--no-branch").exit_code == 0
    assert shown(project.root / ".harness/report.html") == {"one": "matches", "two": "matches"}


def test_a_run_writes_its_page(project: MiniProject) -> None:
    """Also when cases failed, and the exit code stays that of the run; cases that were left out are said to be."""
    outcome = project.harness("run", "--report", "page.html")
    assert (outcome.exit_code, outcome.errors.splitlines()[-1]) == (1, "report: page.html")
    assert shown(project.root / "page.html") == DRIFTED
    assert project.harness("run", "one", "--report", "page.html").exit_code == 0
    assert shown(project.root / "page.html") == {"one": "matches", "two": "drifted"}


def test_a_pytest_run_writes_its_page(project: MiniProject) -> None:
    """At the end, also when cases failed, relative to where pytest was started, and it says where."""
    outcome = project.pytest("--harness-report=page.html", folder="cases")
    assert outcome.exit_code == 1
    assert "trajectory report: page.html" in outcome.output
    assert shown(project.root / "cases/page.html") == DRIFTED


def test_with_workers_the_page_is_written_once(project: MiniProject) -> None:
    """By the controller, from what all workers said."""
    outcome = project.pytest("--harness-report=page.html", "-n", "2")
    assert outcome.exit_code == 1
    assert outcome.output.count("trajectory report:") == 1
    assert shown(project.root / "page.html") == DRIFTED


def test_a_session_that_ran_no_case_does_not_show_an_older_one(project: MiniProject) -> None:
    """What an earlier run said is not what this one did."""
    project.write({"tests/test_other.py": "def test_it():\n    pass\n"})
    project.pytest()
    assert project.harness("accept", "two").exit_code == 0
    assert project.pytest("tests", "--harness-report=page.html").exit_code == 0
    assert shown(project.root / "page.html") == {"one": "not run", "two": "not run"}


def test_collecting_writes_no_page(project: MiniProject) -> None:
    """Nothing ran."""
    outcome = project.pytest("--collect-only", "--harness-report=page.html")
    assert (outcome.exit_code, outcome.changed) == (0, {})


def test_the_plugin_does_not_load_what_draws_a_page() -> None:
    """Until a page is wanted."""
    script = (
        "import sys, harness.pytest_plugin, harness.cli, harness.commands.report; "
        "print(sorted({'jinja2', 'harness.report.page', 'harness.page_file', 'harness.run_report'} & set(sys.modules)))"
    )
    assert MiniProject.run(_here(), sys.executable, "-c", script).output == "[]\n"


def _here() -> MiniProject:
    from pathlib import Path

    return MiniProject(Path(__file__).parent)


def test_a_page_goes_into_a_pipe_and_to_what_a_link_names(mini_project: MiniProject) -> None:
    """What a user names is written into, not replaced: a FIFO stays one, a link stays a link."""
    os.mkfifo(mini_project.root / "pipe")
    read = "cat pipe > read.html & "
    command = f"{read} {sys.executable} -m harness report --no-branch -o pipe; wait"
    assert mini_project.run("sh", "-c", command).exit_code == 0
    assert (mini_project.root / "pipe").is_fifo()
    assert mini_project.read("read.html").startswith("<!doctype html>")
    (mini_project.root / "link.html").symlink_to("real.html")
    assert mini_project.harness("report", "--no-branch", "-o", "link.html").exit_code == 0
    assert (mini_project.root / "link.html").is_symlink()
    assert mini_project.read("real.html").startswith("<!doctype html>")
