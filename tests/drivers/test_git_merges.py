"""Two branches that accepted the same golden anew, in a real `git merge`, to the commit that resolves it."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from harness.changes import folder_side
from harness.crash_golden import dump_rows
from harness.drivers.setup import settings, write_settings
from harness.golden import decode_trace, dump_trace
from harness.project import Project
from harness.run_report import run_report
from tests.changes.repositories import GitFolder
from tests.report.drifts import BROKEN_ROWS, GOLDEN, GROWN, ROWS, SEVEN

if TYPE_CHECKING:
    from pathlib import Path

    from harness.testing import MiniProject
    from harness.trace import Trace

FILE = "golden_traces/refund.json"

LOOP = """\
def run(prompt, dispatch):
    dispatch("read", {"page": 1})


    # The branches change what is above and what is below.


    dispatch("send", {"to": "team"})
"""
CASE = """\
agent: loop:run
prompt: Read and send.
tools:
  read: {effect: read_only, input: {page: integer}, returns: text}
  send: {effect: irreversible, input: {to: string}, returns: sent}
model: {name: claude-sonnet-5, script: [{say: Never asked.}]}
"""


def branches(shop: GitFolder, ours: dict[str, str], theirs: dict[str, str], base: dict[str, str] | None = None) -> None:
    """Two branches from one commit; `main` is checked out."""
    if base:
        shop.commit("Accept", base)
    shop.git("checkout", "-q", "-b", "more-careful")
    shop.commit("Theirs", theirs)
    shop.git("checkout", "-q", "main")
    shop.commit("Ours", ours)


def sends(trace: Trace = GOLDEN, **tools: str) -> str:
    context = dataclasses.replace(trace.context, tools={**trace.context.tools, **tools})
    return dump_trace(dataclasses.replace(trace, context=context))


def unmerged(shop: GitFolder) -> list[str]:
    return shop.git("diff", "--name-only", "--diff-filter=U").split()


def test_a_line_by_line_merge_makes_a_path_that_no_run_took(shop: GitFolder) -> None:
    """Why there is a driver: git's own merge says nothing, and the golden is refused or wrong later."""
    shop.write({".gitattributes": ""})
    first, last = (dataclasses.replace(GOLDEN, calls=calls) for calls in (
        (dataclasses.replace(GOLDEN.calls[0], ok=False), *GOLDEN.calls[1:]),
        (*GOLDEN.calls[:-1], dataclasses.replace(GOLDEN.calls[-1], ok=False)),
    ))  # fmt: skip
    branches(shop, {FILE: dump_trace(first)}, {FILE: dump_trace(last)}, {FILE: dump_trace(GOLDEN)})
    shop.merge("more-careful")
    assert unmerged(shop) == []
    merged = decode_trace((shop.root / FILE).read_bytes(), FILE)
    assert [call.ok for call in merged.calls] == [False, True, True, True, True, False]

    shop.git("reset", "-q", "--hard", "HEAD~1")
    shop.write({".gitattributes": "golden_traces/**/*.json merge=harness\n"})
    shop.merge("more-careful")
    assert unmerged(shop) == [FILE]


def test_two_paths_are_a_conflict_that_says_what_each_side_did(shop: GitFolder) -> None:
    """On the terminal of whoever merges, with the names of the branches; both versions are read back whole."""
    branches(shop, {FILE: dump_trace(GROWN)}, {FILE: dump_trace(SEVEN["argument"])}, {FILE: dump_trace(GOLDEN)})
    said = shop.merge("more-careful")
    assert unmerged(shop) == [FILE]
    advice = [line for line in said.splitlines() if line.startswith(("golden", "  "))]
    assert advice[0] == f"{FILE}: HEAD and more-careful accepted different goldens"
    assert advice[1].startswith("  HEAD          4 more calls (6 → 10, +67%): ")
    assert advice[2:] == [
        "  more-careful  `refund` (call 5): `cents` changed",
        "  No run of the merged code made either.  Finish merging the code, then:",
        "    harness run refund",
        "    harness accept refund   when what it shows is right",
        f"    git add {FILE}",
    ]
    conflict = folder_side(shop.root / "golden_traces", "now").conflicts["refund"]
    assert (conflict.ours, conflict.theirs) == (GROWN, SEVEN["argument"])
    assert (conflict.ours_name, conflict.theirs_name) == ("HEAD", "more-careful")
    for side, trace in (("--ours", GROWN), ("--theirs", SEVEN["argument"])):
        shop.git("checkout", side, "--", FILE)
        assert decode_trace((shop.root / FILE).read_bytes(), FILE) == trace
    shop.git("checkout", "--merge", "--", FILE)
    assert set(folder_side(shop.root / "golden_traces", "now").conflicts) == {"refund"}


def test_what_two_branches_send_is_merged_without_a_conflict(shop: GitFolder) -> None:
    """Each reworded one tool; in every golden that is the same line of JSON."""
    base = {f"golden_traces/{n}.json": sends() for n in range(3)}
    branches(shop, dict.fromkeys(base, sends(refund="1")), dict.fromkeys(base, sends(send_email="2")), base)
    shop.merge("more-careful")
    assert unmerged(shop) == []
    for name in base:
        assert (shop.root / name).read_text() == sends(refund="1", send_email="2")
    assert shop.git("log", "-1", "--format=%s") == "Merge branch 'more-careful'\n"


