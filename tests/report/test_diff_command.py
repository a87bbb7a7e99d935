"""`harness diff`: what it compares, what it says, how it ends."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from click.shell_completion import ShellComplete

from harness.cli import _group, main
from harness.golden import dump_trace
from harness.testing import MiniProject
from harness.trace import Trace
from tests.report.drifts import GOLDEN, GROWN, SEVEN, trace

Diff: TypeAlias = Callable[..., tuple[int, str, str]]

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


def git(project: MiniProject, *arguments: str) -> None:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *who, *arguments], cwd=project.root, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or arguments[0] == "merge", done.stderr


def named(case: str, one: Trace = GOLDEN) -> str:
    return dump_trace(dataclasses.replace(one, case=case))


@pytest.fixture
def project(mini_project: MiniProject) -> MiniProject:
    """Three goldens on main, and a branch that has just begun."""
    mini_project.write(
        {
            "pyproject.toml": "[tool.harness]\n",
            ".gitignore": ".harness/\n",
            **{f"golden_traces/{case}.json": named(case) for case in ("refund", "notes/mail")},
            "golden_traces/old.json": named("old", SEVEN["dropped"]),
        }
    )
    git(mini_project, "init", "-q")
    git(mini_project, "add", "-A")
    git(mini_project, "commit", "-qm", "Goldens")
    git(mini_project, "switch", "-qc", "work")
    return mini_project


@pytest.fixture
def diff(project: MiniProject, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Diff:
    """Runs the command in this process; gives exit code, stdout and stderr."""
    monkeypatch.chdir(project.root)
    for name in ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "GITHUB_STEP_SUMMARY", "GITHUB_RUN_ID",
                 "CI_JOB_URL", "COLUMNS", "FORCE_COLOR"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main(["diff", *arguments])
        captured = capsys.readouterr()
        return int(exit_.value.code or 0), captured.out, captured.err

    return run


def words(output: str) -> dict[str, str]:
    """What the JSON report says of each case that differs."""
    return {case["case"]: case["verdict"] for case in json.loads(output)["cases"] if case["verdict"] != "same"}


def test_nothing_changed_in_this_branch(diff: Diff) -> None:
    """Exit code 0 and one sentence."""
    assert diff() == (0, "main → working tree: Nothing differs: 3 cases\n3 same\n", "")


def test_each_change_is_shown_as_what_it_is(diff: Diff, project: MiniProject) -> None:
    """Changed, new, renamed, deleted, unusable, in conflict; committed or not."""
    project.write(
        {
            "golden_traces/refund.json": named("refund", GROWN),
            "golden_traces/fresh.json": named("fresh", SEVEN["stop_reason"]),
            "golden_traces/newer.json": named("newer", SEVEN["dropped"]),
            "golden_traces/edited.json": "{}",
        }
    )
    (project.root / "golden_traces/old.json").unlink()
    (project.root / "golden_traces/notes/mail.json").unlink()
    project.write({"golden_traces/notes/mail.json": conflict()})
    code, output, _ = diff("--format", "json")
    assert code == 1
    assert words(output) == {
        "edited": "unusable",
        "fresh": "new",
        "newer": "renamed",
        "notes/mail": "merge conflict",
        "refund": "changed",
    }
    renamed = next(case for case in json.loads(output)["cases"] if case["case"] == "newer")
    assert renamed["change"]["was"] == "old"


def test_a_golden_that_went(diff: Diff, project: MiniProject) -> None:
    """A deleted case is not a renamed one."""
    (project.root / "golden_traces/old.json").unlink()
    code, output, _ = diff()
    assert (code, output.splitlines()[:3]) == (
        1,
        ["old: deleted", "main → working tree", "deleted        calls 5, turns 5, writes 2"],
    )


def conflict() -> str:
    ours, theirs = named("notes/mail"), named("notes/mail", GROWN)
    return f"<<<<<<< HEAD\n{ours}=======\n{theirs}>>>>>>> more-careful\n"


def test_a_conflict_shows_what_each_branch_made_of_the_golden(diff: Diff, project: MiniProject) -> None:
    """Both sides by the names that git gives them, and the way out."""
    project.write({"golden_traces/notes/mail.json": conflict()})
    code, output, _ = diff()
    lines = output.splitlines()
    assert code == 1
    assert lines[:2] == ["notes/mail: merge conflict", "HEAD → more-careful"]
    assert "order          4 more calls (6 → 10, +67%): `search` ×2, `find_order`, `read_policy`" in lines
    assert any(line.startswith("mend           run the case on the merged code") for line in lines)


def test_the_whole_of_one_change(diff: Diff, project: MiniProject) -> None:
    """Title, verdicts, calls, cost, and the sentence at the end."""
    project.write({"golden_traces/refund.json": named("refund", SEVEN["argument"])})
    assert diff() == (
        1,
        """\
