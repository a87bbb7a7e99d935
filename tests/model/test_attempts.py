"""Spent attempts: counted once each, over threads, processes and kills."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from harness.model.attempts import Attempts, FileAttempts

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["memory", "file"])
def attempts(request: pytest.FixtureRequest, tmp_path: Path) -> Attempts:
    return FileAttempts(tmp_path / "attempts") if request.param == "file" else Attempts()


def test_an_allowance_is_spent_and_then_gone(attempts: Attempts) -> None:
    """As many attempts are granted as are allowed, each key for itself."""
    assert [attempts.spend("a", 2) for _ in range(4)] == [True, True, False, False]
    assert [attempts.spend("b", 1) for _ in range(2)] == [True, False]
    assert attempts.spend("a", 3)


def test_threads_share_an_allowance(attempts: Attempts) -> None:
    """However many threads ask at once, no attempt is granted twice."""
    granted: list[bool] = []

    def ask() -> None:
        for _ in range(20):
            granted.append(attempts.spend("a", 50))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (granted.count(True), granted.count(False)) == (50, 30)


def test_a_file_remembers_beyond_the_process(tmp_path: Path) -> None:
    """What a process spent before SIGKILL is spent for the one that follows."""
    path = tmp_path / "attempts"
    program = (
        "import os, pathlib, signal, sys; from harness.model.attempts import FileAttempts;"
        "spend = FileAttempts(pathlib.Path(sys.argv[1])).spend;"
        "spend('a', 3); spend('a', 3); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", program, path], check=False).returncode == -signal.SIGKILL
    assert [FileAttempts(path).spend("a", 3) for _ in range(2)] == [True, False]


def test_processes_wait_for_each_other(tmp_path: Path) -> None:
    """While another process counts, an attempt waits for its turn, and then sees what was counted."""
    path = tmp_path / "attempts"
    granted: list[bool] = []
    with path.open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiting = threading.Thread(target=lambda: granted.append(FileAttempts(path).spend("a", 1)))
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive()
        held.write(b"a\n")
    waiting.join()
    assert granted == [False]