def test_added_on_both_sides_and_crash_goldens(shop: GitFolder) -> None:
    """Without an ancestor two versions are two; crash goldens are whole as well."""
    crash = "golden_traces/refund.crash.json"
    branches(
        shop,
        {FILE: dump_trace(GOLDEN), crash: dump_rows("refund", ROWS)},
        {FILE: dump_trace(GROWN), crash: dump_rows("refund", BROKEN_ROWS)},
    )
    said = shop.merge("more-careful")
    assert sorted(unmerged(shop)) == [crash, FILE]
    assert f"{crash}: HEAD and more-careful accepted different crash goldens" in said
    side = folder_side(shop.root / "golden_traces", "now")
    assert set(side.conflicts) == {"refund"}
    assert "accept what it does now with: harness crash CASE --update-golden" in str(side.problems["refund"])


def test_a_rebase_names_what_git_names(shop: GitFolder) -> None:
    """There is no branch that is merged: the commit that is being applied is theirs."""
    branches(shop, {FILE: dump_trace(GROWN)}, {FILE: dump_trace(SEVEN["argument"])}, {FILE: dump_trace(GOLDEN)})
    said = shop.git("rebase", "more-careful", check=False)
    assert f"{FILE}: HEAD and " in said
    conflict = folder_side(shop.root / "golden_traces", "now").conflicts["refund"]
    assert (conflict.ours, conflict.theirs) == (SEVEN["argument"], GROWN)


def test_merges_that_cross_keep_whole_versions(shop: GitFolder) -> None:
    """The ancestor is itself a merge of two conflicting ones, and still each version comes out whole."""
    branches(shop, {FILE: dump_trace(GROWN)}, {FILE: dump_trace(SEVEN["argument"])}, {FILE: dump_trace(GOLDEN)})
    shop.git("branch", "ours-before")
    shop.merge("more-careful")
    shop.commit("Merged here", {FILE: dump_trace(SEVEN["write"])})
    shop.git("checkout", "-q", "more-careful")
    shop.merge("ours-before")
    shop.commit("Merged there", {FILE: dump_trace(SEVEN["failed"])})
    shop.git("config", "merge.conflictStyle", "diff3")
    shop.merge("main")
    conflict = folder_side(shop.root / "golden_traces", "now").conflicts["refund"]
    assert (conflict.ours, conflict.theirs) == (SEVEN["failed"], SEVEN["write"])


@pytest.mark.parametrize("python", [sys.executable, "/nowhere/python", "false"])
def test_what_is_no_golden_is_merged_as_text_whatever_happens(shop: GitFolder, python: str) -> None:
    """Other JSON merges line by line; without the harness a golden does, too, as if there were no driver."""
    for name, value in settings(python).items():
        shop.git("config", name, value)
    other = "golden_traces/other.json"
    lines = [f'"{n}",\n' for n in range(9)]
    ours, theirs = (["changed\n", *lines[1:]], [*lines[:-1], "changed\n"])
    branches(shop, {other: "".join(ours)}, {other: "".join(theirs)}, {other: "".join(lines)})
    shop.merge("more-careful")
    assert unmerged(shop) == []
    assert (shop.root / other).read_text() == "".join(["changed\n", *lines[1:-1], "changed\n"])

    shop.git("reset", "-q", "--hard", "HEAD~1")
    shop.commit("Clash", {other: "ours\n"})
    shop.merge("more-careful")
    assert unmerged(shop) == [other]
    assert (shop.root / other).read_text().startswith("<<<<<<< HEAD\nours\n=======\n")


def test_the_names_that_a_newer_git_hands_over_are_used(tmp_path: Path) -> None:
    """Since 2.44 it names both sides; an older one leaves the placeholders as they are."""
    for names, shown in (
        (("main", "topic (Look twice)"), ("main", "topic (Look twice)")),
        (("%X", "%Y"), ("HEAD", "theirs")),
        (("", ""), ("HEAD", "theirs")),
        ((), ("HEAD", "theirs")),
    ):
        for name, trace in (("base", GOLDEN), ("ours", GROWN), ("theirs", SEVEN["write"])):
            (tmp_path / name).write_text(dump_trace(trace))
        command = [sys.executable, "-P", "-m", "harness.drivers", "merge", "base", "ours", "theirs", "9", FILE, *names]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 3
        assert done.stderr.startswith(f"{FILE}: {shown[0]} and {shown[1]} accepted different goldens\n")
        lines = (tmp_path / "ours").read_text().splitlines()
        assert (lines[0], lines[-1]) == (f"<<<<<<<<< {shown[0]}", f">>>>>>>>> {shown[1]}")


