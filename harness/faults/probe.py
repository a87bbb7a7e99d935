"""The injector inside of one life: names the crash points as they are passed, writes the journal, and kills.

It reaches a loop only through what any loop has: its model client, its tools, its files.
"""

from __future__ import annotations

import functools
import inspect
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from harness.agent.contract import IDEMPOTENCY_KEY
from harness.agent.processes import CURRENT_CALL
from harness.agent.results import ToolResult
from harness.faults.files import watch_files
from harness.faults.journal import Answered, Asked, Began, Entered, Journal, Ran, Reached, Refused, Verified
from harness.model.attempts import FileAttempts

if TYPE_CHECKING:
    from pathlib import Path

    from harness.agent.contract import Tool
    from harness.faults.journal import Event
    from harness.faults.site import Site
    from harness.model.local import ModelFault

__all__ = ["Probe"]

Digest = Callable[[object], str]

_EXECUTED: Final[ContextVar[str]] = ContextVar("_EXECUTED")
"""The call that a tool is executing, in the thread or task that does."""


class Probe:
    """What a case's run is given to be watched, and killed, by.

    Args:
        site: where the run finds what earlier lives left.
        life: which process this is, from 1.
        past: the journal of the earlier lives.
        kill_at: the name of the point to die at, or None.
        digest: of arguments and results, without what varies by run.
    """

    def __init__(
        self, site: Site, life: int, past: Sequence[tuple[int, Event]], kill_at: str | None, digest: Digest
    ) -> None:
        self.site = site
        self.life = life
        self.attempts = FileAttempts(site.attempts)
        self.digest = digest
        self._kill_at = kill_at
        self._journal = Journal(site.journal, life)
        self._lock = threading.RLock()
        self._seen: Counter[str] = Counter()
        self._turn = 0
        self._save = 0
        self._told = 0
        self._answers: dict[int, list[dict[str, Any]]] = {}
        self._run: Counter[str] = Counter()
        self._calls: dict[str, list[str]] = {}
        for _, event in past:
            self._recall(event)
        self._before: Counter[str] = Counter(self._run)
        self._claimed: set[str] = set()
        self._verified: set[str] = set()
        self._entered = any(isinstance(event, Entered) for _, event in past)

    @property
    def resuming(self) -> bool:
        """Whether the loop was called in an earlier life.  One that was killed before that has left nothing of it."""
        return self._entered

    @property
    def state_dir(self) -> Path:
        """The loop's state."""
        return self.site.state

    @property
    def workspace(self) -> Path:
        """The directory that the run works in."""
        return self.site.workspace

    def arm(self) -> None:
        """Begin to watch the files of the state.  For the rest of the process."""
        watch_files(self.site.state, self._durable)

    def enter(self) -> None:
        """The loop is called now."""
        self.write(Entered())

    def write(self, event: Event) -> None:
        """Put an event into the journal."""
        with self._lock:
            self._journal.write(event)

    def reach(self, name: str) -> None:
        """Pass a crash point; a further one of the same name in this life is `name#2`."""
        with self._lock:
            self._seen[name] += 1
            point = name if self._seen[name] == 1 else f"{name}#{self._seen[name]}"
            kill = point == self._kill_at
            self._journal.write(Reached(point, kill, time.monotonic()))
            while kill:  # holding the lock, so that no other thread of this process gets a word in any more
                os.kill(os.getpid(), signal.SIGKILL)

    def model(self, request: Mapping[str, Any], answer: Callable[[], Any]) -> Any:
        """One request to the model: its two points, and what the loop sends back in it."""
        messages = request.get("messages")
        messages = messages if isinstance(messages, list) else []
        with self._lock:
            turn = 1 + sum(1 for message in messages if isinstance(message, Mapping) and _is_answer(message))
            if turn != self._turn:
                self._turn, self._save = turn, 0
            self._journal.write(Asked(turn, self._results(messages)))
        self.reach(f"turn{turn}.model.before")
        reply = answer()
        self.reach(f"turn{turn}.model.after")
        return reply

    def answered(self, request: Mapping[str, Any], message: Mapping[str, Any] | None) -> None:
        """The model has answered, before its answer is sent."""
        if message is None:
            return
        calls = [
            {"id": block["id"], "tool": block["name"], "digest": self.digest(block["input"])}
            for block in message["content"]
            if block["type"] == "tool_use"
        ]
        turn = 1 + sum(1 for one in request["messages"] if _is_answer(one))
        event = Answered(turn, message["stop_reason"], calls)
        with self._lock:
            self._journal.write(event)
            self._recall(event)

    def refused(self, faults: Sequence[ModelFault]) -> None:
        """What the model has refused in this life so far; each fault is written down once."""
        with self._lock:
            for fault in faults[self._told :]:
                self._journal.write(Refused(fault.kind, fault.message))
            self._told = len(faults)

    def place(self, tool: str) -> int:
        """The how-manyth call of a tool the running one is, from 1.

        One that a kill has interrupted and that runs again is the same call.  So a tool that answers call by call
        answers as it would have without the kill, and what is compared is the loop.
        """
        return self._calls[tool].index(_EXECUTED.get()) + 1

    def tool(self, tool: Tool) -> Tool:
        """A tool whose executions are points and effects.

        An idempotent one is given its key whether or not it wants it, so that two executions can be told to have had
        the same.
        """
        verify = tool.verify and self._verifying(tool.name, tool.verify)
        takes_key = tool.takes_key or tool.effect == "idempotent"
        return replace(tool, function=self._watched(tool), verify=verify, takes_key=takes_key)

    def _watched(self, tool: Tool) -> Callable[..., Any]:
        function = tool.function

        def own(kwargs: dict[str, Any]) -> dict[str, Any]:
            return {name: value for name, value in kwargs.items() if tool.takes_key or name != IDEMPOTENCY_KEY}

        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            began, name = self._begin(tool, kwargs)
            _EXECUTED.set(began.call)
            try:
                result = function(*args, **own(kwargs))
            except Exception as error:
                self._end(began, name, repr(error), ok=False)
                raise
            self._end(began, name, result, ok=True)
            return result

        @functools.wraps(function)
        async def watched_async(*args: Any, **kwargs: Any) -> Any:
            began, name = self._begin(tool, kwargs)
            _EXECUTED.set(began.call)
            try:
                result = await function(*args, **own(kwargs))
            except Exception as error:
                self._end(began, name, repr(error), ok=False)
                raise
            self._end(began, name, result, ok=True)
            return result

        return watched_async if tool.is_async else watched

    def _begin(self, tool: Tool, kwargs: Mapping[str, Any]) -> tuple[Began, str]:
        given = {name: value for name, value in kwargs.items() if name != IDEMPOTENCY_KEY}
        with self._lock:
            digest = self.digest(given)
            call, turn, position = self._identify(tool.name, digest)
            key = kwargs.get(IDEMPOTENCY_KEY)
            began = Began(call, turn, position, tool.name, digest, tool.effect, key, tool.takes_key)
            name = f"turn{turn}.call{position}.{tool.name}" if turn else f"start.call{position}.{tool.name}"
        self.reach(f"{name}.before")
        with self._lock:
            self._journal.write(began)
            self._recall(began)
        return began, name

    def _end(self, began: Began, name: str, result: object, *, ok: bool) -> None:
        with self._lock:
            event = Ran(began.call, ok, self.digest(result))
            self._journal.write(event)
            self._recall(event)
        self.reach(f"{name}.after")

    def _identify(self, tool: str, digest: str) -> tuple[str, int, int]:
        """Which tool_use of the model a call executes: its id, its turn, its position from 1.

        Our own loop says it.  Of another one it is read off name and input: a call that has not run yet before one that
        has, so that two equal calls of one response are not taken for one that ran twice.
        """
        running = CURRENT_CALL.get()
        calls = [
            (one["id"], turn, position, one)
            for turn, answer in sorted(self._answers.items(), reverse=True)
            for position, one in enumerate(answer, 1)
        ]
        if running is not None:
            for call, turn, position, _ in calls:
                if call == running.tool_use_id:
                    return call, turn, position
        alike = [found for found in calls if found[3]["tool"] == tool and found[3]["digest"] == digest]
        if alike:
            newest = [found for found in alike if found[1] == alike[0][1]]
            call, turn, position, _ = min(
                newest, key=lambda found: (found[0] in self._claimed, self._before[found[0]], found[2])
            )
            self._claimed.add(call)
            return call, turn, position
        turn = max(self._answers, default=0)
        self._seen[f"{turn} {tool}"] += 1
        number = self._seen[f"{turn} {tool}"]
        return f"{tool} of its own {digest} {number}", turn, len(self._answers.get(turn, ())) + number

    def _verifying(self, tool: str, verify: Callable[..., Any]) -> Callable[..., Any]:
        def note(call: str, found: Any) -> Any:
            yes = found if isinstance(found, bool) or found is None else True
            self.write(Verified(call, yes))
            return found

        @functools.wraps(verify)
        def verifying(*args: Any, **kwargs: Any) -> Any:
            call = self._asked_about(tool, kwargs)
            found = verify(*args, **kwargs)
            return _then(found, functools.partial(note, call)) if inspect.isawaitable(found) else note(call, found)

        return verifying

    def _asked_about(self, tool: str, kwargs: Mapping[str, Any]) -> str:
        """Which call a tool is asked about: the newest one with this input; equal ones of a response in their order."""
        digest = self.digest({name: value for name, value in kwargs.items() if name != IDEMPOTENCY_KEY})
        with self._lock:
            alike = [
                one["id"]
                for _, answer in sorted(self._answers.items(), reverse=True)
                for one in answer
                if one["tool"] == tool and one["digest"] == digest
            ]
            call = next((one for one in alike if one not in self._verified), alike[0] if alike else "")
            self._verified.add(call)
            return call

    def _durable(self, operation: str, side: str) -> None:
        """A durable operation of the loop: what begins to write, or commits, begins a new save."""
        with self._lock:
            if side == "before" and operation in ("open", "commit"):
                self._save += 1
            turn = f"turn{self._turn}" if self._turn else "start"
            save = "save" if self._save <= 1 else f"save{self._save}"
            self.reach(f"{turn}.{save}.{operation}.{side}")

    def _recall(self, event: Event) -> None:
        if isinstance(event, Answered):
            self._answers[event.turn] = event.calls
        elif isinstance(event, Began):
            calls = self._calls.setdefault(event.tool, [])
            if event.call not in calls:
                calls.append(event.call)
        elif isinstance(event, Ran):
            self._run[event.call] += 1
        elif isinstance(event, Asked):
            self._turn = event.turn

    def _results(self, messages: Sequence[Any]) -> dict[str, dict[str, Any]]:
        """The results in the user messages after the last answer."""
        found: dict[str, dict[str, Any]] = {}
        for message in reversed(messages):
            if not isinstance(message, Mapping) or _is_answer(message):
                break
            content = message.get("content")
            for block in content if isinstance(content, list) else ():
                if isinstance(block, Mapping) and block.get("type") == "tool_result":
                    text = _text(block.get("content"))
                    found[str(block.get("tool_use_id"))] = {
                        "digest": self.digest(text),
                        "text": text[:300],
                        "is_error": block.get("is_error") is True,
                    }
        return found


def _is_answer(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "assistant"


def _text(content: Any) -> str:
    if isinstance(content, ToolResult):
        content = content.content
    if isinstance(content, list):
        return "".join(str(block.get("text", block)) if isinstance(block, Mapping) else str(block) for block in content)
    return "" if content is None else str(content)


async def _then(value: Any, note: Callable[[Any], Any]) -> Any:
    return note(await value)
