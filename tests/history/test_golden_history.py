"""Goldens followed through real histories."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

import pytest

from harness.changes.conflict import whole_sides
from harness.crash_golden import dump_rows
from harness.errors import HarnessError
from harness.golden import dump_trace
from harness.golden_history import GoldenHistory, histories
from harness.project import Project
from harness.report.entries import Counts, Version
from harness.run_report import run_report
from harness.trace import Context
from tests.changes.repositories import START, GitFolder
from tests.report.drifts import BROKEN_ROWS, GOLDEN, GROWN, ROWS, SEVEN

if TYPE_CHECKING:
    from pathlib import Path

    from harness.trace import Trace

REFUND = "golden_traces/refund.json"
CRASH = "golden_traces/refund.crash.json"
SIX = Counts(6, 6, {"refund": 1, "send_email": 1})
CENTS = "`refund` (call 5): `cents` changed"


def text(trace: Trace = GOLDEN, case: str = "refund") -> str:
    return dump_trace(dataclasses.replace(trace, case=case))


def told(shop: GitFolder, case: str = "refund", limit: int | None = 20) -> list[tuple[str, int | None, str]]:
    """Subject, calls and headline of each version."""
    versions = histories(Project.at(shop.root), [case], limit).get(case, ())
    return [(one.subject, one.counts.calls if one.counts else None, one.headline) for one in versions]


def test_each_version_says_who_made_it_when_and_what_changed(shop: GitFolder) -> None:
    """Newest first; a commit that did not touch the golden is none of its versions."""
    one = shop.commit("Add the refund case", {REFUND: text()})
    shop.commit("Elsewhere", {"golden_traces/other.json": text(case="other"), "README": ""})
    two = shop.commit("Refund: tenfold", {REFUND: text(SEVEN["argument"])})
    assert histories(Project.at(shop.root)) == {
        "other": (Version(shop.git("rev-parse", "HEAD~1").strip(), START + 3600, "Ada", "Elsewhere", SIX),),
        "refund": (
            Version(two, START + 7200, "Ada", "Refund: tenfold", SIX, CENTS),
            Version(one, START, "Ada", "Add the refund case", SIX),
        ),
    }


def test_what_is_not_committed_comes_first(shop: GitFolder) -> None:
    """Changed, deleted, new; what is as it was committed is not said twice."""
    shop.commit("one", {REFUND: text(), "golden_traces/gone.json": text(case="gone")})
    other = dataclasses.replace(GROWN, context=Context("00000000"))
    shop.write(
        {REFUND: text(SEVEN["argument"]), "golden_traces/gone.json": None, "golden_traces/x.json": text(other, "x")}
    )
    os.utime(shop.root / REFUND, (START + 99, START + 99))
    os.utime(shop.root / "golden_traces/x.json", (START + 50, START + 50))
    found = histories(Project.at(shop.root))
    assert set(found) == {"refund", "x"}
    assert found["refund"][0] == Version("", START + 99, "", "", SIX, CENTS)
    assert [one.subject for one in found["refund"]] == ["", "one"]
    assert [(one.commit, one.headline) for one in found["x"]] == [("", "")]
    assert told(shop, "gone") == [("", None, "deleted"), ("one", 6, "")]


def test_before_the_first_commit_all_is_uncommitted(shop: GitFolder) -> None:
    """`harness log` works from the first run on."""
    shop.write({REFUND: text()})
    assert told(shop) == [("", 6, "")]


def test_a_golden_that_moved_is_the_same_one(shop: GitFolder) -> None:
    """Through several names, with a change on the way, in a commit and not yet committed."""
    shop.commit("one", {REFUND: text(), CRASH: dump_rows("refund", ROWS)})
    shop.commit(
        "move",
        {
            REFUND: None,
            CRASH: None,
            "golden_traces/a/b.json": text(SEVEN["argument"], "a/b"),
            "golden_traces/a/b.crash.json": dump_rows("a/b", ROWS),
        },
    )
    shop.write(
        {
            "golden_traces/a/b.json": None,
            "golden_traces/a/b.crash.json": None,
            "golden_traces/c.json": text(SEVEN["argument"], "c"),
        }
    )
    assert told(shop, "c") == [
        ("", 6, "was a/b; the same path, written in another way; crash golden deleted"),
        ("move", 6, f"was refund; {CENTS}; crash golden: the same outcomes"),
        ("one", 6, "crash golden added"),
    ]
    assert told(shop, "refund") == [
        ("move", None, "renamed to a/b; crash golden deleted"),
        ("one", 6, "crash golden added"),
    ]


def test_a_golden_that_was_deleted_and_came_back_has_one_history(shop: GitFolder) -> None:
    """Up to the commit that brought it last: what was there before was another golden of the name."""
    shop.commit("one", {REFUND: text()})
    shop.commit("two", {REFUND: None})
    assert told(shop) == [("two", None, "deleted"), ("one", 6, "")]
    shop.commit("three", {REFUND: text(GROWN)})
    assert told(shop) == [("three", 10, "")]
    assert GoldenHistory.of(Project.at(shop.root)).past == frozenset()


def test_crash_goldens_are_noted_beside_the_path(shop: GitFolder) -> None:
    """Also where the path did not change."""
    shop.commit("one", {REFUND: text()})
    shop.commit("sweep", {CRASH: dump_rows("refund", ROWS)})
    shop.commit("both", {CRASH: dump_rows("refund", BROKEN_ROWS[1:]), REFUND: text(SEVEN["argument"])})
    shop.commit("broken", {CRASH: "{"})
    shop.commit("gone", {CRASH: None})
    assert told(shop) == [
        ("gone", 6, "crash golden deleted"),
        ("broken", 6, "crash golden changed"),
        ("both", 6, f"{CENTS}; crash golden: 18 → 17 points, 2 other outcomes"),
        ("sweep", 6, "crash golden added"),
        ("one", 6, ""),
    ]


def test_a_version_that_cannot_be_read_says_why(shop: GitFolder) -> None:
    """And does not hide those around it."""
    shop.commit("one", {REFUND: text()})
    shop.commit("markers", {REFUND: whole_sides(text().encode(), text(GROWN).encode(), "HEAD", "topic").decode()})
    shop.commit("half", {REFUND: "<<<<<<< HEAD\n"})
    shop.commit("no json", {REFUND: "{"})
    shop.commit("edited", {REFUND: text().replace('"calls": 6', '"calls": 7')})
    shop.commit("newer", {REFUND: text().replace("trace/1", "trace/2")})
    shop.commit("back", {REFUND: text(GROWN)})
    shop.commit("key", {REFUND: text(dataclasses.replace(GROWN, digest_key="abcd"))})
    sent = dataclasses.replace(GROWN, digest_key="abcd", model="claude-opus-5")
    shop.commit("model", {REFUND: text(sent)})
    shop.commit("owner", {REFUND: text(dataclasses.replace(sent, owner="tests/test_refund.py"))})
    assert told(shop) == [
        ("owner", 10, "the same path, written in another way"),
        ("model", 10, "the model changed from claude-sonnet-5 to claude-opus-5"),
        ("key", 10, "another digest key"),
        ("back", 10, "readable again"),
        ("newer", None, "unreadable: newer"),
        ("edited", None, "unreadable: edited"),
        ("no json", None, "unreadable: not json"),
        ("half", None, "merge conflict"),
        ("markers", None, "merge conflict: HEAD and topic"),
        ("one", 6, ""),
    ]


@pytest.mark.parametrize("winner", ["main", "topic", "neither"])
def test_branches_do_not_mix(shop: GitFolder, winner: str) -> None:
    """What a merge threw away is no version of what there is, and each version is compared with its own parent."""
    goldens = {"main": SEVEN["argument"], "topic": GROWN, "neither": SEVEN["write"]}
    shop.commit("base", {REFUND: text()})
    shop.git("checkout", "-q", "-b", "topic")
    shop.commit("topic", {REFUND: text(goldens["topic"]), "golden_traces/t.json": text(GROWN, "t")})
    shop.git("checkout", "-q", "main")
    shop.commit("main", {REFUND: text(goldens["main"]), "golden_traces/m.json": text(GROWN, "m")})
    shop.merge("topic")
    shop.commit("merge", {REFUND: text(goldens[winner])})
    subjects = [subject for subject, _, _ in told(shop)]
    assert (
        subjects == {"main": ["main", "base"], "topic": ["topic", "base"], "neither": ["merge", "main", "base"]}[winner]
    )
    if winner == "topic":
        assert told(shop)[0][2].startswith("4 more calls (6 → 10, +67%)")
    assert told(shop, "t") == [("topic", 10, "")]
    assert told(shop, "m") == [("main", 10, "")]


def test_the_limit_is_one_of_versions_not_of_commits(shop: GitFolder) -> None:
    """Newest first, and through a rename."""
    for place, trace in enumerate([GOLDEN, SEVEN["argument"], GOLDEN, SEVEN["argument"]]):
        shop.commit(f"change {place}", {REFUND: text(trace)})
        shop.commit(f"noise {place}", {"golden_traces/noise.json": text(trace, "noise"), "README": str(place)})
    shop.commit("move", {REFUND: None, "golden_traces/now.json": text(GOLDEN, "now")})
    assert [one[0] for one in told(shop, "now", 3)] == ["move", "change 3", "change 2"]
    assert [one[0] for one in told(shop, "now", 1)] == ["move"]
    assert len(told(shop, "now", None)) == 5


def test_overviews_have_the_most_changed_first_and_of_those_the_most_grown(shop: GitFolder) -> None:
    """From the first version to what there is now."""
    files = {"a": GOLDEN, "b": GOLDEN, "c": GOLDEN, "d": GROWN}
    shop.commit("one", {f"golden_traces/{case}.json": text(trace, case) for case, trace in files.items()})
    shop.commit("two", {f"golden_traces/{case}.json": text(trace, case) for case, trace in
                        (("b", SEVEN["write"]), ("c", GROWN))})  # fmt: skip
    found = GoldenHistory.of(Project.at(shop.root)).overviews()
    assert [(one.case, one.versions, round(one.growth, 2)) for one in found] == [
        ("c", 2, 1.67), ("b", 2, 1.17), ("a", 1, 1.0), ("d", 1, 1.0),
    ]  # fmt: skip


def test_a_project_below_the_root_and_names_of_all_kinds(shop: GitFolder) -> None:
    """Ids are relative to the goldens of the project."""
    case = 'ä b/it\'s "so"'
    shop.commit("one", {f"agents/golden_traces/{case}.json": text(case=case), REFUND: text()})
    found = histories(Project.at(shop.root / "agents"))
    assert {name: [one.subject for one in versions] for name, versions in found.items()} == {case: ["one"]}


def test_longer_ids_are_known_as_well(tmp_path: Path) -> None:
    """In a SHA-256 repository nothing is taken for uncommitted."""
    shop = GitFolder.new(tmp_path / "long", "--object-format=sha256")
    shop.commit("one", {REFUND: text()})
    assert told(shop) == [("one", 6, "")]


def test_a_shallow_clone_says_that_it_is_one(shop: GitFolder, tmp_path: Path) -> None:
    """Its oldest commit seems to have brought all."""
    shop.commit("one", {REFUND: text()})
    shop.commit("two", {REFUND: text(GROWN)})
    clone = GitFolder.clone(shop, tmp_path / "clone", "--depth=1")
    assert GoldenHistory.of(Project.at(clone.root)).is_shallow
    assert told(clone) == [("two", 10, "")]


def test_any_number_of_versions_takes_few_calls_of_git(shop: GitFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """One log and one read, and one more read where something was renamed."""
    from harness import repository

    for place, trace in enumerate([GOLDEN, *SEVEN.values()]):
        shop.commit(str(place), {f"golden_traces/c{n}.json": text(trace, f"c{n}") for n in range(9)})
    calls: list[str] = []
    real = repository._git
    monkeypatch.setattr(
        repository, "_git", lambda folder, *words, **more: calls.append(words[0]) or real(folder, *words, **more)
    )
    found = histories(Project.at(shop.root))
    assert {len(versions) for versions in found.values()} == {8}
    assert [calls.count(name) for name in ("log", "cat-file", "ls-tree")] == [1, 1, 1]
    assert len(calls) <= 8


def test_outside_of_git_it_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing to tell."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(HarnessError, match=r"^golden_traces/ is in no git repository"):
        histories(Project.at(tmp_path))


def test_a_report_has_the_history_of_each_case(shop: GitFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless it is told not to; where git cannot tell, it is empty."""
    shop.commit("one", {REFUND: text()})
    shop.commit("two", {REFUND: text(SEVEN["argument"])})
    project = Project.at(shop.root)
    (entry,) = run_report(project).entries
    assert entry.history == histories(project)["refund"]
    (entry,) = run_report(project, history=False).entries
    assert entry.history == ()
    monkeypatch.setenv("PATH", "")
    (entry,) = run_report(project).entries
    assert entry.history == ()
