"""The loop itself, without I/O: a generator that says what to do next and is told what came of it.

It knows no client, no clock, no disk and no thread, so that every boundary at which a process can die is one `yield` in
this file.  The two drivers in `loop` perform the effects, one blocking and one asynchronous.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from harness.agent.backoff import MAX_WAIT, delay_before
from harness.agent.effects import (
    Ask,
    Collect,
    Commit,
    Effect,
    EndProcesses,
    Launch,
    Lost,
    Outcome,
    Outlast,
    StopRequested,
    Verify,
    Wait,
    Whole,
)
from harness.agent.ledger import (
    Decision,
    decide,
    lost_result,
    stricter,
    timed_out_result,
    unknown_result,
)
from harness.agent.requests import STOPPED_STUCK, answered, next_request, not_executed, unfit
from harness.agent.results import ToolResult, error_result, scrub
from harness.agent.state import (
    Asked,
    Call,
    Change,
    GaveUp,
    Json,
    Prompted,
    Returned,
    Settled,
    Started,
    State,
    idempotency_key,
)
from harness.errors import LoopError, NoAnswerError, ToolError

if TYPE_CHECKING:
    from harness.agent.contract import Tool
    from harness.agent.verdicts import Detector

__all__ = ["Plan", "converse"]

Steps: TypeAlias = Generator[Effect, Any, None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What the caller wants: fixed for one process, and free to differ in the next.

    Args:
        prompts: What the user says, the task first.  What the state already holds is not said again.
        toolset: The tools by name.
        fixed: What every request carries: model, max_tokens, system, tools, …
        max_turns: Responses that the run may take, over all processes.
        max_attempts: Requests that one response may take.
        concurrency: Calls of one response that may run side by side.
        detector: Asked after every turn, or `None`.
        now: Seconds since the epoch, for the ledger.
    """

    prompts: tuple[str, ...]
    toolset: Mapping[str, Tool]
    fixed: Mapping[str, Any]
    max_turns: int
    max_attempts: int
    concurrency: int
    detector: Detector | None
    now: Callable[[], float]


@dataclass(frozen=True, slots=True)
class _Ready:
    """A call that is going to run."""

    call: Call
    tool: Tool
    arguments: dict[str, Any]


def converse(state: State, plan: Plan) -> Generator[Effect, Any, str]:
    """Carry a run to its end, from wherever it stands.

    Starting and resuming are the same thing: what to do next is read off the state each time.

    Returns:
        How it ended: `completed`, `truncated`, `refused`, `stopped_stuck` or `max_turns`.

    Raises:
        NoAnswerError: The model could not be brought to answer; the state is as it was before the question.
        StopRequested: As thrown in by the driver, when everything that was running is committed.
    """
    # A prompt that arrives while calls are pending goes with their results: the results must come first, and in the
    # same message (langgraph#4289).
    joins = bool(state.pending)
    while True:
        if state.pending:
            yield from _settle(state, plan)
            yield from _return(state, plan, _next_prompt(state, plan) if joins else None)
            joins = False
        elif state.status is None and state.awaits_model:
            last_word = _explains(state)
            if state.turns >= plan.max_turns:
                return STOPPED_STUCK if last_word else "max_turns"
            try:
                yield from _answer(state, plan)
            except NoAnswerError:
                if not last_word:
                    raise
                return STOPPED_STUCK  # the run is over all the same; its report did not come
        elif (prompt := _next_prompt(state, plan)) is not None:
            yield from _commit(state, Prompted(prompt))
        else:
            return state.status or "completed"


def _commit(state: State, change: Change) -> Steps:
    yield Commit(change)
    state.apply(change)


def _next_prompt(state: State, plan: Plan) -> str | None:
    return plan.prompts[len(state.prompts)] if len(state.prompts) < len(plan.prompts) else None


def _explains(state: State) -> bool:
    """Whether the next response is the last word of a run that was stopped by force."""
    last = state.interventions[-1] if state.interventions else {}
    return last.get("verdict") == "force_stop" and last.get("turn") == state.turns


