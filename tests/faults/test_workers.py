"""Work in forked processes: results in order, failures told, nothing left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.faults.workers import fan_out
from harness.forked import run_forked

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("jobs", [1, 2, 9])
def test_results_come_in_the_order_of_the_items(jobs: int) -> None:
    """However many workers there are, and whichever is done first."""
    steps: list[None] = []
    done = fan_out(
        list(range(7)), lambda _, n: (time.sleep(0.01 * (7 - n)), n * n)[1], jobs=jobs, done=lambda: steps.append(None)
    )
    assert done == [0, 1, 4, 9, 16, 25, 36]
    assert len(steps) == 7


def test_a_failure_in_a_worker_is_told_here() -> None:
    """A user's mistake is raised as such; a fault of the harness carries its traceback; a dead worker is missed."""

    def mistaken(_: int, n: int) -> None:
        raise HarnessError(f"item {n} is wrong")

    def faulty(_: int, n: int) -> None:
        raise KeyError(n)

    def dying(_: int, n: int) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(HarnessError, match="item 0 is wrong"):
        fan_out([0], mistaken, jobs=1)
    with pytest.raises(RuntimeError, match=r"(?s)a worker of the sweep failed\nTraceback.*KeyError: 0"):
        fan_out([0], faulty, jobs=1)
    with pytest.raises(HarnessError, match="a worker ended before its work was done, at 'this'"):
        fan_out(["this"], dying, jobs=1)


def test_a_child_never_comes_back() -> None:
    """Whatever happens in a child, it ends there: an exception, an exit, an interrupt."""

    def interrupted() -> None:
        raise KeyboardInterrupt

    def left() -> None:
        sys.exit(3)

    parent = os.getpid()
    deaths = [run_forked(work, limit=5) for work in (interrupted, left, lambda: os._exit(4), lambda: print("fine"))]
    assert os.getpid() == parent
    assert [(death.code, death.signal, death.timed_out) for death in deaths] == [
        (70, None, False),
        (70, None, False),
        (4, None, False),
        (0, None, False),
    ]
    assert deaths[-1].output == "fine\n"


def test_a_child_of_somebody_else_is_left_to_them() -> None:
    """Only who owns all children of a process may take leave of them: another one's exit code is not lost."""
    with subprocess.Popen(["sh", "-c", "exit 3"]) as other:
        assert run_forked(lambda: time.sleep(0.2), limit=5).code == 0
        assert other.wait() == 3


def test_what_a_child_leaves_in_its_group_is_ended_where_that_is_wanted(tmp_path: Path) -> None:
    """By default it goes on, as after a real kill."""

    def leave() -> None:
        process = subprocess.Popen(["sleep", "30"])
        (tmp_path / "pid").write_text(str(process.pid))

    def left() -> bool:
        state = Path(f"/proc/{(tmp_path / 'pid').read_text()}/stat")
        return state.exists() and state.read_text().split()[2] not in "ZX"

    run_forked(leave, limit=5)
    assert left()
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    run_forked(leave, limit=5, ends_group=True)
    until = time.monotonic() + 5
    while left():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_ending_the_sweep_ends_everything(tmp_path: Path) -> None:
    """A sweep that is killed itself, in the middle of a life that hangs, leaves no process behind."""
    code = f"""\
import os, time
from pathlib import Path
from harness.forked import run_forked
from harness.faults.workers import fan_out

def hang():
    Path({str(tmp_path / "pid")!r}).write_text(str(os.getpid()))
    time.sleep(3600)

fan_out([0], lambda _, n: run_forked(hang, limit=3600), jobs=1)
"""
    process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        until = time.monotonic() + 10
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            assert time.monotonic() < until
            time.sleep(0.01)
        life = int((tmp_path / "pid").read_text())
    finally:
        process.kill()
        process.wait()
    until = time.monotonic() + 10
    while Path(f"/proc/{life}").exists():
        assert time.monotonic() < until, "the life has outlived the sweep"
        time.sleep(0.01)
