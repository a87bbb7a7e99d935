"""A case becomes a run of the real loop: what it did is in the trace, what it must not do in the problems."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.case.load import load_case
from harness.case.offline import PLACEHOLDER
from harness.case.run import Run, run_case
from harness.errors import CaseError, HarnessError
from harness.normalize import Normalizer
from harness.project import Project
from harness.trace import Call, Trace

LOOP = """
import anthropic, json, os


def send(messages, tools, create, model="claude-sonnet-5"):
    return create(model=model, max_tokens=1024, messages=messages, tools=tools)


def results(message, dispatch):
    for block in message.content:
        if block.type == "tool_use":
            try:
                content = str(dispatch(block.name, block.input))
                yield {"type": "tool_result", "tool_use_id": block.id, "content": content}
            except Exception as error:
                yield {"type": "tool_result", "tool_use_id": block.id, "content": str(error), "is_error": True}


def loop(prompt, tools, dispatch, create):
    messages = [{"role": "user", "content": prompt}]
    while True:
        message = create(messages, tools)
        messages.append({"role": "assistant", "content": [block.to_dict() for block in message.content]})
        answers = list(results(message, dispatch))
        if not answers:
            return message.content[-1].text
        messages.append({"role": "user", "content": answers})


def create_loop(prompt, client, dispatch, tools):
    return loop(prompt, tools, dispatch, lambda messages, tools: send(messages, tools, client.messages.create))


def stream_loop(task, client, dispatch, tools, model):
    def stream(messages, tools):
        with client.messages.stream(model=model, max_tokens=1024, messages=messages, tools=tools) as events:
            return events.get_final_message()

    return loop(task, tools, dispatch, stream)


async def async_loop(prompt, async_client, async_dispatch, tools, model):
    messages = [{"role": "user", "content": prompt}]
    while True:
        message = await async_client.messages.create(model=model, max_tokens=1024, messages=messages, tools=tools)
        messages.append({"role": "assistant", "content": [block.to_dict() for block in message.content]})
        answers = []
        for block in message.content:
            if block.type == "tool_use":
                result = await async_dispatch(block.name, block.input)
                answers.append({"type": "tool_result", "tool_use_id": block.id, "content": str(result)})
        if not answers:
            return message.content[-1].text
        messages.append({"role": "user", "content": answers})


def toolset_loop(prompt, client, toolset):
    by_name = {tool.name: tool for tool in toolset}
    dispatch = lambda name, input: by_name[name].function(**by_name[name].arguments(input))
    return loop(prompt, [tool.definition() for tool in toolset], dispatch,
                lambda messages, tools: send(messages, tools, client.messages.create))


