"""A world that remembers what was done to it, and runs of the loop against the local model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.agent import Result, Tool, run, tool
from harness.model.attempts import FileAttempts
from harness.model.local import LocalModel
from harness.model.script import Script
from harness.model.transport import sync_client


@dataclass
class World:
    """What the tools did, in order, and what they are told to do wrong."""

    done: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    broken: dict[str, BaseException] = field(default_factory=dict)

    def act(self, what: str) -> str:
        self.done.append(what)
        if what in self.broken:
            raise self.broken[what]
        return f"{what} ok"

    @property
    def tools(self) -> list[Tool]:
        """A read, an idempotent write and an irreversible one."""

        @tool(effect="read_only")
        def read_file(path: str) -> str:
            return self.act(f"read {path}")

        @tool(effect="idempotent")
        def put(name: str, idempotency_key: str) -> str:
            self.keys.append(idempotency_key)
            return self.act(f"put {name}")

        @tool
        def send_email(to: str) -> str:
            return self.act(f"mail {to}")

        return [read_file, put, send_email]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between attempts last a thousandth of what they would."""
    monkeypatch.setattr("harness.agent.backoff._FIRST", 0.0005)


@pytest.fixture
def world() -> World:
    return World()


Play = Callable[..., Result]


@pytest.fixture
def play(world: World, tmp_path: Path) -> Play:
    """Run a script to its end, on the state in `tmp_path / "state"` unless the test says otherwise.

    Failures of the script are counted in a file, so that a second run goes on counting.  The requests that the model
    got are appended to `play.requests`.
    """

    def play(script: list[dict[str, Any]], **options: Any) -> Result:
        model = LocalModel(
            Script.parse(script),
            attempts=FileAttempts(tmp_path / "attempts"),
            observer=lambda request, _: requests.append(request),
        )
        chosen = {"toolset": world.tools, "state_dir": tmp_path / "state", "model": "claude-test", **options}
        chosen = {name: value for name, value in chosen.items() if value is not ...}
        try:
            return run(chosen.pop("prompt", "Do it."), client=sync_client(model), **chosen)
        finally:
            unexpected = [fault for fault in model.faults if fault.kind != "exhausted"]
            assert unexpected == []

    requests: list[dict[str, Any]] = []
    play.requests = requests  # type: ignore[attr-defined]
    return play
