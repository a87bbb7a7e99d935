"""The place where the lives of one history are lived: what survives each of them, and nothing else."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Site"]


@dataclass(frozen=True, slots=True)
class Site:
    """One directory, always at the same path: a saved state may hold absolute paths.

    Args:
        root: the directory, by its real path.
    """

    root: Path

    @property
    def state(self) -> Path:
        """The loop's `state_dir`."""
        return self.root / "state"

    @property
    def workspace(self) -> Path:
        """Where the loop works: the part of the world that is files."""
        return self.root / "workspace"

    @property
    def temporary(self) -> Path:
        """Where the lives put their temporary files, which a killed one cannot remove."""
        return self.root / "tmp"

    @property
    def journal(self) -> Path:
        """What happened."""
        return self.root / "journal"

    @property
    def attempts(self) -> Path:
        """Which scripted failures of the model were spent."""
        return self.root / "attempts"

    def clear(self) -> None:
        """Make it empty, for a new history."""
        shutil.rmtree(self.root, ignore_errors=True)
        for folder in (self.state, self.workspace, self.temporary):
            folder.mkdir(parents=True)

    def empty_workspace(self) -> None:
        """Take away what is in the workspace, also where a life was killed while it did so."""
        shutil.rmtree(self.workspace, ignore_errors=True)
        self.workspace.mkdir(exist_ok=True)

    def keep(self, where: Path) -> None:
        """Copy everything aside."""
        shutil.copytree(self.root, where, symlinks=True)

    def restore(self, where: Path) -> None:
        """Put back what was kept."""
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(where, self.root, symlinks=True)

    def files(self) -> dict[str, str]:
        """The workspace: a digest of each file, by path."""
        return _digests(self.workspace)

    def saved(self) -> dict[str, str]:
        """The loop's state: a digest of each file, without locks and without what SQLite keeps beside a database."""
        kept = _digests(self.state)
        return {name: digest for name, digest in kept.items() if not name.endswith(("-wal", "-shm", "lock"))}


def _digests(folder: Path) -> dict[str, str]:
    found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()[:12] for path in found}
