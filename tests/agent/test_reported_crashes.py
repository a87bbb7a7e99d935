"""Failures that other agents' users reported, replayed on our loop.  Each test names its report."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.agent import Call, JsonStore, NoAnswerError, Result, SqliteStore, StateError, tool
from harness.agent.state import Answered, Asked, Change, Returned, Settled, Started
from harness.agent.state_view import export_state, read_state

DONE = {"say": "Done."}
MAIL = {"call": {"send_email": {"to": "a"}}}
READS = {"call": [{"read_file": {"path": name}} for name in ("a", "b", "c")]}


class Killed(BaseException):
    """The process is gone."""


class DyingStore(SqliteStore):
    """Dies at the n-th change of a kind, before it is durable or just after."""

    def __init__(self, directory: Path, kind: type, *, after: bool, ordinal: int = 1) -> None:
        super().__init__(directory)
        self._at = (kind, ordinal, after)

    def commit(self, change: Change) -> None:
        kind, ordinal, after = self._at
        here = isinstance(change, kind)
        self._at = (kind, ordinal - here, after)
        if here and ordinal == 1 and not after:
            raise Killed
        super().commit(change)
        if here and ordinal == 1 and after:
            raise Killed


@pytest.fixture
def die(play: Any, tmp_path: Path) -> Callable[..., None]:
    """Run a script until it dies at a change, on the state that `play` resumes."""

    def die(script: list[dict[str, Any]], kind: type, *, after: bool, ordinal: int = 1, **options: Any) -> None:
        store = DyingStore(tmp_path / "state", kind, after=after, ordinal=ordinal)
        with pytest.raises(Killed):
            play(script, store=store, state_dir=..., **options)

    return die


def answers(result: Result) -> list[tuple[str, Any]]:
    """Every result that the model was given: id and content, in order."""
    return [
        (block["tool_use_id"], block.get("content"))
        for message in result.messages
        if message["role"] == "user" and isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]


def test_a_kill_among_parallel_calls(play: Any, die: Any, world: Any) -> None:
    """claude-code#3003.  Three parallel calls, killed after the first: the resumed run answers all three and repeats
    none.
    """
    script = [{"call": [{"send_email": {"to": name}} for name in ("a", "b", "c")]}, DONE]
    die(script, Settled, after=True)
    result = play(script)
    assert [content for _, content in answers(result)] == ["mail a ok", "mail b ok", "mail c ok"]
    assert world.done == ["mail a", "mail b", "mail c"]


def test_a_kill_before_the_response_is_saved(play: Any, die: Any, world: Any) -> None:
    """claude-code#18880.  Nothing partial is durable: the question is asked again and the conversation is as if nothing
    had been.
    """
    script = [{"think": "Hm.", **MAIL}, DONE]
    extra = {"thinking": {"type": "adaptive"}}
    smooth = play(script, state_dir=..., extra=extra)
    die(script, Answered, after=False, extra=extra)
    result = play(script, extra=extra)
    assert result.messages == smooth.messages
    assert result.attempts == smooth.attempts + 1
    assert world.done == ["mail a"] * 2  # once in each of the two runs


def test_all_parallel_results_survive(play: Any, die: Any) -> None:
    """claude-code#31330, claude-code#37672.  After a clean stop behind the results, the next request holds all three
    and not only the last.
    """
    die([READS, DONE], Returned, after=True)
    result = play([READS, DONE])
    sent = play.requests[-1]["messages"][-1]["content"]
    assert [block["content"] for block in sent] == ["read a ok", "read b ok", "read c ok"]
    assert len(answers(result)) == 3


def test_no_result_twice(play: Any, die: Any, tmp_path: Path) -> None:
    """claude-code#20901, claude-code#21083, claude-code#21317, software-agent-sdk#1782.  Killed just after the results
    were saved, a run does not save them again: one result an id in every request.
    """
    die([READS, READS, DONE], Returned, after=True)
    play([READS, READS, DONE])
    for request in play.requests:
        ids = [
            block["tool_use_id"]
            for message in request["messages"]
            if message["role"] == "user" and isinstance(message["content"], list)
            for block in message["content"]
        ]
        assert len(ids) == len(set(ids))
    store = SqliteStore(tmp_path / "state")
    assert store.load() is not None
    with pytest.raises(StateError, match="returned already"):
        store.commit(Returned())
    store.close()


def test_the_first_request_after_a_resume_is_valid(play: Any, die: Any) -> None:
    """claude-code#39818.  Resumed with a new prompt, a finished run sends exactly what one that was never interrupted
    would send.
    """
    script = [READS, {"say": "One."}, {"say": "Two."}]
    play(script, state_dir=..., prompt=["Do it.", "More."])
    smooth = play.requests[-1]
    die(script, Returned, after=True)
    play(script)
    play(script, prompt=["Do it.", "More."])
    assert play.requests[-1] == smooth


def test_an_effect_whose_completion_was_lost_is_not_repeated(play: Any, die: Any, world: Any) -> None:
    """claude-code#68741, goose#1624, microsoft/agent-framework#3938.  The tool has returned and the process dies before
    the record of it: unknown, is_error, and one effect.
    """
    die([MAIL, DONE], Settled, after=False)
    result = play([MAIL, DONE])
    ((_, content),) = answers(result)
    assert "execution status unknown" in content
    assert (world.done, result.status) == (["mail a"], "completed")


def test_one_transaction(tmp_path: Path) -> None:
    """claude-code#66175, letta#3176, langgraph#8039, software-agent-sdk#4487.  Message and ledger cannot part: when one
    of the calls cannot be recorded, the response is not there either.
    """
    store = SqliteStore(tmp_path)
    assert store.load() is None
    from harness.agent.state import Prompted, State

    state = State("run-1")
    state.apply(Prompted("x"))
    store.create(state)
    call = Call("toolu_1", 1, 0, "t", {}, "irreversible")
    block = {"type": "tool_use", "id": "toolu_1", "name": "t", "input": {}}
    with pytest.raises(StateError) as caught:
        store.commit(Answered([block, block], {"stop_reason": "tool_use"}, 1, (call, call)))
    assert caught.value.kind == "conflict"
    store.close()
    assert read_state(tmp_path) == state


def test_people_and_model_see_the_same(play: Any, die: Any, tmp_path: Path) -> None:
    """claude-code#40233.  What is exported after a crash is, message by message, what the next request carries."""
    die([READS, MAIL, DONE], Asked, after=True, ordinal=3)
    lines = [json.loads(line) for line in export_state(tmp_path / "state").splitlines()]
    exported = [{"role": line["role"], "content": line["content"]} for line in lines if line["kind"] == "message"]
    play([READS, MAIL, DONE])
    assert play.requests[-1]["messages"] == exported


