"""The decision table, as the design has it, and the three exercises of the published lesson on it."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from harness.agent import Confirmed, Tool, as_tool, tool
from harness.agent.contract import Effect
from harness.agent.ledger import TABLE, Decision, decide, stricter
from harness.agent.state import Call, CallState, idempotency_key

DONE = {"say": "Done."}
READ = {"call": {"read_file": {"path": "a"}}}
MAIL = {"call": {"send_email": {"to": "a"}}}

# on resume the ledger says | read_only | idempotent | irreversible with a verify | irreversible without
DESIGN = """
planned    | RUN       | RUN       | RUN      | RUN
started    | RUN_AGAIN | RUN_AGAIN | VERIFY   | UNKNOWN
done       | RECORDED  | RECORDED  | RECORDED | RECORDED
failed     | RECORDED  | RECORDED  | RECORDED | RECORDED
unknown    | RECORDED  | RECORDED  | RECORDED | RECORDED
unrecorded | RUN_AGAIN | RUN_AGAIN | UNKNOWN  | UNKNOWN
"""


def test_the_table_is_that_of_the_design() -> None:
    """Every state and every effect has one decision, and it is the one that was agreed on."""
    for line in DESIGN.strip().splitlines():
        state, *cells = (cell.strip() for cell in line.split("|"))
        found = [
            decide(state, "read_only", can_verify=False),  # type: ignore[arg-type]
            decide(state, "idempotent", can_verify=False),  # type: ignore[arg-type]
            decide(state, "irreversible", can_verify=True),  # type: ignore[arg-type]
            decide(state, "irreversible", can_verify=False),  # type: ignore[arg-type]
        ]
        assert [decision.name for decision in found] == cells, state
    assert set(TABLE) == {(state, effect) for state in get_args(CallState) for effect in get_args(Effect)}


@pytest.mark.parametrize("state", get_args(CallState))
def test_nothing_that_may_have_happened_is_done_again(state: Any) -> None:
    """An irreversible call runs in one case only: when it provably never started."""
    runs = decide(state, "irreversible", can_verify=True) in (Decision.RUN, Decision.RUN_AGAIN)
    assert runs == (state == "planned")


def test_a_loosened_contract_does_not_loosen_what_was_started() -> None:
    """Between what was recorded and what the contract says now, the more careful effect counts."""
    assert stricter("irreversible", "read_only") == "irreversible"
    assert stricter("read_only", "idempotent") == "idempotent"
    assert stricter("read_only", "read_only") == "read_only"


def test_keys_are_made_of_run_and_call_alone() -> None:
    """The same call has the same key in every process, and no two calls or runs share one."""
    assert idempotency_key("r", "toolu_1") == idempotency_key("r", "toolu_1")
    pairs = [("r", "toolu_1"), ("r", "toolu_2"), ("rt", "oolu_1"), ("s", "toolu_1")]
    assert len({idempotency_key(run, use) for run, use in pairs}) == 4
    assert len(idempotency_key("r", "toolu_1")) == 32


class TestLesson:
    """The three exercises, on `JsonStore` (no ledger), as they were published."""

    def die_in_call(self, play: Any, world: Any, script: list[dict[str, Any]], what: str) -> None:
        world.broken[what] = KeyboardInterrupt()
        with pytest.raises(KeyboardInterrupt):
            play(script, ledger=False)
        world.broken.clear()

    def test_nothing_pending(self, play: Any, world: Any) -> None:
        """A checkpoint without a pending call: the loop just goes on."""
        with pytest.raises(Exception, match="no answer"):
            play([READ, {"fail": 529}, DONE], ledger=False, max_attempts=1)
        assert play([READ, {"fail": 529}, DONE], ledger=False).status == "completed"
        assert world.done == ["read a"]

    def test_read_file_pending(self, play: Any, world: Any) -> None:
        """A pending read runs again, and the model gets its result."""
        self.die_in_call(play, world, [READ, DONE], "read a")
        result = play([READ, DONE], ledger=False)
        assert result.messages[2]["content"][0]["content"] == "read a ok"
        assert world.done == ["read a", "read a"]

    def test_send_email_pending(self, play: Any, world: Any) -> None:
        """A pending mail is answered with is_error, and is not sent (again)."""
        self.die_in_call(play, world, [MAIL, DONE], "mail a")
        result = play([MAIL, DONE], ledger=False)
        (answer,) = result.messages[2]["content"]
        assert answer["is_error"] is True
        assert "execution status unknown" in answer["content"]
        assert world.done == ["mail a"]


class TestVerify:
    """What a `verify` may find, after a crash with the call started."""

    def resume(self, play: Any, found: Any, *, tightened: bool = False) -> tuple[list[str], Any]:
        done: list[str] = []
        asked: list[Any] = []

        def verify(amount: int, idempotency_key: str) -> Any:
            asked.append((amount, idempotency_key))
            if isinstance(found, Exception):
                raise found
            return found

        def make(function: Any) -> Tool:
            return tool(name="pay", verify=verify)(function)

        def torn(amount: int, idempotency_key: str) -> None:
            done.append(idempotency_key)
            raise KeyboardInterrupt

        def whole(amount: int, idempotency_key: str) -> str:
            done.append(idempotency_key)
            return "paid"

        script = [{"call": {"pay": {"amount": 5}}}, DONE]
        with pytest.raises(KeyboardInterrupt):
            play(script, toolset=[make(torn)])
        result = play(script, toolset=[make(whole)])
        assert asked == [(5, done[0])]
        return done, result.messages[2]["content"][0]

    def test_it_took_effect(self, play: Any) -> None:
        """Done, without a second execution; the lost result is said to be lost."""
        done, answer = self.resume(play, True)
        assert len(done) == 1
        assert answer["content"] == "`pay` took effect. Its result was lost when the process was interrupted."
        assert "is_error" not in answer

    def test_it_took_effect_and_this_was_its_result(self, play: Any) -> None:
        """A verify that can find the result gives it to the model."""
        done, answer = self.resume(play, Confirmed({"id": "P-1"}))
        assert (len(done), answer["content"]) == (1, '{"id": "P-1"}')

    def test_it_did_not(self, play: Any) -> None:
        """It runs, under the key that it had before."""
        done, answer = self.resume(play, False)
        assert (len(done), len(set(done)), answer["content"]) == (2, 1, "paid")

    @pytest.mark.parametrize("found", [None, "yes", 1, ConnectionError("down")], ids=repr)
    def test_it_cannot_say(self, play: Any, found: Any) -> None:
        """Anything but a clear answer is no answer: unknown."""
        done, answer = self.resume(play, found)
        assert len(done) == 1
        assert "execution status unknown" in answer["content"]


def test_a_tool_that_is_gone_leaves_an_unknown(play: Any, world: Any) -> None:
    """A call that was started, by a tool that the resumed process does not have, is not said to have never run."""
    world.broken["read a"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        play([READ, DONE])
    spare = {"name": "read_file", "description": "", "input_schema": {"type": "object"}}
    result = play([READ, DONE], toolset=[], server_tools=[spare])
    assert "execution status unknown" in result.messages[2]["content"][0]["content"]


def test_a_contract_that_was_tightened_since_makes_no_false_claims(play: Any) -> None:
    """A call that was started and would be refused today is unknown: "not executed" might be a lie."""

    @tool(effect="idempotent", allow_empty=["name"])
    def put(name: str) -> None:
        raise KeyboardInterrupt

    script = [{"call": {"put": {"name": ""}}}, DONE]
    with pytest.raises(KeyboardInterrupt):
        play(script, toolset=[put])
    result = play(script, toolset=[as_tool(put, allow_empty=[])])
    assert "execution status unknown" in result.messages[2]["content"][0]["content"]


def test_a_call_knows_whether_it_was_executed() -> None:
    """What detectors read off a call: settled in three states, ok in one."""
    states = {state: Call("t", 1, 0, "x", {}, "read_only", state) for state in get_args(CallState)}
    assert {state for state, call in states.items() if call.settled} == {"done", "failed", "unknown"}
    assert not any(call.ok for call in states.values())
