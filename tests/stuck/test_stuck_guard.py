"""The guard in a loop: what it is told, what it answers, and in which words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from harness.stuck import Config, Event, Guard, State, TurnDetector, Verdict, fold
from harness.stuck.verdict import FALLBACK_TEXT, STOPPED_STUCK
from tests.stuck.calls import call, edit, fail, grep, read, script, shot, think, web


def spoken(*items: object) -> list[Verdict]:
    return [verdict for verdict in fold(items)[1] if verdict.kind != "continue"]


def test_a_loop_tells_its_calls_and_gets_verdicts() -> None:
    """Nothing to declare, nothing to keep: three equal reads are a nudge, and the callback hears of it."""
    heard: list[Verdict] = []
    guard = Guard(on_verdict=heard.append)
    kinds = [guard.call("read_file", {"path": "a"}, "text", read_only=True).kind for _ in range(4)]
    assert kinds == ["continue", "continue", "nudge", "force_stop"]
    assert [verdict.at_call for verdict in heard] == [3, 4]
    assert guard.state.calls == 4


def test_a_turn_has_the_worst_verdict_of_its_calls() -> None:
    """The verdict to act on when all calls of a turn are through; it is forgotten with the next turn and message."""
    guard = Guard()
    for turn in (1, 2, 3):
        for path in "ab":
            guard.call("read_file", {"path": path}, "text", read_only=True, turn=turn)
    assert (guard.of_turn.kind, guard.of_turn.at_call) == ("nudge", 5)
    guard.call("read_file", {"path": "c"}, "text", read_only=True, turn=4)
    assert guard.of_turn.kind == "continue"
    guard.call("read_file", {"path": "c"}, "text", read_only=True, turn=5)
    guard.call("read_file", {"path": "c"}, "text", read_only=True, turn=6)
    assert guard.of_turn.kind == "nudge"
    guard.event(Event.USER_MESSAGE)
    assert guard.of_turn == Verdict("continue", 9)


def test_a_guard_goes_on_where_a_run_was() -> None:
    """With the state of an earlier process it gives the verdicts of an uninterrupted run."""
    first = Guard()
    for _ in range(3):
        first.observe(read("a"))
    assert Guard(state=first.state).observe(read("a")).kind == "force_stop"
    assert Guard().observe(read("a")).kind == "continue"


def test_the_words_of_a_duplicate() -> None:
    """Look first, an empty answer is an answer, else something else; failing calls are told to change."""
    (found,) = spoken(*[read("a", "")] * 3)
    assert found.message == (
        "Look at the latest result of `read_file` before anything else: if it answers the question, finish. An empty "
        "result is an answer as well. If it does not help, do something else; the same call will give the same again."
    )
    (found,) = spoken(*[fail("sync", {})] * 6)
    assert found.message.startswith("The same call of `sync` keeps failing; repeating it will not change that.")


@pytest.mark.parametrize(
    ("items", "parts"),
    [
        ([fail("api", {"n": n}, kind="conflict") for n in range(6)], ["`api`", "6 times", "conflict", "change"]),
        ([web(f"x {n}", topic="x") for n in range(5)], ["5 searches", "use what they found", "another kind"]),
        ([call("browser_click", {"n": n}, "p") for n in range(5)], ["`browser_click`", "same state"]),
        ([grep(f"p{n}") for n in range(7)], ["7 searches", "use what you have", "another kind", "ask"]),
        ([script("a"), shot()], ["`applescript`", "confirmation", "finish"]),
        ([fail("sh", {"c": 1}), call("sh", {"c": 2}, "ok"), shot()], ["`sh`", "confirms", "finish"]),
        ([think(f"t{n}") for n in range(12)], ["12 of the last steps", "state what it will show"]),
    ],
)  # fmt: skip
def test_what_a_nudge_intends(items: list[object], parts: list[str]) -> None:
    """Each detector says what to do instead."""
    (found,) = spoken(*items)
    assert found.kind == "nudge"
    assert [part for part in parts if part not in found.message] == []


def test_the_second_reminder_is_firmer() -> None:
    """The tier at eight says that it is the second."""
    first, second = spoken(*[web(f"x {n}", topic="x") for n in range(8)])
    assert "second reminder" not in first.message
    assert second.message.startswith("This is the second reminder. 8 searches")


def test_the_last_word_is_asked_for_honestly() -> None:
    """Tools are off, the calls did run, done/open/unknown, and stopping is no proof of success."""
    found = spoken(*[read("a")] * 4)[-1]
    assert found.message == (
        "This run is being ended: read_file: 4 steps in a row made this same call and nothing new came of it. Tools "
        "are off now. The calls above did run, and their effects stand. Write a last report: what is done, what is "
        "still open, and what you do not know. Being stopped is no proof of success."
    )
    assert STOPPED_STUCK == "stopped_stuck"
    assert "success" not in FALLBACK_TEXT.lower()


def test_an_escalation_names_the_nudges_before_it() -> None:
    """The evidence of the third nudge points to the first two."""
    found = spoken(*[read("a")] * 3, *[read("b")] * 3, *[read("c")] * 3)[-1]
    assert (found.kind, found.via, found.evidence.nudges, found.evidence.limit) == (
        "force_stop",
        "escalation",
        (3, 6),
        3,
    )
    assert "after the nudges at calls 3, 6" in found.message


def test_no_message_repeats_arguments_or_results() -> None:
    """What a model said is not said again to it, nor put into machine output; a tool's name is cut to a length."""
    secret = "s3cret-value"
    loops = [
        [read(secret, secret)] * 4,
        [fail("api", {"key": secret, "n": n}, f"{secret} {n}", "conflict") for n in range(12)],
        [web(f"{secret} {n}", topic=secret) for n in range(12)],
        [call("browser_click", {"key": secret, "n": n}, secret) for n in range(12)],
        [edit(n, secret) for n in range(18)],
    ]
    for items in loops:
        for verdict in spoken(*items):
            assert secret not in f"{verdict.message}{verdict.to_data()}{verdict.evidence}"
    long = spoken(*[call("x" * 5000, {}, "same")] * 4)
    assert max(len(verdict.message) for verdict in long) < 600


