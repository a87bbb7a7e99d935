"""The loop of the tests that kill real processes.  Not a test: each of them runs this file.

    python child_loop.py STATE_DIR WORLD_FILE SCRIPT_JSON [SETTING=VALUE ...]

The world is a file to which tools append a line when they take effect.  `kill=mail.before` dies by SIGKILL inside the
tool before its effect, `kill=mail.after` after it.  The SDK is not imported: the client only looks like one, so that a
process starts in a tenth of a second.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from harness.agent import RunInterrupted, StateError, Tool, arun, run, run_process, tool
from harness.model.attempts import FileAttempts
from harness.model.local import LocalModel
from harness.model.script import Script


class Message:
    """What the SDK would return."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body

    def to_dict(self, **_: Any) -> dict[str, Any]:
        return self.body


class Client:
    """What `run` needs of a client."""

    def __init__(self, model: LocalModel, settings: dict[str, str]) -> None:
        self.messages = self
        self._model = model
        self.settings = settings

    def with_options(self, **_: Any) -> Any:
        return AsyncClient(self) if "asynchronous" in self.settings else self

    def create(self, **request: Any) -> Message:
        reply = self._model.respond(request, {})
        body = json.loads(b"".join(reply.chunks))
        assert reply.status == 200, body
        if self.settings.get("kill") == f"model.{len(request['messages'])}":
            os.kill(os.getpid(), signal.SIGKILL)
        if "asynchronous" not in self.settings:
            time.sleep(float(self.settings.get("think", "0")))
        return Message(body)


class AsyncClient:
    """The same for an event loop."""

    def __init__(self, client: Client) -> None:
        self.messages = self
        self._client = client

    async def create(self, **request: Any) -> Message:
        await asyncio.sleep(float(self._client.settings.get("think", "0")))
        return self._client.create(**request)


class World:
    """Tools whose effects outlive the process."""

    def __init__(self, path: Path, settings: dict[str, str]) -> None:
        self._path = path
        self._settings = settings

    def act(self, name: str, line: str) -> str:
        self.die(f"{name}.before")
        with self._path.open("a") as file:
            file.write(line + "\n")
        self.die(f"{name}.after")
        return f"{line} ok"

    def die(self, here: str) -> None:
        if self._settings.get("kill") == here:
            os.kill(os.getpid(), signal.SIGKILL)

    def tools(self) -> list[Tool]:
        @tool(effect="read_only")
        def read_file(path: str) -> str:
            return self.act("read", f"read {path}")

        @tool(effect="idempotent")
        def put(name: str, idempotency_key: str) -> str:
            return self.act("put", f"put {name} {idempotency_key}")

        @tool
        def send_email(to: str) -> str:
            return self.act("mail", f"mail {to}")

        @tool
        def slow(seconds: float) -> str:
            self.act("begin", "begin")
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                time.sleep(0.01)
            return self.act("slow", "slow")

        @tool
        def shell(line: str) -> str:
            self.act("shell", "shell")
            return run_process(["sh", "-c", line], text=True).stdout

        return [read_file, put, send_email, slow, shell]


def main() -> None:
    state_dir, world_file, script, *pairs = sys.argv[1:]
    settings = dict(pair.split("=", 1) for pair in pairs)
    model = LocalModel(Script.parse(json.loads(script)), attempts=FileAttempts(Path(f"{world_file}.attempts")))
    known = inspect.signature(run).parameters
    options = {name: json.loads(value) for name, value in settings.items() if name in known}
    begin = (lambda *args, **rest: asyncio.run(arun(*args, **rest))) if "asynchronous" in settings else run
    try:
        result = begin(
            "Do it.",
            client=Client(model, settings),
            model="claude-test",
            toolset=World(Path(world_file), settings).tools(),
            state_dir=state_dir,
            **options,
        )
    except StateError as error:
        print(json.dumps({"error": error.kind, "message": str(error)}))
        sys.exit(3)
    except RunInterrupted as stopped:
        print(json.dumps({"stopped": str(stopped)}))
        raise
    assert model.faults == []
    print(json.dumps({"status": result.status, "turns": result.turns, "messages": result.messages}))


if __name__ == "__main__":
    main()
