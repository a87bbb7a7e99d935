"""Reported failures of other agents (CRASH.md 3), replayed with real kills: here it goes right.

Where no kill is the point, the report is replayed in `tests/agent/test_reported_crashes.py`, with signals in
`tests/agent/test_kills.py`, with a loss of power in `tests/power/test_power_loss.py`, as a request that the model
refuses below; `test_every_report_is_replayed` holds all of them together.  Left out, because there is no such thing
here:

- the screen of claude-code#39818 that rewinds: a run has one history, and no cursor in it;
- the second index of letta#3176 and claude-code#66175, the HEAD pointer of software-agent-sdk#4487: messages and ledger
  are in one database, and what could be told apart is told from the kills between the commits;
- the next speaker of autogen#3408: there is one agent, and its next step follows from the messages;
- the placeholders of Roo-Code PR#11131: nothing is ever repaired by position, so there is no repair to repair;
- the other tenant of pydantic-ai#6903: no result is kept beyond its run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.faults.lives import Subject
from harness.faults.sweep import Plan, Sweep, sweep
from harness.model.local import LocalModel
from harness.model.script import Script

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
    "claude-code#37672": ("turn2.model.after", "same", EACH_ONCE),
    "claude-code#20901": ("turn2.save8.commit.after", "same", EACH_ONCE),
    "claude-code#21083": ("turn3.save.commit.before", "same", EACH_ONCE),
    "claude-code#21317": ("turn3.model.before", "same", EACH_ONCE),
    "claude-code#39818": ("turn2.model.before", "same", EACH_ONCE),
    "claude-code#68741": ("turn2.call2.mail.after", "unknown", EACH_ONCE),
    "claude-code#66175": ("turn2.save.commit.before", "same", EACH_ONCE),
    "letta#3176": ("turn2.save2.commit.before", "same", EACH_ONCE),
    "langgraph#8039": ("turn2.save.commit.after", "same", EACH_ONCE),
    "software-agent-sdk#4487": ("turn2.save3.commit.before", "same", {**EACH_ONCE, "put": 2}),
    "langgraph#9002": ("turn2.save7.commit.after", "same", EACH_ONCE),
    "langgraph#3126": ("turn2.call2.mail.before", "unknown", {"break": 1, "put": 1}),
    "codex#12382": ("turn2.call3.break.after", "unknown", EACH_ONCE),
    "opencode#42286": ("turn2.call1.put.before", "same", EACH_ONCE),
    "pydantic-ai#6640": ("turn2.save7.commit.before", "unknown", EACH_ONCE),
    "crewAI#5802": ("turn2.call3.break.before", "unknown", {"mail": 1, "put": 1}),
    "agent-framework#3938": ("turn2.call1.put.after", "same", {"break": 1, "mail": 1, "put": 2}),
    "autogen#3408": ("turn2.save8.commit.before", "same", EACH_ONCE),
}
"""Report: where it was killed, and what comes of it here."""


@pytest.fixture(scope="module")
def found(subject_in: Callable[..., Subject], tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    points = tuple(point for point, _, _ in REPORTS.values())
    return sweep(subject_in(tmp_path_factory.mktemp("reports"), TOOLS, CASE), Plan(points=points, jobs=2))


@pytest.mark.parametrize("report", REPORTS)
def test_a_reported_failure_does_not_happen_here(found: Sweep, report: str) -> None:
    """Every pending call is answered once and truthfully, and nothing runs twice that must not."""
    (crash,) = (one for one in found.crashes if one.kills[0] == REPORTS[report][0])
    assert (crash.kills[0], crash.outcome, crash.executions) == REPORTS[report]
    assert crash.breaches == ()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_repair_is_made_once(swept: Callable[..., Sweep], seed: int) -> None:
    """harness-sdk#859, harness-sdk#1123, harness-sdk#3651: killed in a tool, killed again while that is put right; the
    verdict stands.
    """
    found = swept(TOOLS, CASE, points=("turn2.call2.mail.after",), depth=2, most_pairs=12, seed=seed)
    assert len(found.pairs) == 12
    assert found.all_pairs > 12
    assert {one.outcome for one in found.pairs} == {"unknown"}
    assert {one.executions["mail"] for one in found.pairs} == {1}
    again = swept(TOOLS, CASE, points=("turn2.call2.mail.after",), depth=2, most_pairs=12, seed=seed, jobs=1)
    assert [one.kills for one in again.pairs] == [one.kills for one in found.pairs]


THREE_KILLS = (
    ("turn2.call2.mail.after", "turn2.save3.commit.before", "turn2.save3.commit.before"),
    ("turn2.call2.mail.after", "turn2.save2.commit.after", "turn2.save3.commit.after"),
    ("turn2.call1.put.before", "turn2.call1.put.after", "turn2.call1.put.after"),
    ("turn2.save.commit.after", "turn2.call1.put.after", "turn2.call2.mail.after"),
    ("turn1.call2.look.after", "turn1.call3.look.after", "turn2.call3.break.after"),
)


@pytest.mark.parametrize("kills", THREE_KILLS, ids=" ".join)
def test_kills_upon_kills_leave_no_orphans(swept: Callable[..., Sweep], kills: tuple[str, ...]) -> None:
    """opencode#10616, copilot-cli#3183, crush#529, riftor#115: 311 orphaned calls, most of them writes, and repairs
    that made duplicates.  Killed three times, resumed three times: each call has one answer in every request.
    """
    first, *then = kills
    (history,) = swept(TOOLS, CASE, points=(first,), then=tuple(then)).pairs
    assert history.kills == kills
    assert history.breaches == ()
    assert {tool: count for tool, count in history.executions.items() if tool != "put"} == {"break": 1, "mail": 1}


LARGE = """\
from harness.agent import JsonStore, run as durable, tool

