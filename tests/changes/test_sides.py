"""One side of a comparison: what the files of a folder, a commit, or one file hold."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

import pytest

from harness.changes import Side, commit_side, file_side, folder_side, side_of, with_whole_conflicts
from harness.changes.conflict import Conflict, whole_sides
from harness.crash_golden import dump_rows
from harness.errors import GoldenError, HarnessError
from harness.golden import decode_trace, dump_trace
from harness.repository import Repository
from tests.report.drifts import GOLDEN, GROWN, ROWS, SEVEN

if TYPE_CHECKING:
    from pathlib import Path

    from harness.trace import Trace
    from tests.changes.repositories import GitFolder


def golden(case: str) -> bytes:
    return dump_trace(dataclasses.replace(GOLDEN, case=case)).encode()


def decode(text: str) -> Trace:
    return decode_trace(text.encode(), "a")


def kinds(side: Side) -> dict[str, str]:
    return {case: error.kind for case, error in side.problems.items()}


def test_traces_and_crash_goldens_are_known_by_their_paths() -> None:
    """Only JSON counts, and no hidden file: an editor's, or a writer's that was killed."""
    side = side_of(
        "now",
        {
            "a.json": golden("a"),
            "b/c.json": golden("b/c"),
            "b/c.crash.json": dump_rows("b/c", ROWS).encode(),
            ".a.json.17.tmp": b"",
            "b/.hidden.json": b"",
            ".gitkeep": b"",
            "notes.md": b"",
        },
    )
    assert side == Side(
        "now",
        {name: dataclasses.replace(GOLDEN, case=name) for name in ("a", "b/c")},
        {"b/c": ROWS},
    )
    assert side.cases() == {"a", "b/c"}


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "not_json"),
        (b"\xff", "unreadable"),
        (b"[" * 100_000, "not_json"),
        (b"null", "invalid"),
        (golden("a").replace(b'"calls": 6', b'"calls": 7'), "edited"),
        (golden("a").replace(b"trace/1", b"trace/9"), "newer"),
        (b"<<<<<<< HEAD\n", "conflict"),
    ],
)
def test_a_file_without_a_trace_is_a_problem_of_its_case_alone(data: bytes, kind: str) -> None:
    """It says what is wrong, where; the others are there."""
    side = side_of("now", {"a.json": data, "b.json": golden("b")}, "golden_traces/")
    assert kinds(side) == {"a": kind}
    assert str(side.problems["a"]).startswith("golden_traces/a.json ")
    assert set(side.traces) == {"b"}


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"{", "not_json"),
        (b"[]", "invalid"),
        (dump_rows("b", ROWS).encode(), "foreign"),
        (dump_rows("a", ROWS).replace('"turns": 6', '"turns": "6"').encode(), "invalid"),
        (dump_rows("a", ROWS).replace('{"refund": 0, "send_email": 0}', "5").encode(), "invalid"),
        (dump_rows("a", ROWS).replace('"outcome"', '"verdict"').encode(), "invalid"),
        (whole_sides(dump_rows("a", ROWS).encode(), dump_rows("a", ROWS[1:]).encode(), "HEAD", "topic"), "conflict"),
    ],
)
def test_a_crash_golden_that_is_none_is_a_problem_beside_the_trace(data: bytes, kind: str) -> None:
    """The trace is not lost with it."""
    side = side_of("now", {"a.crash.json": data, "a.json": golden("a")})
    assert kinds(side) == {"a": kind}
    assert set(side.traces) == {"a"}
    assert side.crashes == {}


def test_of_two_problems_of_a_case_the_trace_s_is_told() -> None:
    """Whichever comes first."""
    files = {"a.crash.json": b"{", "a.json": b"null"}
    for order in (files, dict(reversed(files.items()))):
        assert kinds(side_of("now", order)) == {"a": "invalid"}


def test_a_conflict_is_both_versions() -> None:
    """Of a trace; it is not a problem as well."""
    side = side_of("now", {"a.json": whole_sides(golden("a"), dump_trace(GROWN).encode(), "HEAD", "topic")})
    assert side.conflicts == {"a": Conflict(dataclasses.replace(GOLDEN, case="a"), GROWN, "HEAD", "topic")}
    assert side.problems == {}
    assert side.cases() == {"a"}


def test_a_folder_is_read_as_it_lies_there(tmp_path: Path) -> None:
    """A folder named like a golden, and a link that leads nowhere, do not keep the others from being read."""
    folder = tmp_path / "golden_traces"
    assert folder_side(folder, "now") == Side("now")
    (folder / "deep/folder.json").mkdir(parents=True)
    (folder / "deep/ä b.json").write_bytes(golden("deep/ä b"))
    (folder / "gone.json").symlink_to("nowhere")
    side = folder_side(folder, "now")
    assert set(side.traces) == {"deep/ä b"}
    assert kinds(side) == {"gone": "unreadable"}
    assert str(side.problems["gone"]) == "golden_traces/gone.json cannot be read: No such file or directory"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_a_problem(tmp_path: Path) -> None:
    """Of its case, not of the report."""
    (tmp_path / "a.json").write_bytes(golden("a"))
    (tmp_path / "a.json").chmod(0)
    assert kinds(folder_side(tmp_path, "now")) == {"a": "unreadable"}


def test_a_conflict_is_read_from_the_index_where_the_file_mixes_both(shop: GitFolder) -> None:
    """git's text merge put one branch's change into both versions; the index has the goldens that were accepted."""

    def text(*failed: int) -> str:
        calls = (dataclasses.replace(one, ok=place not in failed) for place, one in enumerate(GOLDEN.calls))
        return dump_trace(dataclasses.replace(GOLDEN, case="a", calls=tuple(calls)))

    folder = shop.root / "golden_traces"
    shop.commit("base", {"golden_traces/a.json": text(), "golden_traces/b.json": text()})
    shop.git("checkout", "-q", "-b", "topic")
    shop.commit("topic", {"golden_traces/a.json": text(0, 5), "golden_traces/b.json": text(0)})
    shop.git("checkout", "-q", "main")
    main = dump_trace(dataclasses.replace(SEVEN["write"], case="a"))
    shop.commit("main", {"golden_traces/a.json": main, "golden_traces/b.json": text(2)})
    shop.merge("topic")
    mixed = folder_side(folder, "now")
    assert mixed.conflicts.get("a") != Conflict(decode(main), decode(text(0, 5)), "HEAD", "topic")
    whole = with_whole_conflicts(mixed, Repository(shop.root), folder)
    assert set(whole.conflicts) == {"a"}
    assert (whole.conflicts["a"].ours, whole.conflicts["a"].theirs) == (decode(main), decode(text(0, 5)))
    assert whole.problems == {}
    assert with_whole_conflicts(whole, Repository(shop.root), folder) == whole
    untouched = Side("now", problems={"x": GoldenError("x", "edited")})
    assert with_whole_conflicts(untouched, Repository(shop.root), folder) is untouched


def test_markers_without_a_merge_are_what_they_are(shop: GitFolder) -> None:
    """Somebody committed them; the index has one version, and it is no better."""
    data = whole_sides(golden("a"), dump_trace(GROWN).encode(), "HEAD", "topic").decode()
    shop.commit("oh no", {"golden_traces/a.json": data, "golden_traces/b.json": "<<<<<<< HEAD\n"})
    side = folder_side(shop.root / "golden_traces", "now")
    assert with_whole_conflicts(side, Repository(shop.root), shop.root / "golden_traces") == side


def test_a_commit_s_side_is_what_was_committed(shop: GitFolder) -> None:
    """Its problems name the branch, since the file may be fine by now."""
    commit = shop.commit("one", {"golden_traces/a.json": golden("a").decode(), "golden_traces/b.json": "null"})
    shop.write({"golden_traces/a.json": "changed since", "golden_traces/b.json": None})
    repository = Repository.around(shop.root)
    side = commit_side(repository, commit, shop.root / "golden_traces", "main")
    assert side.traces == {"a": dataclasses.replace(GOLDEN, case="a")}
    assert str(side.problems["b"]) == "main:golden_traces/b.json is not a trace: its top level is no object"
    assert commit_side(repository, commit, shop.root / "nowhere", "main") == Side("main")


def test_one_file_is_asked_for_by_name_and_must_hold_a_trace(tmp_path: Path) -> None:
    """Its id is the one that it names."""
    path = tmp_path / "some trace.json"
    path.write_bytes(golden("notes/weekly"))
    assert set(file_side(path, "some trace.json").traces) == {"notes/weekly"}
    path.write_bytes(b"null")
    with pytest.raises(GoldenError, match=r"^some trace\.json is not a trace"):
        file_side(path, "some trace.json")
    with pytest.raises(HarnessError, match=r"^gone\.json cannot be read: No such file or directory$"):
        file_side(tmp_path / "gone.json", "gone.json")