def test_hostile_names_are_names(shop: GitFolder) -> None:
    """No shell runs what a file or a branch is called."""
    file = "golden_traces/$(touch pwned)`touch pwned`'\"; touch pwned; x.json"
    branches(shop, {file: dump_trace(GROWN)}, {file: dump_trace(SEVEN["write"])}, {file: dump_trace(GOLDEN)})
    shop.git("branch", "-m", "more-careful", "$(touch${IFS}pwned)")
    for command in (("diff", "HEAD~1"), ("log", "-p"), ("merge", "$(touch${IFS}pwned)"), ("diff",), ("diff", "--ours")):
        shop.git(*command, check=False)
    assert not (shop.root / "pwned").exists()
    case = file.removeprefix("golden_traces/").removesuffix(".json")
    assert set(folder_side(shop.root / "golden_traces", "now").conflicts) == {case}


@pytest.mark.parametrize("arguments", [(), ("other",), ("textconv",), ("diff",), ("merge", "a", "b", "c", "7")])
def test_called_by_hand_it_says_who_should_call_it(arguments: tuple[str, ...]) -> None:
    """One line."""
    command = [sys.executable, "-P", "-m", "harness.drivers", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "usage: python -m harness.drivers textconv|diff|merge ARGUMENT…   (git calls this)\n",
    )


def test_the_readable_text_costs_little_more_than_python() -> None:
    """git starts a process for each side of each file: what is not needed is not imported."""
    script = "import sys; import harness.drivers.__main__, harness.drivers.readable; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)
    assert {"dataclasses", "click", "harness.golden", "harness.drift"}.isdisjoint(done.stdout.split())


def test_a_conflict_is_resolved_by_running_looking_and_accepting(mini_project: MiniProject) -> None:
    """From two branches to the merge commit: the gate, the report and the commands all know what it is."""
    git = GitFolder.new(mini_project.root)
    mini_project.write({"loop.py": LOOP, "cases/weekly.yaml": CASE, ".gitignore": ".harness/\n"})
    assert mini_project.harness("init", "--git").exit_code == 0
    assert mini_project.harness("run", "--update-golden").exit_code == 0
    git.commit("Accept")

    git.git("checkout", "-q", "-b", "more-careful")
    mini_project.edit("loop.py", 'dispatch("send"', 'dispatch("read", {"page": 9})\n    dispatch("send"')
    assert mini_project.harness("run", "--update-golden").exit_code == 0
    git.commit("Read the end")
    git.git("checkout", "-q", "main")
    mini_project.edit("loop.py", 'dispatch("read"', 'dispatch("read", {"page": 0})\n    dispatch("read"')
    assert mini_project.harness("run", "--update-golden").exit_code == 0
    git.commit("Read the beginning")

    git.merge("more-careful")
    assert unmerged(git) == ["golden_traces/weekly.json"]
    assert mini_project.read("loop.py").count("dispatch(") == 4

    (entry,) = run_report(Project.at(mini_project.root)).entries
    assert (entry.word(), entry.change.names) == ("merge conflict", ("HEAD", "more-careful"))
    assert entry.branch is not None
    assert not entry.passed
    gate = mini_project.harness("run")
    assert gate.exit_code == 1
    assert "golden_traces/weekly.json holds unresolved merge conflict markers" in gate.output
    (entry,) = run_report(Project.at(mini_project.root)).entries
    assert (entry.word(), entry.status) == ("merge conflict", "unusable")

    accepted = mini_project.harness("accept", "weekly")
    assert accepted.exit_code == 0
    assert accepted.output.splitlines()[0] == (
        "accepted  golden_traces/weekly.json  merge conflict; against HEAD: 1 more call (3 → 4, +33%): `read`; "
        "against more-careful: 1 more call (3 → 4, +33%): `read`"
    )
    golden = decode_trace((mini_project.root / "golden_traces/weekly.json").read_bytes(), "weekly")
    assert [call.tool for call in golden.calls] == ["read", "read", "read", "send"]
    git.git("add", "golden_traces/weekly.json")
    git.git("commit", "-q", "--no-edit")
    assert git.git("log", "-1", "--format=%s") == "Merge branch 'more-careful'\n"
    assert mini_project.harness("run").exit_code == 0
    (entry,) = run_report(Project.at(mini_project.root)).entries
    assert (entry.word(), entry.passed) == ("matches", True)


def test_an_update_resolves_it_as_well(mini_project: MiniProject) -> None:
    """`--update-golden` replaces what is in conflict by what ran."""
    git = GitFolder.new(mini_project.root)
    list(write_settings(mini_project.root))
    mini_project.write({"loop.py": LOOP, "cases/weekly.yaml": CASE})
    branches(
        git,
        {".gitattributes": "*.json merge=harness\n", "golden_traces/weekly.json": dump_trace(GROWN)},
        {"golden_traces/weekly.json": dump_trace(GOLDEN)},
        {"README": ""},
    )
    git.merge("more-careful")
    assert unmerged(git) == ["golden_traces/weekly.json"]
    outcome = mini_project.harness("run", "--update-golden")
    assert outcome.exit_code == 0
    assert outcome.changed == {"golden_traces/weekly.json": "changed"}
    assert mini_project.harness("run").exit_code == 0
