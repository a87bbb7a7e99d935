"""Asking the model, and taking nothing but whole responses for an answer.

What the SDK (2.14, probed) gives is not enough to go by: a stream that ends early comes back as a message without
stop_reason and with half of a tool's input, an `error` event raises an `APIStatusError` with status 200, a socket that
breaks raises an error that is not the SDK's own, and malformed tool JSON raises a bare `ValueError`.
"""

from __future__ import annotations

import email.utils
import inspect
import json
import time
from typing import TYPE_CHECKING, Any, Final

from harness.agent.effects import Lost, Whole
from harness.errors import HarnessError, LoopError
from harness.wire import MessageReader, encode_event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness.agent.state import Json

__all__ = ["ask", "ask_async", "without_own_retries"]

# Documented as temporary (PROTOCOL.md 3); 529 and every other 5xx are covered by the range.
_TEMPORARY_STATUS: Final = frozenset({408, 409, 429})

# An `error` event inside a stream has status 200, and only its type says what it is.
_TEMPORARY_TYPE: Final = frozenset({"api_error", "overloaded_error", "rate_limit_error", "timeout_error"})

# Transports leak their own errors through the SDK once the response has begun.
_TRANSPORTS: Final = frozenset({"h11", "h2", "httpcore", "httpcore2", "httpx", "httpx2", "anyio", "ssl"})


def without_own_retries(client: Any, *, asynchronous: bool) -> Any:
    """The client with the SDK's retries off: ours are counted and durable, theirs are neither.

    Raises:
        LoopError: A blocking client was given to `arun`, or an asynchronous one to `run`, or no client at all.
    """
    bare = client.with_options(max_retries=0) if callable(getattr(client, "with_options", None)) else client
    if not callable(getattr(getattr(bare, "messages", None), "create", None)):
        raise LoopError(f"client is {client!r}, which has no `messages.create`; give an Anthropic client")
    # The SDK's methods are wrapped in functions that are no coroutine functions themselves.
    if inspect.iscoroutinefunction(inspect.unwrap(bare.messages.create)) != asynchronous:
        wanted, other = ("an AsyncAnthropic", "run") if asynchronous else ("an Anthropic", "arun")
        raise LoopError(f"client is {type(client).__name__}; give {wanted} client, or use harness.agent.{other}")
    return bare


def ask(client: Any, request: Json, *, stream: bool, on_text: Callable[[str], None]) -> Whole | Lost:
    """Send one request and read its response.

    Args:
        client: An Anthropic client, or anything that answers `messages.create` like one.
        request: The request's parameters.
        stream: Read the response as it comes.
        on_text: Called with each piece of text that a stream brings.

    Returns:
        The response when it is whole, else why it is not and whether asking again may help.

    Raises:
        HarnessError: From the local model, unchanged: it is a fault of the case, not of the network.
        Exception: What is wrong with the call itself (a TypeError for a parameter that the SDK does not know), and
            whatever `on_text` raises: another request would not mend it.
    """
    reader, listener = MessageReader(), _Listener(on_text)
    try:
        if not stream:
            return _whole(_endpoint(client, request)(**request))
        events = _stream(_endpoint(client, request)(**request, stream=True))
        try:
            for event in events:
                _feed(reader, event, listener)
        finally:
            events.close()
    except Exception as error:  # noqa: BLE001 (see the module's first lines; what is not ours to judge is raised again)
        return _lost_by(listener.fault or error, reading=reader.message is not None, ours=listener.fault is None)
    return _read(reader)


async def ask_async(client: Any, request: Json, *, stream: bool, on_text: Callable[[str], None]) -> Whole | Lost:
    """`ask` for an AsyncAnthropic client."""
    reader, listener = MessageReader(), _Listener(on_text)
    try:
        if not stream:
            return _whole(await _endpoint(client, request)(**request))
        events = _stream(await _endpoint(client, request)(**request, stream=True))
        try:
            async for event in events:
                _feed(reader, event, listener)
        finally:
            await events.close()
    except Exception as error:  # noqa: BLE001 (as in `ask`)
        return _lost_by(listener.fault or error, reading=reader.message is not None, ours=listener.fault is None)
    return _read(reader)