refund: changed
main → working tree
arguments      `refund` (call 5): `cents` changed

 golden   now
              turn 1  tool_use
      1     1   find_order(id=266aa588)
              turn 2  tool_use
      2     2 ┌ get_customer(id=6b51d431)
      3     3 └ read_policy(name=dfb461f6)
              turn 3  tool_use
      4     4   search(query=15bfd30f)
              turn 4  tool_use
~     5     5   refund(cents=c5d1866a, id=266aa588)  write
~                   cents: 15197cf7 → c5d1866a
              turn 5  tool_use
      6     6   send_email(subject=93332252, to=8595b682)  write
              turn 6  end_turn

cost           calls 6, turns 6, writes 2

main → working tree: 1 of 3 cases differs; writes are touched in 1
1 changed, 2 same
""",
        "",
    )


def test_commits_files_and_folders(diff: Diff, project: MiniProject) -> None:
    """Each kind of side, alone and beside another one."""
    project.write({"golden_traces/refund.json": named("refund", GROWN)})
    git(project, "commit", "-qam", "Grow")
    project.write({"elsewhere/refund.json": named("refund", GROWN), "one.json": named("other", SEVEN["write"])})
    assert words(diff("git:main", "--format", "json")[1]) == {"refund": "changed"}
    assert words(diff("git:main", "git:HEAD", "--format", "json")[1]) == {"refund": "changed"}
    assert diff("git:HEAD")[0] == 0
    assert diff("git:HEAD", "golden")[0] == 0
    assert words(diff("git:main:golden_traces", "elsewhere", "--format", "json")[1]) == {
        "notes/mail": "deleted", "old": "deleted", "refund": "changed"
    }  # fmt: skip
    assert diff("elsewhere/refund.json")[0] == 0
    assert words(diff("git:main:golden_traces/refund.json", "golden", "--format", "json")[1]) == {"refund": "changed"}
    assert words(diff("git:main:./golden_traces/refund.json", "elsewhere/refund.json", "--format", "json")[1]) == {
        "refund": "changed"
    }
    code, output, _ = diff("golden_traces/notes/mail.json", "one.json")
    assert (code, output.splitlines()[:3]) == (
        1,
        [
            "other: changed",
            "golden_traces/notes/mail.json → one.json",
            "writes         1 more write: `send_email` (1 → 2)",
        ],
    )


def test_a_case_is_compared_with_what_is_pending(diff: Diff, project: MiniProject) -> None:
    """By id, by glob, all of them by `pending`; as the case's file says, unless --exact."""
    project.write(
        {
            ".harness/pending/refund.json": named("refund", SEVEN["repeated"]),
            "pyproject.toml": "[tool.harness.compare]\norder = {at_most = '+1'}\nduplicates = 'ignore'\n",
        }
    )
    code, output, _ = diff("refund", "--exact")
    assert code == 1
    assert output.splitlines()[1] == "golden → pending"
    assert "accept         harness accept refund" in output.splitlines()
    assert [diff(*arguments)[0] for arguments in (("refund",), ("ref*",), ("pending",), ("pending", "--exact"))] == [
        0, 0, 0, 1
    ]  # fmt: skip
    assert diff("notes/mail") == (
        2,
        "",
        "error: nothing is pending for 'notes/mail': its last run passed, or it has not run yet\n",
    )


