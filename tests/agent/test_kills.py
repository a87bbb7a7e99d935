"""Real processes, really killed: what the resumed process does, and what stands in the world afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.agent.state_view import read_state

CHILD = Path(__file__).with_name("child_loop.py")
ROOT = Path(__file__).parents[2]

MAIL = [{"call": {"send_email": {"to": "team@example.com"}}}, {"say": "Done."}]


@dataclass
class Lives:
    """Processes that work on one state, one after another or at once."""

    directory: Path
    script: list[dict[str, Any]] = field(default_factory=lambda: MAIL)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def state(self) -> Path:
        return self.directory / "state"

    @property
    def world(self) -> list[str]:
        file = self.directory / "world"
        return file.read_text().splitlines() if file.exists() else []

    def start(self, **settings: Any) -> subprocess.Popen[str]:
        pairs = [f"{name}={value}" for name, value in settings.items()]
        process = subprocess.Popen(
            [sys.executable, CHILD, self.state, self.directory / "world", json.dumps(self.script), *pairs],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self.started.append(process)
        return process

    def live(self, **settings: Any) -> tuple[int, dict[str, Any]]:
        """Exit status (minus the signal, when it was killed) and what it printed."""
        process = self.start(**settings)
        out, err = process.communicate(timeout=30)
        assert "Traceback" not in err, err
        return process.returncode, json.loads(out) if out else {}

    def until(self, line: str) -> None:
        """Wait until something has happened in the world."""
        deadline = time.monotonic() + 10
        while line not in self.world:
            assert time.monotonic() < deadline, f"{line!r} never happened"
            time.sleep(0.01)


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    lives = Lives(tmp_path)
    yield lives
    for process in lives.started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def results(printed: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        block
        for message in printed["messages"]
        if message["role"] == "user" and isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]


@pytest.mark.parametrize("kill", ["mail.before", "mail.after"])
def test_a_mail_is_never_sent_twice(lives: Lives, kill: str) -> None:
    """The incident: killed around `send_email` and restarted automatically, a run must not mail again."""
    died, _ = lives.live(kill=kill)
    mails = list(lives.world)
    code, printed = lives.live()
    (result,) = results(printed)
    assert (died, code, printed["status"]) == (-signal.SIGKILL, 0, "completed")
    assert lives.world == mails == (["mail team@example.com"] if kill == "mail.after" else [])
    assert result["is_error"] is True
    assert "execution status unknown" in result["content"]
    assert lives.live() == (code, printed)


def test_a_read_and_an_idempotent_call_run_again(lives: Lives) -> None:
    """What may run twice does, and the idempotent call has the same key both times."""
    lives.script = [{"call": [{"read_file": {"path": "a"}}, {"put": {"name": "x"}}]}, {"say": "Done."}]
    assert lives.live(kill="read.after")[0] == -signal.SIGKILL
    assert lives.live(kill="put.after")[0] == -signal.SIGKILL
    code, printed = lives.live()
    reads, puts = lives.world[:2], lives.world[2:]
    assert (code, reads, len(puts), len(set(puts))) == (0, ["read a", "read a"], 2, 1)
    assert [result.get("is_error", False) for result in results(printed)] == [False, False]


def test_a_state_that_was_moved_goes_on_as_the_same_run(lives: Lives) -> None:
    """letta#3250.  Call and result belong to the conversation and not to the process, nor to the place where it runs:
    killed, moved and resumed, the call has its one answer, and the key that it had.
    """
    lives.script = [{"call": {"put": {"name": "x"}}}, {"say": "Done."}]
    assert lives.live(kill="put.after")[0] == -signal.SIGKILL
    moved = Lives(lives.directory / "elsewhere", lives.script, lives.started)
    moved.directory.mkdir()
    for name in ("state", "world", "world.attempts"):
        if (lives.directory / name).exists():
            (lives.directory / name).rename(moved.directory / name)
    code, printed = moved.live()
    assert (code, printed["status"], len(moved.world), len(set(moved.world))) == (0, "completed", 2, 1)
    assert [message["role"] for message in printed["messages"]] == ["user", "assistant", "user", "assistant"]
    assert len(results(printed)) == 1


def test_a_kill_while_the_model_answers_loses_nothing(lives: Lives) -> None:
    """claude-code#18880: nothing partial is durable, the question is asked again, and both requests are counted."""
    assert lives.live(kill="model.1")[0] == -signal.SIGKILL
    code, printed = lives.live()
    assert (code, printed["turns"], lives.world) == (0, 2, ["mail team@example.com"])
    assert read_state(lives.state).attempts == 3


