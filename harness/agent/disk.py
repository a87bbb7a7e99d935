"""The few things that make a file durable, and what the system says when it cannot."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final

from harness.errors import StateError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["cannot", "make_directory", "sync_directory", "write_durably"]

_KINDS: Final = {
    errno.ENOSPC: ("full", "the disk is full; make room"),
    errno.EDQUOT: ("full", "the disk quota is used up; make room"),
    errno.EIO: ("io", "the disk reports an input/output error; check it before anything else"),
    errno.EROFS: ("read_only", "the file system is read-only; make it writable, or use another state_dir"),
    errno.EACCES: ("read_only", "permission is denied; check owner and mode"),
    errno.EPERM: ("read_only", "permission is denied; check owner and mode"),
}


def cannot(verb: str, path: Path, error: OSError) -> StateError:
    """A system error as one that says what was attempted, where, and what to do."""
    kind, advice = _KINDS.get(error.errno or 0, ("io", error.strerror or str(error)))
    return StateError(f"cannot {verb} {str(path)!r}: {advice}. What was saved before is untouched.", kind)


def make_directory(directory: Path) -> None:
    """Make a folder that lasts, and those above it that are missing: each new name is synced in the one that holds it.

    Without that, a run whose every save was synced is gone with its folder when the power goes (`harness.power`).

    Raises:
        OSError: The system could not.
    """
    missing = []
    folder = directory.absolute()
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        sync_directory(folder.parent)
    directory.mkdir(exist_ok=True)  # says so when it is no folder


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable: a rename is only as lasting as the folder that holds it.

    Raises:
        OSError: The system could not.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, data: bytes) -> None:
    """Replace a file as a whole: temporary file, flush, fsync, rename, fsync of the folder.

    Whoever reads `path` at any moment, also after a kill or a loss of power, finds the old content or the new.

    Raises:
        OSError: The system could not; the old content still stands, and the temporary file is removed if that is
            possible.
    """
    draft = path.with_name(f"{path.name}.tmp")
    try:
        with open(draft, "wb") as file:  # noqa: PTH123 (`open` is what fault injection interposes on)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)  # noqa: PTH105 (as above)
    except OSError:
        _remove(draft)
        raise
    sync_directory(path.parent)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return  # the disk is already in trouble; a stray draft is never taken for a state