NO_SIDE = "a side is a file or folder that exists, golden, pending, git:REF or git:REF:PATH"
BESIDE = (
    "cannot stand beside 'git:main': two sides are compared (files, folders, git:REF, golden, pending), or cases, "
    "which stand alone; --case selects cases of two sides"
)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nope", f"no case is called 'nope'; there are: notes/mail, old, refund; {NO_SIDE}"),
        ("refnd", f"no case is called 'refnd'; did you mean 'refund'?; {NO_SIDE}"),
        ("golden", "golden is one side; name the other one, as in: harness diff git:main golden"),
        ("pending", "nothing is pending: every case of the last run passed, or none has run yet"),
        ("git:", "'git:' names no commit; write git:main, git:HEAD~2 or git:REF:PATH"),
        ("git:nope", "git knows no commit 'nope' here; git branch -a lists the branches"),
        ("git:--output=x", "git knows no commit '--output=x' here; git branch -a lists the branches"),
        ("git:main:nope", "main has no 'nope'; paths are relative to the root of the repository, or begin with ./"),
        ("git:main:../..", None),
        ("git:main refund", f"'refund' {BESIDE}"),
        ("git:main golden git:HEAD", f"'git:HEAD' {BESIDE}"),
        ("empty", "empty holds no traces: a folder of *.json as golden_traces/ is one"),
        ("broken.json", "broken.json is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("--case nope", "no case here matches 'nope'; there are: notes/mail, old, refund"),
        ("--base nope", "git knows no commit 'nope' here; git branch -a lists the branches"),
        ("git:v1 --base v1", "--base is for a diff without sides; to compare with a commit: harness diff git:v1"),
        ("--policy", "what a branch did to its goldens is compared exactly; --policy is for runs"),
        ("--run", "no run has left a record here; run the cases first: pytest, or harness run"),
        ("--run git:v1", "--run reports the last run; it takes no side such as 'git:v1' (--case selects cases)"),
        ("--run --exact", "--run compares each case as its file says; --exact and --policy are for two sides"),
        ("-o broken.json/x --format json", "broken.json/x could not be written: File exists"),
    ],
)
def test_wrong_input_is_one_clear_error(diff: Diff, project: MiniProject, arguments: str, message: str | None) -> None:
    """Exit code 2, nothing on stdout, and one line that says what is wrong and what to do."""
    project.write({"broken.json": "no trace"})
    (project.root / "empty").mkdir()
    code, output, errors = diff(*arguments.split())
    assert (code, output) == (2, "")
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    assert message is None or errors == f"error: {message}\n"


def test_without_a_repository(diff: Diff, project: MiniProject) -> None:
    """Git is asked only for what git knows."""
    (project.root / ".git").rename(project.root / "not-git")
    assert diff()[0] == 2
    assert "is in no git repository" in diff("git:main")[2]
    assert diff("golden_traces", "golden")[0] == 0


def test_a_file_is_written_whole(diff: Diff, project: MiniProject) -> None:
    """`-o` writes what stdout would have got, for every format; stdout stays empty."""
    project.write({"golden_traces/refund.json": named("refund", GROWN)})
    for form in ("terminal", "markdown", "json", "github", "gitlab"):
        code, output, _ = diff("--format", form)
        assert diff("--format", form, "-o", f"out/{form}") == (1, "", "")
        assert (project.root / "out" / form).read_text(encoding="utf-8") == output
        assert code == 1


def test_the_page(diff: Diff, project: MiniProject) -> None:
    """HTML is the page of `harness report`."""
    pytest.importorskip("harness.report.page")
    project.write({"golden_traces/refund.json": named("refund", GROWN)})
    code, output, _ = diff("--format", "html")
    assert (code, output[:15].lower()) == (1, "<!doctype html>")


def test_exit_zero(diff: Diff, project: MiniProject) -> None:
    """For a step that only reports."""
    project.write({"golden_traces/refund.json": named("refund", GROWN)})
    assert diff("--exit-zero")[0] == 0
    assert diff("git:nope", "--exit-zero")[0] == 2


def test_all_lines(diff: Diff, project: MiniProject) -> None:
    """`--lines` cuts, says how much, and 0 shows all."""
    project.write({"golden_traces/refund.json": named("refund", GROWN)})
    cut, whole = (diff("--lines", count)[1].splitlines() for count in ("6", "0"))
    assert "… 6 more differences, all of them in harness diff --lines 0" in cut
    assert len(whole) > len(cut)


