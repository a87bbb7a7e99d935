"""What a run knows, and the changes that it can undergo; each change is one durable transaction.

The state in memory is never ahead of the disk: a change is committed first and applied then, and loading what was
committed gives the same state (a law in the tests).  Nothing that follows from the messages is stored beside them:
which calls are pending, whose turn it is and whether the run is over are read off, so that they cannot disagree.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from harness.agent.contract import Effect
    from harness.agent.results import ToolResult

__all__ = [
    "Answered",
    "Asked",
    "Call",
    "CallState",
    "Change",
    "GaveUp",
    "Json",
    "OwnProcess",
    "ProcessBegan",
    "Prompted",
    "Returned",
    "Settled",
    "Started",
    "State",
    "idempotency_key",
]

Json: TypeAlias = dict[str, Any]

CallState: TypeAlias = Literal["planned", "started", "done", "failed", "unknown", "unrecorded"]
"""Where a call stands in the ledger.

`planned` with save point A; `started` before the effect; `done` or `failed` after it, with the whole result; `unknown`
when nobody can say any more.  `unrecorded` is what a store without a ledger says of every pending call on resume.
"""

SETTLED: Final = frozenset({"done", "failed", "unknown"})


@dataclass(frozen=True, slots=True)
class OwnProcess:
    """A process that a tool started: its id, which is also that of its group, and when it began, as the system has
    it.
    """

    pid: int
    began: str


@dataclass(frozen=True, slots=True)
class Call:
    """One tool_use of the model and what became of it."""

    tool_use_id: str
    turn: int
    position: int
    tool: str
    input: Json
    effect: Effect
    state: CallState = "planned"
    result: ToolResult | None = None
    starts: int = 0
    started_at: float | None = None
    settled_at: float | None = None
    processes: tuple[OwnProcess, ...] = ()

    @property
    def settled(self) -> bool:
        """Whether its result, or the verdict that there will be none, is final."""
        return self.state in SETTLED

    @property
    def ok(self) -> bool:
        """Whether it was executed and the tool reported no error."""
        return self.state == "done" and self.result is not None and not self.result.is_error


@dataclass(frozen=True, slots=True)
class Prompted:
    """The user said something."""

    text: str


@dataclass(frozen=True, slots=True)
class Asked:
    """The model is about to be asked: counted before it happens, so that no request is ever unaccounted for."""


@dataclass(frozen=True, slots=True)
class GaveUp:
    """No more attempts at this turn: they are used up, or a signal broke one off.  A later process begins a new
    count.
    """


@dataclass(frozen=True, slots=True)
class Answered:
    """Save point A: a whole response, with the calls that it asks for."""

    content: list[Json]
    about: Json
    tokens_used: int
    calls: tuple[Call, ...] = ()
    status: str | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """The intent: from here on the call may have had its effect."""

    tool_use_id: str
    at: float


@dataclass(frozen=True, slots=True)
class ProcessBegan:
    """A call started a process; recorded before that process may do anything."""

    tool_use_id: str
    process: OwnProcess


@dataclass(frozen=True, slots=True)
class Settled:
    """The completion, with the whole result; or the verdict that it cannot be known."""

    tool_use_id: str
    state: Literal["done", "failed", "unknown"]
    result: ToolResult
    at: float


@dataclass(frozen=True, slots=True)
class Returned:
    """Save point B: the results of a turn go back, first of all in their message, with what the loop has to say.

    `intervention` is what the detector decided, `prompt` a user's message that arrived while calls were pending.
    """

    intervention: Json | None = None
    prompt: str | None = None

    @property
    def texts(self) -> list[str]:
        """What follows the results, in this order."""
        said = [] if self.intervention is None else [self.intervention["message"]]
        return [*said, self.prompt] if self.prompt is not None else said


Change: TypeAlias = Prompted | Asked | GaveUp | Answered | Started | ProcessBegan | Settled | Returned


@dataclass(slots=True)
class State:
    """A run as far as it has become durable.  Only `apply` changes it."""

    run_id: str
    prompts: list[str] = field(default_factory=list)
    messages: list[Json] = field(default_factory=list)
    calls: dict[str, Call] = field(default_factory=dict)
    turns: int = 0
    tokens_used: int = 0
    attempts: int = 0
    attempts_of_turn: int = 0
    about: Json = field(default_factory=dict)
    status: str | None = None
    interventions: list[Json] = field(default_factory=list)

    @property
    def task(self) -> str:
        """What the run was started for."""
        return self.prompts[0]

    @property
    def stop_reason(self) -> str | None:
        """Why the model stopped last."""
        return self.about.get("stop_reason")

    @property
    def awaits_results(self) -> bool:
        """Whether the last message is a response whose calls have not been answered."""
        return bool(self.pending)

    @property
    def awaits_model(self) -> bool:
        """Whether the next word is the model's."""
        return self.messages[-1]["role"] == "user" or self.stop_reason == "pause_turn"

    @property
    def pending(self) -> list[Call]:
        """The calls of the last response, in its order, as long as they have not been answered."""
        if not self.messages or self.messages[-1]["role"] != "assistant":
            return []
        named = (block.get("id") for block in self.messages[-1]["content"] if block.get("type") == "tool_use")
        return [self.calls[tool_use_id] for tool_use_id in named if tool_use_id in self.calls]

    def apply(self, change: Change) -> None:
        """Take over a change that has become durable."""
        match change:
            case Prompted(text):
                self.prompts.append(text)
                self.messages.append({"role": "user", "content": text})
                self.status = None
            case Asked():
                self.attempts += 1
                self.attempts_of_turn += 1
            case GaveUp():
                self.attempts_of_turn = 0
            case Answered():
                self.turns += 1
                self.tokens_used = change.tokens_used
                self.attempts_of_turn = 0
                self.about = change.about
                self.status = change.status
                self.messages.append({"role": "assistant", "content": change.content})
                self.calls.update((call.tool_use_id, call) for call in change.calls)
            case Started(tool_use_id, at):
                call = self.calls[tool_use_id]
                self.calls[tool_use_id] = replace(call, state="started", starts=call.starts + 1, started_at=at)
            case ProcessBegan(tool_use_id, process):
                call = self.calls[tool_use_id]
                self.calls[tool_use_id] = replace(call, processes=(*call.processes, process))
            case Settled(tool_use_id, verdict, result, at):
                call = self.calls[tool_use_id]
                self.calls[tool_use_id] = replace(call, state=verdict, result=result, settled_at=at)
            case Returned():
                self.messages.append({"role": "user", "content": results_and(self.pending, change.texts)})
                if change.intervention is not None:
                    self.interventions.append(change.intervention)
                if change.prompt is not None:
                    self.prompts.append(change.prompt)
                    self.status = None


def results_and(calls: list[Call], texts: list[str]) -> list[Json]:
    """The content of the message that answers `calls`: every result first, in the order of the calls, then the
    texts.
    """
    results = [call.result.block(call.tool_use_id) for call in calls if call.result is not None]
    return [*results, *({"type": "text", "text": text} for text in texts)]


def idempotency_key(run_id: str, tool_use_id: str) -> str:
    """The key under which a call has its effect at most once: the same in every process, another for every call.

    Never from the arguments (the same call may be meant twice) and never from the position (a repair would move it).
    """
    return hashlib.sha256(f"{run_id}\x00{tool_use_id}".encode()).hexdigest()[:32]
