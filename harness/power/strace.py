"""Recording what a program does to a directory, by strace: the system calls of the program as it is.

Nothing is put between a store and its disk: the same SQLite library, the same locks, the same fsync of a folder that
SQLite makes below its own interface (where a traced VFS cannot see it), and one recorder for all stores.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from harness.errors import HarnessError
from harness.power.disk import Disk
from harness.power.operations import Make, Map, Mark, Move, Remove, Sync, Truncate, Write

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.power.operations import Operation

__all__ = ["parse_strace", "record", "why_not"]

_MODELLED: Final = (
    "open", "openat", "creat", "close", "lseek", "write", "pwrite64", "writev", "pwritev", "pwritev2", "truncate",
    "ftruncate", "fsync", "fdatasync", "rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "mkdir",
    "mkdirat", "mmap",
)  # fmt: skip
_REFUSED: Final = (
    "openat2", "link", "linkat", "symlink", "symlinkat", "fallocate", "copy_file_range", "sendfile", "splice", "sync",
    "syncfs", "sync_file_range", "mknod", "mknodat", "io_uring_setup",
)  # fmt: skip
"""Calls that may change files and that the disk has no rule for: a recording with one of these would prove nothing."""

_CALL: Final = re.compile(r"^(?:(?P<pid>\d+) +)?(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\w+)(?:<.*|\s.*)?$")
_UNFINISHED: Final = re.compile(r"^(\d+) +(.*) <unfinished \.\.\.>$")
_RESUMED: Final = re.compile(r"^(\d+) +<\.\.\. \w+ resumed>(.*)$")
_DESCRIPTOR: Final = re.compile(r"^(?P<number>-?\d+|AT_FDCWD)(?:<(?P<path>[^>]*)>)?(?P<gone>\(deleted\))?$")
_LONGEST: Final = 1 << 26
"""Bytes of one write that strace prints."""


def why_not() -> str | None:
    """Why nothing can be recorded here; `None` when it can."""
    if not sys.platform.startswith("linux"):
        return "file operations are recorded by strace, which runs on Linux only"
    if shutil.which("strace") is None:
        return "strace is not installed (apt-get install strace)"
    trial = ["strace", "-o", os.devnull, "true"]
    tried = subprocess.run(trial, capture_output=True, text=True, check=False)  # noqa: S603 (our own words)
    return None if tried.returncode == 0 else f"strace may not trace here: {tried.stderr.strip()}"


def record(command: Sequence[str], root: Path, marks: Path, *, timeout: float = 60.0) -> list[Operation]:
    """Run a command and return what it did below `root`, in order.

    Args:
        command: the program and its arguments.
        root: an empty directory; everything in it is recorded.
        marks: a file outside of `root`: what the command appends to it becomes a `Mark`, one for each write.
        timeout: seconds.

    Raises:
        HarnessError: It cannot be recorded here, the command failed, it did something that the disk has no rule for, or
            the recording, replayed, does not give the files that are there.
    """
    if (reason := why_not()) is not None:
        raise HarnessError(f"cannot record file operations: {reason}")
    root = root.resolve()
    trace = marks.with_name(f"{marks.name}.strace")
    calls = ",".join(f"?{name}" for name in (*_MODELLED, *_REFUSED))
    traced = ["strace", "-f", "-y", "-xx", "-s", str(_LONGEST), "-e", "signal=none", "-e", f"trace={calls}"]
    try:
        ran = subprocess.run(  # noqa: S603 (running what the caller wants recorded is the purpose)
            [*traced, "-o", str(trace), "--", *command],
            capture_output=True, text=True, check=False, timeout=timeout,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise HarnessError(f"{command[0]!r} did not end within {timeout:g} s while it was recorded") from None
    if ran.returncode != 0:
        raise HarnessError(f"{command[0]!r} ended with {ran.returncode} while it was recorded:\n{ran.stderr.strip()}")
    with trace.open(encoding="ascii") as lines:
        log = parse_strace(lines, root, marks.resolve())
    trace.unlink()
    _compare(log, root)
    return log


def parse_strace(lines: Iterable[str], root: Path, marks: Path) -> list[Operation]:
    """What the lines of `strace -f -y -xx` say of the files below `root`.

    Raises:
        HarnessError: A call that the disk has no rule for.
    """
    reader = _Reader(root, marks)
    for line in _whole(lines):
        if (call := _CALL.match(line)) and not call["result"].startswith("-"):
            reader.read(call["name"], _split(call["arguments"]), int(call["result"], 0) if call["result"] != "?" else 0)
    return reader.log


def _whole(lines: Iterable[str]) -> Iterable[str]:
    """Calls of several threads cross each other in the trace; a call counts where it returned."""
    begun: dict[str, str] = {}
    for line in lines:
        text = line.rstrip("\n")
        if unfinished := _UNFINISHED.match(text):
            begun[unfinished[1]] = unfinished[2]
        elif resumed := _RESUMED.match(text):
            yield f"{resumed[1]} {begun.pop(resumed[1], '')}{resumed[2]}"
        else:
            yield text


def _split(arguments: str) -> list[str]:
    """Strings are printed in hexadecimal, so that a comma always ends an argument, but for those of an iovec."""
    if "[{iov_base=" in arguments:
        head, _, rest = arguments.partition(", [")
        vector, _, tail = rest.partition("], ")
        return [head, vector, *tail.split(", ")]
    return arguments.split(", ")


def _unquote(text: str) -> bytes:
    if text.endswith("..."):
        raise HarnessError(f"a write of more than {_LONGEST} bytes was recorded in part")
    return bytes.fromhex(text.strip('"').replace("\\x", ""))


@dataclass(slots=True)
class _Reader:
    """Follows descriptors and positions from call to call."""

    root: Path
    marks: Path
    log: list[Operation] = field(default_factory=list)
    _disk: Disk = field(default_factory=Disk)
    _positions: dict[str, int] = field(default_factory=dict)

    def read(self, name: str, arguments: list[str], result: int) -> None:
        match name:
            case "open" | "creat" | "openat":
                self._open(name, arguments, result)
            case "lseek":
                self._positions[_number(arguments[0])] = result
            case "write" | "writev":
                self._write(arguments, result)
            case "pwrite64" | "pwritev" | "pwritev2":
                if (path := self._held(arguments[0])) is not None:
                    self._put(path, int(arguments[3]), _data(arguments[1])[:result])
            case "ftruncate" | "truncate":
                path = self._held(arguments[0]) if name == "ftruncate" else self._below(_unquote(arguments[0]))
                if path is not None:
                    self._do(Truncate(path, int(arguments[1])))
            case "fsync" | "fdatasync":
                if (path := self._held(arguments[0])) is not None:
                    self._do(Sync(path))
            case "mmap":
                if "PROT_WRITE" in arguments[2] and "MAP_SHARED" in arguments[3]:
                    path = self._held(arguments[4])
                    if path is not None and not self._disk.mapped(path):
                        self._do(Map(path))
            case "close":
                self._positions.pop(_number(arguments[0]), None)
            case _:
                self._name(name, arguments)

    def _name(self, name: str, arguments: list[str]) -> None:
        """Calls that change names; all others are refused."""
        paths = self._paths(arguments)
        everywhere = name in {"sync", "syncfs", "io_uring_setup"}
        if not everywhere and not paths and all(self._held(argument) is None for argument in arguments):
            return
        match name:
            case "mkdir" | "mkdirat" if paths:
                self._do(Make(paths[0], folder=True))
            case "unlink" | "unlinkat" | "rmdir" if paths:
                self._do(Remove(paths[0]))
            case "rename" | "renameat" | "renameat2" if (
                len(paths) == 2
                and PurePosixPath(paths[0]).parent == PurePosixPath(paths[1]).parent
                and "RENAME_EXCHANGE" not in arguments[-1]
            ):
                self._do(Move(paths[0], paths[1]))
            case _:
                where = f" on {paths}" if paths else ""
                raise HarnessError(f"the program calls {name}{where}, for which the model of the disk has no rule")

    def _open(self, name: str, arguments: list[str], descriptor: int) -> None:
        place = arguments[:2] if name == "openat" else arguments[:1]
        flags = "O_CREAT|O_TRUNC" if name == "creat" else arguments[len(place)]
        path = next(iter(self._paths(place)), None)
        self._positions[str(descriptor)] = 0
        if path is None or "O_RDONLY" in flags:
            return
        if "O_SYNC" in flags or "O_DSYNC" in flags or "O_TMPFILE" in flags:
            raise HarnessError(f"the program opens {path!r} with {flags}, for which the model of the disk has no rule")
        if not self._disk.has(path):
            self._do(Make(path))
        elif "O_TRUNC" in flags and self._disk.size(path):
            self._do(Truncate(path, 0))
        if "O_APPEND" in flags:
            self._positions[str(descriptor)] = -1

    def _write(self, arguments: list[str], written: int) -> None:
        descriptor = _DESCRIPTOR.match(arguments[0])
        if descriptor is None or descriptor["path"] is None:
            return
        if (place := self._path_of(descriptor)) == self.marks:
            self.log.append(Mark(_data(arguments[1])[:written].decode().strip()))
        elif (path := self._relative(place)) is not None:
            at = self._positions.get(descriptor["number"], 0)
            offset = self._disk.size(path) if at < 0 else at
            self._put(path, offset, _data(arguments[1])[:written])
            if at >= 0:
                self._positions[descriptor["number"]] = offset + written

    def _put(self, path: str, offset: int, data: bytes) -> None:
        if data:
            self._do(Write(path, offset, data))

    def _do(self, operation: Operation) -> None:
        self._disk.apply(operation)
        self.log.append(operation)

    def _held(self, argument: str) -> str | None:
        """The path of a descriptor, when it is below the root and still has a name."""
        descriptor = _DESCRIPTOR.match(argument)
        if descriptor is None or descriptor["path"] is None or descriptor["gone"]:
            return None
        return self._relative(self._path_of(descriptor))

    def _paths(self, arguments: list[str]) -> list[str]:
        """The paths below the root among the arguments: strings, each resolved by the folder before it."""
        found, folder = [], ""
        for argument in arguments:
            if descriptor := _DESCRIPTOR.match(argument):
                folder = str(self._path_of(descriptor)) if descriptor["path"] else ""
            elif argument.startswith('"') and (path := self._below(_unquote(argument), folder)) is not None:
                found.append(path)
        return found

    def _below(self, name: bytes, folder: str = "") -> str | None:
        return self._relative(Path(os.path.normpath(Path(folder) / os.fsdecode(name))))

    def _relative(self, path: Path) -> str | None:
        if not path.is_relative_to(self.root):
            return None
        return "" if path == self.root else path.relative_to(self.root).as_posix()

    @staticmethod
    def _path_of(descriptor: re.Match[str]) -> Path:
        return Path(os.fsdecode(bytes.fromhex(descriptor["path"].replace("\\x", ""))))


def _number(argument: str) -> str:
    return argument.partition("<")[0]


def _data(argument: str) -> bytes:
    if "iov_base=" in argument:
        return b"".join(_unquote(part) for part in re.findall(r'iov_base=("[^"]*"(?:\.\.\.)?)', argument))
    return _unquote(argument)


def _compare(log: list[Operation], root: Path) -> None:
    """A recording that misses something proves nothing: replayed, it must give the files that are there."""
    disk = Disk()
    for operation in log:
        disk.apply(operation)
    replayed = disk.now()
    there = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    wrong = sorted(
        name
        for name in replayed.files.keys() | there.keys()
        if name not in there
        or name not in replayed.files
        or (not disk.mapped(name) and there[name].read_bytes() != replayed.files[name])
    )
    if wrong:
        raise HarnessError(f"the recording does not account for {wrong}: something was written in an unknown way")
