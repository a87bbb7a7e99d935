"""Real git repositories for tests, independent of the machine's settings, of calling hooks, and of clocks."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest

START: Final = 1_790_000_000
"""Seconds since the epoch of the first commit; each further one is an hour later."""

_REPOSITORY: Final = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
)
_CI: Final = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
_NEUTRAL: Final = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "file",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C.UTF-8",
}


def be_neutral(patch: pytest.MonkeyPatch) -> None:
    """The environment of git, and of what calls it, as if on a fresh machine outside of CI."""
    for name in (*_REPOSITORY, *_CI):
        patch.delenv(name, raising=False)
    for name, value in _NEUTRAL.items():
        patch.setenv(name, value)


class GitFolder:
    """A repository in a folder.

    Args:
        root: its working tree.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._time = START

    @classmethod
    def new(cls, root: Path, *options: str) -> GitFolder:
        """An empty repository whose branch is `main`."""
        root.mkdir(parents=True, exist_ok=True)
        repository = cls(root)
        repository.git("init", "-q", "-b", "main", *options)
        repository.configure()
        return repository

    @classmethod
    def clone(cls, source: GitFolder, root: Path, *options: str) -> GitFolder:
        """A clone, through the transport that a network would have."""
        subprocess.run(
            ["git", "clone", "-q", *options, source.root.as_uri(), str(root)], check=True, capture_output=True
        )
        repository = cls(root)
        repository.configure()
        return repository

    def configure(self) -> None:
        for name, value in (("user.name", "Ada"), ("user.email", "ada@example.com"), ("commit.gpgSign", "false")):
            self.git("config", name, value)

    def git(self, *arguments: str, check: bool = True, env: Mapping[str, str] | None = None) -> str:
        """What git says, both streams one after the other."""
        done = self.run(*arguments, env=env)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def run(
        self, *arguments: str, env: Mapping[str, str] | None = None, data: str = ""
    ) -> subprocess.CompletedProcess[str]:
        time = f"{self._time} +0000"
        dates = {"GIT_AUTHOR_DATE": time, "GIT_COMMITTER_DATE": time}
        return subprocess.run(
            ["git", *arguments],
            cwd=self.root,
            capture_output=True,
            input=data,
            encoding="utf-8",
            errors="surrogateescape",
            env={**os.environ, **dates, **(env or {})},
            timeout=60,
            check=False,
        )

    def write(self, files: Mapping[str, str | None]) -> None:
        """Write files; None removes one."""
        for name, text in files.items():
            path = self.root / name
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")

    def commit(self, subject: str, files: Mapping[str, str | None] | None = None) -> str:
        """Commit all that there is; returns the id."""
        self.write(files or {})
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        self._time += 3600
        return self.head()

    def merge(self, branch: str, *options: str) -> str:
        """What `git merge` says, whether or not there is a conflict."""
        said = self.git("merge", "--no-edit", "-q", *options, branch, check=False)
        self._time += 3600
        return said

    def head(self) -> str:
        return self.git("rev-parse", "HEAD").strip()

    def blob(self, text: str) -> str:
        """The id that git gives a content."""
        return self.run("hash-object", "--stdin", data=text).stdout.strip()