def _answer(state: State, plan: Plan) -> Steps:
    """Ask until there is a whole response that can be kept, and keep it: save point A."""
    tools_off = _explains(state)
    lost = Lost("the process ended before an answer came", again=True)
    while state.attempts_of_turn < plan.max_attempts:
        yield from _commit(state, Asked())
        try:
            answer = yield Ask(next_request(state, plan.fixed, tools_off=tools_off))
        except StopRequested:  # an orderly stop says nothing of the model, and must not count against it
            yield from _commit(state, GaveUp())
            raise
        if isinstance(answer, Whole):
            problem = unfit(answer.message, state)
            if problem is None:
                yield from _commit(state, answered(answer.message, state, plan.toolset, tools_off=tools_off))
                return
            answer = Lost(problem, again=True)
        lost = cast("Lost", answer)
        seconds = delay_before(state.attempts_of_turn + 1, state.run_id, lost.retry_after)
        if not lost.again or seconds > MAX_WAIT:
            break
        if state.attempts_of_turn < plan.max_attempts:
            yield Wait(seconds)
    attempts = state.attempts_of_turn
    yield from _commit(state, GaveUp())
    raise _no_answer(state, lost, attempts)


def _no_answer(state: State, lost: Lost, attempts: int) -> NoAnswerError:
    later = "" if lost.retry_after is None else f" (the server asks to come back in {lost.retry_after:g} s)"
    advice = (
        "The state is intact: start it again to go on" if lost.again else "Put right what it refuses, then start again"
    )
    return NoAnswerError(
        f"turn {state.turns + 1}: no answer after {attempts} request{'s' if attempts != 1 else ''}, the last one: "
        f"{lost.reason}{later}. {advice}.",
        attempts=attempts,
        status=lost.status,
    )


def _settle(state: State, plan: Plan) -> Steps:
    """Give every pending call its one truthful result: by running it, from the ledger, or by a verdict."""
    if state.status is not None:  # the response that asks for them has ended the run
        for call in state.pending:
            if not call.settled:
                yield from _commit(state, Settled(call.tool_use_id, "failed", not_executed(state), plan.now()))
        return
    orphaned = tuple(call for call in state.pending if call.state == "started" and call.processes)
    if orphaned:
        yield EndProcesses(orphaned)
    begun = tuple(
        call for call in state.pending if call.state in ("started", "unrecorded") and call.effect != "read_only"
    )
    live: frozenset[str] = (yield Outlast(begun)) if begun else frozenset()
    ready = []
    for call in state.pending:
        tool = plan.toolset.get(call.tool)
        effect = stricter(call.effect, tool.effect if tool else "irreversible")
        decision = decide(call.state, effect, can_verify=tool is not None and tool.verify is not None)
        if call.tool_use_id in live:  # what `verify` finds now, or a second execution does, the first may yet undo
            decision = Decision.UNKNOWN
        if decision is Decision.VERIFY:
            decision = yield from _verify(state, plan, call, cast("Tool", tool))
        if decision is Decision.UNKNOWN:
            yield from _commit(state, Settled(call.tool_use_id, "unknown", unknown_result(call), plan.now()))
        elif decision in (Decision.RUN, Decision.RUN_AGAIN):
            prepared = yield from _prepare(state, plan, call)
            ready += [prepared] if prepared else []
    for group in _groups(ready, plan.concurrency):
        yield from _run(state, plan, group)


def _verify(state: State, plan: Plan, call: Call, tool: Tool) -> Generator[Effect, Any, Decision]:
    """Ask the tool itself; what it finds is durable before it is used."""
    try:
        arguments = _arguments(state, call, tool)
    except ToolError:  # the contract was changed since; the call cannot be put to the tool any more
        return Decision.UNKNOWN
    found = yield Verify(call, tool, arguments)
    if found is None:
        return Decision.UNKNOWN
    if found is False:
        return Decision.RUN
    result = found if isinstance(found, ToolResult) else lost_result(call)
    yield from _commit(state, Settled(call.tool_use_id, "done", result, plan.now()))
    return Decision.RECORDED


