"""The files of a workspace: no path leaves it, and every run gets its own."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.case.workspace import checked_files, workspace

REFUSED = {
    "": "a file needs a name",
    "../a": "'../a' holds '..'; write the path from the workspace down",
    "a/../../b": "'a/../../b' holds '..'; write the path from the workspace down",
    "./a": "'./a' holds '.'; write the path from the workspace down",
    "/etc/passwd": "'/etc/passwd' is absolute; a path is relative to the workspace",
    "C:/a": "'C:/a' begins with a drive letter; a path is relative to the workspace",
    "c:a": "'c:a' begins with a drive letter; a path is relative to the workspace",
    "a\\b": "'a\\\\b' holds a backslash; folders are separated by '/'",
    "\\\\host\\share": "'\\\\\\\\host\\\\share' holds a backslash; folders are separated by '/'",
    "a\0b": "'a\\x00b' holds a control character",
    "a\nb": "'a\\nb' holds a control character",
    "a//b": "'a//b' has an empty part; a folder exists by the files in it",
    "a/": "'a/' has an empty part; a folder exists by the files in it",
    "nul.txt": "'nul.txt' is the name of a device on Windows; choose another",
    "a/COM1": "'COM1' is the name of a device on Windows; choose another",
    "a.": "'a.' is no file name on Windows; choose another",
    "a?b": "'a?b' is no file name on Windows; choose another",
    "x" * 256: f"{'x' * 20!r}... is longer than 255 bytes",
    "é" * 128: f"{'é' * 20!r}... is longer than 255 bytes",
}


@pytest.mark.parametrize(("name", "said"), REFUSED.items(), ids=map(ascii, REFUSED))
def test_a_path_that_could_leave_the_workspace_is_refused(name: str, said: str) -> None:
    """Traversal, absolute paths, drives and names that some system cannot hold are refused before anything runs."""
    assert checked_files({name: "x"}) == ({}, {name: said})


def test_files_that_exclude_each_other_are_refused() -> None:
    """A file cannot also be a folder, and two names that differ by case are one on many systems."""
    files, faults = checked_files({"a": "", "a/b": "", "c/d": "", "C": "", "e/F.txt": "", "E/f.txt": "", "c/g": ""})
    assert sorted(files) == ["a", "c/d", "c/g", "e/F.txt"]
    assert faults == {
        "a/b": "'a/b' cannot exist beside 'a'",
        "C": "'C' cannot exist beside 'c/'",
        "E/f.txt": "'E/f.txt' cannot exist beside 'e/F.txt'",
    }


def test_contents_become_bytes() -> None:
    """Text is UTF-8, base64 may be wrapped, JSON is indented with a final newline."""
    files, faults = checked_files(
        {"t": "é\n", "b": {"base64": "aGVs\nbG8="}, "j": {"json": {"b": 1, "a": ["é"]}}, "empty": ""}
    )
    assert faults == {}
    assert files == {
        "t": b"\xc3\xa9\n",
        "b": b"hello",
        "j": '{\n  "b": 1,\n  "a": [\n    "é"\n  ]\n}\n'.encode(),
        "empty": b"",
    }


def test_contents_that_are_none_are_refused() -> None:
    """What is no base64 or no Unicode is named."""
    assert checked_files({"b": {"base64": "a"}, "n": {"base64": "é"}, "s": "\ud800"})[1] == {
        "b": "'base64' does not hold base64: Invalid base64-encoded string: number of data characters (1) cannot be 1 "
        "more than a multiple of 4",
        "n": "'base64' does not hold base64: string argument should contain only ASCII characters",
        "s": "the text holds half a surrogate pair, which no file can hold as UTF-8",
    }


def test_a_run_finds_its_files_where_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run starts in a fresh directory with the files; afterwards it is gone and the old one is back."""
    monkeypatch.chdir(tmp_path)
    seen = []
    for _ in range(2):
        with workspace({"notes/mon.md": b"hi", "a": b""}) as directory:
            assert Path.cwd() == directory == directory.resolve()
            assert sorted(path.as_posix() for path in Path().rglob("*")) == ["a", "notes", "notes/mon.md"]
            assert Path("notes/mon.md").read_bytes() == b"hi"
            Path("left behind").touch()
            os.chdir("notes")
        assert Path.cwd() == tmp_path
        assert not directory.exists()
        seen.append(directory)
    assert seen[0] != seen[1]


def test_the_directory_is_restored_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that raises leaves neither its directory nor the process somewhere else."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeyboardInterrupt), workspace({}) as directory:
        raise KeyboardInterrupt
    assert (Path.cwd(), directory.exists()) == (tmp_path, False)


@given(
    st.lists(st.sampled_from(["..", ".", "a", "B", "/", "\\", "c:", "", "nul", "b c", "é"]), max_size=6).map("/".join)
)
def test_no_accepted_path_leaves_the_workspace(name: str) -> None:
    """Whatever is accepted is a plain path below the workspace."""
    files, _ = checked_files({name: "x"})
    for accepted in files:
        path = PurePosixPath(accepted)
        assert not path.is_absolute()
        assert path.as_posix() == accepted
        assert not {"..", "."} & set(path.parts)
