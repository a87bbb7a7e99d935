"""The Messages API's messages on the wire: event streams to messages, messages to event streams.

The order of events, the kinds of delta and the meaning of the numbers are those of the streaming documentation
(https://docs.claude.com/en/docs/build-with-claude/streaming) and of what the SDK assembles from them.  Nothing here
needs the SDK: the recorder reads every response with it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["MessageReader", "encode_event", "read_message", "stream_events", "to_json"]

Json = dict[str, Any]

_PIECE = 48
"""Characters a delta.  The API's own deltas are a few tokens long; shorter ones would only cost time."""

_STREAMED_INPUT = frozenset({"mcp_tool_use", "server_tool_use", "tool_use"})
_SETTLED_LATE = ("stop_reason", "stop_sequence", "stop_details", "container")
"""What `message_start` gives as null and `message_delta` settles."""

_CUMULATIVE = frozenset(
    {
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
        "input_tokens",
        "output_tokens",
        "output_tokens_details",
        "server_tool_use",
    }
)
"""The usage that `message_delta` repeats, as totals (SDK: MessageDeltaUsage)."""

_APPENDED = {"input_json_delta": "input", "text_delta": "text", "thinking_delta": "thinking"}
"""The field of the block that a kind of delta grows."""

_CUT_SHORT = ("max_tokens", "model_context_window_exceeded")
"""With these the model had to stop where it was, even in the middle of a tool's input, with no `content_block_stop`
after it (SDK: tests/lib/streaming/fixtures/incomplete_partial_json_response.txt)."""

_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_ENCODE_ASCII = json.JSONEncoder(separators=(",", ":")).encode