def test_a_run_that_kills_every_process_gives_up(lives: Lives) -> None:
    """A response that always ends the process is not asked for without end: attempts are counted over processes."""
    for _ in range(5):
        assert lives.live(kill="model.1")[0] == -signal.SIGKILL
    process = lives.start()
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "NoAnswerError: turn 1: no answer after 5 requests, the last one: the process ended before an answer" in err
    code, printed = lives.live()
    assert (code, printed["status"]) == (0, "completed")


def test_a_second_process_is_refused_with_the_pid_of_the_first(lives: Lives) -> None:
    """Two automatic restarts at once: exactly one works, and the other says at once who does."""
    lives.script = [{"call": {"slow": {"seconds": 6}}}, {"say": "Done."}]
    first = lives.start()
    lives.until("begin")
    code, printed = lives.live()
    assert first.poll() is None
    assert (code, printed["error"]) == (3, "locked")
    assert f"process {first.pid} is running on" in printed["message"]
    out, _ = first.communicate(timeout=60)
    assert json.loads(out)["status"] == "completed"
    assert lives.world == ["begin", "slow"]


DRIVERS = pytest.mark.parametrize("driver", [{}, {"asynchronous": 1}], ids=["run", "arun"])


@DRIVERS
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_running_call_end(lives: Lives, number: signal.Signals, driver: dict[str, int]) -> None:
    """goose#1624, goose#1541, goose#1651.  SIGTERM and Ctrl-C: the call ends, its result is saved, the process says so
    and exits; the resumed one answers every call, and repeats nothing.
    """
    lives.script = [{"call": [{"slow": {"seconds": 0.4}}, {"send_email": {"to": "a"}}]}, {"say": "Done."}]
    process = lives.start(**driver)
    lives.until("begin")
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert f"{number.name}: stopped after turn 1. What was done is saved" in json.loads(out)["stopped"]
    assert json.loads(out)["stopped"] in err
    assert [call.state for call in read_state(lives.state).calls.values()] == ["done", "planned"]
    code, printed = lives.live()
    assert (code, printed["status"], lives.world) == (0, "completed", ["begin", "slow", "mail a"])
    assert [result["content"] for result in results(printed)] == ["slow ok", "mail a ok"]


@DRIVERS
@pytest.mark.parametrize("how", ["second signal", "end of grace"])
def test_a_call_that_does_not_end_is_left_behind(lives: Lives, how: str, driver: dict[str, int]) -> None:
    """A second signal, or the end of the grace time, exits at once; what became of the call is unknown, and said so."""
    lives.script = [{"call": {"slow": {"seconds": 30}}}, {"say": "Done."}]
    process = lives.start(grace=0.2 if how == "end of grace" else 30, **driver)
    lives.until("begin")
    process.send_signal(signal.SIGTERM)
    if how == "second signal":
        time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "slow did not end in time" in json.loads(out)["stopped"]
    code, printed = lives.live()
    assert (code, lives.world) == (0, ["begin"])
    assert "execution status unknown" in results(printed)[0]["content"]


@DRIVERS
def test_a_signal_breaks_off_a_request(lives: Lives, driver: dict[str, int]) -> None:
    """Nobody waits for a model that may take minutes; nothing is lost with the request, and it is no failed attempt."""
    process = lives.start(think=30, **driver)
    deadline = time.monotonic() + 10
    while not (lives.state / "state.sqlite").exists() or read_state(lives.state).attempts == 0:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert (read_state(lives.state).attempts, read_state(lives.state).attempts_of_turn) == (1, 0)
    assert lives.live(**driver)[1]["status"] == "completed"


def test_an_orphaned_command_is_ended_before_anybody_looks(lives: Lives) -> None:
    """Unreported (a).  A killed agent's shell command has no effect after the resumed agent has reconciled."""
    late = lives.directory / "late"
    lives.script = [{"call": {"shell": {"line": f"sleep 8; touch {late}"}}}, {"say": "Done."}]
    process = lives.start()
    lives.until("shell")
    deadline = time.monotonic() + 10
    while not (began := [one for call in read_state(lives.state).calls.values() for one in call.processes]):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.wait()
    os.kill(began[0].pid, 0)  # the command has survived its agent
    begin = time.monotonic()
    code, printed = lives.live(patience=0.1)
    assert (code, "execution status unknown" in results(printed)[0]["content"]) == (0, True)
    assert time.monotonic() - begin < 5
    assert not Path(f"/proc/{began[0].pid}/stat").exists() or "Z" in Path(f"/proc/{began[0].pid}/stat").read_text()
    assert not late.exists()
