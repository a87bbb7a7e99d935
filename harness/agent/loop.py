"""`run` and `arun`: the loop for production, blocking and asynchronous.

Both are drivers of the one core in `core`: they perform what it asks for and tell it what came of it.  Nothing is
decided here.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from harness.agent.async_execution import AsyncHands, in_thread
from harness.agent.core import converse
from harness.agent.effects import (
    Ask,
    Collect,
    Commit,
    Effect,
    EndProcesses,
    Launch,
    Outlast,
    StopRequested,
    Verify,
    Wait,
)
from harness.agent.execution import Hands
from harness.agent.live_calls import outlast
from harness.agent.preparation import Options, Work, prepared
from harness.agent.processes import end_groups
from harness.agent.progress import Progress, progress_of
from harness.agent.requests import NO_REPORT, STOPPED_STUCK, text_of
from harness.agent.responses import ask, ask_async
from harness.agent.signals import AsyncStop, Stop, StopNow, sleep
from harness.agent.state import Asked, Started, State
from harness.errors import RunInterrupted, RunInterruptedByUser

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
    from pathlib import Path

    from harness.agent.state import Call, Json, OwnProcess
    from harness.agent.store import Store
    from harness.agent.verdicts import Detector

__all__ = ["Result", "arun", "run"]

_LOG: Final = logging.getLogger("harness.agent")


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended.

    `status`: `completed` (`end_turn`, `stop_sequence`), `truncated` (`max_tokens`, `model_context_window_exceeded`),
    `refused`, `stopped_stuck` (by the detector) or `max_turns`.  `stop_reason` and `stop_details` (of a refusal) are
    the model's last ones, unchanged.  `turns` counts all processes that worked on the run; `tokens_used` is the window
    after the last response; `attempts` counts the requests, answered or not.
    """

    status: str
    text: str
    stop_reason: str | None
    turns: int
    tokens_used: int
    attempts: int
    messages: list[Json]
    interventions: list[Json]
    stop_details: Json | None = None


def run(
    prompt: str | Sequence[str],
    *,
    model: str,
    client: Any = None,
    toolset: Iterable[Any] = (),
    state_dir: str | Path | None = None,
    system: str | list[Json] | None = None,
    max_tokens: int = 8192,
    stream: bool = False,
    max_turns: int = 40,
    ledger: bool = True,
    store: Store | None = None,
    detector: Detector | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    concurrency: int = 1,
    max_attempts: int = 5,
    server_tools: Sequence[Mapping[str, Any]] = (),
    extra: Mapping[str, Any] | None = None,
    grace: float = 10.0,
    patience: float = 5.0,
    handle_signals: bool = True,
) -> Result:
    """Run an agent to its end, from wherever an earlier process left it.

    Calling it again with the same arguments after a crash resumes the run; after its end it gives the same result and
    changes nothing.

    Args:
        prompt: The task; or what the user has said so far, the task first, to continue a conversation.  A further
            prompt is given when the model has ended its turn, or with the results of the calls that a crash left
            pending.
        model: Name of the model.
        client: An `anthropic.Anthropic` (or one that looks like it); made from the environment when not given.
        toolset: Functions, `Tool` contracts, or the SDK's `@beta_tool` functions.
        state_dir: Directory of the run's durable state; without it, a run ends with its process.
        system: System prompt.
        max_tokens: Limit of one response.
        stream: Read responses as they come; needed for very long ones.
        max_turns: Responses that the run may take, over all its processes.
        ledger: Keep the state in SQLite, with a record of every call; `False`: in one readable JSON file, without.
        store: Another place for the state, instead of `state_dir`.
        detector: Asked after each turn whether the run is stuck.
        on_progress: Called with each `Progress`.
        concurrency: Calls of one response that may run side by side: reads, and writes that say so.
        max_attempts: Requests that one response may take.
        server_tools: Definitions of tools that the API runs itself.
        extra: Further parameters of each request (`thinking`, `metadata`, `betas`, …).
        grace: Seconds that a running call gets to end after SIGTERM or Ctrl-C.
        patience: Seconds that a process which a killed run left behind gets to end by itself, before it is ended: a
            command that comes to its end can be verified, one that is torn cannot.
        handle_signals: Listen for these signals while the run lasts, in the main thread.

    Raises:
        LoopError: The arguments do not fit together.
        ToolError: A tool's contract is wrong.
        StateError: The state cannot be read or written; nothing is lost.
        NoAnswerError: The model gave no whole answer; the run can be resumed.
        RunInterrupted: A signal ended the run; it can be resumed.
    """
    options = Options(
        prompt=prompt,
        model=model,
        client=client,
        toolset=toolset,
        state_dir=state_dir,
        system=system,
        max_tokens=max_tokens,
        stream=stream,
        max_turns=max_turns,
        ledger=ledger,
        store=store,
        detector=detector,
        on_progress=on_progress,
        concurrency=concurrency,
        max_attempts=max_attempts,
        server_tools=server_tools,
        extra=extra,
        grace=grace,
        patience=patience,
    )
    stop = Stop(grace)
    with prepared(options, asynchronous=False) as work, stop.listening(handle_signals):
        hands = Hands(work.record, work.state.run_id)
        try:
            return _result(_drive(work, hands, stop), work.state)
        except (StopRequested, StopNow):
            stop.over = True  # at once: one more Ctrl-C must not tear up what says how the run ended
            raise _interrupted(work, stop.requested) from None
        finally:
            stop.over = True
            hands.close()


