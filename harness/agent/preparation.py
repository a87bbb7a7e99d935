"""The arguments of `run` and `arun`, checked and turned into what a driver needs; the state, opened and closed
again.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.agent.core import Plan
from harness.agent.progress import Progress
from harness.agent.responses import without_own_retries
from harness.agent.state import ProcessBegan, Prompted, State
from harness.agent.store import Store, open_store
from harness.agent.tools import as_toolset
from harness.errors import LoopError, StateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from harness.agent.state import Json, OwnProcess
    from harness.agent.verdicts import Detector

__all__ = ["Options", "Work", "prepared"]


@dataclass(frozen=True, slots=True)
class Options:
    """The arguments of `run`, which documents them."""

    prompt: str | Sequence[str]
    model: str
    client: Any
    toolset: Iterable[Any]
    state_dir: str | Path | None
    system: str | list[Json] | None
    max_tokens: int
    stream: bool
    max_turns: int
    ledger: bool
    store: Store | None
    detector: Detector | None
    on_progress: Callable[[Progress], None] | None
    concurrency: int
    max_attempts: int
    server_tools: Sequence[Mapping[str, Any]]
    extra: Mapping[str, Any] | None
    grace: float
    patience: float


@dataclass(frozen=True, slots=True)
class Work:
    """What a driver needs: the plan, the state it begins with, and whom to ask and tell."""

    plan: Plan
    state: State
    store: Store
    client: Any
    stream: bool
    patience: float
    where: str
    tell: Callable[[Progress], None]

    def hear(self, text: str) -> None:
        """Pass on a piece of a streamed response."""
        self.tell(Progress("text", self.state.turns + 1, text))

    def record(self, tool_use_id: str, process: OwnProcess) -> None:
        """Put a process that a call starts into the ledger."""
        self.store.commit(ProcessBegan(tool_use_id, process))


@contextlib.contextmanager
def prepared(options: Options, *, asynchronous: bool) -> Iterator[Work]:
    """Open what a run needs, and close its state whatever happens.

    Raises:
        LoopError: The arguments do not fit together.
        ToolError: A tool's contract is wrong.
        StateError: The state cannot be read, or belongs to another task.
    """
    _check(options)
    plan = _plan(options)
    client = without_own_retries(_client(options.client, asynchronous=asynchronous), asynchronous=asynchronous)
    store = options.store or open_store(options.state_dir, ledger=options.ledger)
    where = "memory only" if options.state_dir is None else repr(str(options.state_dir))
    tell = options.on_progress or _tell_nobody
    try:
        state = store.load()
        if state is None:
            state = State(uuid.uuid4().hex)
            state.apply(Prompted(plan.prompts[0]))
            store.create(state)
        else:
            _check_task(state, plan, where)
            tell(Progress("resumed", state.turns, f"from {where}, after turn {state.turns}"))
        yield Work(plan, state, store, client, options.stream, options.patience, where, tell)
    finally:
        store.close()


def _tell_nobody(progress: Progress) -> None:
    """Nobody watches."""


def _check(options: Options) -> None:
    """Refuse arguments of the wrong kind here, by name, and not where they are used first."""
    for name in ("max_turns", "max_attempts", "concurrency", "max_tokens"):
        value = getattr(options, name)
        if type(value) is not int or value < 1:
            raise LoopError(f"{name} is {value!r}; give a whole number of at least 1")
    for name in ("grace", "patience"):
        value = getattr(options, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
            raise LoopError(f"{name} is {value!r}; give seconds, at least 0")
    for name in ("detector", "on_progress"):
        value = getattr(options, name)
        if value is not None and not callable(value):
            raise LoopError(f"{name} is {value!r}, which cannot be called")
    if not isinstance(options.model, str) or not options.model.strip():
        raise LoopError(f"model is {options.model!r}; give the name of a model")
    if options.system is not None and not isinstance(options.system, str | list):
        raise LoopError(f"system is {options.system!r}; give text, or a list of text blocks")
    if isinstance(options.toolset, str) or not isinstance(options.toolset, Iterable):
        raise LoopError(f"toolset is {options.toolset!r}; give a list of tools")
    tools = options.server_tools
    if not isinstance(tools, Sequence) or not all(isinstance(tool, Mapping) for tool in tools):
        raise LoopError(f"server_tools is {tools!r}; give a list of definitions")
    extra = options.extra
    if extra is not None and not (isinstance(extra, Mapping) and all(isinstance(name, str) for name in extra)):
        raise LoopError(f"extra is {extra!r}; give parameters of the request by name")
    if options.store is not None and options.state_dir is not None:
        raise LoopError("give state_dir or store, not both")
    if options.store is not None and not isinstance(options.store, Store):
        raise LoopError(f"store is {options.store!r}, which has not what a store needs: load, create, commit, close")
    _check_directory(options.state_dir)


def _check_directory(state_dir: Any) -> None:
    if state_dir is None:
        return
    try:
        name = os.fspath(state_dir)
        usable = isinstance(name, str) and "\0" not in name and bool(os.fsencode(name))
    except (TypeError, UnicodeEncodeError):
        usable = False
    if not usable:
        raise LoopError(f"state_dir is {state_dir!r}; give the path of a directory")


def _plan(options: Options) -> Plan:
    toolset = as_toolset(options.toolset)
    extra = dict(options.extra or {})
    taken = sorted({"max_tokens", "messages", "model", "stream", "system", "tools"} & extra.keys())
    if taken:
        raise LoopError(f"extra holds {taken[0]!r}, which `run` sets itself")
    fixed: dict[str, Any] = {"model": options.model, "max_tokens": options.max_tokens}
    if options.system is not None:
        fixed["system"] = options.system
    tools = [tool.definition() for tool in toolset.values()] + [dict(tool) for tool in options.server_tools]
    if tools:
        fixed["tools"] = tools
    return Plan(
        prompts=_prompts(options.prompt),
        toolset=toolset,
        fixed={**fixed, **extra},
        max_turns=options.max_turns,
        max_attempts=options.max_attempts,
        concurrency=options.concurrency,
        detector=options.detector,
        now=time.time,
    )


def _prompts(prompt: str | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(prompt, str | Sequence):
        raise LoopError(f"prompt is {prompt!r}; give text, or a list of what the user has said so far")
    prompts = (prompt,) if isinstance(prompt, str) else tuple(prompt)
    if not prompts:
        raise LoopError("prompt is empty; say what there is to do")
    for text in prompts:
        if not isinstance(text, str) or not text.strip():
            raise LoopError(f"prompt holds {text!r}; the API takes only text that is not blank")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise LoopError(f"prompt holds half of a character (a lone surrogate) at {error.start}") from error
    return prompts


def _check_task(state: State, plan: Plan, where: str) -> None:
    """A state is resumed by the task that it was made for, and by no other."""
    for had, given in zip(state.prompts, plan.prompts, strict=False):
        if had != given:
            raise StateError(
                f"{where} holds another conversation: it began with {_shown(had)}, not {_shown(given)}; give it that "
                "prompt, or use another state_dir",
                kind="other_task",
            )
    if len(state.prompts) > len(plan.prompts):
        raise StateError(
            f"{where} has gone on to {_shown(state.prompts[len(plan.prompts)])}; give that prompt as well",
            kind="other_task",
        )


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def _client(client: Any, *, asynchronous: bool) -> Any:
    if client is not None:
        return client
    import anthropic

    return anthropic.AsyncAnthropic() if asynchronous else anthropic.Anthropic()