def test_a_recorded_failure_is_final(play: Any, die: Any, world: Any) -> None:
    """langgraph#9002.  A tool that failed, and whose failure is recorded, does not run again on resume."""
    world.broken["mail a"] = ValueError("refused by server")
    die([MAIL, DONE], Settled, after=True)
    assert answers(play([MAIL, DONE]))[0][1] == "ValueError: refused by server"
    assert world.done == ["mail a"]


def test_one_call_that_dies_does_not_repeat_its_siblings(play: Any, die: Any, world: Any) -> None:
    """langgraph PR#3126, crewAI#5802.  The first of two calls is done and stays done, whatever happens to the second or
    to a later step.
    """
    script = [{"call": [{"send_email": {"to": "a"}}, {"put": {"name": "b"}}]}, {"fail": 529}, DONE]
    die(script, Settled, after=False, ordinal=2)
    with pytest.raises(NoAnswerError):
        play(script, max_attempts=1)
    play(script)
    assert world.done == ["mail a", "put b", "put b"]
    assert len(set(world.keys)) == 1


def test_a_prompt_that_arrives_while_calls_are_pending(play: Any, die: Any) -> None:
    """langgraphjs#1423, langgraph#4289.  Results first, then the new text, in one user message."""
    die([READS, DONE], Answered, after=True)
    result = play([READS, DONE], prompt=["Do it.", "Be quick."])
    assert [block["type"] for block in result.messages[2]["content"]] == ["tool_result"] * 3 + ["text"]
    assert result.messages[2]["content"][3]["text"] == "Be quick."
    assert play([READS, DONE], prompt=["Do it.", "Be quick."]) == result


