"""What each branch made of a golden, read back from the file that an unresolved merge left."""

from __future__ import annotations

import dataclasses
import subprocess
from typing import TYPE_CHECKING

import pytest

from harness.changes.conflict import Conflict, find_conflict, whole_sides
from harness.errors import GoldenError
from harness.golden import decode_trace, dump_trace
from tests.report.drifts import GOLDEN, GROWN, SEVEN, call, trace

if TYPE_CHECKING:
    from pathlib import Path

OURS = dump_trace(GOLDEN).encode()
THEIRS = dump_trace(GROWN).encode()
BASE = dump_trace(SEVEN["dropped"]).encode()


def merge_file(tmp_path: Path, *options: str, base: bytes = BASE, ours: bytes = OURS, theirs: bytes = THEIRS) -> bytes:
    """What git's own text merge leaves."""
    for name, data in (("ours", ours), ("base", base), ("theirs", theirs)):
        (tmp_path / name).write_bytes(data)
    command = ["git", "merge-file", "-p", "-L", "HEAD", "-L", "base", "-L", "topic", *options]
    done = subprocess.run([*command, "ours", "base", "theirs"], cwd=tmp_path, capture_output=True, check=False)
    assert 0 < done.returncode < 128, done.stderr
    return done.stdout


@pytest.mark.parametrize("size", [7, 8, 31])
def test_whole_versions_between_markers_come_out_as_they_went_in(size: int) -> None:
    """Whatever the size of the markers; the file in between is refused as a conflict, by name."""
    data = whole_sides(OURS, THEIRS, "HEAD", "topic/ä b", size)
    assert find_conflict(data, "a.json") == Conflict(GOLDEN, GROWN, "HEAD", "topic/ä b")
    with pytest.raises(GoldenError) as error:
        decode_trace(data, "a.json")
    assert error.value.kind == "conflict"


def test_a_version_without_its_last_newline_is_still_whole() -> None:
    """An editor may have eaten it; a marker begins a line."""
    data = whole_sides(OURS.rstrip(), THEIRS.rstrip(), "", "")
    assert find_conflict(data, "a.json") == Conflict(GOLDEN, GROWN, "ours", "theirs")


@pytest.mark.parametrize("options", [(), ("--diff3",), ("--marker-size=9", "--diff3")])
def test_what_git_s_text_merge_left_is_read_as_well(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Without the driver, in each style, where all that differs lies between markers."""
    theirs = dump_trace(dataclasses.replace(GOLDEN, stop_reasons=("tool_use",) * 5 + ("max_tokens",))).encode()
    base = dump_trace(dataclasses.replace(GOLDEN, stop_reasons=("tool_use",) * 5 + ("refusal",))).encode()
    found = find_conflict(merge_file(tmp_path, *options, base=base, theirs=theirs), "a.json")
    assert found == Conflict(GOLDEN, decode_trace(theirs, "theirs"), "HEAD", "topic")


def test_a_conflict_between_ancestors_inside_the_base_is_passed_over() -> None:
    """A criss-cross merge in diff3 style has longer markers inside the base."""
    inner = whole_sides(BASE, BASE, "one", "other", 9)
    data = b"".join(
        [b"<<<<<<< HEAD\n", OURS, b"||||||| merged common ancestors\n", inner, b"=======\n", THEIRS, b">>>>>>> topic\n"]
    )
    assert find_conflict(data, "a.json") == Conflict(GOLDEN, GROWN, "HEAD", "topic")


@pytest.mark.parametrize(
    "data",
    [
        b"<<<<<<< HEAD\n" + OURS,
        b"<<<<<<< HEAD\n" + OURS + b"=======\n" + THEIRS[:-30] + b"\n>>>>>>> topic\n",
        b"<<<<<<< HEAD\n=======\n" + THEIRS + b">>>>>>> topic\n",
        b"<<<<<<< HEAD\n\xff=======\n" + THEIRS + b">>>>>>> topic\n",
        b"=======\n",
    ],
)
def test_half_a_version_is_no_version(data: bytes) -> None:
    """What does not come out whole is not shown as what a branch did."""
    assert find_conflict(data, "a.json") is None


def test_a_value_that_looks_like_a_marker_is_a_value() -> None:
    """JSON strings hold no line breaks, so nothing in them begins a line; a line separator is none here."""
    odd = trace(call(1, "say", text="x"), detail="plain")
    odd = dataclasses.replace(
        odd, calls=(dataclasses.replace(odd.calls[0], args={"text": "\u2028<<<<<<< HEAD\u2028"}),)
    )
    data = whole_sides(dump_trace(odd).encode(), OURS, "HEAD", "topic")
    assert find_conflict(data, "a.json") == Conflict(odd, GOLDEN, "HEAD", "topic")