class MessageReader:
    """Assembles one message from the bytes of an event stream, however they are cut.

    Malformed input never raises: such a stream is just never `complete`.  The cost is linear in the bytes fed.

    Attributes:
        error: the `error` object (`{"type": …, "message": …}`) when the stream, or the body, carried one.
    """

    __slots__ = (
        "_broken",
        "_data",
        "_event",
        "_message",
        "_open",
        "_skip_newline",
        "_stopped",
        "_tail",
        "_unparsed",
        "error",
    )

    def __init__(self) -> None:
        self.error: Json | None = None
        self._message: Json | None = None
        self._broken = False
        self._stopped = False
        # Index of an open block -> field -> pieces, joined when the block stops: `+=` on a string is quadratic.
        self._open: dict[int, dict[str, list[str]]] = {}
        self._unparsed = False
        self._tail = bytearray()
        self._skip_newline = False
        self._event = b""
        self._data: list[bytes] = []

    @property
    def message(self) -> Json | None:
        """The message as far as it is known, in the shape of the API's non-streaming answer.

        Tool input whose JSON has not arrived whole stays what `content_block_start` said, in practice `{}`.
        """
        for index, pieces in self._open.items():
            self._join_text(index, pieces)
        return self._message

    @property
    def complete(self) -> bool:
        """Whether the message is whole: `message_stop` seen, `stop_reason` known, every block stopped.

        Anything less must not be acted on: the SDK returns a truncated stream as a message with partial tool input.
        """
        return self._ended() and not self._open and not self._unparsed

    @property
    def cut_short(self) -> bool:
        """Whether the stream is whole and the message is not, since the model reached a limit inside its last block.

        Asking again would give the same, so it is the answer, with its `stop_reason`; no call in it may be executed.
        """
        unfinished = bool(self._open) or self._unparsed
        return unfinished and self._ended() and (self._message or {}).get("stop_reason") in _CUT_SHORT

    def _ended(self) -> bool:
        whole = self._stopped and not self._broken and self.error is None
        return whole and self._message is not None and self._message.get("stop_reason") is not None

    def feed(self, chunk: bytes) -> None:
        """Takes the next bytes of the stream.  Lines end in LF, CRLF or CR; an unfinished event is held back."""
        if self._skip_newline and chunk:
            # The CR that ended the previous chunk has ended its line already.
            self._skip_newline = False
            chunk = chunk.removeprefix(b"\n")
        if b"\n" not in chunk and b"\r" not in chunk:
            self._tail += chunk
            return
        lines = (bytes(self._tail) + chunk).splitlines()
        self._tail = bytearray() if chunk.endswith((b"\n", b"\r")) else bytearray(lines.pop())
        self._skip_newline = chunk.endswith(b"\r")
        for line in lines:
            self._take_line(line)

    def take_body(self, body: bytes) -> None:
        """Takes a whole non-streaming JSON body: a message, or an error envelope."""
        value = _parse(body)
        if not isinstance(value, dict):
            return
        if value.get("type") == "error":
            self._take_error(value)
        elif isinstance(value.get("content"), list):
            self._message = value
            self._stopped = True

    def _take_line(self, line: bytes) -> None:
        if not line:
            if self._data:
                self._dispatch(b"\n".join(self._data))
                self._data = []
            self._event = b""
            return
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
        elif field == b"event":
            self._event = value.removeprefix(b" ")

    def _dispatch(self, data: bytes) -> None:
        event = _parse(data)
        kind = event.get("type") if isinstance(event, dict) else None
        if not isinstance(kind, str):
            kind = self._event.decode("utf-8", "replace")
        take = self._EVENTS.get(kind)
        if take is None:
            # New kinds of event may be added at any time and are passed over; data of no kind is a fault.
            self._broken |= not kind
            return
        try:
            take(self, event)
        except (TypeError, KeyError, ValueError, IndexError, AttributeError):
            self._broken = True

    def _take_message_start(self, event: Json) -> None:
        message = event["message"]
        if self._message is not None or not isinstance(message["content"], list):
            raise ValueError("a second message_start, or one without content")
        # Mostly empty.  When code in the API's own sandbox calls a tool (programmatic tool calling), the answer has
        # nothing to stream: content and stop_reason come here, whole, and `message_stop` follows at once.
        self._message = message

    def _take_block_start(self, event: Json) -> None:
        content, index, block = self._started()["content"], event["index"], event["content_block"]
        if index != len(content) or not isinstance(block, dict):
            raise ValueError("a block out of order")
        content.append(block)
        self._open[index] = {}
        if block.get("type") == "fallback":
            # The block names the model that took over; the non-streaming answer carries that model's name.
            self._started()["model"] = block["to"]["model"]

    def _take_block_delta(self, event: Json) -> None:
        index, delta = event["index"], event["delta"]
        pieces, block, kind = self._open[index], self._started()["content"][index], delta["type"]
        if field := _APPENDED.get(kind):
            piece = delta["partial_json" if field == "input" else field]
            if not isinstance(piece, str) or (field != "input" and not isinstance(block.get(field) or "", str)):
                raise TypeError("a delta that does not fit its block")
            pieces.setdefault(field, []).append(piece)
        elif kind == "signature_delta":
            block["signature"] = delta["signature"]
        elif kind == "citations_delta":
            if not block.get("citations"):
                block["citations"] = []
            block["citations"].append(delta["citation"])
        elif kind == "compaction_delta":
            block.update({key: value for key, value in delta.items() if key != "type"})

    def _take_block_stop(self, event: Json) -> None:
        index = event["index"]
        pieces = self._open.pop(index)
        self._join_text(index, pieces)
        if text := "".join(pieces.get("input", ())):
            value = _parse(text)
            if isinstance(value, dict):
                self._started()["content"][index]["input"] = value
            else:
                self._unparsed = True

    def _take_message_delta(self, event: Json) -> None:
        message, delta, usage = self._started(), event["delta"], event.get("usage")
        message.update({key: value for key, value in delta.items() if value is not None or key != "container"})
        if usage:
            # Totals, so they are taken, not added; what is left out or null keeps the value of message_start.
            known = message.setdefault("usage", {})
            known.update({key: value for key, value in usage.items() if value is not None or key not in known})
        for key, value in event.items():
            # The beta API settles more of the message here, beside `delta` (`context_management`).
            if value is not None and key not in {"type", "delta", "usage"}:
                message[key] = value

    def _take_message_stop(self, _event: Json) -> None:
        self._started()
        self._stopped = True

    def _take_error(self, event: Json) -> None:
        error = event.get("error") if isinstance(event, dict) else None
        self.error = error if isinstance(error, dict) else {"type": "api_error", "message": str(event)}

    def _started(self) -> Json:
        if self._message is None or self._stopped:
            raise ValueError("an event outside of the message")
        return self._message

    def _join_text(self, index: int, pieces: dict[str, list[str]]) -> None:
        for field in ("text", "thinking"):
            if field in pieces and self._message is not None:
                block = self._message["content"][index]
                block[field] = (block.get(field) or "") + "".join(pieces.pop(field))

    _EVENTS: ClassVar[Mapping[str, Callable[[MessageReader, Any], None]]] = {
        "message_start": _take_message_start,
        "content_block_start": _take_block_start,
        "content_block_delta": _take_block_delta,
        "content_block_stop": _take_block_stop,
        "message_delta": _take_message_delta,
        "message_stop": _take_message_stop,
        "error": _take_error,
    }