def test_a_call_that_fails_validation_is_answered(play: Any, world: Any) -> None:
    """codex#29773.  A call that was refused before it ran has a result that says so."""
    result = play([{"call": {"send_email": {"to": ""}}}, DONE])
    ((_, content),) = answers(result)
    assert content.startswith("[validation error] send_email: ")
    assert content.endswith("The tool was not executed.")
    assert world.done == []


def test_everything_acknowledged_is_in_the_files(play: Any, tmp_path: Path) -> None:
    """codex#6950.  Whatever the run was told is saved can be read from a copy of the files of that moment."""
    images: list[tuple[int, Path]] = []

    class Photographed(SqliteStore):
        def commit(self, change: Change) -> None:
            super().commit(change)
            image = tmp_path / f"image{len(images)}"
            shutil.copytree(tmp_path / "state", image)
            images.append((len(images), image))

    play([READS, MAIL, DONE], store=Photographed(tmp_path / "state"), state_dir=...)
    told = [self_consistent(read_state(image)) for _, image in images]
    assert told == sorted(told)
    assert told[-1] == (3, 4, 6)


def self_consistent(state: Any) -> tuple[int, int, int]:
    """Turns, settled calls and messages: none of them may ever go back."""
    assert state.turns == sum(message["role"] == "assistant" for message in state.messages)
    return state.turns, sum(call.settled for call in state.calls.values()), len(state.messages)


@pytest.mark.parametrize("kind", [Asked, Answered, Started, Settled, Returned])
@pytest.mark.parametrize("after", [False, True])
def test_a_resumed_run_always_ends(play: Any, die: Any, kind: type, after: bool) -> None:
    """codex#12382, opencode#42286.  Killed at any save and resumed without a word, a run ends."""
    die([MAIL, DONE], kind, after=after)
    assert play([MAIL, DONE]).status == "completed"


def test_the_same_arguments_in_two_runs_are_two_calls(play: Any, world: Any, tmp_path: Path) -> None:
    """pydantic-ai#6907, pydantic-ai#6903.  No result is ever found by its arguments: another run has other keys, and
    executes.
    """
    script = [{"call": {"put": {"name": "x"}}}, DONE]
    play(script, state_dir=tmp_path / "one")
    play(script, state_dir=tmp_path / "two")
    assert (world.done, len(set(world.keys))) == (["put x", "put x"], 2)


def test_a_signal_after_the_effect_is_no_reason_to_repeat(play: Any) -> None:
    """pydantic-ai#6640.  A tool that raises "try again" after its effect has failed; one that tears the process down is
    unknown.
    """
    done = []

    class RetryLater(Exception):
        pass

    @tool
    def pay(amount: int) -> None:
        done.append(amount)
        raise RetryLater if amount == 1 else Killed

    first = play([{"call": {"pay": {"amount": 1}}}, DONE], toolset=[pay], state_dir=...)
    assert answers(first)[0][1] == "RetryLater"
    script = [{"call": {"pay": {"amount": 2}}}, DONE]
    with pytest.raises(Killed):
        play(script, toolset=[pay])
    assert "execution status unknown" in answers(play(script, toolset=[pay]))[0][1]
    assert done == [1, 2]


