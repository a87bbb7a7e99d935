"""Where sweeps take place: a directory in memory, which goes with them however they end."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ground"]


@contextmanager
def ground() -> Iterator[Path]:
    """A directory for all sites, in memory where the system has such: no kill can tell, and a sync costs nothing."""
    memory = Path("/dev/shm")  # noqa: S108 (a directory of our own is made in it)
    place = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    _remove_strays(place or Path(tempfile.gettempdir()))
    prefix = f"harness-crash-{os.getpid()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=place, ignore_cleanup_errors=True) as name:
        yield Path(name).resolve()


def _remove_strays(folder: Path) -> None:
    """What sweeps have left that were themselves killed; their pids stand in the names."""
    for stray in folder.glob("harness-crash-*-*"):
        pid = stray.name.split("-")[2]
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            shutil.rmtree(stray, ignore_errors=True)
        except (ValueError, PermissionError):
            continue
