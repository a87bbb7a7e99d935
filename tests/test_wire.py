"""The wire format: what was cut into events is put together again, and half a message is never taken for a whole."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.wire import MessageReader, encode_event, read_message, stream_events

if TYPE_CHECKING:
    from collections.abc import Iterable

SSE = "text/event-stream; charset=utf-8"

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
inputs = st.dictionaries(st.text(max_size=12), values, max_size=4)
citations = st.lists(st.fixed_dictionaries({"type": st.just("char_location"), "cited_text": st.text()}), max_size=2)
texts = st.text(max_size=120)
blocks = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": texts}, optional={"citations": st.none() | citations}),
    st.fixed_dictionaries({"type": st.just("thinking"), "thinking": texts, "signature": st.text(max_size=60)}),
    st.fixed_dictionaries({"type": st.just("redacted_thinking"), "data": texts}),
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["tool_use", "server_tool_use", "mcp_tool_use"]),
            "id": st.text(min_size=1, max_size=8),
            "name": st.text(min_size=1, max_size=8),
            "input": inputs,
        },
        optional={"caller": st.none() | st.just({"type": "direct"})},
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("web_search_tool_result"),
            "tool_use_id": st.just("srvtoolu_1"),
            "content": st.lists(inputs, max_size=2),
        }
    ),
    st.fixed_dictionaries({"type": st.sampled_from(["hologram", "mystery"]), "rays": values}),
)
counts = st.integers(0, 10**6)
usages = st.fixed_dictionaries(
    {"input_tokens": counts, "output_tokens": counts},
    optional={
        "cache_creation_input_tokens": st.none() | counts,
        "cache_read_input_tokens": st.none() | counts,
        "server_tool_use": st.none() | st.just({"web_search_requests": 2}),
        "service_tier": st.none() | st.just("standard"),
    },
)
messages = st.fixed_dictionaries(
    {
        "id": st.just("msg_01"),
        "type": st.just("message"),
        "role": st.just("assistant"),
        "model": st.just("claude-sonnet-5"),
        "content": st.lists(blocks, max_size=4),
        "stop_reason": st.sampled_from(["end_turn", "tool_use", "max_tokens", "pause_turn", "something_new"]),
        "stop_sequence": st.none() | st.text(),
        "usage": usages,
    },
    optional={
        "stop_details": st.none() | st.just({"type": "refusal", "category": "bio"}),
        "container": st.none() | st.just({"id": "container_1"}),
        "context_management": st.just({"applied_edits": []}),
    },
)


def encode(events: Iterable[tuple[str, dict[str, Any]]]) -> bytes:
    return b"".join(encode_event(event, data) for event, data in events)


def message(*content: dict[str, Any], stop_reason: str = "tool_use") -> dict[str, Any]:
    return {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": list(content),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 20},
    }


CALL = {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "notes/mön.md"}}
WHOLE = message(
    {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, {"type": "text", "text": "Reading."}, CALL
)


@given(messages, st.data(), st.sampled_from([b"\n", b"\r\n", b"\r"]))
@settings(max_examples=150, deadline=None)
def test_events_cut_anywhere_give_the_message_back(whole: dict[str, Any], data: st.DataObject, newline: bytes) -> None:
    """Whatever the message and wherever the bytes are cut, feeding its events assembles the same message."""
    body = encode(stream_events(whole)).replace(b"\n", newline)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=12)))
    reader = MessageReader()
    for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True):
        reader.feed(body[start:end])
    assert (reader.message, reader.complete, reader.error) == (whole, True, None)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_one_byte_at_a_time(newline: bytes) -> None:
    """A stream that arrives byte by byte gives the same message."""
    reader = MessageReader()
    for byte in encode(stream_events(WHOLE)).replace(b"\n", newline):
        reader.feed(bytes([byte]))
    assert (reader.message, reader.complete) == (WHOLE, True)


@given(st.binary(max_size=300), st.lists(st.binary(max_size=300), max_size=3))
@settings(max_examples=100, deadline=None)
def test_garbage_is_never_a_message(body: bytes, chunks: list[bytes]) -> None:
    """Bytes that hold no message raise nothing and are not complete."""
    reader = MessageReader()
    for chunk in chunks:
        reader.feed(chunk)
    assert not reader.complete
    assert not read_message(body, "application/json").complete


@given(st.integers(0, 10**6), st.binary(min_size=1, max_size=4))
@settings(max_examples=200, deadline=None)
def test_damaged_bytes_never_raise(at: int, damage: bytes) -> None:
    """A stream with bytes overwritten anywhere can be read and looked at, whole or not."""
    body = encode(stream_events(WHOLE))
    at %= len(body)
    reader = read_message(body[:at] + damage + body[at + len(damage) :], SSE)
    assert isinstance(reader.message, dict | None)
    assert reader.complete in {True, False}


@pytest.mark.parametrize("lost", range(len(list(stream_events(WHOLE)))))
def test_a_lost_event_leaves_the_message_incomplete(lost: int) -> None:
    """Without any one of the events that give a message its frame, the message is not complete."""
    events = list(stream_events(WHOLE))
    name, _ = events.pop(lost)
    assert read_message(encode(events), SSE).complete == (name in {"ping", "content_block_delta"})


@pytest.mark.parametrize("kept", range(len(list(stream_events(WHOLE)))))
def test_a_stream_that_ends_early_is_not_complete(kept: int) -> None:
    """After any number of events short of all, the message is not complete, and reading it does not raise."""
    reader = read_message(encode(list(stream_events(WHOLE))[:kept]), SSE)
    assert not reader.complete
    assert reader.message is None or reader.message["content"] in [
        WHOLE["content"][:count] + partial
        for count in range(4)
        for partial in (
            [],
            [{"type": "thinking", "thinking": "", "signature": ""}],
            [{"type": "thinking", "thinking": "Hm.", "signature": ""}],
            [{"type": "text", "text": ""}],
            [{**CALL, "input": {}}],
        )
    ]


def test_text_is_readable_while_it_arrives() -> None:
    """The message can be looked at in the middle of a block, and goes on growing afterwards."""
    events = list(stream_events(message({"type": "text", "text": "a" * 100}, stop_reason="end_turn")))
    reader = MessageReader()
    seen = []
    for event in events:
        reader.feed(encode([event]))
        seen.append(len(reader.message["content"][0]["text"]) if reader.message and reader.message["content"] else 0)
    assert seen == [0, 0, 0, 48, 96, 100, 100, 100, 100]
    assert reader.complete


def test_events_come_in_the_order_of_the_api() -> None:
    """The events of a message are those that the streaming documentation shows, in its order."""
    assert list(
        stream_events(message({"type": "text", "text": "Hi"}, {"type": "odd", "x": 1}, stop_reason="end_turn"))
    ) == [
        (
            "message_start",
            {
                "type": "message_start",
                "message": {
                    "id": "msg_01",
                    "type": "message",
                    "role": "assistant",
                    "model": "claude-sonnet-5",
                    "content": [],
                    "stop_reason": None,
                    "stop_sequence": None,
                    "usage": {"input_tokens": 10, "output_tokens": 1},
                },
            },
        ),
        ("ping", {"type": "ping"}),
        (
            "content_block_start",
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        ),
        (
            "content_block_delta",
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        ),
        ("content_block_stop", {"type": "content_block_stop", "index": 0}),
        ("content_block_start", {"type": "content_block_start", "index": 1, "content_block": {"type": "odd", "x": 1}}),
        ("content_block_stop", {"type": "content_block_stop", "index": 1}),
        (
            "message_delta",
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                "usage": {"input_tokens": 10, "output_tokens": 20},
            },
        ),
        ("message_stop", {"type": "message_stop"}),
    ]


def test_comments_pings_unknown_events_and_split_data_are_read() -> None:
    """Comments, pings, fields and events that are not known, and data over several lines change nothing."""
    body = encode(stream_events(WHOLE))
    noisy = body.replace(b"event: content_block_stop", b": hello\nid: 7\nretry: 10\nevent: content_block_stop")
    noisy = noisy.replace(b'{"type":"content_block_stop",', b'{"type":"content_block_stop",\ndata: ')
    noisy = noisy.replace(
        b"event: message_delta", b'event: news\ndata: {"type":"news"}\n\nevent: other\ndata: x\n\nevent: message_delta'
    )
    reader = read_message(noisy, SSE)
    assert noisy != body
    assert (reader.message, reader.complete) == (WHOLE, True)


def test_a_line_end_cut_in_two_is_one_line_end() -> None:
    """A CRLF whose halves arrive apart ends one line, so the data of an event over several lines stays together."""
    body = encode(stream_events(WHOLE)).replace(b',"index":', b',\ndata: "index":').replace(b"\n", b"\r\n")
    reader = MessageReader()
    for line in body.split(b"\n"):
        reader.feed(line)
        reader.feed(b"\n")
    assert (reader.message, reader.complete) == (WHOLE, True)


def test_usage_of_message_delta_is_taken_not_added() -> None:
    """Several message_deltas carry totals: the last one stands, and what they leave out or null survives."""
    events = list(stream_events(WHOLE))
    late = [
        ("message_delta", {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 5}}),
        (
            "message_delta",
            {
                "type": "message_delta",
                "delta": {"stop_reason": "tool_use", "container": None},
                "usage": {"output_tokens": 21, "input_tokens": None, "cache_read_input_tokens": 3},
                "context_management": {"applied_edits": [1]},
            },
        ),
    ]
    reader = read_message(encode([*events[:-2], *late, events[-1]]), SSE)
    assert reader.complete
    assert reader.message == {
        **WHOLE,
        "usage": {"input_tokens": 10, "output_tokens": 21, "cache_read_input_tokens": 3},
        "context_management": {"applied_edits": [1]},
    }


def test_a_message_may_come_whole_in_its_start() -> None:
    """Programmatic tool calls are streamed as two events: the message with content and stop_reason, and the end."""
    start = ("message_start", {"type": "message_start", "message": WHOLE})
    reader = read_message(encode([start, ("message_stop", {"type": "message_stop"})]), SSE)
    assert (reader.message, reader.complete) == (WHOLE, True)
    more = [("content_block_start", {"type": "content_block_start", "index": 3, "content_block": CALL}),
            ("content_block_stop", {"type": "content_block_stop", "index": 3})]  # fmt: skip
    reader = read_message(encode([start, *more, ("message_stop", {"type": "message_stop"})]), SSE)
    assert (reader.message, reader.complete) == ({**WHOLE, "content": [*WHOLE["content"], CALL]}, True)


def test_kinds_of_delta_beyond_the_common_ones() -> None:
    """Compaction deltas fill in their block, a fallback block renames the model, unknown deltas pass by."""
    events = [
        ("message_start", {"type": "message_start", "message": {**WHOLE, "content": [], "stop_reason": None}}),
        (
            "content_block_start",
            {"type": "content_block_start", "index": 0, "content_block": {"type": "compaction", "content": None}},
        ),
        (
            "content_block_delta",
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "compaction_delta", "content": "so far", "encrypted_content": "e"},
            },
        ),
        (
            "content_block_delta",
            {"type": "content_block_delta", "index": 0, "delta": {"type": "aura_delta", "aura": "blue"}},
        ),
        ("content_block_stop", {"type": "content_block_stop", "index": 0}),
        (
            "content_block_start",
            {
                "type": "content_block_start",
                "index": 1,
                "content_block": {"type": "fallback", "to": {"model": "claude-haiku-5"}},
            },
        ),
        ("content_block_stop", {"type": "content_block_stop", "index": 1}),
        *list(stream_events(WHOLE))[-2:],
    ]
    reader = read_message(encode(events), SSE)
    assert reader.complete
    assert reader.message == {
        **WHOLE,
        "model": "claude-haiku-5",
        "content": [
            {"type": "compaction", "content": "so far", "encrypted_content": "e"},
            {"type": "fallback", "to": {"model": "claude-haiku-5"}},
        ],
    }


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda events: [*events, events[-1]], id="second message_stop"),
        pytest.param(lambda events: [events[0], *events], id="second message_start"),
        pytest.param(lambda events: events[1:], id="no message_start"),
        pytest.param(lambda events: [*events[:2], *events[6:]], id="a block left out"),
        pytest.param(
            lambda events: [
                (name, data | {"index": data["index"] + 1} if "index" in data else data) for name, data in events
            ],
            id="blocks that count from 1",
        ),
        pytest.param(
            lambda events: [*events, ("error", {"type": "error", "error": {"type": "api_error", "message": "x"}})],
            id="an error after the end",
        ),
        pytest.param(lambda events: [one for one in events if one[0] != "content_block_stop"], id="blocks not stopped"),
        pytest.param(
            lambda events: [
                *events[:3],
                ("", {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": 5}}),
                *events[3:],
            ],
            id="text that is no text",
        ),
        pytest.param(
            lambda events: [
                *events[:-3],
                (
                    "",
                    {
                        "type": "content_block_delta",
                        "index": 2,
                        "delta": {"type": "input_json_delta", "partial_json": "}"},
                    },
                ),
                *events[-3:],
            ],
            id="tool input that is no JSON",
        ),
        pytest.param(lambda events: [*events[:-1], ("", {}), events[-1]], id="data of no kind"),
    ],
)
def test_streams_that_break_the_protocol_are_not_complete(spoil: Any) -> None:
    """A stream whose events contradict each other ends as not complete."""
    assert not read_message(encode(spoil(list(stream_events(WHOLE)))), SSE).complete


def test_a_block_out_of_order_is_a_block_lost() -> None:
    """A block whose index is not the next one means that one before it is missing, even if nothing else is wrong."""
    events = list(stream_events(message({"type": "odd"}, stop_reason="end_turn")))
    assert read_message(encode(events), SSE).complete
    later = [(name, data | {"index": 1} if "index" in data else data) for name, data in events]
    assert not read_message(encode(later), SSE).complete


@pytest.mark.parametrize("stop_reason", ["max_tokens", "model_context_window_exceeded", "tool_use", "end_turn"])
@pytest.mark.parametrize("stopped", [False, True])
def test_a_model_that_was_cut_short_has_said_all_it_will(stop_reason: str, stopped: bool) -> None:
    """With `max_tokens` the last block may end anywhere, even without its stop: not complete, but the answer."""
    events = list(stream_events(message(CALL, stop_reason=stop_reason)))
    partial = [*events[:3], ("", {**events[4][1], "delta": {"type": "input_json_delta", "partial_json": '{"pat'}})]
    reader = read_message(encode([*partial, *(events[-3:] if stopped else events[-2:])]), SSE)
    assert reader.message == message({**CALL, "input": {}}, stop_reason=stop_reason)
    limit = stop_reason in {"max_tokens", "model_context_window_exceeded"}
    assert (reader.complete, reader.cut_short) == (False, limit)
    whole = read_message(encode(events), SSE)
    assert (whole.complete, whole.cut_short) == (True, False)
    assert not read_message(encode([*partial, *events[-3:-1]]), SSE).cut_short


def test_an_answer_that_comes_whole_in_its_first_event() -> None:
    """Where code in the API's sandbox calls a tool, content and stop_reason are in `message_start`."""
    events = [("message_start", {"type": "message_start", "message": WHOLE}), list(stream_events(WHOLE))[-1]]
    reader = read_message(encode(events), SSE)
    assert (reader.message, reader.complete) == (WHOLE, True)


