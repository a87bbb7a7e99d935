"""`harness log`: what a person, and a program, is told."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import TYPE_CHECKING

import pytest

from harness.golden import dump_trace
from tests.changes.repositories import GitFolder
from tests.report.drifts import GOLDEN, GROWN, SEVEN

if TYPE_CHECKING:
    from pathlib import Path

    from harness.testing import MiniProject
    from harness.trace import Trace

REFUND = "golden_traces/notes/refund.json"
OTHER = "golden_traces/other.json"


def text(trace: Trace = GOLDEN, case: str = "notes/refund") -> str:
    return dump_trace(dataclasses.replace(trace, case=case))


@pytest.fixture
def told(shop: GitFolder, mini_project: MiniProject) -> MiniProject:
    """Three versions of one golden, one of another; the last change is not committed."""
    shop.commit("Add the refund case", {REFUND: text(), OTHER: text(case="other")})
    shop.commit("Look twice", {REFUND: text(GROWN)})
    shop.write({REFUND: text(SEVEN["write"])})
    return mini_project


def test_a_case_is_a_plot_and_a_line_for_each_version(told: MiniProject) -> None:
    """Oldest to newest in the plot, newest first below it."""
    outcome = told.harness("log", "notes/refund")
    lines = outcome.output.splitlines()
    two, one = GitFolder(told.root).git("log", "--format=%h", "--abbrev=8").split()
    assert (outcome.exit_code, outcome.errors) == (0, "")
    assert lines[:6] == [
        "notes/refund: 3 versions",
        "calls     ▅▅▅███▆▆▆  6 → 7 (+17%)",
        "turns     ▅▅▅███▅▅▅  6",
        "writes    ▆▆▆▆▆▆███  2 → 3 (+50%)",
        "",
        "                      calls  turns  writes",
    ]
    assert lines[6].startswith("now       20")
    assert lines[6].endswith("      7      6       3  not committed")
    assert lines[7].startswith("          1 more write: `send_email` (1 → 2); ")
    assert lines[8] == f"{two}  2026-09-21     10     10       2  Ada: Look twice"
    assert lines[9].startswith("          4 more calls (6 → 10, +67%): ")
    assert lines[10:] == [f"{one}  2026-09-21      6      6       2  Ada: Add the refund case"]


def test_what_changed_is_broken_between_words_where_the_window_is_narrow(told: MiniProject) -> None:
    """Below itself, so that the column of commits stays one."""
    lines = told.harness("log", "notes/refund", env={"COLUMNS": "60"}).output.splitlines()
    assert all(len(line) <= 60 for line in lines)
    assert [line[:8].strip() for line in lines[6:] if not line.startswith(" ")] == [
        "now",
        *GitFolder(told.root).git("log", "--format=%h", "--abbrev=8").split(),
    ]


def test_without_cases_it_is_a_table_of_all(told: MiniProject) -> None:
    """The most changed first, cut where it is told to be."""
    outcome = told.harness("log")
    rows = [line.split("  ") for line in outcome.output.splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert [row[:5] for row in cells] == [
        ["case", "versions", "calls", "turns", "writes"],
        ["notes/refund", "3", "6 → 7 (+17%)", "6", "2 → 3 (+50%)"],
        ["other", "1", "6", "6", "2"],
    ]
    assert told.harness("log", "-n", "1").output.splitlines()[2:] == ["… 1 more case"]


def test_cases_are_named_by_id_glob_or_folder_and_limited(told: MiniProject) -> None:
    """Each gets its own block."""
    for words in (("notes/*", "other"), ("notes", "other"), ("notes/refund", "other"), ("*",)):
        lines = told.harness("log", *words, "-n", "1").output.splitlines()
        assert [line for line in lines if line.endswith(("version", "versions"))] == [
            "notes/refund: 1 version",
            "other: 1 version",
        ]


def test_programs_get_json(told: MiniProject) -> None:
    """Whole ids, seconds, writes by tool; null for the working tree's commit and for counts that nobody knows."""
    (told.root / OTHER).unlink()
    data = json.loads(told.harness("log", "other", "--format", "json").output)
    first = GitFolder(told.root).git("rev-list", "--max-parents=0", "HEAD").strip()
    assert data == {
        "cases": [
            {
                "case": "other",
                "versions": [
                    {
                        "commit": None,
                        "time": data["cases"][0]["versions"][0]["time"],
                        "author": "",
                        "subject": "",
                        "calls": None,
                        "turns": None,
                        "writes": None,
                        "headline": "deleted",
                    },
                    {
                        "commit": first,
                        "time": 1_790_000_000,
                        "author": "Ada",
                        "subject": "Add the refund case",
                        "calls": 6,
                        "turns": 6,
                        "writes": {"refund": 1, "send_email": 1},
                        "headline": "",
                    },
                ],
            }
        ]
    }
    table = json.loads(told.harness("log", "--format", "json").output)
    assert [(one["case"], one["versions"], one["first"]["calls"], one["last"]["calls"]) for one in table["cases"]] == [
        ("notes/refund", 3, 6, 7)
    ]


