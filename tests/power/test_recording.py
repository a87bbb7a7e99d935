"""What a traced program did to files, read from its trace; and that nothing is passed over in silence."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.power.operations import Make, Map, Mark, Move, Operation, Remove, Sync, Truncate, Write
from harness.power.strace import parse_strace, record


def hexed(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def trace(text: str) -> list[str]:
    """Lines as strace -xx prints them, from lines that people can read."""
    text = re.sub(r'"([^"]*)"', lambda found: f'"{hexed(found[1])}"', text)
    text = re.sub(r"(?<=[\dD])<(/[^>]*)>", lambda found: f"<{hexed(found[1])}>", text)
    return text.strip().splitlines()


def parsed(text: str) -> list[Operation]:
    return parse_strace(trace(text), Path("/r"), Path("/marks"))


def test_a_replaced_file() -> None:
    """The calls of a save become operations below the root; reads, failures and other places do not."""
    assert parsed("""
10 openat(AT_FDCWD</home>, "/r/a.tmp", O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0666) = 3</r/a.tmp>
10 write(3</r/a.tmp>, "new", 3) = 3
10 write(3</r/a.tmp>, "er", 2) = 2
10 fsync(3</r/a.tmp>) = 0
10 close(3</r/a.tmp>) = 0
10 write(1</dev/null>, "noise", 5) = 5
10 unlink("/r/gone") = -1 ENOENT (No such file or directory)
10 rename("/r/a.tmp", "/r/a") = 0
10 openat(AT_FDCWD</home>, "/r", O_RDONLY|O_CLOEXEC|O_DIRECTORY) = 3</r>
10 fsync(3</r>) = 0
10 write(4</marks>, "done 1", 6) = 6
10 +++ exited with 0 +++
""") == [
        Make("a.tmp"), Write("a.tmp", 0, b"new"), Write("a.tmp", 3, b"er"), Sync("a.tmp"), Move("a.tmp", "a"),
        Sync(""), Mark("done 1"),
    ]  # fmt: skip


def test_positions_are_followed() -> None:
    """Appending, seeking and short writes put the bytes where they went."""
    assert parsed("""
10 openat(AT_FDCWD</r>, "log", O_WRONLY|O_CREAT|O_APPEND|O_CLOEXEC, 0666) = 3</r/log>
10 write(3</r/log>, "one", 3) = 3
10 write(3</r/log>, "two", 3) = 2
10 openat(AT_FDCWD</r>, "log", O_RDWR|O_CLOEXEC) = 4</r/log>
10 lseek(4</r/log>, 1, SEEK_SET) = 1
10 writev(4</r/log>, [{iov_base="x", iov_len=1}, {iov_base="y, z", iov_len=4}], 2) = 5
10 pwrite64(4</r/log>, "p", 1, 9) = 1
10 ftruncate(4</r/log>, 2) = 0
10 mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 4</r/log>, 0) = 0x7f6c0c9a7000
""") == [
        Make("log"), Write("log", 0, b"one"), Write("log", 3, b"tw"), Write("log", 1, b"xy, z"), Write("log", 9, b"p"),
        Truncate("log", 2), Map("log"),
    ]  # fmt: skip


def test_calls_of_two_threads_cross() -> None:
    """A call that another thread interrupts in the trace is read as one, where it returned."""
    assert parsed("""
10 openat(AT_FDCWD</r>, "a", O_WRONLY|O_CREAT, 0666) = 3</r/a>
10 fsync(3</r/a> <unfinished ...>
11 mkdir("/r/d", 0777) = 0
10 <... fsync resumed>) = 0
11 rmdir("/r/d") = 0
""") == [Make("a"), Make("d", folder=True), Sync("a"), Remove("d")]


@pytest.mark.parametrize(
    "call",
    [
        'link("/r/a", "/r/b") = 0',
        'rename("/r/a", "/r/d/a") = 0',
        "sync() = 0",
        "fallocate(3</r/a>, 0, 0, 512) = 0",
        'openat(AT_FDCWD</r>, "a", O_RDWR|O_DSYNC) = 4</r/a>',
    ],
)
def test_a_call_without_a_rule_is_refused(call: str) -> None:
    """What the model of the disk has no rule for is an error: a recording without it would prove nothing."""
    before = '10 mkdir("/r/d", 0777) = 0\n10 openat(AT_FDCWD</r>, "a", O_WRONLY|O_CREAT, 0666) = 3</r/a>\n'
    with pytest.raises(HarnessError, match="has no rule"):
        parsed(f"{before}10 {call}")


def run(work: Path, program: str) -> list[Operation]:
    (work / "root").mkdir()
    (work / "marks").touch()
    return record([sys.executable, "-c", program, str(work / "root")], work / "root", work / "marks")


def test_a_real_program(work: Path) -> None:
    """A program of the system's own Python is recorded whole."""
    log = run(work, "import pathlib, sys; (pathlib.Path(sys.argv[1]) / 'a').write_text('hello, world')")
    assert log == [Make("a"), Write("a", 0, b"hello, world")]


def test_a_write_through_memory_that_nobody_could_see_is_marked(work: Path) -> None:
    """A file that is mapped for writing is known to be unknown, instead of taken for what was written before."""
    log = run(
        work,
        "import mmap, sys\n"
        "file = open(sys.argv[1] + '/a', 'w+b'); file.write(bytes(8)); file.flush()\n"
        "mmap.mmap(file.fileno(), 8)[:2] = b'hi'\n",
    )
    assert log == [Make("a"), Write("a", 0, bytes(8)), Map("a")]


def test_what_the_recording_does_not_account_for_is_an_error(work: Path) -> None:
    """A recording that missed something is refused, since the files are not those of the replay."""
    program = (
        "import os, sys\n"
        "path = sys.argv[1] + '/a'\n"
        "open(path, 'w').write('0123456789')\n"
        "file = os.open(path, os.O_RDWR); os.read(file, 4); os.write(file, b'x')\n"  # reads are not followed
    )
    with pytest.raises(HarnessError, match=r"does not account for \['a'\]"):
        run(work, program)


def test_a_program_that_fails_is_no_recording(work: Path) -> None:
    """A command that ends with an error gives its own words, and no log."""
    with pytest.raises(HarnessError, match="ended with 3 while it was recorded:\nno room"):
        run(work, "import sys; print('no room', file=sys.stderr); sys.exit(3)")
