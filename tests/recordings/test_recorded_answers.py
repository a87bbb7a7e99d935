"""Every recorded answer comes through: to the loop as if nobody listened, and into the trace as it was."""

from __future__ import annotations

import asyncio
import copy
import functools
import json
from typing import Any

import pytest

from harness import Recorder
from harness.normalize import Normalizer
from harness.wire import encode_event, read_message, stream_events
from tests.recordings.asking import ASYNC_WAYS, WAYS, Seen, converse, converse_async
from tests.recordings.reading import ABSENT, FOLDER, Exchange, read_exchanges, recordings

FILES = recordings()

if not FILES:
    pytest.skip(f"there are no recordings: {ABSENT}", allow_module_level=True)

DIGEST = Normalizer().digest

WITHOUT_MESSAGES = {
    "error": [
        "test_anthropic/test_anthropic_explicit_effort_xhigh_unsupported_model_errors.yaml",
        "test_authentication_error_stream/anthropic_claude_sonnet_4_0.yaml",
    ],
    "counts tokens": [
        "test_anthropic/test_anthropic_count_tokens_error.yaml",
        "test_anthropic/test_anthropic_model_usage_limit_exceeded.yaml",
        "test_anthropic_bedrock_count_tokens/test_anthropic_bedrock_count_tokens_rejects_server_tools.yaml",
        "vcr_cassettes/chat_count_tokens_with_anthropic_claude-haiku-4-5_counts_the_next_request_as_configured.yml",
    ],
    "is about a batch": [
        "vcr_cassettes/batch_with_anthropic_claude-haiku-4-5_reloads_a_batch_by_id_and_collects_messages_without_the_"
        "chats.yml",
    ],
    "speaks OpenAI's protocol": [
        "test_cache/test_openrouter_cache_point_anthropic_e2e.yaml",
        "test_call_non_openai_models_through_openai/anthropic_claude_sonnet_4_5.yaml",
    ],
    "speaks Bedrock's protocol": [
        "test_bedrock/test_bedrock_anthropic_tool_result_followed_by_document_accepted.yaml",
        "test_bedrock/test_bedrock_anthropic_tool_with_thinking.yaml",
        "test_bedrock/test_bedrock_cache_point_adds_cache_control[claude-sonnet-4-5].yaml",
        "test_bedrock/test_bedrock_model_instructions_only_then_message_history[claude-sonnet-4-5].yaml",
        "test_bedrock/test_bedrock_model_thinking_part_anthropic_adaptive.yaml",
        "test_multimodal_tool_returns/test_mixed_content_ordering[bedrock_claude].yaml",
        *(
            f"test_multimodal_tool_returns/test_multimodal_tool_return_matrix[{kind}-bedrock_claude].yaml"
            for kind in (
                "direct-binary-document",
                "direct-uploaded_file-image",
                "direct-url-document",  # and downloads the document
                "tool_return_content-binary-image",
                "tool_return_content-uploaded_file-document",
                "tool_return_content-uploaded_file-image",
            )
        ),
    ],
}
"""The files without any message, by their last two names, and what they hold instead."""


@functools.cache
def exchanges_of(name: str) -> tuple[Exchange, ...]:
    return tuple(read_exchanges(name, (FOLDER / name).read_bytes()))


def answers_of(name: str) -> list[Exchange]:
    """What a Messages API client can be served, errors included."""
    return [one for one in exchanges_of(name) if one.kind in {"message", "error"}]


def apis_of(exchanges: list[Exchange]) -> list[bool]:
    """Whether to ask the beta API: as it was recorded, and both where only answers were."""
    return sorted({one.beta for one in exchanges if one.url}) or [False, True]


def recorded_tools(exchanges: list[Exchange]) -> list[tuple[int, str]]:
    messages = [one for one in exchanges if one.kind == "message"]
    return [
        (turn, block["name"])
        for turn, one in enumerate(messages, 1)
        for block in one.openings
        if block["type"] == "tool_use"
    ]


def is_whole(exchange: Exchange) -> bool:
    """Whether an answer was recorded to its end, without contradictions."""
    if not exchange.streams:
        return True
    count = {kind: len(exchange.events_of(f"content_block_{kind}")) for kind in ("start", "stop")}
    ended = exchange.events[-1]["type"] == "message_stop" and exchange.stop_reason is not None
    return ended and count["start"] == count["stop"] and len(exchange.events_of("message_start")) == 1


def listened(exchanges: list[Exchange], way: str, beta: bool, *, use_async: bool) -> tuple[Any, Any, Recorder]:
    """What a loop saw with and without a recorder, and the recorder."""
    recorder = Recorder(normalizer=Normalizer())
    if use_async:
        ways = ASYNC_WAYS[way]
        alone = asyncio.run(converse_async(exchanges, ways, beta, None))
        return asyncio.run(converse_async(exchanges, ways, beta, recorder)), alone, recorder
    return converse(exchanges, WAYS[way], beta, recorder), converse(exchanges, WAYS[way], beta, None), recorder


@pytest.mark.parametrize("name", FILES, ids=FILES)
def test_a_file_holds_messages_or_is_known_for_what_it_holds(name: str) -> None:
    """Nothing is left aside as unreadable: what is no message is told by its endpoint, or says that it is an error."""
    kinds = [one.kind for one in exchanges_of(name)]
    known = [kind for kind, names in WITHOUT_MESSAGES.items() if any(name.endswith(one) for one in names)]
    assert kinds
    assert "unknown" not in kinds
    assert ("message" in kinds) == (known == [])
    assert set(known) <= set(kinds)