def test_a_job_summary(diff: Diff, project: MiniProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Markdown is appended where GitHub says, beside any format, and never more than GitHub takes."""
    project.write({"golden_traces/refund.json": named("refund", GROWN)})
    summary = project.root / "summary"
    assert "GITHUB_STEP_SUMMARY is not set" in diff("--summary")[2]
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    summary.write_text("before\n", encoding="utf-8")
    assert diff("--summary", "--format", "github")[0] == 1
    markdown = diff("--format", "markdown")[1]
    assert summary.read_text(encoding="utf-8") == f"before\n{markdown}"
    summary.write_text("x" * 999_000, encoding="utf-8")
    assert diff("--summary")[2] == "note: no job summary was written: what is there already leaves no room\n"
    assert summary.stat().st_size == 999_000
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.root))
    assert diff("--summary")[0] == 1


def test_the_report_of_a_run(diff: Diff, project: MiniProject) -> None:
    """Every case against its golden, every golden against the base branch: a re-blessed one is never simply green."""
    project.write({"loop.py": LOOP, "cases/book.yaml": CASE, "cases/fresh.yaml": CASE})
    assert project.pytest("--update-golden", "-q").exit_code == 0
    git(project, "add", "-A")
    git(project, "commit", "-qm", "Books")
    git(project, "switch", "-qC", "main")
    git(project, "switch", "-qC", "work")
    project.edit("loop.py", "range(3)", "range(4)")
    project.pytest("-q", "cases/book.yaml", "--update-golden")
    project.pytest("-q")
    code, output, errors = diff("--run", "--format", "json")
    assert (code, errors) == (1, "")
    cases = {case["case"]: case for case in json.loads(output)["cases"]}
    assert {
        name: (one["status"], one["branch"]["state"]) for name, one in cases.items() if name in ("book", "fresh")
    } == {
        "book": ("same", "accepted anew in this branch"),
        "fresh": ("drift", "as in main"),
    }
    assert cases["book"]["branch"]["drift"]["facets"] == {"order": "1 more call (3 → 4, +33%): `read`"}
    assert diff("--run", "--case", "book")[0] == 0
    assert "book: matches, golden accepted anew in this branch" in diff("--run")[1].splitlines()
    markdown = diff("--run", "--format", "markdown")[1]
    assert (
        "| <code>book</code> | matches | 4 | 0 | 0 | accepted anew in this branch: calls 3 → 4 (+33%), writes 0 |"
        in markdown
    )
    annotations = diff("--run", "--format", "github")[1].splitlines()
    assert [one.partition(",title")[0] for one in annotations] == [
        "::error file=golden_traces/fresh.json,line=11",
        "::notice file=golden_traces/book.json,line=12",
    ]


def test_paths_are_those_of_the_repository(diff: Diff, project: MiniProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """CI names files from the root of the repository, also where the project is a folder in it."""
    inner = MiniProject(project.root / "agents" / "shop")
    inner.write({
        "pyproject.toml": "[tool.harness]\n", "loop.py": LOOP, "cases/book.yaml": CASE,
        "golden_traces/book.json": named("book", trace(turns=0, last="end_turn")),
    })  # fmt: skip
    inner.pytest("-q")
    monkeypatch.chdir(inner.root)
    issue = json.loads(diff("--run", "--format", "gitlab")[1])[0]
    assert issue["location"]["path"] == "agents/shop/golden_traces/book.json"


def test_help_and_completion(diff: Diff, project: MiniProject) -> None:
    """Examples in the help; sides and cases complete."""
    code, output, _ = diff("--help")
    assert code == 0
    assert "harness diff --run --format markdown -o comment.md" in output
    project.write({"cases/golf.yaml": CASE})
    found = ShellComplete(_group, {}, "harness", "_HARNESS_COMPLETE").get_completions(["diff"], "go")
    assert [item.value for item in found] == ["golden", "golf"]


def test_no_machine_path_is_said(diff: Diff, project: MiniProject) -> None:
    """What is printed goes into public pull requests."""
    project.write({"golden_traces/refund.json": named("refund", GROWN), "golden_traces/edited.json": "{}"})
    for form in ("terminal", "markdown", "json", "github", "gitlab"):
        assert str(Path(project.root)) not in diff("--format", form)[1]
