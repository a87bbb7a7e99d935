"""The loop from the outside: what it sends, what it executes, and how it ends."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic
import pytest

from harness.agent import (
    NoAnswerError,
    Progress,
    StateError,
    Tool,
    ToolError,
    arun,
    run,
    run_process,
    start_process,
    tool,
)
from harness.errors import LoopError, RunInterrupted
from harness.model.local import LocalModel
from harness.model.script import Script
from harness.model.transport import async_client, sync_client

READ = {"call": {"read_file": {"path": "a"}}}
MAIL = {"call": {"send_email": {"to": "a"}}}
DONE = {"say": "Done."}


def results(messages: list[dict[str, Any]]) -> list[tuple[Any, bool]]:
    """Content and is_error of every tool_result."""
    return [
        (block.get("content"), block.get("is_error", False))
        for message in messages
        if message["role"] == "user" and isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]


class TestEnds:
    def test_a_run_tells_what_came_of_it(self, play: Any, world: Any) -> None:
        """Text, stop_reason, turns, tokens and messages are those of the conversation."""
        result = play([{**READ, "usage": {"input_tokens": 900, "output_tokens": 60}}, {**DONE, "usage": {
            "input_tokens": 1000, "cache_read_input_tokens": 200, "output_tokens": 34}}])  # fmt: skip
        assert (result.status, result.text, result.stop_reason) == ("completed", "Done.", "end_turn")
        assert (result.turns, result.attempts, result.tokens_used) == (2, 2, 1234)
        assert [message["role"] for message in result.messages] == ["user", "assistant", "user", "assistant"]
        assert world.done == ["read a"]

    @pytest.mark.parametrize(
        ("step", "status", "stop_reason"),
        [
            ({"say": "I will not.", "stop_details": {"category": "cyber"}}, "refused", "refusal"),
            ({"say": "END", "stop_sequence": "END"}, "completed", "stop_sequence"),
            ({"say": "And so", "stop_reason": "max_tokens"}, "truncated", "max_tokens"),
            (
                {"say": "And", "stop_reason": "model_context_window_exceeded"},
                "truncated",
                "model_context_window_exceeded",
            ),
        ],
    )
    def test_every_stop_reason_is_reported_as_what_it_is(
        self, play: Any, step: dict[str, Any], status: str, stop_reason: str
    ) -> None:
        """A refusal is no success, and a cut-off answer is no answer."""
        result = play([step])
        assert (result.status, result.stop_reason, result.turns) == (status, stop_reason, 1)
        assert result.stop_details == (step.get("stop_details") and {"type": "refusal", **step["stop_details"]})

    @pytest.mark.parametrize("stop_reason", ["max_tokens", "model_context_window_exceeded", "refusal"])
    def test_a_call_that_may_be_cut_off_is_not_executed(self, play: Any, world: Any, stop_reason: str) -> None:
        """Half a command never runs; it is answered, so that the conversation can go on later."""
        script = [{**MAIL, "stop_reason": stop_reason}, DONE]
        result = play(script)
        assert world.done == []
        ((content, is_error),) = results(result.messages)
        assert is_error
        assert content.startswith("Not executed: ")
        again = play(script, prompt=["Do it.", "Go on."])
        assert (again.status, again.text, world.done) == ("completed", "Done.", [])

    def test_a_pause_is_sent_back_as_it_is(self, play: Any) -> None:
        """`pause_turn`: the same conversation again, without a user message."""
        result = play([{"say": "Searching.", "stop_reason": "pause_turn"}, DONE])
        assert [message["role"] for message in result.messages] == ["user", "assistant", "assistant"]
        assert result.turns == 2

    def test_calls_run_because_they_are_there(self, play: Any, world: Any) -> None:
        """A response with calls and stop_reason end_turn is executed: the blocks decide."""
        result = play([{**READ, "stop_reason": "end_turn"}, DONE])
        assert (world.done, result.turns) == (["read a"], 2)

    def test_the_limit_of_turns_holds_over_all_processes(self, play: Any, world: Any) -> None:
        """A restart does not give a run new turns; more turns let it go on."""
        script = [READ, READ, READ, DONE]
        for _ in range(2):
            result = play(script, max_turns=2)
            assert (result.status, result.turns, world.done) == ("max_turns", 2, ["read a"] * 2)
        assert play(script, max_turns=9).status == "completed"

    def test_resuming_a_finished_run_changes_nothing(self, play: Any, tmp_path: Path) -> None:
        """The same result again, no request, and not a byte of difference in the file."""
        first = play([READ, DONE])
        before, asked = (tmp_path / "state/state.sqlite").read_bytes(), len(play.requests)
        assert play([READ, DONE]) == first
        assert (tmp_path / "state/state.sqlite").read_bytes() == before
        assert len(play.requests) == asked


class TestConversation:
    def test_a_second_prompt_continues_the_conversation(self, play: Any) -> None:
        """What the user said so far is given as a list; what is already known is not said again."""
        script = [{"say": "One."}, {"say": "Two."}]
        assert play(script, prompt="Do it.").text == "One."
        for _ in range(2):
            result = play(script, prompt=["Do it.", "And now?"])
            assert [message["content"] for message in result.messages if message["role"] == "user"] == [
                "Do it.",
                "And now?",
            ]
            assert (result.text, result.turns) == ("Two.", 2)

    def test_another_task_is_refused(self, play: Any) -> None:
        """A state is never continued with a task that it was not made for."""
        play([DONE], prompt="Do it.")
        with pytest.raises(StateError, match=r"it began with 'Do it.', not 'Do that.'") as caught:
            play([DONE], prompt="Do that.")
        assert caught.value.kind == "other_task"
        play([DONE, DONE], prompt=["Do it.", "Again."])
        with pytest.raises(StateError, match=r"has gone on to 'Again.'"):
            play([DONE], prompt="Do it.")

    def test_blocks_go_back_byte_for_byte(self, play: Any) -> None:
        """Thinking with its signature, redacted thinking, server tools and blocks that nobody knows yet, unchanged."""
        blocks = [
            {"type": "redacted_thinking", "data": "EqQBCgIYAhIM+/=="},
            {"type": "server_tool_use", "name": "web_search", "input": {"query": "ü"}},
            {"type": "web_search_tool_result", "content": [{"type": "web_search_result", "url": "u", "title": "t",
                                                            "encrypted_content": "E/+=", "page_age": None}]},
            {"type": "hologram", "beam": [1, 2.5, None, {"deep": True}], "note": "\u2028"},
        ]  # fmt: skip
        script = [{"think": "Let me see…\n", "blocks": blocks, **READ}, {"think": "Good.", **READ}, DONE]
        for stream in (False, True):
            result = play(script, stream=stream, state_dir=..., extra={"thinking": {"type": "adaptive"}})
            answers = [answer.content for answer in Script.parse(script).answers()]
            sent = [message["content"] for message in play.requests[-1]["messages"] if message["role"] == "assistant"]
            assert sent == [list(answer) for answer in answers[:2]]
            assert [message["content"] for message in result.messages if message["role"] == "assistant"] == [
                list(answer) for answer in answers
            ]

    def test_thinking_survives_a_crash(self, play: Any, world: Any) -> None:
        """The request after a crash and a resume holds the same thinking and signatures as without the crash."""
        script = [{"think": "First.", **READ}, {"think": "Then.", "say": "Now.", **MAIL}, DONE]
        extra = {"thinking": {"type": "adaptive"}}
        play(script, state_dir=..., extra=extra)
        smooth = [message for message in play.requests[-1]["messages"] if message["role"] == "assistant"]
        world.broken["mail a"] = KeyboardInterrupt()
        with pytest.raises(KeyboardInterrupt):
            play(script, extra=extra)
        play(script, extra=extra)
        assert [message for message in play.requests[-1]["messages"] if message["role"] == "assistant"] == smooth

    def test_blank_text_is_not_sent_back(self, play: Any) -> None:
        """Models emit blank text blocks and the API does not take them back; the state keeps them as they came."""
        script = [{"blocks": [{"type": "text", "text": "\n"}], **READ}, DONE]
        result = play(script)
        assert [block["type"] for block in result.messages[1]["content"]] == ["text", "tool_use"]
        assert [block["type"] for block in play.requests[-1]["messages"][1]["content"]] == ["tool_use"]

    def test_an_empty_answer_is_left_out_when_the_conversation_goes_on(self, play: Any) -> None:
        """`end_turn` with no content is possible, and sending it back would fail every later request."""
        script = [{"blocks": [], "stop_reason": "end_turn"}, DONE]
        assert play(script).text == ""
        result = play(script, prompt=["Do it.", "Well?"])
        assert result.text == "Done."
        assert [message["role"] for message in play.requests[-1]["messages"]] == ["user", "user"]


class TestCalls:
    def test_results_go_back_together_in_the_order_of_the_calls(self, play: Any, world: Any) -> None:
        """One user message, one result a call, whatever came of each."""
        world.broken["read b"] = ValueError("no b")
        calls = [
            {"read_file": {"path": "a"}},
            {"read_file": {"path": "b"}},
            {"put": {"name": ""}},
            {"send_email": {"to": "c"}},
        ]
        result = play([{"call": calls}, DONE])
        assert results(result.messages) == [
            ("read a ok", False),
            ("ValueError: no b", True),
            ('[validation error] put: `name` is required and must not be "". The tool was not executed.', True),
            ("mail c ok", False),
        ]
        assert len(result.messages) == 4
        assert world.done == ["read a", "read b", "mail c"]

    def test_a_tool_that_does_not_exist_is_answered(self, play: Any, world: Any) -> None:
        """A name that the model made up costs one turn, not the run."""
        reader, *_ = world.tools
        ghost = {"name": "ghost", "description": "", "input_schema": {"type": "object"}}
        result = play([{"call": {"ghost": {}}}, DONE], toolset=[reader], server_tools=[ghost])
        assert results(result.messages) == [
            ("There is no tool named 'ghost'. Nothing was executed. The tools are: read_file.", True)
        ]

    def test_idempotency_keys_differ_by_call_and_not_by_process(self, play: Any, world: Any) -> None:
        """Two equal calls are two effects; the same call after a crash is the same one."""
        script = [{"call": [{"put": {"name": "x"}}, {"put": {"name": "x"}}]}, DONE]
        world.broken["put x"] = KeyboardInterrupt()
        with pytest.raises(KeyboardInterrupt):
            play(script)
        world.broken.clear()
        play(script)
        first, again, second = world.keys
        assert first == again
        assert second != first

    def test_only_what_may_runs_side_by_side(self, play: Any) -> None:
        """Reads share, a write runs alone unless it says so, and nothing overtakes it."""
        running, together, lock = set(), [], threading.Lock()

        def make(name: str, **contract: Any) -> Tool:
            def work(n: int) -> str:
                with lock:
                    running.add((name, n))
                    together.append(frozenset(running))
                time.sleep(0.05)
                with lock:
                    running.discard((name, n))
                return f"{name} {n}"

            return tool(name=name, **contract)(work)

        tools = [make("read", effect="read_only"), make("write"), make("log", concurrent=True)]
        calls = [{"read": {"n": 1}}, {"log": {"n": 2}}, {"write": {"n": 3}}, {"read": {"n": 4}}, {"read": {"n": 5}}]
        result = play([{"call": calls}, DONE], toolset=tools, concurrency=4)
        assert [content for content, _ in results(result.messages)] == [
            "read 1",
            "log 2",
            "write 3",
            "read 4",
            "read 5",
        ]
        assert {("read", 1), ("log", 2)} in together
        assert {("read", 4), ("read", 5)} in together
        assert all(group == {("write", 3)} for group in together if ("write", 3) in group)
        running.clear()
        together.clear()
        play([{"call": calls}, DONE], toolset=tools, state_dir=...)
        assert [len(group) for group in together] == [1] * 5

    @pytest.mark.parametrize(
        ("effect", "said"), [("read_only", "`hang` gave no"), ("irreversible", "[execution status")]
    )
    def test_a_call_that_takes_too_long_is_answered(self, play: Any, effect: Any, said: str) -> None:
        """The loop stops waiting; of a write, nobody can say any more whether it took effect."""
        release = threading.Event()

        @tool(effect=effect, timeout=0.05)
        def hang() -> None:
            release.wait(5)

        result = play([{"call": {"hang": {}}}, DONE], toolset=[hang])
        release.set()
        ((content, is_error),) = results(result.messages)
        assert (result.status, is_error, content.startswith(said)) == ("completed", True, True)

    def test_the_command_of_a_call_that_takes_too_long_is_ended(self, play: Any) -> None:
        """The loop does not stop waiting for a tool and leave its command running."""
        started = []

        @tool(timeout=0.2)
        def shell() -> None:
            with start_process(["sleep", "30"]) as process:
                started.append(process)
                process.wait()

        play([{"call": {"shell": {}}}, DONE], toolset=[shell])
        assert started[0].wait(5) == -signal.SIGTERM

    def test_async_tools_share_one_event_loop(self, play: Any) -> None:
        """A connection that an async tool opened is still good at its next call, also beside others, in `run`."""
        loops = []

        @tool(effect="read_only")
        async def fetch(n: int) -> str:
            loops.append(asyncio.get_running_loop())
            await asyncio.sleep(0.01)
            return f"{n}"

        calls = {"call": [{"fetch": {"n": 1}}, {"fetch": {"n": 2}}]}
        result = play([calls, calls, DONE], toolset=[fetch], concurrency=2)
        assert [content for content, _ in results(result.messages)] == ["1", "2", "1", "2"]
        assert len(set(loops)) == 1

    def test_a_call_that_is_alone_runs_in_the_callers_thread(self, play: Any) -> None:
        """Tools may be bound to the thread that made their connection."""
        threads = []

        @tool(effect="read_only")
        def where() -> None:
            threads.append(threading.current_thread())

        play([{"call": {"where": {}}}, DONE], toolset=[where])
        assert threads == [threading.current_thread()]

    def test_the_sdks_function_tools_run_in_our_loop(self, play: Any) -> None:
        """A tool made for the SDK's tool_runner needs nothing but its effect."""

        @anthropic.beta_tool
        def weather(city: str) -> str:
            """The weather.

            Args:
                city: Where.
            """
            return f"Sun over {city}"

        result = play([{"call": {"weather": {"city": "Bern"}}}, DONE], toolset=[weather])
        assert results(result.messages) == [("Sun over Bern", False)]

    def test_commands_of_tools_give_their_output(self, play: Any) -> None:
        """`run_process` behaves as `subprocess.run` does, in a call and outside of one."""

        @tool(effect="read_only")
        def shell(line: str) -> str:
            done = run_process(["sh", "-c", line], input="in", text=True)
            return f"{done.stdout}{done.stderr}{done.returncode}"

        result = play([{"call": {"shell": {"line": "cat; echo err >&2; exit 3"}}}, DONE], toolset=[shell])
        assert results(result.messages) == [("inerr\n3", False)]
        with pytest.raises(subprocess.TimeoutExpired):
            run_process(["sleep", "5"], timeout=0.05)
        with pytest.raises(TypeError, match="give the program and its arguments as a list"):
            run_process("sleep 5")