def check_trace(recorder: Recorder, seen: Seen, exchanges: list[Exchange]) -> None:
    trace = recorder.trace()
    reasons = tuple(one.stop_reason for one in exchanges if one.kind == "message")
    assert (trace.turns, trace.stop_reasons, trace.problems) == (len(reasons), reasons, ())
    executed = [(turn, tool, DIGEST(tool_input), True) for turn, tool, tool_input in seen.calls]
    assert [(call.turn, call.tool, call.digest, call.ok) for call in trace.calls] == executed


@pytest.mark.parametrize(
    ("name", "use_async"),
    [pytest.param(name, False, id=name) for name in FILES]
    + [pytest.param(name, True, id=f"{name} async") for name in FILES[::3]],
)
def test_a_loop_is_recorded_and_never_disturbed(name: str, use_async: bool) -> None:
    """Events, messages and exceptions are the same with a recorder; turns, stop_reasons and calls are as recorded."""
    exchanges = answers_of(name)
    for way in ("create", "helper"):
        for beta in apis_of(exchanges):
            heard, alone, recorder = listened(exchanges, way, beta, use_async=use_async)
            assert heard == alone
            check_trace(recorder, heard, exchanges)
            # An eager loop leaves out a block that was never closed; the SDK's helper hands it over as it is.
            if way == "helper" or all(map(is_whole, exchanges)):
                assert [(turn, tool) for turn, tool, _ in heard.calls] == recorded_tools(exchanges)


@pytest.mark.parametrize("name", FILES, ids=FILES)
def test_bytes_pass_unchanged(name: str) -> None:
    """Whoever asks for the raw response gets it byte for byte, and it counts as a turn all the same."""
    exchanges = answers_of(name)
    for beta in apis_of(exchanges):
        heard, alone, recorder = listened(exchanges, "raw", beta, use_async=False)
        assert heard == alone
        check_trace(recorder, heard, exchanges)
        for view, exchange in zip(heard.views, exchanges, strict=True):
            if exchange.kind == "message":
                assert (view if exchange.streams else view[0]) == exchange.text


TAKEN = ("stop_reason", "stop_sequence", "stop_details", "container")
TAKEN_BETA = ("context_management", "input_transformations")
TAKEN_USAGE = (
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "server_tool_use",
    "output_tokens_details",
)
TAKEN_USAGE_BETA = ("iterations", "fallback_credit")
"""What the SDK's stream helpers take over from `message_delta`, outside of the beta API and there (`accumulate_event`
in `anthropic/lib/streaming`)."""


def as_the_sdk_assembles(message: dict[str, Any], exchange: Exchange, beta: bool) -> dict[str, Any]:
    """What the SDK's helper makes of a stream whose message this is, difference by difference.

    The helper takes what its types know, and the stable ones know less than the beta ones.  The reader takes all.
    """
    expected = copy.deepcopy(message)
    start = exchange.events[0]["message"]
    if exchange.events_of("message_delta"):
        expected.setdefault("stop_details", None)  # set whether it was sent or not
    restore(expected, start, {"content", "usage", *TAKEN, *(TAKEN_BETA if beta else ())})
    restore(expected["usage"], start["usage"], {*TAKEN_USAGE, *(TAKEN_USAGE_BETA if beta else ())})
    if beta and exchange.events_of("content_block_start"):
        expected["model"] = message["model"]  # a fallback block renames it
    for block, opening in zip(expected["content"], exchange.openings, strict=True):
        if block["type"] == "compaction" and beta:
            block.setdefault("encrypted_content", None)
        elif block["type"] in {"compaction", "mcp_tool_use"} and not beta:
            block.update(opening)
    return expected


def restore(changed: dict[str, Any], start: dict[str, Any], taken: set[str]) -> None:
    """Put back what `message_start` said, but for the keys that are taken over."""
    for key in changed.keys() - taken:
        if key in start:
            changed[key] = start[key]
        else:
            del changed[key]


@pytest.mark.parametrize("name", FILES, ids=FILES)
def test_the_reader_assembles_what_the_sdk_assembles(name: str) -> None:
    """The message on which the trace rests is the SDK's, but for differences that are known one by one."""
    exchanges = [one for one in answers_of(name) if one.kind == "message"]
    for beta in apis_of(exchanges):
        views = converse(exchanges, WAYS["helper"], beta, None).views
        for view, exchange in zip(views, exchanges, strict=True):
            reader = read_message(exchange.text, exchange.headers["content-type"])
            assert reader.complete == is_whole(exchange)
            if not exchange.streams:
                assert reader.message == json.loads(exchange.text) == view
            elif reader.complete:
                assert as_the_sdk_assembles(reader.message or {}, exchange, beta) == view[-1]


@pytest.mark.parametrize("name", FILES, ids=FILES)
def test_a_recorded_message_survives_being_streamed(name: str) -> None:
    """Cut into events and put together again, every recorded message is the same."""
    for exchange in answers_of(name):
        reader = read_message(exchange.text, exchange.headers["content-type"])
        if reader.complete and reader.message is not None:
            body = b"".join(encode_event(event, data) for event, data in stream_events(reader.message))
            again = read_message(body, "text/event-stream")
            assert (again.message, again.complete) == (reader.message, True)