class _Listener:
    """Who is told of text, and what went wrong there: a broken pipe of theirs must not pass for one of the network."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self.fault: Exception | None = None

    def __call__(self, text: str) -> None:
        try:
            self._on_text(text)
        except Exception as fault:
            self.fault = fault
            raise


def _endpoint(client: Any, request: Json) -> Any:
    return client.beta.messages.create if "betas" in request else client.messages.create


def _stream(events: Any) -> Any:
    if not callable(getattr(events, "close", None)):
        raise LoopError(f"the client answered with {type(events).__name__} and no stream; run it with stream=False")
    return events


def _plain(model: Any) -> Json:
    """What the API sent, from what the SDK made of it.

    `to_dict` and never `model_dump`, which adds fields that were not there; without the warnings that pydantic has for
    every type of block that this SDK does not know.
    """
    if not callable(getattr(model, "to_dict", None)):
        raise LoopError(f"the client answered with an object of type {type(model).__name__}, and not as the SDK does")
    plain: Json = model.to_dict(mode="json", warnings=False)
    return plain


def _feed(reader: MessageReader, event_model: Any, on_text: Callable[[str], None]) -> None:
    event = _plain(event_model)
    # Through the wire format, so that there is one place that knows how a message is put together from its events.
    reader.feed(encode_event(event["type"], event))
    delta = event.get("delta") or {}
    if delta.get("type") == "text_delta":
        on_text(str(delta.get("text", "")))


def _whole(model: Any) -> Whole | Lost:
    try:
        message: Any = _plain(model)
    except (ValueError, RecursionError) as error:  # nested more deeply than pydantic goes (255), for example
        return Lost(f"the response could not be read ({error})", again=True)
    if not isinstance(message, dict):
        return Lost("the response is no JSON object", again=True)
    if message.get("stop_reason") is None:
        return Lost("the response has no stop_reason: it was cut off", again=True)
    return Whole(message)


def _read(reader: MessageReader) -> Whole | Lost:
    if reader.complete and reader.message is not None:
        return Whole(reader.message)
    return Lost("the stream ended before the response was whole", again=True)


def _lost_by(error: Exception, *, reading: bool, ours: bool) -> Lost:
    """What an exception means for the attempt; raises it again when another attempt is no remedy and no answer
    either.

    `reading`: the response has begun.  `ours`: raised by the SDK or beneath it, and not by whoever is told of text.
    """
    if not ours:
        raise error
    for cause in _causes(error):
        if isinstance(cause, HarnessError):
            raise cause
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return _lost_by_status(error, status)
    family = {f"{kind.__module__}.{kind.__name__}" for kind in type(error).__mro__}
    if any(name.endswith((".APIConnectionError", ".RetryableError")) for name in family):
        return Lost(_words(error), again=True)
    root = type(error).__module__.partition(".")[0]
    if root in _TRANSPORTS or isinstance(error, OSError | EOFError | json.JSONDecodeError):
        return Lost(f"{type(error).__name__}: {error}", again=True)
    if isinstance(error, RecursionError):
        return Lost("the response is nested too deeply to be read", again=True)
    if reading and isinstance(error, ValueError | AssertionError):
        return Lost(f"the stream could not be read ({type(error).__name__}: {error})", again=True)
    raise error


def _lost_by_status(error: Exception, status: int) -> Lost:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    kind = getattr(error, "type", None)
    in_stream = status < 400
    again = kind in (None, *_TEMPORARY_TYPE) if in_stream else status in _TEMPORARY_STATUS or status >= 500
    said = headers.get("x-should-retry")
    if said in ("true", "false"):  # the server knows better; the SDK obeys it too
        again = said == "true"
    named = f"{status} {kind}" if kind else str(status)
    return Lost(f"{named}: {_words(error)}", again=again, retry_after=_retry_after(headers), status=status)


def _words(error: Exception) -> str:
    words = getattr(error, "api_message", None) or getattr(error, "message", None) or str(error)
    return str(words).strip() or type(error).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and what it was raised from; the SDK wraps whatever a transport raises."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _retry_after(headers: Any) -> float | None:
    """Seconds, from `retry-after-ms` or `retry-after` (seconds or a date), as the SDK reads them."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * scale)
        except (KeyError, TypeError, ValueError):
            continue
    date = email.utils.parsedate_tz(headers.get("retry-after") or "")
    return None if date is None else max(0.0, email.utils.mktime_tz(date) - time.time())