async def arun(
    prompt: str | Sequence[str],
    *,
    model: str,
    client: Any = None,
    toolset: Iterable[Any] = (),
    state_dir: str | Path | None = None,
    system: str | list[Json] | None = None,
    max_tokens: int = 8192,
    stream: bool = False,
    max_turns: int = 40,
    ledger: bool = True,
    store: Store | None = None,
    detector: Detector | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    concurrency: int = 1,
    max_attempts: int = 5,
    server_tools: Sequence[Mapping[str, Any]] = (),
    extra: Mapping[str, Any] | None = None,
    grace: float = 10.0,
    patience: float = 5.0,
    handle_signals: bool = True,
) -> Result:
    """`run` for an event loop, with an `anthropic.AsyncAnthropic`.

    Saving blocks the loop for the millisecond that the disk takes: a save that could be cancelled half-way would be
    worse.  Blocking tools run in threads of their own.
    """
    options = Options(
        prompt=prompt,
        model=model,
        client=client,
        toolset=toolset,
        state_dir=state_dir,
        system=system,
        max_tokens=max_tokens,
        stream=stream,
        max_turns=max_turns,
        ledger=ledger,
        store=store,
        detector=detector,
        on_progress=on_progress,
        concurrency=concurrency,
        max_attempts=max_attempts,
        server_tools=server_tools,
        extra=extra,
        grace=grace,
        patience=patience,
    )
    stop = AsyncStop(grace)
    with prepared(options, asynchronous=True) as work, stop.listening(handle_signals):
        hands = AsyncHands(work.record, work.state.run_id)
        try:
            return _result(await _drive_async(work, hands, stop), work.state)
        except (StopRequested, StopNow):
            raise _interrupted(work, stop.requested) from None
        finally:
            await hands.close()