def test_since_leaves_older_versions_out(told: MiniProject) -> None:
    """What is not committed is now."""
    git = GitFolder(told.root)
    git._time += 10 * 86400
    git.commit("Later")
    lines = told.harness("log", "notes/refund", "--since", "2026-09-30").output.splitlines()
    assert lines[0] == "notes/refund: 1 version"
    assert lines[-2].endswith("  Ada: Later")
    none = told.harness("log", "notes/refund", "--since", "2027-01-01")
    assert none.output.splitlines()[0] == "notes/refund: 0 versions"
    assert [line.split()[0] for line in told.harness("log", "--since", "2026-09-30").output.splitlines()] == [
        "case",
        "notes/refund",
    ]
    assert told.harness("log", "--since", "2027-01-01").errors == "no golden has a version since that day\n"


def test_an_output_without_unicode_gets_ascii(told: MiniProject) -> None:
    """A plot of other signs, arrows of two, and no traceback."""
    outcome = told.run(sys.executable, "-m", "harness", "log", "notes/refund", env={"PYTHONIOENCODING": "ascii"})
    assert (outcome.exit_code, outcome.errors) == (0, "")
    assert outcome.output.isascii()
    assert outcome.output.splitlines()[1] == "calls     +++###***  6 -> 7 (+17%)"


def test_a_hostile_author_moves_no_cursor(shop: GitFolder, mini_project: MiniProject) -> None:
    """Names and subjects are shown, not obeyed."""
    shop.git("config", "user.name", "A\x1b[2J")
    shop.commit("\x1b]0;owned\x07 subject", {REFUND: text()})
    for words in (("log", "notes/refund"), ("log",)):
        output = mini_project.harness(*words).output
        assert "\x1b" not in output
        assert r"A\x1b[2J" in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("notes/refunt",), "no case is called 'notes/refunt'; did you mean 'notes/refund'?"),
        (("zzz",), "no case is called 'zzz'; there are: fresh, notes/refund, other"),
        (("fresh",), "'fresh' has no golden yet, so it has no history; look at a run of it, "
                     "then accept it with: harness accept fresh"),
    ],
)  # fmt: skip
def test_a_case_without_history_is_an_error_that_helps(told: MiniProject, words: tuple[str, ...], message: str) -> None:
    """With the nearest id, or what to do."""
    told.write({"cases/fresh.yaml": ""})
    outcome = told.harness("log", *words)
    assert (outcome.exit_code, outcome.output, outcome.errors) == (2, "", f"error: {message}\n")


def test_outside_of_git_and_before_any_golden(mini_project: MiniProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence each."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(mini_project.root.parent))
    outcome = mini_project.harness("log")
    assert outcome.exit_code == 2
    assert outcome.errors.startswith("error: golden_traces/ is in no git repository (fatal: not a git repository")
    GitFolder.new(mini_project.root)
    outcome = mini_project.harness("log")
    assert (outcome.exit_code, outcome.output, outcome.errors) == (0, "", "no golden has a version yet\n")


def test_a_deleted_case_is_found_by_its_id(told: MiniProject, tmp_path: Path) -> None:
    """It is not among all, but it has a history."""
    GitFolder(told.root).commit("Drop it", {OTHER: None})
    output = told.harness("log", "other").output.splitlines()
    assert output[0] == "other: 2 versions"
    assert output[3].endswith("      –      –       –  Ada: Drop it")
    assert output[4] == "          deleted"
    assert "other" not in told.harness("log").output


def test_a_shallow_clone_is_told_how_to_get_the_rest(told: MiniProject, tmp_path: Path) -> None:
    """On stderr; what is there is shown."""
    clone = GitFolder.clone(GitFolder(told.root), tmp_path / "clone", "--depth=1")
    outcome = told.run(sys.executable, "-m", "harness", "log", "notes/refund", "--root", str(clone.root))
    assert outcome.output.splitlines()[0] == "notes/refund: 1 version"
    assert outcome.errors == (
        "note: this clone is shallow, older versions are not in it; get them: git fetch --unshallow\n"
    )