@tool(effect="read_only", max_result_chars=4_000_000)
def load(at: str) -> str:
    return "x" * 4_000_000

TOOLS = [load]

def run(prompt, client, toolset, model, state_dir):
    return durable(prompt, client=client, toolset=toolset, model=model, store=JsonStore(state_dir))
"""


def test_a_kill_during_the_save_of_a_large_file(swept: Callable[..., Sweep]) -> None:
    """cline#954, cline#2321.  4 MB of JSON, killed at each step of writing it: what was there before is whole."""
    case = CASE[: CASE.index("    - call:")] + "    - call: {load: {at: a}}\n    - say: Done.\n"
    found = swept(LARGE, case.replace("harness.agent:run", "loop:run"), points=("turn1.save3.*", "turn2.save*"))
    assert len([one for one in found.crashes if ".rename." in one.kills[0]]) >= 4
    assert {one.outcome for one in found.crashes} == {"same"}


def test_a_duplicate_result_is_reported_as_a_duplicate() -> None:
    """software-agent-sdk#1782: a second result was told as "tool_use without tool_result", and sought in vain."""
    model = LocalModel(Script.parse([{"call": {"look": {"at": "a"}}}, {"say": "Done."}]))
    tools = [{"name": "look", "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}}}]
    request: dict[str, Any] = {"model": "m", "max_tokens": 9, "tools": tools, "messages": []}
    request["messages"].append({"role": "user", "content": "Go."})
    answer = json.loads(b"".join(model.respond(request, {}).chunks))
    (use,) = answer["content"]
    result = {"type": "tool_result", "tool_use_id": use["id"], "content": "ok"}
    request["messages"] += [
        {"role": "assistant", "content": answer["content"]},
        {"role": "user", "content": [result, result]},
    ]
    refused = json.loads(b"".join(model.respond(request, {}).chunks))
    assert f"Found multiple `tool_result` blocks with id: {use['id']}" in refused["error"]["message"]


AGAIN = """\
agent: harness.agent:run
prompt: Go.
tools:
  mail: {effect: irreversible, input: {to: string}, returns: sent}
model:
  name: claude-test
  script:
    - call: {mail: {to: a}}
      on_unknown: [{call: {mail: {to: a}}}]
    - say: Done.
"""


def test_a_duplicate_made_by_the_model_is_found(swept: Callable[..., Sweep]) -> None:
    """Unreported (b).  Told "status unknown", the model calls again under a new id: no ledger sees it, and the world
    has two effects where the first had happened, one where it had not.
    """
    found = {one.kills[0]: one for one in swept("", AGAIN, points=("turn1.call1.mail.*",)).crashes}
    before, after = found["turn1.call1.mail.before"], found["turn1.call1.mail.after"]
    assert (before.outcome, before.executions) == ("unknown", {"mail": 1})
    assert (after.outcome, after.executions) == ("executed_twice", {"mail": 2})
    assert [breach.message for breach in after.breaches] == [
        "`mail` had its effect twice for one input, once without the kill: told that nobody knows of `mail` (turn 1, "
        "call 1), the model called it again, and it had run"
    ]


TABLE = {
    "claude-code": (3003, 18880, 31330, 37672, 20901, 21083, 21317, 39818, 68741, 66175, 40233),
    "letta": (3176, 3250),
    "langgraph": (8039, 9002, 3126, 4289),
    "langgraphjs": (1423,),
    "software-agent-sdk": (4487, 1782),
    "goose": (1624, 1541, 1651),
    "codex": (29773, 6950, 12382),
    "opencode": (42286, 10616),
    "pydantic-ai": (6907, 6903, 6640),
    "crewAI": (5802,),
    "agent-framework": (3938,),
    "autogen": (3408,),
    "cline": (954, 2321),
    "Roo-Code": (9952, 10027, 10015, 11131),
    "harness-sdk": (859, 1123, 3651),
    "copilot-cli": (3183,),
    "crush": (529,),
    "riftor": (115,),
}
"""The reports of CRASH.md 3, by project."""


def test_every_report_is_replayed() -> None:
    """Each report of the table is named by a test that replays it, and both failures that nobody has reported."""
    tests = Path(__file__).parents[1]
    folders = [tests / "agent", tests / "power"]
    texts = [path.read_text() for folder in folders for path in folder.glob("test_*.py")]
    texts.append(Path(__file__).read_text().partition("\nTABLE = ")[0].partition('"""\n\nfrom')[2])
    named = "\n".join(texts)
    reports = [f"{project}#{number}" for project, numbers in TABLE.items() for number in numbers]
    assert [report for report in [*reports, "Unreported (a)", "Unreported (b)"] if report not in named] == []
