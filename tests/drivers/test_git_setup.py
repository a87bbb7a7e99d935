"""`harness init --git`: what git is told, what is kept, and how it is undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.drivers.setup import attributes_with, settings
from tests.changes.repositories import GitFolder

if TYPE_CHECKING:
    from harness.testing import MiniProject

PATTERN = "golden_traces/**/*.json"
LINE = f"{PATTERN} text eol=lf diff=harness merge=harness\n"
NAMES = tuple(settings())


@pytest.fixture
def project(mini_project: MiniProject) -> MiniProject:
    GitFolder.new(mini_project.root)
    return mini_project


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", LINE),
        (LINE, LINE),
        ("*.png binary\n", f"*.png binary\n{LINE}"),
        ("*.png binary", f"*.png binary\n{LINE}"),
        (f"# ours\n{PATTERN} text eol=lf\n*.png binary\n", f"# ours\n{LINE}*.png binary\n"),
        (f"{PATTERN}\ttext eol=lf", LINE.replace(" text", "\ttext")),
        (f"{PATTERN} -diff linguist-generated\n", f"{PATTERN} -diff linguist-generated text eol=lf merge=harness\n"),
        (f"{PATTERN} diff=json merge=union -text eol=crlf\n", f"{PATTERN} diff=json merge=union -text eol=crlf\n"),
        (f"{PATTERN}x text\n", f"{PATTERN}x text\n{LINE}"),
        (f"#{PATTERN} text\n", f"#{PATTERN} text\n{LINE}"),
    ],
)
def test_attributes_get_what_they_do_not_mention(before: str, after: str) -> None:
    """One line for goldens, an older one is completed, the user's own words stay; a second time changes nothing."""
    assert attributes_with(before, PATTERN) == after
    assert attributes_with(after, PATTERN) == after


def test_git_understands_a_pattern_with_spaces(project: MiniProject) -> None:
    """A folder may have any name."""
    git = GitFolder(project.root)
    project.write({".gitattributes": attributes_with("", "my traces/**/*.json")})
    assert git.git("check-attr", "diff", "my traces/a/b c.json").endswith(": diff: harness\n")
    assert git.git("check-attr", "diff", "my traces/a.json").endswith(": diff: harness\n")


def test_setting_git_up_says_each_thing_and_is_done_once(project: MiniProject) -> None:
    """The first time it sets, the second time it keeps; nothing else of the project is touched."""
    note = "these settings are this clone's own; to undo them: harness init --git --remove\n"
    first = project.harness("init", "--git")
    assert (first.exit_code, first.errors) == (0, note)
    assert first.output == "".join(f"set     {name}\n" for name in NAMES) + "written .gitattributes\n"
    assert {name: change for name, change in first.changed.items() if not name.startswith(".git/")} == {
        ".gitattributes": "added"
    }
    assert project.read(".gitattributes") == LINE
    git = GitFolder(project.root)
    assert {name: git.git("config", "--local", "--get", name).removesuffix("\n") for name in NAMES} == settings()

    second = project.harness("init", "--git")
    assert second.output == "".join(f"kept    {name}\n" for name in NAMES) + "kept    .gitattributes\n"
    assert second.changed == {}


def test_settings_of_another_interpreter_are_renewed(project: MiniProject) -> None:
    """A virtual environment was made anew elsewhere; other settings of the user stay."""
    git = GitFolder(project.root)
    project.harness("init", "--git")
    git.git("config", "diff.harness.textconv", "old")
    git.git("config", "--add", "diff.harness.textconv", "older")
    git.git("config", "diff.harness.cachetextconv", "true")
    again = project.harness("init", "--git")
    assert again.output.splitlines()[0] == "set     diff.harness.textconv"
    assert git.git("config", "--get-all", "diff.harness.textconv") == settings()["diff.harness.textconv"] + "\n"

    removed = project.harness("init", "--git", "--remove")
    assert removed.output == "".join(f"removed {name}\n" for name in NAMES)
    assert git.git("config", "--get-regexp", "harness") == "diff.harness.cachetextconv true\n"
    twice = project.harness("init", "--git", "--remove")
    assert twice.output == "".join(f"absent  {name}\n" for name in NAMES)
    assert twice.changed == {}


def test_init_alone_writes_the_attributes_and_says_how_to_switch_them_on(project: MiniProject) -> None:
    """What is committed is for all; what runs on a machine is for its user to allow."""
    project.write({".gitattributes": f"{PATTERN} text eol=lf\n"})
    outcome = project.harness("init")
    assert outcome.exit_code == 0
    assert project.read(".gitattributes") == LINE
    assert "written .gitattributes" in outcome.output
    assert "also: harness init --git            git diff and git merge then know what a golden is" in outcome.errors
    assert GitFolder(project.root).git("config", "--get-regexp", "harness", check=False) == ""


def test_the_folders_of_the_project_are_used(project: MiniProject) -> None:
    """Whatever they are called."""
    project.write({"pyproject.toml": "[tool.harness]\ngolden_traces = 'my traces'\ncases = 'my cases'\n"})
    assert project.harness("init").exit_code == 0
    assert project.read(".gitattributes") == f'"my traces/**/*.json"{LINE.removeprefix(PATTERN)}'
    assert (project.root / "my traces/.gitkeep").exists()
    assert (project.root / "my cases/first.yaml").exists()
    assert not (project.root / "golden_traces").exists()


def test_a_project_below_the_root_of_its_repository_has_attributes_of_its_own(mini_project: MiniProject) -> None:
    """git reads them from each folder."""
    git = GitFolder.new(mini_project.root)
    (mini_project.root / "agents").mkdir()
    outcome = mini_project.harness("init", "--git", folder="agents")
    assert outcome.exit_code == 0
    assert git.git("check-attr", "merge", "agents/golden_traces/a.json").endswith(": merge: harness\n")
    assert git.git("config", "--get", "merge.harness.recursive") == "binary\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--git",), "project/ is in no git repository"),
        (("--git", "--remove"), "project/ is in no git repository"),
        (("--remove",), "--remove goes with --git: what init writes is yours, and removed like any file"),
    ],
)
def test_mistakes_are_one_line(
    mini_project: MiniProject, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    """Outside of git, or half of a command."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(mini_project.root.parent))
    outcome = mini_project.harness("init", *arguments)
    assert outcome.exit_code == 2
    assert outcome.errors.startswith(f"error: {message}")
    assert outcome.errors.count("\n") == 1
    assert outcome.changed == {}


def test_goldens_outside_of_the_project_are_not_set_up(project: MiniProject) -> None:
    """It would have to write where it was not asked to."""
    project.write({"pyproject.toml": "[tool.harness]\ngolden_traces = '../elsewhere'\n"})
    outcome = project.harness("init")
    assert (outcome.exit_code, outcome.changed) == (2, {})
    assert outcome.errors == "error: elsewhere/ lies outside of project/, so harness init cannot set it up\n"