def test_an_error_event_is_kept() -> None:
    """An error in the middle of the stream is reported, and the message is not complete."""
    error = {"type": "overloaded_error", "message": "Overloaded"}
    events = [*list(stream_events(WHOLE))[:4], ("error", {"type": "error", "error": error})]
    reader = read_message(encode(events), SSE)
    assert (reader.error, reader.complete) == (error, False)
    assert read_message(b"event: error\ndata: gateway lost\n\n", SSE).error == {
        "type": "api_error",
        "message": "gateway lost",
    }


def test_json_bodies() -> None:
    """A non-streaming body gives its message, an error envelope its error, anything else neither."""
    good = read_message(json.dumps(WHOLE).encode(), "application/json")
    assert (good.message, good.complete, good.error) == (WHOLE, True, None)
    error = {"type": "not_found_error", "message": "Not found"}
    bad = read_message(json.dumps({"type": "error", "error": error}).encode(), "application/json")
    assert (bad.message, bad.complete, bad.error) == (None, False, error)
    cut = read_message(json.dumps(WHOLE).encode()[:-9], "application/json")
    assert (cut.message, cut.complete, cut.error) == (None, False, None)
    assert not read_message(b"[]", "application/json").complete
    assert not read_message(json.dumps({**WHOLE, "stop_reason": None}).encode(), "").complete


def test_lone_surrogates_survive_the_wire() -> None:
    """Text that UTF-8 cannot hold is sent escaped, as JSON allows."""
    whole = message({"type": "text", "text": "half \ud83d"}, stop_reason="end_turn")
    assert read_message(encode(stream_events(whole)), SSE).message == whole


def test_reading_costs_what_is_read() -> None:
    """Two megabytes on one line in 64-byte chunks take a fraction of a second; copying them each time takes many."""
    call = {**CALL, "input": {"text": "a" * 2_000_000}}
    opening = {"type": "content_block_delta", "index": 0}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(call["input"])}
    events = list(stream_events(message({**call, "input": {}})))
    body = encode([*events[:3], ("content_block_delta", {**opening, "delta": delta}), *events[3:]])
    reader = MessageReader()
    started = time.process_time()
    for start in range(0, len(body), 64):
        reader.feed(body[start : start + 64])
    assert time.process_time() - started < 2
    assert (reader.message, reader.complete) == (message(call), True)