class TestAsking:
    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("failure", [429, 500, 529, "disconnect", "truncated", "mid_stream", "timeout"])
    def test_a_request_that_fails_for_now_is_repeated(self, play: Any, failure: int | str, stream: bool) -> None:
        """Only whole responses count; each attempt is counted, and the SDK adds none of its own."""
        result = play([{"fail": failure, "times": 2}, READ, {"fail": failure}, DONE], stream=stream)
        assert (result.status, result.turns, result.attempts) == ("completed", 2, 5)
        assert len(play.requests) == 5

    def test_attempts_are_bounded_and_a_later_process_has_new_ones(self, play: Any) -> None:
        """An outage ends the run with its state intact, and a restart after it goes on."""
        script = [READ, {"fail": 529, "times": 3}, DONE]
        with pytest.raises(
            NoAnswerError, match=r"turn 2: no answer after 3 requests, the last one: 529 overloaded"
        ) as caught:
            play(script, max_attempts=3)
        assert (caught.value.attempts, caught.value.status) == (3, 529)
        result = play(script, max_attempts=3)
        assert (result.status, result.turns, result.attempts) == ("completed", 2, 5)

    @pytest.mark.parametrize("failure", [400, 401, 403, 404, 413])
    def test_a_request_that_is_refused_is_not_repeated(self, play: Any, failure: int) -> None:
        """What the API will never take is not sent five times."""
        with pytest.raises(NoAnswerError, match="Put right what it refuses") as caught:
            play([{"fail": failure}, DONE])
        assert (caught.value.attempts, caught.value.status) == (1, failure)
        assert play([{"fail": failure}, DONE]).status == "completed"

    def test_a_server_that_wants_an_hour_gets_it(self, play: Any) -> None:
        """A long `retry-after` ends the process instead of keeping it asleep."""
        with pytest.raises(NoAnswerError, match=r"asks to come back in 3600 s"):
            play([{"fail": 429, "retry_after": 3600}, DONE])

    def test_a_mistake_in_the_request_is_raised_as_it_is(self, play: Any) -> None:
        """A parameter that the SDK does not know is the caller's to mend, not the network's."""
        with pytest.raises(TypeError, match="unheard_of"):
            play([DONE], extra={"unheard_of": 1})

    @pytest.mark.parametrize("fault", [BrokenPipeError("stdout is closed"), ValueError("a bug")])
    @pytest.mark.parametrize("asynchronous", [False, True])
    def test_a_fault_of_the_callers_callback_is_no_fault_of_the_model(
        self, play: Any, asynchronous: bool, fault: Exception
    ) -> None:
        """What `on_progress` raises amid a stream comes out as it is, and no request is paid for again."""
        told = []

        def on_progress(progress: Progress) -> None:
            told.append(progress.kind)
            if progress.kind == "text":
                raise fault

        play = TestAsync().arun if asynchronous else play
        with pytest.raises(type(fault)) as caught:
            play([DONE], stream=True, on_progress=on_progress)
        assert caught.value is fault
        assert told == ["text"]

    def test_what_is_asked_for_is_sent(self, play: Any) -> None:
        """System prompt, limits, tools and extra parameters stand in every request."""
        play([DONE], system="Be brief.", max_tokens=321, extra={"metadata": {"user_id": "u"}})
        request = play.requests[0]
        assert (request["system"], request["max_tokens"], request["metadata"]) == ("Be brief.", 321, {"user_id": "u"})
        assert [each["name"] for each in request["tools"]] == ["read_file", "put", "send_email"]


