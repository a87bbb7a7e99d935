"""Arguments and answers that make no sense: one clear error each, and nothing that comes up from the depths."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from harness.agent import NoAnswerError, run, tool
from harness.errors import HarnessError, LoopError, StateError
from harness.model.local import LocalModel
from harness.model.script import Script
from harness.model.transport import sync_client

DONE = [{"type": "text", "text": "Done."}]


class Answer:
    """What a client that is not the SDK may come back with."""

    def __init__(self, body: Any) -> None:
        self.body = body

    def to_dict(self, **_: Any) -> Any:
        return self.body


class Client:
    """Answers every request alike."""

    def __init__(self, answer: Any) -> None:
        self.messages = self
        self.answer = answer

    def create(self, **_: Any) -> Any:
        return self.answer


def message(**fields: Any) -> Answer:
    usage = {"input_tokens": 1, "output_tokens": 1}
    whole = {"role": "assistant", "content": DONE, "stop_reason": "end_turn", "usage": usage}
    return Answer({**whole, **fields})


def counted(count: Any) -> Answer:
    return message(usage={"input_tokens": count, "output_tokens": 1})


def nested(depth: int) -> Any:
    found: Any = 1
    for _ in range(depth):
        found = [found]
    return found


def begin(tmp_path: Path, **arguments: Any) -> Any:
    chosen = {"prompt": "Go.", "model": "m", "client": Client(message()), "state_dir": tmp_path / "state"}
    chosen |= {"max_attempts": 1, "handle_signals": False, **arguments}
    return run(chosen.pop("prompt"), **chosen)


ARGUMENTS: dict[str, tuple[Any, str]] = {
    "prompt": (5, "prompt is 5; give text, or a list of what the user has said so far"),
    "model": (None, "model is None; give the name of a model"),
    "client": (5, "client is 5, which has no `messages.create`; give an Anthropic client"),
    "toolset": (5, "toolset is 5; give a list of tools"),
    "state_dir": ("a\0b", "state_dir is 'a\\x00b'; give the path of a directory"),
    "system": (5, "system is 5; give text, or a list of text blocks"),
    "detector": (5, "detector is 5, which cannot be called"),
    "on_progress": (5, "on_progress is 5, which cannot be called"),
    "server_tools": ([5], "server_tools is [5]; give a list of definitions"),
    "extra": ({1: 2}, "extra is {1: 2}; give parameters of the request by name"),
    "grace": ("a while", "grace is 'a while'; give seconds, at least 0"),
    "patience": (math.nan, "patience is nan; give seconds, at least 0"),
    "max_turns": (2.5, "max_turns is 2.5; give a whole number of at least 1"),
    "stream": (True, "the client answered with Answer and no stream; run it with stream=False"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_argument_of_the_wrong_kind_is_named(tmp_path: Path, name: str) -> None:
    """The error says which one, what it is, and what to give; and nothing has been written."""
    value, words = ARGUMENTS[name]
    with pytest.raises(LoopError) as caught:
        begin(tmp_path, **{name: value})
    assert str(caught.value) == words
    assert name == "stream" or not (tmp_path / "state").exists()


@pytest.mark.parametrize("value", ["", 5, b"state", "\ud800"])
def test_what_is_no_path_is_no_directory(tmp_path: Path, value: Any) -> None:
    """Not even the working directory, which an empty text would mean."""
    with pytest.raises(LoopError, match="give the path of a directory"):
        begin(tmp_path, state_dir=value)


def test_a_store_is_known_by_what_it_has(tmp_path: Path) -> None:
    """Another object is refused before anything is done with it."""
    with pytest.raises(LoopError, match="store is 5, which has not what a store needs: load, create, commit, close"):
        begin(tmp_path, state_dir=None, store=5)


def test_a_path_that_the_system_does_not_take_is_an_error_of_the_state(tmp_path: Path) -> None:
    """As with every directory that cannot be used."""
    with pytest.raises(StateError, match="cannot read"):
        begin(tmp_path, state_dir=tmp_path / ("x" * 5000))


ANSWERS = {
    "an infinite count": (counted(math.inf), "the response has a usage whose input_tokens are no count"),
    "no count": (counted(math.nan), "the response has a usage whose input_tokens are no count"),
    "a count of words": (counted("many"), "the response has a usage whose input_tokens are no count"),
    "a count below zero": (counted(-1), "the response has a usage whose input_tokens are no count"),
    "a count beyond measure": (counted(10**5000), "the response has a usage whose input_tokens are no count"),
    "no usage": (message(usage=[1]), "the response has the usage [1], which is no mapping"),
    "several stop reasons": (
        message(stop_reason=["end_turn"]),
        "the response has the stop_reason ['end_turn'], which is no word",
    ),
    "no object": (Answer([1]), "the response is no JSON object"),
    "no number": (
        message(content=[{"type": "text", "text": "x", "score": math.inf}]),
        "the response holds what JSON cannot: Out of range float values are not JSON compliant",
    ),
    "no JSON": (message(container={1, 2}), "the response holds what JSON cannot: Object of type set is not JSON"),
    "no bottom": (
        message(content=[{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": nested(100_000)}}]),
        "the response is nested too deeply to be saved",
    ),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_that_cannot_be_saved_is_no_answer(tmp_path: Path, answer: str) -> None:
    """It is discarded as one that was cut off would be, and the run can be resumed."""
    given, words = ANSWERS[answer]
    with pytest.raises(NoAnswerError) as caught:
        begin(tmp_path, client=Client(given))
    assert f"the last one: {words}" in str(caught.value)
    assert begin(tmp_path).status == "completed"


def test_a_client_that_answers_with_anything_else_is_named(tmp_path: Path) -> None:
    """It is no fault of the network, so it is not asked again."""
    with pytest.raises(LoopError, match="the client answered with an object of type int, and not as the SDK does"):
        begin(tmp_path, client=Client(5), max_attempts=3)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("depth", [100, 300, 900])
def test_an_input_is_taken_as_deep_as_it_can_be_read(tmp_path: Path, depth: int, stream: bool) -> None:
    """Through the SDK: either the call is executed and answered, or the response is no answer; never anything else."""

    @tool(effect="read_only")
    def look(at: list[Any]) -> str:
        return "seen"

    model = LocalModel(Script.parse([{"call": {"look": {"at": nested(depth)}}}, {"say": "Done."}]))
    try:
        ended = begin(tmp_path, client=sync_client(model), toolset=[look], stream=stream).status
    except HarnessError as error:
        ended = type(error).__name__
    assert ended in ({"completed"} if depth == 100 else {"completed", "NoAnswerError", "ModelError"})
