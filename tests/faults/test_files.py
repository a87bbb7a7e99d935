"""Every durable operation below a directory is seen on both sides, whoever makes it; nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.faults.files import watch_files
from harness.forked import run_forked


@pytest.fixture
def told(tmp_path: Path) -> Callable[[str], list[str]]:
    """Run statements in a child that watches `state`; what was told, `open+` before and `open-` after."""
    (tmp_path / "state").mkdir()

    def run(code: str) -> list[str]:
        def work() -> None:
            import os
            import sqlite3
            from os import replace as renamed_before

            seen: list[str] = []
            watch_files(tmp_path / "state", lambda what, side: seen.append(what + {"before": "+", "after": "-"}[side]))
            names = {"state": tmp_path / "state", "out": tmp_path, "os": os, "sqlite3": sqlite3, "Path": Path}
            exec(code, {**names, "seen": seen, "taken": renamed_before})
            print(" ".join(seen))

        death = run_forked(work, limit=10)
        assert death.code == 0, death.output
        return death.output.split()

    return run


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("(state / 'a').write_text('x')", "open+ open-"),
        ("open(state / 'a', 'x').close()", "open+ open-"),
        ("os.close(os.open(state / 'a', os.O_RDWR | os.O_CREAT))", "open+ open-"),
        ("(state / 'a').touch()", "open+ open-"),
        ("(out / 'a').write_text('x'); open(out / 'a').close()", ""),
        ("(out / 'a').write_text('x'); os.replace(out / 'a', state / 'a')", "rename+ rename-"),
        ("(out / 'a').write_text('x'); (out / 'a').rename(state / 'a')", "rename+ rename-"),
        ("(state / 'a').touch(); (state / 'a').unlink()", "open+ open- remove+ remove-"),
        ("os.chdir(state); open('a', 'w').close()", "open+ open-"),
        (
            "f = open(state / 'a', 'w'); os.fsync(f); os.fdatasync(f.fileno())",
            "open+ open- fsync+ fsync- fsync+ fsync-",
        ),
        ("d = os.open(state, os.O_RDONLY); os.fsync(d)", "fsync+ fsync-"),
        ("f = open(out / 'a', 'w'); os.fsync(f)", ""),
        # Taken by name before anybody watched: the other side comes with what follows.
        ("(out / 'a').touch(); taken(out / 'a', state / 'a'); (state / 'b').touch()", "rename+ rename- open+ open-"),
    ],
)
def test_file_operations(told: Callable[[str], list[str]], code: str, expected: str) -> None:
    """Opening for writing, renaming, removing and syncing are told; reading, and other folders, are not."""
    assert " ".join(told(code)) == expected


@pytest.mark.parametrize(
    ("code", "commits"),
    [
        ("c.execute('CREATE TABLE t (x)'); c.execute('INSERT INTO t VALUES (1)'); c.commit()", 1),
        ("c.execute('CREATE TABLE t (x)'); c.commit(); c.commit()", 0),
        ("c.execute('CREATE TABLE t (x)')\nwith c: c.execute('INSERT INTO t VALUES (1)')", 1),
        ("c.executescript('CREATE TABLE t (x); INSERT INTO t VALUES (1);')", 1),
        ("c.isolation_level = None; c.execute('CREATE TABLE t (x)')\nc.cursor().execute('DELETE FROM t')", 2),
        ("c.isolation_level = None; c.execute('CREATE TABLE t (x)'); c.execute('BEGIN'); "
         "c.executemany('INSERT INTO t VALUES (?)', [(1,), (2,)]); c.execute('COMMIT')", 2),
        ("c.execute('SELECT 1').fetchall()", 0),
    ],
)  # fmt: skip
def test_commits(told: Callable[[str], list[str]], code: str, commits: int) -> None:
    """However a transaction ends, its commit is told once."""
    assert told(f"c = sqlite3.connect(state / 'db')\n{code}\nc.close()") == ["commit+", "commit-"] * commits
    assert told("c = sqlite3.connect(':memory:'); c.executescript('CREATE TABLE t (x)')") == []