@dataclass
class Verdict:
    kind: Any
    message: str = ""
    detector: str = "Test"


class TestDetector:
    def test_a_nudge_follows_the_results(self, play: Any) -> None:
        """The detector sees every call so far, and its advice stands after the results, durable and reported."""
        seen = []

        def detect(calls: Any) -> Verdict:
            seen.append([(call.tool, call.turn, call.ok) for call in calls])
            return Verdict("nudge", "Try something else.") if len(calls) == 2 else Verdict("continue")

        result = play([READ, MAIL, DONE], detector=detect)
        assert seen == [[("read_file", 1, True)], [("read_file", 1, True), ("send_email", 2, True)]]
        assert result.messages[4]["content"][1] == {"type": "text", "text": "Try something else."}
        assert result.interventions == [
            {"turn": 2, "verdict": "nudge", "detector": "Test", "message": "Try something else."}
        ]
        assert play([READ, MAIL, DONE]).interventions == result.interventions

    def test_a_forced_stop_lets_the_run_explain_itself(self, play: Any, world: Any) -> None:
        """One last response with tool use switched off, then the end.  Where it does not come, nothing is claimed, and
        the next process asks for it once more.
        """
        script = [READ, MAIL, DONE]

        def detect(calls: Any) -> Verdict:
            return Verdict("force_stop", "You are going in circles. Explain.")

        speechless = play([READ, {"fail": 529, "times": 1}, MAIL, DONE], detector=detect, max_attempts=1)
        assert (speechless.status, speechless.turns) == ("stopped_stuck", 1)
        assert speechless.text.startswith(
            "The run was stopped because it made no progress, and the model gave no report."
        )
        result = play([READ, {"fail": 529, "times": 1}, MAIL, DONE], detector=None)
        assert (result.status, result.turns, world.done) == ("stopped_stuck", 2, ["read a"])
        assert play.requests[-1]["tool_choice"] == {"type": "none"}
        assert result.text == "Tool use is switched off, so this is where I stop."
        assert play(script, state_dir=..., detector=detect, max_turns=1).status == "stopped_stuck"

    def test_a_new_prompt_starts_afresh(self, play: Any) -> None:
        """What was repeated before the user said something new is no repetition after it."""
        seen = []

        def detect(calls: Any) -> Verdict:
            seen.append([call.turn for call in calls])
            return Verdict("continue")

        script = [READ, DONE, READ, MAIL, DONE]
        play(script, prompt=["Go.", "And now?"], detector=detect)
        assert seen == [[1], [3], [3, 4]]

    def test_a_detector_that_says_nothing_sensible_is_an_error(self, play: Any) -> None:
        """A verdict that the loop cannot act on is the detector's fault, and named."""
        with pytest.raises(LoopError, match="the detector answered kind 'panic' with message 'x'"):
            play([READ, DONE], detector=lambda calls: Verdict("panic", "x"))


