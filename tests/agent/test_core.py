"""The core on its own, where a driver would only get in the way."""

from __future__ import annotations

import re
from typing import Any

import pytest

from harness.agent import Tool, ToolResult, tool
from harness.agent.core import Plan, converse
from harness.agent.effects import Ask, Collect, Commit, Launch, Outcome, Outlast, StopRequested, Whole
from harness.agent.ledger import unknown_result
from harness.agent.requests import answered
from harness.agent.state import Answered, Asked, Prompted, Settled, Started, State


@tool(effect="read_only")
def look(what: str) -> str:
    return what


def plan(**changes: Any) -> Plan:
    given = {
        "prompts": ("x",),
        "toolset": {"look": look},
        "fixed": {"model": "m"},
        "max_turns": 9,
        "max_attempts": 3,
        "concurrency": 3,
        "detector": None,
        "now": lambda: 0.0,
    }
    return Plan(**{**given, **changes})


def begun() -> State:
    state = State("run-1")
    state.apply(Prompted("x"))
    return state


def response(*names: str) -> Whole:
    blocks = [{"type": "tool_use", "id": name, "name": "look", "input": {"what": name}} for name in names]
    return Whole({"role": "assistant", "content": blocks, "stop_reason": "tool_use", "usage": {}})


def test_every_boundary_is_an_effect() -> None:
    """Ask counted, asked, saved; each intent before its launch; each completion as soon as it is there."""
    core = converse(begun(), plan())
    assert next(core) == Commit(Asked())
    assert isinstance(core.send(None), Ask)
    saved = core.send(response("one", "two"))
    assert isinstance(saved, Commit)
    assert isinstance(saved.change, Answered)
    steps = [core.send(None) for _ in range(4)]
    assert steps[0] == Commit(Started("one", 0.0))
    assert isinstance(steps[1], Launch)
    assert steps[2] == Commit(Started("two", 0.0))
    assert isinstance(steps[3], Launch)
    assert core.send(None) == Collect()
    assert core.send(Outcome("two", ToolResult("2"))) == Commit(Settled("two", "done", ToolResult("2"), 0.0))
    assert core.send(None) == Collect()


def test_a_stop_collects_what_is_running_and_begins_nothing() -> None:
    """Stopped between two calls that run side by side, the one that has begun is recorded, the other stays planned."""
    state = begun()
    core = converse(state, plan())
    next(core)
    core.send(None)
    core.send(response("one", "two"))
    core.send(None)
    assert isinstance(core.send(None), Launch)
    assert core.send(None) == Commit(Started("two", 0.0))
    assert core.throw(StopRequested()) == Collect()
    assert core.send(Outcome("one", ToolResult("1"))) == Commit(Settled("one", "done", ToolResult("1"), 0.0))
    with pytest.raises(StopRequested):
        core.send(None)
    assert [call.state for call in state.calls.values()] == ["done", "planned"]


def test_the_state_is_never_ahead_of_the_disk() -> None:
    """A change counts only when its commit was answered."""
    state = begun()
    core = converse(state, plan())
    assert next(core) == Commit(Asked())
    assert state.attempts == 0
    core.send(None)
    assert state.attempts == 1


def refusing(fault: Exception, **contract: Any) -> Tool:
    """A tool whose conversion of the input breaks."""

    def coerce(_: Any) -> dict[str, Any]:
        raise fault

    schema = {"type": "object", "properties": {"what": {"type": "string"}}}
    return Tool("look", "", schema, print, coerce=coerce, **contract)


@pytest.mark.parametrize("fault", [KeyError("x"), TypeError("bad"), re.error("bad"), RecursionError("deep")])
def test_a_contract_that_breaks_is_answered(fault: Exception) -> None:
    """Whatever a conversion raises is the result of its call: raised, it would end every process that resumes."""
    core = converse(begun(), plan(toolset={"look": refusing(fault)}))
    for answer in (None, None, response("one")):
        core.send(answer)
    step = core.send(None)
    words = f"{type(fault).__name__}: {fault}"
    text = f"The input of 'look' could not be checked or converted ({words}). Nothing was executed."
    assert step == Commit(Settled("one", "failed", ToolResult(text, is_error=True), 0.0))


@pytest.mark.parametrize("verify", [None, print])
def test_a_contract_that_breaks_after_a_crash_leaves_the_call_unknown(verify: Any) -> None:
    """A write that was started is never said not to have been executed, whether it could be verified or not."""
    state = begun()
    state.apply(Asked())
    message = response("one").message
    before = refusing(KeyError("x"), effect="idempotent")
    state.apply(answered(message, state, {"look": before}, tools_off=False))
    state.apply(Started("one", 0.0))
    steps = converse(state, plan(toolset={"look": refusing(KeyError("x"), effect="idempotent", verify=verify)}))
    call = state.calls["one"]
    assert next(steps) == Outlast((call,))
    assert steps.send(frozenset()) == Commit(Settled("one", "unknown", unknown_result(call), 0.0))
