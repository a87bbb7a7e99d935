"""Writes a file so that every reader, and every crash, finds the old one or the new one, whole."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from pathlib import Path
from typing import Final

__all__ = ["remove_strays", "write_atomically", "write_output"]

_STRAY: Final = re.compile(r"\..+\.(\d+)\.tmp")


def write_atomically(path: Path, data: bytes) -> bool:
    """Replace the file at `path` by `data`; a file that holds these bytes already is not touched.

    The bytes are on disk before the new file gets its name, and the name is on disk before this returns.  Missing
    folders are made.  A kill may leave a hidden `.NAME.PID.tmp`, which `remove_strays` removes; where the file system
    has unnamed files (Linux) only in the moment between two system calls.

    Returns:
        Whether anything was written.

    Raises:
        OSError: the old file is still there, whole.
    """
    with contextlib.suppress(OSError):
        if path.is_file() and path.read_bytes() == data:
            return False
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        _write_durably(temporary, data)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)
    return True


def write_output(path: Path, data: bytes) -> None:
    """Write what a user named: a file whole or not at all, the one behind a link; a device or a pipe is written into.

    Raises:
        OSError: the file as it was is still there, whole.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(data)
    else:
        write_atomically(Path(os.path.realpath(path)), data)


def remove_strays(folder: Path) -> list[Path]:
    """Remove what writers that no longer live left below `folder`; returns what was removed."""
    removed: list[Path] = []
    for path in sorted(folder.rglob(".*.tmp")):
        match = _STRAY.fullmatch(path.name)
        if match and not _alive(int(match[1])):
            with contextlib.suppress(OSError):
                path.unlink()
                removed.append(path)
    return removed


def _write_durably(path: Path, data: bytes) -> None:
    unnamed = _open_unnamed(path.parent)
    if unnamed is not None:
        try:
            _fill(unnamed, data)
            path.unlink(missing_ok=True)
            # The path is absolute; a directory descriptor only makes the interpreter call linkat, which can follow it.
            os.link(f"/proc/self/fd/{unnamed}", path, src_dir_fd=unnamed, follow_symlinks=True)
        finally:
            os.close(unnamed)
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        _fill(descriptor, data)
    finally:
        os.close(descriptor)


def _fill(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.fsync(descriptor)


def _open_unnamed(folder: Path) -> int | None:
    """A file without a name on the file system of a folder, or None where there is no such thing."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not Path("/proc/self/fd").is_dir():
        return None
    try:
        return os.open(folder, os.O_WRONLY | flag, 0o666)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT):
            return None
        raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