class TestArguments:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"max_turns": 0}, "max_turns is 0; give a whole number of at least 1"),
            ({"max_attempts": True}, "max_attempts is True; give a whole number of at least 1"),
            ({"grace": -1}, "grace is -1; give seconds, at least 0"),
            ({"prompt": " "}, "prompt holds ' '; the API takes only text that is not blank"),
            ({"prompt": []}, "prompt is empty; say what there is to do"),
            ({"prompt": "\ud800"}, "prompt holds half of a character (a lone surrogate) at 0"),
            ({"extra": {"messages": []}}, "extra holds 'messages', which `run` sets itself"),
            ({"store": object()}, "give state_dir or store, not both"),
        ],
    )
    def test_arguments_that_cannot_be_meant_are_refused(self, play: Any, options: dict[str, Any], said: str) -> None:
        """One clear sentence, before anything was asked or written."""
        with pytest.raises(LoopError) as caught:
            play([DONE], **options)
        assert str(caught.value) == said

    def test_the_clients_colour_must_fit(self) -> None:
        """An asynchronous client in `run`, or a blocking one in `arun`, is named with the way out."""
        model = LocalModel(Script.parse([DONE]))
        with pytest.raises(LoopError, match=r"client is AsyncAnthropic; .* use harness.agent.arun"):
            run("x", client=async_client(model), model="m")
        with pytest.raises(LoopError, match=r"client is Anthropic; .* use harness.agent.run"):
            asyncio.run(arun("x", client=sync_client(model), model="m"))

    def test_a_tool_must_be_one(self, play: Any) -> None:
        """Whatever else stands in the toolset is refused before the first request."""
        with pytest.raises(ToolError, match="3 is no tool"):
            play([DONE], toolset=[3])
        assert play.requests == []

    def test_progress_is_told_in_order(self, play: Any, world: Any) -> None:
        """A caller sees retries, answers, calls and results as they become true."""
        told: list[Progress] = []
        play([READ, {"fail": 529}, DONE], on_progress=told.append, stream=True)
        assert [(each.kind, each.turn, each.tool) for each in told] == [
            ("answer", 1, None),
            ("call", 1, "read_file"),
            ("result", 1, "read_file"),
            ("retry", 2, None),
            ("text", 2, None),
            ("answer", 2, None),
        ]
        told.clear()
        play([READ, {"fail": 529}, DONE], on_progress=told.append)
        assert [each.kind for each in told] == ["resumed"]

    def test_without_a_directory_nothing_is_kept(self, play: Any, world: Any) -> None:
        """A run in memory is a run like any other, and begins anew each time."""
        for _ in range(2):
            assert play([MAIL, DONE], state_dir=...).status == "completed"
        assert world.done == ["mail a"] * 2


