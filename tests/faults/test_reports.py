"""Reported failures of other agents (CRASH.md 3), each as one kill of the durable loop: here it goes right."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.faults.sweep import Sweep

CASE = """\
agent: harness.agent:run
prompt: Go.
tools: loop:TOOLS
model:
  name: claude-test
  script:
    - call:
        - look: {at: a}
        - look: {at: b}
        - look: {at: c}
    - call:
        - put: {name: d}
        - mail: {to: e}
        - break: {it: f}
      on_unknown:
        - call: {look: {at: outbox}}
    - say: Done.
"""

TOOLS = """\
from harness.agent import tool

@tool(effect="read_only")
def look(at: str) -> str:
    return f"saw {at}"

@tool(effect="idempotent")
def put(name: str, idempotency_key: str) -> str:
    return f"put {name}"

@tool
def mail(to: str) -> str:
    return f"mailed {to}"

@tool(name="break")
def break_(it: str) -> str:
    raise ValueError(it)

TOOLS = [look, put, mail, break_]
"""

EACH_ONCE = {"break": 1, "mail": 1, "put": 1}

REPORTS = {
    "claude-code#3003": ("turn1.call1.look.after", "same", EACH_ONCE),
    "claude-code#18880": ("turn1.model.after", "same", EACH_ONCE),
    "claude-code#31330": ("turn1.save8.commit.after", "same", EACH_ONCE),
    "claude-code#39818": ("turn2.model.before", "same", EACH_ONCE),
    "claude-code#68741": ("turn2.call2.mail.after", "unknown", EACH_ONCE),
    "claude-code#66175": ("turn2.save.commit.before", "same", EACH_ONCE),
    "langgraph#8039": ("turn2.save.commit.after", "same", EACH_ONCE),
    "langgraph#9002": ("turn2.save7.commit.after", "same", EACH_ONCE),
    "langgraph#3126": ("turn2.call2.mail.before", "unknown", {"break": 1, "put": 1}),
    "codex#12382": ("turn2.call3.break.after", "unknown", EACH_ONCE),
    "crewAI#5802": ("turn2.call3.break.before", "unknown", {"mail": 1, "put": 1}),
    "agent-framework#3938": ("turn2.call1.put.after", "same", {"break": 1, "mail": 1, "put": 2}),
    "autogen#3408": ("turn2.save8.commit.before", "same", EACH_ONCE),
}
"""Report: where it was killed, and what comes of it here."""


def test_a_reported_failure_does_not_happen_here(swept: Callable[..., Sweep]) -> None:
    """Every pending call is answered once and truthfully, and nothing runs twice that must not."""
    points = tuple(point for point, _, _ in REPORTS.values())
    found = {crash.kills[0]: crash for crash in swept(TOOLS, CASE, points=points).crashes}
    seen = {report: (point, found[point].outcome, found[point].executions) for report, (point, _, _) in REPORTS.items()}
    assert seen == REPORTS
    assert all(not crash.breaches for crash in found.values())


@pytest.mark.parametrize("seed", [1, 2])
def test_a_repair_is_made_once(swept: Callable[..., Sweep], seed: int) -> None:
    """strands#3651, opencode#10616: killed in a tool, killed again while that is put right; the verdict stands."""
    found = swept(TOOLS, CASE, points=("turn2.call2.mail.after",), depth=2, most_pairs=12, seed=seed)
    assert len(found.pairs) == 12
    assert found.all_pairs > 12
    assert {one.outcome for one in found.pairs} == {"unknown"}
    assert {one.executions["mail"] for one in found.pairs} == {1}
    again = swept(TOOLS, CASE, points=("turn2.call2.mail.after",), depth=2, most_pairs=12, seed=seed, jobs=1)
    assert [one.kills for one in again.pairs] == [one.kills for one in found.pairs]