def read_message(body: bytes, content_type: str) -> MessageReader:
    """Reads a whole response body: an event stream when the content type says so, else JSON."""
    reader = MessageReader()
    if "text/event-stream" in content_type.lower():
        reader.feed(body)
    else:
        reader.take_body(body)
    return reader


def stream_events(message: Mapping[str, Any]) -> Iterator[tuple[str, Json]]:
    """The events, in the API's order, that deliver `message`, a whole message as the non-streaming API returns it.

    Blocks whose streaming is not known come whole in `content_block_start`.
    """
    usage = message.get("usage") or {}
    start = {**message, "content": [], **{key: None for key in _SETTLED_LATE if key in message}}
    if usage.get("output_tokens"):
        start["usage"] = {**usage, "output_tokens": 1}
    yield "message_start", {"type": "message_start", "message": start}
    yield "ping", {"type": "ping"}
    for index, block in enumerate(message["content"]):
        opening, deltas = _unfold(block)
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": opening}
        for delta in deltas:
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    yield (
        "message_delta",
        {
            "type": "message_delta",
            "delta": {key: message[key] for key in _SETTLED_LATE if key in message},
            "usage": {key: value for key, value in usage.items() if key in _CUMULATIVE},
        },
    )
    yield "message_stop", {"type": "message_stop"}


def encode_event(event: str, data: Mapping[str, Any]) -> bytes:
    """One event as it stands on the wire, with the blank line that ends it."""
    return b"event: %b\ndata: %b\n\n" % (event.encode(), to_json(data))


def to_json(value: object) -> bytes:
    """Compact JSON in UTF-8; lone surrogates, which UTF-8 cannot hold, come escaped."""
    try:
        return _ENCODE(value).encode()
    except UnicodeEncodeError:
        return _ENCODE_ASCII(value).encode()


def _parse(data: bytes | str) -> Any:
    """The JSON value, or the text itself where it is none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data if isinstance(data, str) else data.decode("utf-8", "replace")


def _unfold(block: Mapping[str, Any]) -> tuple[Json, list[Json]]:
    """What `content_block_start` shows of a block, and the deltas that fill in the rest."""
    opening, deltas, kind = dict(block), [], block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        opening["text"] = ""
        deltas = [{"type": "text_delta", "text": piece} for piece in _cut(block["text"])]
        if block.get("citations"):
            opening["citations"] = []
            deltas += [{"type": "citations_delta", "citation": citation} for citation in block["citations"]]
    elif kind in _STREAMED_INPUT and isinstance(block.get("input"), dict):
        opening["input"] = {}
        pieces = ["", *_cut(json.dumps(block["input"], ensure_ascii=False))] if block["input"] else [""]
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    elif kind == "thinking" and isinstance(block.get("thinking"), str):
        opening["thinking"] = ""
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _cut(block["thinking"])]
        if block.get("signature"):
            opening["signature"] = ""
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
    return opening, deltas


def _cut(text: str) -> list[str]:
    return [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]