class TestSignals:
    def interrupting(self, world: Any, number: signal.Signals) -> Tool:
        @tool(effect="read_only")
        def read_file(path: str) -> str:
            signal.raise_signal(number)
            return str(world.act(f"read {path}"))

        return read_file

    def test_ctrl_c_is_a_keyboard_interrupt_and_handlers_are_given_back(self, play: Any, world: Any) -> None:
        """Whoever handles `KeyboardInterrupt`, as pytest does, handles this one; afterwards all is as it was."""
        before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        with pytest.raises(KeyboardInterrupt) as caught:
            play([READ, DONE], toolset=[self.interrupting(world, signal.SIGINT)])
        assert isinstance(caught.value, RunInterrupted)
        assert (caught.value.code, world.done) == (130, ["read a"])
        assert str(caught.value).startswith("SIGINT: stopped after turn 1. What was done is saved")
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
        assert play([READ, DONE]).status == "completed"
        assert world.done == ["read a"]

    def test_ctrl_c_once_too_often_still_ends_in_good_order(self, play: Any) -> None:
        """The third one comes while the processes of the broken-off call are being ended; it changes nothing."""
        begun = threading.Event()

        @tool(timeout=30)
        def send_email(to: str) -> None:
            with start_process(["sh", "-c", "trap '' TERM; echo; while :; do sleep 0.1; done"], stdout=-1) as process:
                assert process.stdout is not None
                process.stdout.readline()  # deaf to SIGTERM from here on
                begun.set()

        def impatient() -> None:
            begun.wait(10)
            for _ in range(4):
                time.sleep(0.25)
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        hand = threading.Thread(target=impatient)
        hand.start()
        try:
            with pytest.raises(KeyboardInterrupt) as caught:
                play([MAIL, DONE], toolset=[send_email])
        finally:
            hand.join()
        assert isinstance(caught.value, RunInterrupted)
        assert "send_email did not end in time" in str(caught.value)

    def test_an_ignored_signal_stays_ignored(self, play: Any, world: Any) -> None:
        """Under `nohup`, or in the background, Ctrl-C is meant for somebody else."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            assert play([READ, DONE], toolset=[self.interrupting(world, signal.SIGINT)]).status == "completed"
        finally:
            signal.signal(signal.SIGINT, before)

    def test_signals_can_be_left_to_the_caller(self, play: Any, world: Any) -> None:
        """With `handle_signals=False` the caller's own handler is asked, and nobody else."""
        heard = []
        before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
        try:
            tools = [self.interrupting(world, signal.SIGTERM)]
            assert play([READ, DONE], toolset=tools, handle_signals=False).status == "completed"
        finally:
            signal.signal(signal.SIGTERM, before)
        assert heard == [signal.SIGTERM]


