"""Recorded conversations, replayed request by request: calls that nobody could wrap are read off the wire."""

from __future__ import annotations

from collections.abc import Sequence

import anthropic
import pytest
from anthropic.types import Message, RawMessageStreamEvent

from harness import Recorder
from harness.normalize import Normalizer
from harness.trace import Call
from tests.recordings.asking import sync_client
from tests.recordings.reading import ABSENT, FOLDER, Exchange, read_exchanges, recordings

# The other formats hold answers only.
FILES = [name for name in recordings() if name.endswith((".har", ".yaml", ".yml"))]

if not FILES:
    pytest.skip(f"there are no recordings: {ABSENT}", allow_module_level=True)

DIGEST = Normalizer().digest


def replay(exchanges: Sequence[Exchange], recorder: Recorder) -> None:
    """Send the recorded requests, as they are, and read each answer to its end."""
    client = sync_client(exchanges, recorder)
    for exchange in exchanges:
        try:
            answer = client.post(
                "/v1/messages",
                body=dict(exchange.request or {}),
                cast_to=Message,
                stream=exchange.streams,
                stream_cls=anthropic.Stream[RawMessageStreamEvent],
            )
            if exchange.streams:
                list(answer)
        except anthropic.APIStatusError:
            assert exchange.kind == "error"


def recorded_calls(exchanges: Sequence[Exchange]) -> list[Call]:
    """The tool_use blocks of the answers that a later request has a tool_result for, in the order of the blocks."""
    asked = {}
    answered = {}
    messages = [one for one in exchanges if one.kind == "message"]
    for turn, exchange in enumerate(messages, 1):
        for message in (exchange.request or {})["messages"]:
            for block in message["content"] if isinstance(message["content"], list) else ():
                if block["type"] == "tool_result" and block["tool_use_id"] in asked:
                    answered.setdefault(asked[block["tool_use_id"]], block)
        asked |= {block["id"]: (turn, place) for place, block in exchange.tool_uses.items()}
    return [
        Call(
            turn,
            use["name"],
            DIGEST(use["input"]),
            ok=result.get("is_error") is not True,
            args={name: DIGEST(value)[:8] for name, value in use["input"].items()},
            result=DIGEST(result.get("content")),
        )
        for (turn, place), result in sorted(answered.items())
        for use in (messages[turn - 1].tool_uses[place],)
    ]


@pytest.mark.parametrize("name", FILES, ids=FILES)
def test_a_conversation_is_recorded_from_its_requests_and_answers_alone(name: str) -> None:
    """Turns, stop_reasons and calls stand in their order; a call is ok, and has the result, that the loop reported."""
    recorded = read_exchanges(name, (FOLDER / name).read_bytes())
    exchanges = [one for one in recorded if one.kind in {"message", "error"}]
    recorder = Recorder(normalizer=Normalizer(), calls_from="wire")
    replay(exchanges, recorder)
    trace = recorder.trace()
    reasons = tuple(one.stop_reason for one in exchanges if one.kind == "message")
    assert (trace.turns, trace.stop_reasons, trace.problems) == (len(reasons), reasons, ())
    assert list(trace.calls) == recorded_calls(exchanges)