def test_a_copied_state_goes_on_elsewhere(play: Any, die: Any, world: Any, tmp_path: Path) -> None:
    """autogen#3408, letta#3250.  The ledger belongs to the conversation: saved after A and moved, it settles its calls
    first, under its own keys.
    """
    script = [{"call": {"put": {"name": "x"}}}, DONE]
    die(script, Settled, after=False)
    shutil.move(tmp_path / "state", tmp_path / "moved")
    result = play(script, state_dir=tmp_path / "moved")
    assert [message["role"] for message in result.messages] == ["user", "assistant", "user", "assistant"]
    assert len(set(world.keys)) == 1


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_kill_during_the_save_of_a_large_file(
    play: Any, world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """cline#954, cline#2321.  4 MB of JSON, killed before the rename: the old file still stands whole, and the next
    save is none the worse.
    """

    @tool(effect="read_only", max_result_chars=4_000_000)
    def load() -> str:
        return "x" * 4_000_000

    script = [{"call": {"load": {}}}, DONE]

    class Dying(JsonStore):
        def commit(self, change: Change) -> None:
            with monkeypatch.context() as patch:
                if isinstance(change, Returned):
                    patch.setattr(f"harness.agent.disk.os.{step}", killed)
                super().commit(change)

    def killed(*_: Any) -> None:
        raise Killed

    with pytest.raises(Killed):
        play(script, store=Dying(tmp_path / "state"), state_dir=..., toolset=[load])
    assert (tmp_path / "state/checkpoint.json.tmp").stat().st_size > 4_000_000
    assert read_state(tmp_path / "state").turns == 1
    assert play(script, toolset=[load], ledger=False).status == "completed"


def test_ids_are_refused_and_never_rewritten(tmp_path: Path) -> None:
    """Roo-Code#9952, Roo-Code#10027, Roo-Code#10015, Roo-Code#11131.  An id that the API would not take back, or that
    is taken, discards the response instead of being repaired.
    """
    from harness.agent import run

    class Client:
        asked = 0

        def __init__(self) -> None:
            self.messages = self

        def create(self, **_: Any) -> Any:
            Client.asked += 1
            ids = {1: "functions.read:0", 2: "toolu_ok", 3: "toolu_ok"}
            block = {"type": "tool_use", "id": ids.get(Client.asked), "name": "look", "input": {}}
            whole = {"role": "assistant", "content": [block], "stop_reason": "tool_use", "usage": {}}
            if Client.asked == 4:
                whole |= {"content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}
            message = type("Message", (), {"to_dict": lambda self, **_: whole})
            return message()

    @tool(effect="read_only")
    def look() -> str:
        return "ok"

    result = run("x", client=Client(), model="m", toolset=[look], state_dir=tmp_path)
    assert (result.turns, result.attempts) == (2, 4)
    assert [use for use, _ in answers(result)] == ["toolu_ok"]


def test_what_was_repaired_once_stays_so(play: Any, die: Any, tmp_path: Path) -> None:
    """harness-sdk#859, harness-sdk#1123, harness-sdk#3651.  Killed, resumed, and resumed again: the second resume finds
    the verdict of the first and writes nothing.
    """
    die([MAIL, DONE], Settled, after=False)
    first = play([MAIL, DONE])
    before = (tmp_path / "state/state.sqlite").read_bytes()
    assert play([MAIL, DONE]) == first
    assert (tmp_path / "state/state.sqlite").read_bytes() == before


def test_kills_upon_kills_leave_no_orphans(play: Any, die: Any, world: Any) -> None:
    """opencode#10616, copilot-cli#3183, crush#529, riftor#115.  Killed three times, the last two during the resume, a
    run still answers every call exactly once, in order.
    """
    script = [{"call": [{"send_email": {"to": "a"}}, {"read_file": {"path": "b"}}, {"put": {"name": "c"}}]}, DONE]
    die(script, Settled, after=False)
    die(script, Settled, after=True)
    die(script, Settled, after=False, ordinal=2)
    result = play(script)
    uses = [block["id"] for block in result.messages[1]["content"]]
    assert [use for use, _ in answers(result)] == uses
    assert [content for _, content in answers(result)][1:] == ["read b ok", "put c ok"]
    assert world.done.count("mail a") == 1


def test_a_verdict_is_durable_before_it_is_used(play: Any, die: Any, world: Any, tmp_path: Path) -> None:
    """openhands#2298.  Killed right after "unknown" was recorded, the next process says the same and does not execute
    after all.
    """
    die([MAIL, DONE], Settled, after=False)
    die([MAIL, DONE], Settled, after=True)
    assert [call.state for call in read_state(tmp_path / "state").calls.values()] == ["unknown"]
    assert "execution status unknown" in answers(play([MAIL, DONE]))[0][1]
    assert world.done == ["mail a"]


def test_a_model_that_is_told_unknown_is_asked_to_look_first(play: Any, die: Any, world: Any) -> None:
    """Unreported (b).  The duplicate that no ledger can see, made by the model under a new id: the text asks it to look
    first.
    """
    script = [{**MAIL, "on_unknown": [{"call": {"read_file": {"path": "outbox"}}}]}, DONE]
    die(script, Settled, after=False)
    result = play(script)
    assert "Find out whether it did before you call it again." in answers(result)[0][1]
    assert world.done == ["mail a", "read outbox"]
