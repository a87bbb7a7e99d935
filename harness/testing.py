"""Runs a mini project: files in; exit code, output and changed files out.

For tests of loops, tools and pytest plugins that work together with the harness:

    pytest_plugins = ["harness.testing"]     # in the conftest.py at the root

    def test_a_repeated_mail_is_drift(mini_project):
        mini_project.write({"loop.py": LOOP, "cases/mail.yaml": CASE})
        mini_project.pytest("--update-golden")
        mini_project.write({"loop.py": CARELESS_LOOP})
        outcome = mini_project.pytest()
        assert outcome.exit_code == 1
        assert outcome.summary == ["1 case: 1 drifted"]
"""

from __future__ import annotations

import importlib
import io
import os
import re
import subprocess
import sys
import textwrap
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["MiniProject", "Outcome", "mini_project"]

# What a run leaves for itself and nobody commits.
_OWN: Final = frozenset({".harness", ".pytest_cache", "__pycache__"})

# Where the tests run must not show in what they find.
_NEUTRAL: Final[Mapping[str, str | None]] = {
    "BUILD_NUMBER": None,
    "CI": None,
    "COLUMNS": "300",
    "FORCE_COLOR": None,
    "GITHUB_ACTIONS": None,
    "HARNESS_DIGEST_KEY": None,
    "NO_COLOR": "1",
    "PYTEST_ADDOPTS": None,
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": None,
    "PYTEST_XDIST_WORKER": None,
    "PYTHONDONTWRITEBYTECODE": "1",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run did.

    Args:
        exit_code: of the process; 0 to 5 are pytest's own, a negative one is the signal that ended it.
        output: its standard output.
        errors: its standard error.
        changed: what happened to the files of the project, by path: `added`, `removed`, `changed`, or `rewritten` with
            the bytes that they had.  Caches and `.harness` are left out.
    """

    exit_code: int
    output: str
    errors: str
    changed: Mapping[str, str]

    @property
    def summary(self) -> list[str]:
        """The lines of pytest's section `trajectories`."""
        return self.section("trajectories")

    def section(self, title: str) -> list[str]:
        """The lines below a heading of pytest's report, such as `short test summary info` or `case notes/weekly`."""
        lines = self.output.splitlines()
        start = next((place for place, line in enumerate(lines) if _heading(line) == title), len(lines)) + 1
        end = next((place for place in range(start, len(lines)) if _heading(lines[place])), len(lines))
        return lines[start:end]


class MiniProject:
    """A project in a folder, to run pytest and the command line in.

    Args:
        root: the folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, files: Mapping[str, str]) -> None:
        """Write text files, by path; common indentation is removed."""
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), encoding="utf-8", errors="surrogatepass")

    def read(self, name: str) -> str:
        """The text of a file."""
        return (self.root / name).read_text(encoding="utf-8")

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a text that stands exactly once in a file.

        Raises:
            ValueError: it does not.
        """
        text = self.read(name)
        if text.count(old) != 1:
            raise ValueError(f"{old!r} stands {text.count(old)} times in {name}")
        (self.root / name).write_text(text.replace(old, new), encoding="utf-8")

    def pytest(self, *arguments: str, env: Mapping[str, str | None] | None = None, folder: str = ".") -> Outcome:
        """Run pytest inside this process, which takes a tenth of the time of a process that has to import the SDK.

        Args:
            arguments: of the command line.
            env: changes to the environment; None removes a variable.
            folder: where in the project to run it.
        """
        before = self._files()
        output, errors = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(output), redirect_stderr(errors):
            patch.chdir(self.root / folder)
            for name, value in {**_NEUTRAL, **(env or {})}.items():
                if value is None:
                    patch.delenv(name, raising=False)
                else:
                    patch.setenv(name, value)
            with self._forgotten():
                # Looking for lost exceptions at the end of each run takes longer than the run.
                exit_code = pytest.main(["-p", "no:unraisableexception", *arguments])
        return Outcome(int(exit_code), output.getvalue(), errors.getvalue(), _changes(before, self._files()))

    @contextmanager
    def _forgotten(self) -> Iterator[None]:
        """The project's own modules are imported anew by each run.

        pytester forgets everything that a run imported; that costs seconds, and what was imported before and what is
        imported again then hold different classes of the same names.
        """
        path, quiet = list(sys.path), sys.dont_write_bytecode
        # A file that was edited within a second and kept its size looks to the cache as if it were the same.
        sys.dont_write_bytecode = True
        importlib.invalidate_caches()
        try:
            yield
        finally:
            sys.dont_write_bytecode = quiet
            sys.path[:] = path
            below = f"{self.root}{os.sep}"
            for name, module in list(sys.modules.items()):
                if (getattr(module, "__file__", None) or "").startswith(below):
                    del sys.modules[name]

    def pytest_apart(self, *arguments: str, env: Mapping[str, str | None] | None = None) -> Outcome:
        """Run pytest as a process of its own."""
        return self.run(sys.executable, "-m", "pytest", *arguments, env=env)

    def harness(self, *arguments: str, env: Mapping[str, str | None] | None = None) -> Outcome:
        """Run the command `harness`, as a process of its own."""
        return self.run(sys.executable, "-m", "harness", *arguments, env=env)

    def run(self, *command: str, env: Mapping[str, str | None] | None = None, timeout: float = 120) -> Outcome:
        """Run any command in the folder.

        Args:
            command: the program and its arguments.
            env: changes to the environment; None removes a variable.
            timeout: seconds.

        Raises:
            subprocess.TimeoutExpired: it took longer.
        """
        before = self._files()
        process = self.start(*command, env=env)
        try:
            output, errors = process.communicate(timeout=timeout)
        finally:
            process.kill()
        return Outcome(process.returncode, output, errors, _changes(before, self._files()))

    def start(self, *command: str, env: Mapping[str, str | None] | None = None) -> subprocess.Popen[str]:
        """Start any command in the folder, and leave the rest to the caller: to wait, to kill."""
        wanted = {**os.environ, **_NEUTRAL, **(env or {})}
        return subprocess.Popen(  # noqa: S603 (what the caller wants to run)
            command,
            cwd=self.root,
            env={name: value for name, value in wanted.items() if value is not None},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def _files(self) -> dict[str, tuple[bytes, int, int]]:
        """By path, the bytes of each file and what tells one writing of it from another."""
        files: dict[str, tuple[bytes, int, int]] = {}
        for path in sorted(self.root.rglob("*")):
            name = path.relative_to(self.root)
            if path.is_file() and not _OWN.intersection(name.parts):
                status = path.stat()
                files[name.as_posix()] = (path.read_bytes(), status.st_mtime_ns, status.st_ino)
        return files


@pytest.fixture
def mini_project(tmp_path: Path) -> MiniProject:
    """An empty project in a folder of its own: `write` files, run `pytest`, look at the outcome."""
    root = tmp_path / "project"
    root.mkdir()
    return MiniProject(root)


def _heading(line: str) -> str | None:
    """The title in a line such as `==== FAILURES ====`."""
    match = re.fullmatch(r"([=_])\1* (.+) \1+", line)
    return match[2] if match else None


def _changes(
    before: Mapping[str, tuple[bytes, int, int]], after: Mapping[str, tuple[bytes, int, int]]
) -> dict[str, str]:
    changes: dict[str, str] = {}
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            changes[name] = "added" if old is None else "removed"
        elif old != new:
            changes[name] = "changed" if old[0] != new[0] else "rewritten"
    return changes
