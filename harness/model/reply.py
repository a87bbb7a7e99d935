"""What goes back over the connection: status, headers, chunks of the body, and how the connection ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from harness.model.protocol import ERROR_TYPES
from harness.wire import encode_event, stream_events, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.model.steps import Fail

__all__ = ["End", "Reply", "error_reply", "failed_reply", "json_reply", "message_reply"]

End: TypeAlias = Literal["normal", "cut", "never"]

_MESSAGES = {
    400: "messages: this request is refused",
    401: "invalid x-api-key",
    402: "Your credit balance is too low to access the Claude API. Please go to Plans & Billing to upgrade.",
    403: "Your API key does not have permission to use the specified resource.",
    404: "Not found",
    409: "The request conflicts with the current state of the resource.",
    413: "Request exceeds the maximum size",
    429: "This request would exceed your organization's rate limit. Please try again later.",
    500: "Internal server error",
    504: "The request timed out while processing.",
    529: "Overloaded",
}
"""Status -> a plausible text [M], except the last one, which is known."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP response.

    Args:
        status: 0 when the connection ends before any byte of a response.
        headers: with lower-case names.
        chunks: the body, in the pieces in which it is written.
        end: `normal`; `cut`, the connection is dropped after the chunks; `never`, nothing more ever comes.
    """

    status: int
    headers: Mapping[str, str]
    chunks: Sequence[bytes] = ()
    end: End = "normal"


def json_reply(status: int, value: object, request_id: str, headers: Mapping[str, str] | None = None) -> Reply:
    """A JSON body."""
    body = to_json(value)
    fixed = {"content-type": "application/json", "content-length": str(len(body)), "request-id": request_id}
    return Reply(status, {**fixed, **(headers or {})}, (body,))


def error_reply(
    status: int, message: str, request_id: str, *, kind: str | None = None, retry_after: float | None = None
) -> Reply:
    """An error envelope, as the API writes it.

    Where the SDK would retry and the script names no `retry_after`, `retry-after-ms: 1` keeps it from sleeping for
    seconds: the header is one that it obeys, and no wait is part of what a test can see.
    """
    error = {"type": kind or ERROR_TYPES[status], "message": message}
    envelope = {"type": "error", "error": error, "request_id": request_id}
    if retry_after is not None:
        return json_reply(status, envelope, request_id, {"retry-after": f"{retry_after:g}"})
    if status in {409, 429} or status >= 500:
        return json_reply(status, envelope, request_id, {"retry-after-ms": "1"})
    return json_reply(status, envelope, request_id)


def message_reply(message: Mapping[str, Any], request_id: str, *, stream: bool) -> Reply:
    """A whole message, as JSON or as its events."""
    if not stream:
        return json_reply(200, message, request_id)
    chunks = [encode_event(event, data) for event, data in stream_events(message)]
    return Reply(200, _stream_headers(request_id), chunks)


def failed_reply(fail: Fail, message: Mapping[str, Any], request_id: str, *, stream: bool) -> Reply:
    """A scripted failure, where `message` is what would have been said."""
    match fail.kind:
        case "status":
            text = fail.message or _MESSAGES[fail.status]
            return error_reply(fail.status, text, request_id, retry_after=fail.retry_after)
        case "disconnect":
            return Reply(0, {}, end="cut")
        case "timeout":
            return Reply(0, {}, end="never")
    if not stream:
        whole = to_json(message)
        half = whole[: len(whole) // 2]
        headers = {"content-type": "application/json", "request-id": request_id}
        if fail.kind == "truncated":
            return Reply(200, {**headers, "content-length": str(len(half))}, (half,))
        return Reply(200, {**headers, "content-length": str(len(whole))}, (half,), "cut")
    chunks = _half(message)
    if fail.kind == "mid_stream":
        error = {"type": "overloaded_error", "message": fail.message or _MESSAGES[529]}
        chunks.append(encode_event("error", {"type": "error", "error": error}))
    return Reply(200, _stream_headers(request_id), chunks)


def _half(message: Mapping[str, Any]) -> list[bytes]:
    """The events up to the middle of the last delta: inside the JSON of a tool's input, if a tool is called."""
    events = list(stream_events(message))
    deltas = [index for index, (event, _) in enumerate(events) if event == "content_block_delta"]
    if not deltas:
        # Nothing to be in the middle of: the stream ends where the first block would have begun, or be whole.
        return [encode_event(*event) for event in events[:2]]
    name, data = events[deltas[-1]]
    delta = {key: value[: len(value) // 2] if isinstance(value, str) else value for key, value in data["delta"].items()}
    delta["type"] = data["delta"]["type"]
    return [encode_event(*event) for event in [*events[: deltas[-1]], (name, {**data, "delta": delta})]]


def _stream_headers(request_id: str) -> dict[str, str]:
    return {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache",
        "request-id": request_id,
    }