def test_a_verdict_as_plain_data() -> None:
    """Who, where, why, which calls, and what would have made it not fire."""
    found = spoken(read("b"), *[replace(read("a"), call_id=f"t{number}") for number in range(3)])[0]
    assert found.to_data() == {
        "verdict": "nudge",
        "detector": "ConsecutiveDuplicate",
        "at_call": 4,
        "via": "threshold",
        "tool": "read_file",
        "rule": "in a row made this same call and nothing new came of it",
        "count": 3,
        "limit": 3,
        "stop": 4,
        "calls": [2, 3, 4],
        "otherwise": found.evidence.otherwise,
    }
    assert found.evidence.call_ids == ("t0", "t1", "t2")
    assert Verdict("continue", 7).to_data() == {"verdict": "continue", "detector": None, "at_call": 7, "via": None}


@dataclass(frozen=True)
class Result:
    """The result of a call, as a ledger has it."""

    content: str | list[dict[str, object]]
    is_error: bool = False


@dataclass(frozen=True)
class Row:
    """A call, as a ledger has it; it shares no type with the guard."""

    tool_use_id: str
    turn: int
    tool: str = "read_file"
    input: dict[str, object] = field(default_factory=lambda: {"path": "a"})
    effect: str = "read_only"
    result: Result | None = Result("text")

    @property
    def ok(self) -> bool:
        return self.result is not None and not self.result.is_error


def rows(*turns: int, **fields: object) -> list[Row]:
    return [Row(f"t{number}", turn, **fields) for number, turn in enumerate(turns)]


def test_a_durable_loop_asks_after_each_turn() -> None:
    """The answer is the verdict of the last turn alone: what was said before is not said again."""
    detector = TurnDetector()
    ledger = rows(1, 2, 3, 3, 4)
    assert [detector(ledger[:end]).kind for end in (1, 2, 4, 5)] == ["continue", "continue", "nudge", "force_stop"]
    assert detector(ledger).detector == "ConsecutiveDuplicate"
    assert detector([]).kind == "continue"


def test_a_resumed_loop_gets_the_same_answers() -> None:
    """A new process that folds the ledger from its beginning, or is asked twice, hears what the first one heard."""
    ledger = [*rows(1, 2, 3), Row("t3", 4, input={"path": "b"}), Row("t4", 5), Row("t5", 6), Row("t6", 6)]
    ends = (1, 2, 3, 4, 5, 7)
    warm = TurnDetector()
    for end in ends:
        cold = TurnDetector()(ledger[:end])
        assert (warm(ledger[:end]), warm(ledger[:end])) == (cold, cold)


def test_another_run_does_not_inherit_what_a_detector_remembers() -> None:
    """One detector object for two runs: other ids, another state."""
    detector = TurnDetector()
    assert detector(rows(1, 2, 3)).kind == "nudge"
    other = [Row(f"u{number}", number) for number in range(1, 4)]
    assert [detector(other[:end]).kind for end in (1, 2, 3)] == ["continue", "continue", "nudge"]
    assert detector(rows(1, 2)).kind == "continue"


def test_refusals_of_a_contract_count_in_a_durable_loop() -> None:
    """Three refused writes in a row end the run; a call whose fate is unknown is a failure, not a success."""
    refusal = Result("[validation error] write_file: 'content' is missing. The tool was not executed.", is_error=True)
    ledger = rows(1, 2, 3, tool="write_file", effect="irreversible", result=refusal)
    verdict = TurnDetector()(ledger)
    assert (verdict.kind, verdict.via) == ("force_stop", "validation")
    unknown = rows(1, 2, 3, result=None)
    assert TurnDetector()(unknown).kind == "continue"


def test_blocks_of_a_result_are_evidence() -> None:
    """A result of content blocks is compared like any other."""
    pages = [Row(f"t{n}", n, result=Result([{"type": "text", "text": f"{n}"}])) for n in range(1, 7)]
    assert TurnDetector()(pages).kind == "continue"
    same = [Row(f"t{n}", n, result=Result([{"type": "text", "text": "x"}])) for n in range(1, 4)]
    assert TurnDetector()(same).kind == "nudge"


def test_settings_reach_a_durable_loop() -> None:
    """What is declared about its tools."""
    config = Config.parse({"tools": {"read_file": {"traits": ["pollable"]}}})
    assert TurnDetector(config)(rows(1, 2, 3, 4)).kind == "continue"


def test_production_needs_nothing_heavy() -> None:
    """The guard imports neither pytest, nor YAML, nor the SDK, nor the recorder or the case layer."""
    import subprocess
    import sys

    code = (
        "import sys, harness.stuck; print([name for name in ('pytest', 'yaml', 'anthropic', 'pydantic', "
        "'harness.recorder', 'harness.case', 'harness.agent', 'harness.model') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_public_names() -> None:
    """All that `harness.stuck` lists is there, once."""
    import harness.stuck

    names = harness.stuck.__all__
    assert len(set(names)) == len(names)
    assert all(getattr(harness.stuck, name) is not None for name in names)
    assert State() == State()