class _Steps:
    """Goes through the core step by step, for both drivers.

    Attributes:
        answer: What came of the last effect; the driver puts it there.
        broken_off: A signal came while the last effect was performed, and it came to nothing.
        status: How the run ended, once there are no more steps.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self._core: Generator[Effect, Any, str] = converse(work.state, work.plan)
        self._last: Effect | None = None
        self.answer: Any = None
        self.broken_off = False
        self.status = ""

    def following(self, *, stopping: bool) -> Effect | None:
        """Tell what the last effect has made true, hand its answer to the core, and give what the core wants next.

        Raises:
            StopRequested: The run is being stopped, and everything that was running is committed.
        """
        if self._last is not None and not self.broken_off:
            for progress in progress_of(self._last, self._work.state):
                self._work.tell(progress)
        answer, self.answer = self.answer, None
        try:
            if self.broken_off:
                self.broken_off = False
                effect = self._core.throw(StopRequested())
            else:
                effect = self._core.send(answer)
            if stopping and _begins(effect):
                effect = self._core.throw(StopRequested())
        except StopIteration as end:
            self.status, self._last = end.value, None
            return None
        self._last = effect
        return effect


def _begins(effect: Effect) -> bool:
    """Whether an effect begins something that a run which is being stopped had better not begin."""
    if isinstance(effect, Commit):
        return isinstance(effect.change, Asked | Started)
    return isinstance(effect, Ask | Wait | Verify | EndProcesses | Outlast)


def _drive(work: Work, hands: Hands, stop: Stop) -> str:
    """Perform what the core asks for, until it asks for nothing more."""
    steps = _Steps(work)
    while (effect := steps.following(stopping=stop.requested is not None)) is not None:
        stop.idle = isinstance(effect, Ask | Wait)
        match effect:
            case Commit(change):
                work.store.commit(change)
            case Ask(request):
                try:
                    steps.answer = ask(work.client, request, stream=work.stream, on_text=work.hear)
                except StopNow:
                    steps.broken_off = True
            case Wait(seconds):
                sleep(seconds)
            case Launch():
                hands.launch(effect)
            case Collect():
                steps.answer = hands.collect()
            case Verify():
                steps.answer = hands.verify(effect)
            case EndProcesses(calls):
                end_groups(_processes(calls), patience=work.patience)
            case Outlast(calls):
                steps.answer = outlast(work.state.run_id, _names(calls), patience=work.patience)
        stop.idle = False
    return steps.status


async def _drive_async(work: Work, hands: AsyncHands, stop: AsyncStop) -> str:
    """`_drive` for an event loop."""
    steps = _Steps(work)
    while (effect := steps.following(stopping=stop.requested is not None)) is not None:
        stop.idle = isinstance(effect, Ask | Wait)
        match effect:
            case Commit(change):
                work.store.commit(change)
            case Ask(request):
                answer = ask_async(work.client, request, stream=work.stream, on_text=work.hear)
                try:
                    steps.answer = await stop.until_now(answer)
                except StopNow:
                    steps.broken_off = True
            case Wait(seconds):
                await stop.until_now(asyncio.sleep(seconds))
            case Launch():
                hands.launch(effect)
            case Collect():
                steps.answer = await stop.until_now(hands.collect())
            case Verify():
                steps.answer = await stop.until_now(hands.verify(effect))
            case EndProcesses(calls):
                await in_thread(partial(end_groups, _processes(calls), patience=work.patience))
            case Outlast(calls):
                waiting = in_thread(partial(outlast, work.state.run_id, _names(calls), patience=work.patience))
                steps.answer = await stop.until_now(waiting)
        stop.idle = False
    return steps.status


def _processes(calls: tuple[Call, ...]) -> list[OwnProcess]:
    return [process for call in calls for process in call.processes]


def _names(calls: tuple[Call, ...]) -> list[str]:
    return [call.tool_use_id for call in calls]


def _result(status: str, state: State) -> Result:
    last = next((message for message in reversed(state.messages) if message["role"] == "assistant"), None)
    content = [] if last is None else last["content"]
    text = content if isinstance(content, str) else text_of(content)
    if status == STOPPED_STUCK and (state.status is None or not text.strip()):
        text = NO_REPORT
    return Result(
        status=status,
        text=text,
        stop_reason=state.stop_reason,
        turns=state.turns,
        tokens_used=state.tokens_used,
        attempts=state.attempts,
        messages=list(state.messages),
        interventions=list(state.interventions),
        stop_details=state.about.get("stop_details"),
    )


def _interrupted(work: Work, number: int | None) -> RunInterrupted:
    state = work.state
    name = signal.Signals(number or signal.SIGTERM).name
    open_calls = [call.tool for call in state.pending if call.state == "started"]
    lost = ""
    if open_calls:
        lost = f" {', '.join(open_calls)} did not end in time: what became of it is found out when the run is resumed."
    message = (
        f"{name}: stopped after turn {state.turns}. What was done is saved ({work.where}); run it again to go on.{lost}"
    )
    _LOG.warning("%s", message)
    kind = RunInterruptedByUser if number == signal.SIGINT else RunInterrupted
    return kind(message, number or signal.SIGTERM)