OWN = anthropic.Anthropic(max_retries=0)  # made once, when the module is imported
SEARCH = {"name": "search", "description": "", "input_schema": {
    "type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}}
PAY = {"name": "pay", "description": "", "input_schema": {
    "type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]}}


def own_dispatch(name, input):
    return {"search": {"hits": []}, "pay": {"id": "P-1"}}[name]


def own_loop(prompt):
    return loop(prompt, [SEARCH, PAY], own_dispatch, lambda messages, tools: send(messages, tools, OWN.messages.create))
"""

CASE = """\
agent: {agent}
prompt: Find it and pay.
tools:
  search: {{effect: read_only, input: {{query: string}}, returns: {{hits: []}}}}
  pay: {{effect: irreversible, input: {{amount: number}}, returns: {{id: P-1}}}}
model:
  name: claude-sonnet-5
  script:
    - call: [{{search: {{query: a}}}}, {{search: {{query: b}}}}]
    - call: {{pay: {{amount: 5}}}}
    - say: Done.
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project with a few loops, whose modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "cases").mkdir()
    (tmp_path / "acme_loops.py").write_text(LOOP)
    yield Project.at(tmp_path)
    for name in [name for name in sys.modules if name.startswith("acme_")]:
        del sys.modules[name]


def run(project: Project, text: str, code: str = "", name: str = "c") -> Run:
    """Runs a case, whose loop is in `acme_mine` if there is code for it."""
    if code:
        (project.root / "acme_mine.py").write_text(textwrap.dedent(code))
        sys.modules.pop("acme_mine", None)
    path = project.cases / f"{name}.yaml"
    path.write_text(text)
    return run_case(load_case(path, project.cases), project)


def mine(project: Project, code: str, script: str = "[{say: Done.}]", more: str = "") -> Run:
    """Runs `acme_mine:run` against a script."""
    text = f"agent: acme_mine:run\nprompt: Go.\nmodel: {{name: m, script: {script}}}\n{more}"
    return run(project, text, code)


ASK = """
    def ask(client, messages=None, tools=()):
        messages = messages or [{"role": "user", "content": "Go."}]
        return client.messages.create(model="m", max_tokens=9, messages=messages, tools=list(tools))

    def said(*texts):
        return [{"role": ("user", "assistant")[index % 2], "content": text} for index, text in enumerate(texts)]
"""

DIGEST = Normalizer()


def call(turn: int, tool: str, arguments: dict[str, Any], result: Any, ok: bool = True) -> Call:
    digest, args = DIGEST.digest_call(arguments)
    return Call(turn, tool, digest, ok, args, DIGEST.digest(result))


def expected(results: list[Any]) -> Trace:
    found, paid = results
    return Trace(
        case="c",
        calls=(
            call(1, "search", {"query": "a"}, found),
            call(1, "search", {"query": "b"}, found),
            call(2, "pay", {"amount": 5}, paid),
        ),
        turns=3,
        stop_reasons=("tool_use", "tool_use", "end_turn"),
        writes=frozenset({"pay"}),
        model="claude-sonnet-5",
    )


RAW = [{"hits": []}, {"id": "P-1"}]  # what the tools return, seen at the dispatcher
SENT = ["{'hits': []}", "{'id': 'P-1'}"]  # what the loops make of it, seen on the wire
WAYS = {
    "create_loop": RAW,
    "stream_loop": RAW,
    "async_loop": RAW,
    "toolset_loop": RAW,
    "own_loop": SENT,
}


@pytest.mark.parametrize(("loop", "results"), WAYS.items(), ids=WAYS.keys())
def test_every_kind_of_loop_leaves_the_same_trace(loop: str, results: list[Any], project: Project) -> None:
    """Create, stream, async, our contracts, or a client of its own over HTTP: one case has one trace."""
    done = run(project, CASE.format(agent=f"acme_loops:{loop}"))
    assert (done.problems, done.value, done.error) == ((), "Done.", None)
    wanted = expected(results)
    found = done.trace
    assert found.calls == wanted.calls
    assert (found.turns, found.stop_reasons, found.writes) == (wanted.turns, wanted.stop_reasons, wanted.writes)
    assert (found.case, found.model, found.detail) == ("c", "claude-sonnet-5", "args")
    assert found.context.prompt == DIGEST.digest("Find it and pay.")[:8]
    assert list(found.context.tools) == ["pay", "search"]


@pytest.mark.parametrize("loop", WAYS)
def test_cases_run_inside_a_running_event_loop(loop: str, project: Project) -> None:
    """An async test may run a case as well."""

    async def test() -> Run:
        return run(project, CASE.format(agent=f"acme_loops:{loop}"))

    assert asyncio.run(test()).problems == ()


def test_a_client_made_at_import_serves_every_case_of_the_process(project: Project) -> None:
    """A module-level client keeps its URL, and each case answers at it with its own script, in any order."""
    one = "agent: acme_loops:own_loop\nprompt: Go.\nmodel: {name: m, script: [{say: One.}]}\n"
    two = one.replace("One.", "Two.")
    said = [run(project, text, name=name).value for name, text in (("a", one), ("b", two), ("c", one))]
    assert said == ["One.", "Two.", "One."]


def test_between_cases_nobody_answers(project: Project) -> None:
    """A client that outlives its case gets an error, not the answers of somebody else's script."""
    run(project, "agent: acme_loops:own_loop\nprompt: Go.\nmodel: {name: m, script: [{say: One.}]}\n")
    import anthropic

    with pytest.raises(anthropic.BadRequestError):
        sys.modules["acme_loops"].own_loop("Go.")


def test_the_environment_is_set_before_the_loop_is_imported(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that reads its key and its URL when it is imported gets those of the run."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-real")
    before = dict(os.environ)
    code = """
        import os
        SEEN = (os.environ["ANTHROPIC_API_KEY"], os.environ["ANTHROPIC_BASE_URL"].rpartition(":")[0])
        def run(): return SEEN
    """
    assert mine(project, code).value == (PLACEHOLDER, "http://127.0.0.1")
    assert dict(os.environ) == before


def test_a_loop_gets_what_it_names(project: Project) -> None:
    """Prompt, model, case, workspace, state folder and turn limit are there for the naming."""
    code = (
        ASK
        + """
    from pathlib import Path
    def run(task, prompt, model, case, workspace, state_dir, max_turns, client, other=3):
        ask(client)
        return (task, prompt, model, case.id, workspace == Path.cwd(), Path("a/b.txt").read_text(),
                state_dir.is_dir() and state_dir != workspace, max_turns, other)
    """
    )
    done = mine(project, code, more="workspace: {a/b.txt: hello}\nmax_turns: 7\n")
    assert (done.problems, done.value) == ((), ("Go.", "Go.", "m", "c", True, "hello", True, 7, 3))


def test_a_required_turn_limit_is_the_limit_of_the_case(project: Project) -> None:
    """`max_turns` without a default gets the case's limit; with one it stays the loop's unless the case says it."""
    required = ASK + "\n    def run(client, max_turns):\n        ask(client)\n        return max_turns\n"
    assert mine(project, required, more="limits: {turns: 24}\n").value == 24
    assert mine(project, required).value == 200
    assert mine(project, required.replace("max_turns)", "max_turns=50)", 1), more="limits: {turns: 24}\n").value == 50


def test_a_run_without_workspace_stays_where_it_is(project: Project) -> None:
    """The working directory changes only for a case that has a workspace, and comes back."""
    code = (
        ASK
        + """
    import os
    def run(client, workspace):
        ask(client)
        return os.getcwd(), str(workspace), workspace.is_dir()
    """
    )
    here, directory, existed = mine(project, code).value
    assert (here, existed, Path(directory).exists()) == (str(project.root), True, False)
    assert mine(project, code, more="workspace: {}\n").value[0] != here
    assert Path.cwd() == project.root


def test_the_workspace_leaves_no_mark_in_the_trace(project: Project) -> None:
    """Paths of the fresh directory digest the same in every run."""
    code = """
        def run(client, dispatch, tools, workspace):
            dispatch("read", {"path": str(workspace / "a.txt")})
    """
    more = "workspace: {a.txt: x}\ntools: {read: {effect: read_only, input: {path: string}, returns: ok}}\n"
    first, second = (mine(project, code, more=more).trace for _ in range(2))
    assert first.calls == second.calls == (call(0, "read", {"path": "<workspace>/a.txt"}, "ok"),)


def test_sequences_begin_anew_with_every_run(project: Project) -> None:
    """The state of a stub belongs to the run."""
    code = (
        ASK
        + """
    def run(client, dispatch):
        ask(client)
        try:
            return dispatch("flaky", {})
        except Exception as error:
            return str(error)
    """
    )
    more = "tools: {flaky: {sequence: [{raises: timeout}, {returns: ok}]}}\n"
    assert [mine(project, code, more=more).value for _ in range(2)] == ["timeout", "timeout"]


def test_the_detail_of_arguments_is_the_cases_or_the_projects(project: Project) -> None:
    """`detail` decides what the trace holds of arguments; the case has the last word."""
    text = CASE.format(agent="acme_loops:create_loop")
    assert run(project, text + "detail: plain\n").trace.calls[2].args == {"amount": 5}
    assert run(project, text + "detail: digest\n").trace.calls[2].args is None
    root = project.root
    assert run(Project.at(root, detail="plain"), text).trace.detail == "plain"


def test_normalization_rules_of_project_and_case_hold(project: Project) -> None:
    """What the project or the case declares volatile does not reach a digest."""
    text = CASE.format(agent="acme_loops:create_loop") + "normalize: {keys: [amount]}\n"
    strict = Project.at(project.root, normalize={"keys": ["query"]})
    search, other, pay = run(strict, text).trace.calls
    assert search.digest == other.digest == pay.digest == DIGEST.digest({})[:12]


def test_tools_that_the_loop_brings_are_writes_unless_the_case_says_so(project: Project) -> None:
    """Without a word about writes every tool counts as one; a list of writes decides."""
    text = (
        CASE.format(agent="acme_loops:own_loop").partition("tools:")[0]
        + "model:"
        + CASE.format(agent="").partition("model:")[2]
    )
    assert run(project, text).trace.writes == {"search", "pay"}
    assert run(project, text + "writes: [pay]\n").trace.writes == {"pay"}
    assert run(project, text + "writes: []\n").trace.writes == frozenset()


def problems(done: Run) -> list[str]:
    return list(done.problems)


LEFT = "the loop stopped while the script had more: script[1], which says more, was never asked for"
UNHEARD = "nothing was recorded: the loop made no model request"
PROBLEMS: dict[str, tuple[str, str, str, list[str]]] = {
    "the loop raises": (
        ASK + "\n    def run(client):\n        ask(client)\n        raise ValueError('no\\n  settings')\n",
        "[{say: x}]",
        "",
        ["the loop raised ValueError at acme_mine.py:11"],
    ),
    "the loop raises without a word": (
        ASK + "\n    def run(client):\n        ask(client)\n        raise KeyError\n",
        "[{say: x}]",
        "",
        ["the loop raised KeyError at acme_mine.py:11"],
    ),
    "the loop does nothing": (
        "\n    def run(client): pass\n",
        "[{say: x}]",
        "",
        [f"{UNHEARD} with the client that it was given"],
    ),
    "a loop with a client of its own does nothing": (
        "\n    def run(): pass\n",
        "[{say: x}]",
        "",
        [f"{UNHEARD} through ANTHROPIC_BASE_URL"],
    ),
    "the loop stops too early": (
        ASK + "\n    def run(client): ask(client, tools=[{'name': 'a', 'input_schema': {'type': 'object'}}])\n",
        "[{call: {a: {}}}, {say: x}]",
        "",
        [LEFT],
    ),
    "the loop stops before a call": (
        ASK + "\n    def run(client): ask(client, tools=[{'name': 'a', 'input_schema': {'type': 'object'}}])\n",
        "[{say: x}, {call: [{a: {}}, {b: {}}]}]",
        "",
        ["the loop stopped while the script had more: script[1], which calls a, b, was never asked for"],
    ),
    "too many turns": (
        ASK
        + """
    def run(client):
        messages = [{"role": "user", "content": "Go."}]
        for _ in range(4):
            message = ask(client, messages)
            messages.append({"role": "assistant", "content": [block.to_dict() for block in message.content]})
            messages.append({"role": "user", "content": "On."})
    """,
        "[{say: a}, {say: b}, {say: c}, {say: d}]",
        "limits: {turns: 3}\n",
        ["4 turns, limit 3"],
    ),
    "too many calls": (
        ASK + "\n    def run(client, dispatch):\n        ask(client)\n        [dispatch('a', {}) for _ in range(3)]\n",
        "[{say: x}]",
        "limits: {calls: 2}\ntools: {a: {returns: 1}}\n",
        ["3 calls, limit 2"],
    ),
    "a request that the API refuses, and the loop swallows it": (
        ASK
        + """
    def run(client):
        for _ in range(3):
            try:
                client.messages.create(model="m", max_tokens=9, messages=[])
            except Exception:
                pass
        ask(client)
    """,
        "[{say: x}]",
        "",
        ["the API would refuse what the loop sent: messages: at least one message is required"],
    ),
}


@pytest.mark.parametrize(("code", "script", "more", "said"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_what_went_wrong_is_said_in_one_line_each(
    code: str, script: str, more: str, said: list[str], project: Project
) -> None:
    """The problems of a run name the cause, and the trace carries them."""
    done = mine(project, code, script, more)
    assert problems(done) == said
    assert done.trace.problems == done.problems


def test_leaving_the_script_comes_before_what_follows_from_it(project: Project) -> None:
    """The model's own word on a conversation stands before the error that the loop made of it."""
    code = (
        ASK
        + """
    def run(client):
        ask(client)
        ask(client, said("Go.", "Other.", "?"))
    """
    )
    done = mine(project, code, "[{say: x}, {say: y}]")
    assert [line.partition(":")[0] for line in done.problems] == [
        "the conversation left the script at message 1",
        "the loop raised BadRequestError at acme_mine.py",
    ]
    assert type(done.error).__name__ == "BadRequestError"


def test_an_exhausted_script_is_named(project: Project) -> None:
    """A loop that asks on after the end of the script is told so."""
    code = (
        ASK
        + """
    def run(client):
        ask(client)
        ask(client, said("Go.", "x", "?"))
    """
    )
    done = mine(project, code, "[{say: x}]")
    assert done.problems[0].startswith("the script has no step left")


def test_an_unfinished_branch_is_no_matter(project: Project) -> None:
    """A branch that the run did not need is not missed, and neither is a blank answer at the end."""
    text = CASE.format(agent="acme_loops:create_loop").replace(
        "- call: {pay: {amount: 5}}", "- call: {pay: {amount: 5}}\n      on_unknown: [{say: Hm.}]"
    )
    assert run(project, text).problems == ()
    code = ASK + "\n    def run(client): ask(client)\n"
    assert mine(project, code, "[{say: ''}]").problems == ()


def test_a_way_out_that_the_loop_swallows_is_a_problem(project: Project) -> None:
    """A tool that calls a host fails, and the run says which, even if nobody else does."""
    code = (
        ASK
        + """
    import socket
    def run(client):
        try:
            socket.create_connection(("api.example.com", 443))
        except Exception:
            pass
        ask(client)
    """
    )
    said = "the run tried to reach api.example.com:443, and may not leave this machine"
    assert problems(mine(project, code)) == [said]


def test_a_second_client_is_blocked_by_name(project: Project) -> None:
    """A loop that takes a client and builds another one learns that the other would have left the machine."""
    code = """
    import anthropic
    def run(client):
        with anthropic.Anthropic(max_retries=0) as other:
            other.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "Go."}])
    """
    done = mine(project, code)
    assert done.problems[0] == "the run tried to reach api.anthropic.com:443, and may not leave this machine"


NEVER_STOPS = {
    "a client of the harness": (
        ASK
        + """
    def run(client):
        while True:
            try:
                ask(client)
            except Exception:
                pass
    """,
        "1,000 requests in a row without an answer",
    ),
    "a dispatcher": (
        ASK
        + """
    def run(client, dispatch):
        ask(client)
        while True:
            try:
                dispatch("a", {})
            except Exception:
                pass
    """,
        "1,000 tool calls that were refused",
    ),
    "an async dispatcher": (
        ASK
        + """
    async def run(client, async_dispatch):
        ask(client)
        while True:
            try:
                await async_dispatch("a", {})
            except Exception:
                pass
    """,
        "1,000 tool calls that were refused",
    ),
    "a client of its own": (
        """
    import anthropic, httpx2
    def run():
        with anthropic.Anthropic(max_retries=0) as client:
            while True:
                try:
                    client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": ""}])
                except Exception:
                    pass
    """,
        "1,000 requests in a row without an answer",
    ),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("code", "why"), NEVER_STOPS.values(), ids=NEVER_STOPS.keys())
def test_a_loop_that_never_stops_is_stopped(code: str, why: str, project: Project) -> None:
    """Whoever goes on after a thousand refusals is interrupted, past its own `except Exception`."""
    done = mine(project, code, more="tools: {a: {returns: 1}}\nlimits: {turns: 3, calls: 3}\n")
    assert any(line.startswith(f"the loop was stopped after {why}") for line in done.problems)
    assert (done.value, done.error) == (None, None)


def test_the_model_refuses_a_little_above_the_limit(project: Project) -> None:
    """A loop that heeds errors ends a few turns above its limit, and both are said."""
    code = (
        ASK
        + """
    def run(client):
        while True:
            ask(client)
    """
    )
    done = mine(project, code, more="limits: {turns: 3}\n")
    said = "the run has had 8 turns and its limit is 3: the model answers no more"
    assert done.problems[0] == "8 turns, limit 3"
    assert said in str(done.error)
    assert (done.trace.turns, len(done.problems)) == (8, 2)


def test_tools_are_refused_a_little_above_the_limit(project: Project) -> None:
    """A tool that would run for the n-th time too often does not run, and the loop sees an error."""
    code = (
        ASK
        + """
    def run(client, dispatch):
        ask(client)
        while True:
            dispatch("a", {})
    """
    )
    done = mine(project, code, more="tools: {a: {returns: 1}}\nlimits: {calls: 2}\n")
    assert problems(done) == [
        "8 calls, limit 2",
        "the loop raised ToolError at acme_mine.py:12",
    ]
    assert [one.ok for one in done.trace.calls] == [True] * 7 + [False]


UNRUNNABLE = {
    "a command": (
        "command: [node, a.mjs]\nprompt: Go.\nmodel: {name: m, script: [{say: x}]}\n",
        "1:1: a loop as a command comes with a later version of the harness; this one runs Python loops ('agent') "
        "(at command)",
    ),
    "a cassette": (
        "agent: m:f\nprompt: Go.\nmodel: {name: m, cassette: a.jsonl}\n",
        "3:18: a model of kind 'cassette' comes with a later version of the harness; this one runs scripts ('script') "
        "(at model.cassette)",
    ),
    "a live model": (
        "agent: m:f\nprompt: Go.\nmodel: {name: m, live: {trials: 2}}\n",
        "3:18: a model of kind 'live' comes with a later version of the harness; this one runs scripts ('script') "
        "(at model.live)",
    ),
    "no such loop": (
        "agent: acme_loops:crate_loop\nprompt: Go.\nmodel: {name: m, script: [{say: x}]}\n",
        "1:1: 'acme_loops' has no 'crate_loop'; did you mean 'create_loop'? (named as 'acme_loops:crate_loop') "
        "(at agent)",
    ),
    "no such tools": (
        "agent: acme_loops:own_loop\nprompt: Go.\ntools: acme_loops:TOOLS\nmodel: {name: m, script: [{say: x}]}\n",
        "3:1: 'acme_loops' has no 'TOOLS' (named as 'acme_loops:TOOLS') (at tools)",
    ),
    "an argument that nobody has": (
        "agent: acme_loops:create_loop\nprompt: Go.\nmodel: {name: m, script: [{say: x}]}\n",
        "1:1: the loop acme_loops.create_loop requires 'dispatch' and 'tools', which the harness does not provide; "
        "there are: prompt, task, client, async_client, model, case, workspace, state_dir, max_turns; tools, toolset, "
        "dispatch and async_dispatch come with the case's 'tools' (at agent)",
    ),
}


@pytest.mark.parametrize(("text", "said"), UNRUNNABLE.values(), ids=UNRUNNABLE.keys())
def test_a_case_that_cannot_run_says_where(text: str, said: str, project: Project) -> None:
    """What cannot even be started is an error with the line of the case, and leaves nothing behind."""
    before = dict(os.environ)
    with pytest.raises(CaseError) as caught:
        run(project, text)
    assert str(caught.value) == f"cases/c.yaml:{said}"
    assert dict(os.environ) == before


def test_a_policy_that_would_relax_a_write_is_refused(project: Project) -> None:
    """Whether a policy names a write tool is known when the tools are."""
    text = CASE.format(agent="acme_loops:create_loop") + "compare:\n  arguments: {ignore: [pay.amount]}\n"
    with pytest.raises(CaseError) as caught:
        run(project, text)
    problem = caught.value.problems[0]
    assert (problem.line, problem.column, problem.path) == (13, 15, "compare.arguments.ignore")


LEAVING: dict[str, tuple[str, type[BaseException]]] = {
    "interrupt": ("raise KeyboardInterrupt", KeyboardInterrupt),
    "exit": ("import sys; sys.exit(3)", SystemExit),
    "skip": ("import pytest; pytest.skip('not here')", pytest.skip.Exception),
    "fail": ("import pytest; pytest.fail('no')", pytest.fail.Exception),
}


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize(("code", "error"), LEAVING.values(), ids=LEAVING.keys())
def test_what_is_not_the_loops_own_passes_through(
    code: str, error: type[BaseException], kind: str, project: Project
) -> None:
    """An interrupt, an exit and pytest's outcomes are nobody's result; environment and directory are restored."""
    before, here = dict(os.environ), Path.cwd()
    with pytest.raises(error):
        mine(project, f"\n    {kind} run(client):\n        {code}\n", more="workspace: {a: x}\n")
    assert (dict(os.environ), Path.cwd()) == (before, here)
    assert mine(project, ASK + "\n    def run(client): ask(client)\n").problems == ()


def test_a_cancelled_loop_is_an_error_of_the_run(project: Project) -> None:
    """A loop that cancels itself has failed like any other."""
    code = "\n    import asyncio\n    async def run(client): raise asyncio.CancelledError\n"
    assert problems(mine(project, code)) == ["the loop raised CancelledError at acme_mine.py:3"]


def test_one_case_at_a_time(project: Project) -> None:
    """A case inside a case is refused, since both would change the process."""
    code = """
    def run(client, case):
        from pathlib import Path
        from harness.case.run import run_case
        from harness.project import Project
        run_case(case, Project.at(Path.cwd()))
    """
    done = mine(project, code)
    assert isinstance(done.error, HarnessError)
    assert "a case is already running in this process" in str(done.error)


def test_nothing_is_printed(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    """What the loop prints is printed, and nothing else."""
    code = ASK + "\n    def run(client):\n        ask(client)\n        print('mine')\n"
    mine(project, code)
    run(project, CASE.format(agent="acme_loops:own_loop"))
    assert capfd.readouterr() == ("mine\n", "")


def test_the_same_case_gives_the_same_run(project: Project) -> None:
    """Two runs differ in nothing, whatever ran between them."""
    text = CASE.format(agent="acme_loops:create_loop")
    first = run(project, text)
    run(project, CASE.format(agent="acme_loops:own_loop"), name="other")
    assert run(project, text).trace == first.trace


def test_failures_of_the_script_are_no_turns(project: Project) -> None:
    """A 529 that the SDK retries leaves a trace of whole answers only, and is no problem."""
    code = ASK + "\n    def run(client):\n        return ask(client.with_options(max_retries=1)).content[0].text\n"
    done = mine(project, code, "[{fail: 529}, {say: x}]")
    assert (done.problems, done.value, done.trace.turns) == ((), "x", 1)


def test_a_loop_without_the_sdk_never_imports_it(project: Project) -> None:
    """A loop that speaks HTTP by other means pays for no SDK."""
    (project.root / "acme_http.py").write_text(
        textwrap.dedent("""
        import json, os, urllib.request
        def run(prompt):
            body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": prompt}]}
            url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
            headers = {"content-type": "application/json", "x-api-key": os.environ["ANTHROPIC_API_KEY"]}
            with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
                return json.load(answer)["content"][0]["text"]
        """)
    )
    (project.cases / "h.yaml").write_text("agent: acme_http:run\nprompt: Go.\nmodel: {name: m, script: [{say: Hi.}]}\n")
    code = textwrap.dedent("""
        import sys
        from pathlib import Path
        from harness.case.load import load_case
        from harness.case.run import run_case
        from harness.project import Project
        project = Project.at(Path.cwd())
        done = run_case(load_case(project.cases / "h.yaml", project.cases), project)
        print(done.value, done.problems, "anthropic" in sys.modules)
    """)
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("Hi. () False\n", "")