class TestAsync:
    def arun(self, script: list[dict[str, Any]], **options: Any) -> Any:
        model = LocalModel(Script.parse(script))
        result = asyncio.run(arun("Do it.", client=async_client(model), model="claude-test", **options))
        assert model.faults == []
        return result

    @pytest.mark.parametrize("stream", [False, True])
    def test_both_drivers_do_the_same(self, play: Any, world: Any, stream: bool) -> None:
        """One loop, not two: the same messages, counters and effects from `run` and `arun`."""
        script = [
            {"fail": "mid_stream"},
            {"call": [{"read_file": {"path": "a"}}, {"put": {"name": ""}}, {"send_email": {"to": "b"}}]},
            {"think": "Hm.", **READ},
            DONE,
        ]
        extra = {"thinking": {"type": "adaptive"}}
        one = play(script, stream=stream, extra=extra, state_dir=...)
        done = list(world.done)
        two = self.arun(script, stream=stream, extra=extra, toolset=world.tools)
        assert two == one
        assert world.done == done * 2

    def test_calls_run_side_by_side(self, tmp_path: Path) -> None:
        """Coroutines and blocking tools of one response overlap, and the results keep their order."""
        meet = threading.Barrier(2, timeout=5)

        @tool(effect="read_only")
        async def fetch(n: int) -> str:
            await asyncio.to_thread(meet.wait)
            return f"fetched {n}"

        @tool(effect="read_only")
        def load(n: int) -> str:
            meet.wait()
            return f"loaded {n}"

        script = [{"call": [{"fetch": {"n": 1}}, {"load": {"n": 2}}]}, DONE]
        result = self.arun(script, toolset=[fetch, load], concurrency=2, state_dir=tmp_path)
        assert results(result.messages) == [("fetched 1", False), ("loaded 2", False)]

    def test_a_call_that_takes_too_long_is_cancelled(self) -> None:
        """An async tool that runs out of time is cancelled, and the run goes on."""
        cancelled = []

        @tool(timeout=0.05)
        async def hang() -> None:
            try:
                await asyncio.sleep(5)
            except asyncio.CancelledError:
                cancelled.append(True)
                raise

        result = self.arun([{"call": {"hang": {}}}, DONE], toolset=[hang])
        assert (cancelled, results(result.messages)[0][1]) == ([True], True)

    def test_cancelling_the_run_leaves_it_resumable(self, tmp_path: Path) -> None:
        """A task that is cancelled during a call is a crash like any other: the next process takes the honest way."""
        begun = asyncio.Event()

        @tool
        async def send_email(to: str) -> None:
            begun.set()
            await asyncio.sleep(5)

        model = LocalModel(Script.parse([MAIL, DONE]))
        options: Any = {"client": async_client(model), "model": "m", "toolset": [send_email], "state_dir": tmp_path}

        async def cancelled() -> None:
            task = asyncio.create_task(arun("x", **options))
            await asyncio.wait_for(begun.wait(), 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(cancelled())
        result = asyncio.run(arun("x", **options))
        ((content, _),) = results(result.messages)
        assert "execution status unknown" in content

    @pytest.mark.parametrize("asynchronous", [False, True])
    def test_a_task_that_a_tool_cancelled_is_its_own_affair(self, play: Any, asynchronous: bool) -> None:
        """A tool that awaits what was cancelled has failed; nobody has cancelled the run."""

        @tool
        async def send_email(to: str) -> None:
            inner = asyncio.create_task(asyncio.sleep(5))
            await asyncio.sleep(0)
            inner.cancel()
            await inner

        @tool(effect="read_only")
        def read_file(path: str) -> None:
            raise asyncio.CancelledError(path)

        script, tools = [MAIL, READ, DONE], [send_email, read_file]
        result = self.arun(script, toolset=tools) if asynchronous else play(script, toolset=tools)
        assert result.status == "completed"
        (mail, mail_failed), (read, read_failed) = results(result.messages)
        assert (mail_failed, read_failed) == (True, True)
        assert "CancelledError" in str(mail)
        assert "CancelledError" in str(read)

    def test_the_loops_own_signal_handlers_survive_a_run(self) -> None:
        """A service that has told asyncio what to do at SIGTERM still does it after a run, and hears it once."""
        heard = []

        async def service() -> None:
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGTERM, heard.append, "mine")
            try:
                client = async_client(LocalModel(Script.parse([DONE])))
                await arun("x", client=client, model="m")
                signal.raise_signal(signal.SIGTERM)
                await asyncio.sleep(0.05)
            finally:
                loop.remove_signal_handler(signal.SIGTERM)

        asyncio.run(service())
        assert heard == ["mine"]

    def test_a_signal_stops_every_run_of_the_loop(self) -> None:
        """Two runs that end in the order in which they began: both hear it, and the handlers are given back."""
        before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        begun = []

        @tool(effect="read_only")
        async def wait(seconds: float) -> None:
            begun.append(seconds)
            if len(begun) == 2:
                signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(seconds)

        async def interrupted(seconds: float) -> str:
            client = async_client(LocalModel(Script.parse([{"call": {"wait": {"seconds": seconds}}}, DONE])))
            with pytest.raises(RunInterrupted) as caught:
                await arun("x", client=client, model="m", toolset=[wait])
            return str(caught.value)

        async def both() -> list[str]:
            return await asyncio.gather(interrupted(0.1), interrupted(0.2))

        assert [words.partition(".")[0] for words in asyncio.run(both())] == ["SIGTERM: stopped after turn 1"] * 2
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before

    def test_a_handler_set_during_a_run_stays(self) -> None:
        """What somebody sets while a run listens is theirs, and not undone at its end."""
        mine = lambda number, frame: None  # noqa: E731 (a handler with an identity)

        @tool(effect="read_only")
        async def settle() -> None:
            signal.signal(signal.SIGTERM, mine)

        before = signal.getsignal(signal.SIGTERM)
        try:
            self.arun([{"call": {"settle": {}}}, DONE], toolset=[settle])
            assert signal.getsignal(signal.SIGTERM) is mine
        finally:
            signal.signal(signal.SIGTERM, before)

    def test_the_sdks_async_function_tools_run(self) -> None:
        """`@beta_async_tool` needs nothing but its effect."""

        @anthropic.beta_async_tool
        async def weather(city: str) -> str:
            """The weather."""
            return f"Sun over {city}"

        result = self.arun([{"call": {"weather": {"city": "Bern"}}}, DONE], toolset=[weather])
        assert results(result.messages) == [("Sun over Bern", False)]