def _prepare(state: State, plan: Plan, call: Call) -> Generator[Effect, Any, _Ready | None]:
    """Check a call against its contract; one that breaks it is answered without being started."""
    tool = plan.toolset.get(call.tool)
    if tool is None:
        names = ", ".join(plan.toolset) or "none"
        wrong = ToolError(f"There is no tool named {call.tool!r}. Nothing was executed. The tools are: {names}.")
    else:
        try:
            return _Ready(call, tool, _arguments(state, call, tool))
        except ToolError as error:
            wrong = error
    if call.state == "started" and call.effect != "read_only":
        # It was valid when it was started, so the contract was tightened since, and "not executed" might be a lie.
        yield from _commit(state, Settled(call.tool_use_id, "unknown", unknown_result(call), plan.now()))
    else:
        yield from _commit(state, Settled(call.tool_use_id, "failed", error_result(wrong), plan.now()))
    return None


def _arguments(state: State, call: Call, tool: Tool) -> dict[str, Any]:
    """What the tool is called with.

    Raises:
        ToolError: The input breaks the contract, or the contract itself breaks on this input.  The call is durable,
            so that any other exception would end this process and each that comes after it.
    """
    try:
        return tool.arguments(call.input, idempotency_key(state.run_id, call.tool_use_id))
    except ToolError:
        raise
    except Exception as error:
        words = error_result(error).content
        raise ToolError(
            f"The input of {call.tool!r} could not be checked or converted ({words}). Nothing was executed."
        ) from error


def _groups(ready: Iterable[_Ready], concurrency: int) -> Iterator[list[_Ready]]:
    """Calls that may run side by side, never across one that may not: the order of effects stays the model's."""
    group: list[_Ready] = []
    for item in ready:
        if group and not (_shares(item) and _shares(group[-1]) and len(group) < concurrency):
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def _shares(item: _Ready) -> bool:
    return not item.tool.writes or item.tool.concurrent


def _run(state: State, plan: Plan, group: list[_Ready]) -> Steps:
    """Execute calls side by side: each one's intent before it, each one's completion as soon as it is there."""
    running: dict[str, _Ready] = {}
    try:
        for item in group:
            yield from _commit(state, Started(item.call.tool_use_id, plan.now()))
            yield Launch(item.call, item.tool, item.arguments, alone=len(group) == 1)
            running[item.call.tool_use_id] = item
    except StopRequested:
        yield from _collect(state, plan, running)
        raise
    yield from _collect(state, plan, running)


def _collect(state: State, plan: Plan, running: dict[str, _Ready]) -> Steps:
    while running:
        outcome: Outcome = yield Collect()
        item = running.pop(outcome.tool_use_id)
        yield from _commit(state, _completion(item, outcome, plan.now()))


def _completion(item: _Ready, outcome: Outcome, at: float) -> Settled:
    call, tool = item.call, item.tool
    if not outcome.timed_out:
        return Settled(call.tool_use_id, "failed" if outcome.result.is_error else "done", outcome.result, at)
    # A write that we stopped waiting for may still have its effect: nothing more truthful can be said of it.
    verdict = timed_out_result(call, cast("float", tool.timeout))
    return Settled(call.tool_use_id, "unknown" if tool.writes else "failed", verdict, at)


def _return(state: State, plan: Plan, prompt: str | None) -> Steps:
    """Send the results of a turn back, with what the detector has to say: save point B."""
    over = state.status is not None
    intervention = None if over or plan.detector is None else _judge(state, plan.detector)
    yield from _commit(state, Returned(intervention, prompt))


def _judge(state: State, detector: Detector) -> Json | None:
    verdict = detector(_calls_since_prompt(state))
    if verdict is None or verdict.kind == "continue":
        return None
    if verdict.kind not in ("nudge", "force_stop") or not verdict.message.strip():
        raise LoopError(
            f"the detector answered kind {verdict.kind!r} with message {verdict.message!r}; "
            "it must be continue, or nudge or force_stop with something to say"
        )
    name = getattr(verdict, "detector", None)
    return {"turn": state.turns, "verdict": verdict.kind, "detector": name, "message": scrub(verdict.message)}


def _calls_since_prompt(state: State) -> tuple[Call, ...]:
    """What the detector looks at: a user who says something new changes what counts as repetition."""
    if len(state.prompts) < 2:
        return tuple(state.calls.values())
    turn = state.turns
    for message in reversed(state.messages):
        content = message["content"]
        if message["role"] == "assistant":
            turn -= 1
        elif isinstance(content, str) or any(block.get("text") in state.prompts for block in content):
            break
    return tuple(call for call in state.calls.values() if call.turn > turn)
