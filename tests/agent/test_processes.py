"""Processes that tools start: recorded first, found again, and ended as a group."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.agent import run_process, start_process
from harness.agent.processes import CURRENT_CALL, RunningCall, end_groups, group_alive
from harness.agent.state import OwnProcess


@pytest.fixture
def recorded() -> Any:
    """What a call recorded, while one is running."""
    processes: list[OwnProcess] = []
    token = CURRENT_CALL.set(RunningCall("toolu_1", processes.append))
    yield processes
    CURRENT_CALL.reset(token)


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_program_begins_only_when_it_is_recorded(tmp_path: Path) -> None:
    """When the ledger cannot be written, the command has never run."""
    here = tmp_path / "here"

    def refuse(process: OwnProcess) -> None:
        time.sleep(0.1)
        assert not here.exists()
        raise OSError("disk full")

    token = CURRENT_CALL.set(RunningCall("toolu_1", refuse))
    try:
        with pytest.raises(OSError, match="disk full"):
            start_process(["touch", str(here)])
    finally:
        CURRENT_CALL.reset(token)
    time.sleep(0.1)
    assert not here.exists()


def test_a_whole_group_is_ended(recorded: list[OwnProcess]) -> None:
    """What a command started in turn is ended with it, also when the command itself is gone."""
    with start_process(["sh", "-c", "sleep 30 & exit 0"]) as process:
        assert process.wait(5) == 0
    (leader,) = recorded
    assert group_alive(leader)
    end_groups([leader], patience=0.0)
    assert not group_alive(leader)


def test_a_command_that_comes_to_its_end_is_waited_for(recorded: list[OwnProcess]) -> None:
    """Patience lets it finish instead of tearing it; a group without patience is asked, then killed."""
    with start_process(["sh", "-c", "trap '' TERM; sleep 0.2"]) as process:
        end_groups(recorded, patience=5.0)
        assert process.wait(5) == 0


def test_a_command_that_ignores_the_request_is_killed(
    recorded: list[OwnProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGTERM first, SIGKILL after it."""
    monkeypatch.setattr("harness.agent.processes._TERM_TO_KILL", 0.2)
    with start_process(["sh", "-c", "trap '' TERM; echo ready; sleep 30; sleep 30"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        end_groups(recorded, patience=0.0)
        assert process.wait(5) == -signal.SIGKILL


def test_somebody_elses_process_is_left_alone(recorded: list[OwnProcess]) -> None:
    """An id that was given to another process since is not ours, and is never signalled."""
    with start_process(["sleep", "30"]) as process:
        (own,) = recorded
        recycled = OwnProcess(own.pid, "another boot:1")
        assert not group_alive(recycled)
        end_groups([recycled], patience=0.0)
        assert process.poll() is None
        process.kill()
    assert not group_alive(own)


def test_a_command_outside_of_a_call_is_just_a_command() -> None:
    """A tool can be called, and tested, without a loop."""
    done = run_process(["sh", "-c", "cat; exit 4"], input=b"x")
    assert (done.args, done.stdout, done.stderr, done.returncode) == (["sh", "-c", "cat; exit 4"], b"x", b"", 4)


def test_a_program_that_does_not_exist_says_so() -> None:
    """The gate is a shell, and reports as one: status 127."""
    done = run_process(["/no/such/program"], text=True)
    assert done.returncode == 127
    assert "/no/such/program" in done.stderr
