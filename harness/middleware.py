"""Sees every answer of the Messages API that passes an SDK client, through the SDK's own middleware interface.

Bytes are copied as they pass: streaming and non-streaming, sync and async clients, `create`, `stream` and the raw
response forms all see what they would see without it.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

import httpx2
from anthropic import Middleware

from harness.wire import MessageReader, read_message

if TYPE_CHECKING:
    from anthropic import APIResponse, AsyncAPIResponse
    from anthropic._middleware import AsyncCallNext, CallNext
    from anthropic._request import APIRequest

__all__ = ["Answers", "ListeningMiddleware"]

_GZIP: Final = zlib.MAX_WBITS | 16  # the format that zlib is to expect


class Answers(Protocol):
    """Hears of requests and answers.  None of the methods may raise."""

    def asked(self, request: Mapping[str, Any]) -> None:
        """A request is about to be sent."""

    def answering(self, reader: MessageReader) -> Any:
        """An answer has begun; `reader` fills as it arrives."""

    def answered(self, token: Any) -> None:
        """The answer that `token` stands for is over, whole or not."""

    def unreadable(self, content_type: str) -> None:
        """An answer came in a form that cannot be listened to."""


class ListeningMiddleware(Middleware):
    """Reports the requests to `/v1/messages` and their successful answers."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def handle(self, request: APIRequest, call_next: CallNext) -> APIResponse[Any]:
        """Pass a request of a sync client on, and listen to the answer."""
        if not _is_message(request):
            return call_next(request)
        self._ask(request)
        response = call_next(request)
        self._listen(response.http_response)
        return response

    async def handle_async(self, request: APIRequest, call_next: AsyncCallNext) -> AsyncAPIResponse[Any]:
        """Pass a request of an async client on, and listen to the answer."""
        if not _is_message(request):
            return await call_next(request)
        self._ask(request)
        response = await call_next(request)
        self._listen(response.http_response)
        return response

    def _ask(self, request: APIRequest) -> None:
        if isinstance(request.json, Mapping):
            self._answers.asked(request.json)

    def _listen(self, response: httpx2.Response) -> None:
        if not response.is_success:
            return
        content_type = response.headers.get("content-type", "")
        if content_type and not any(form in content_type.lower() for form in ("json", "text/event-stream")):
            self._answers.unreadable(content_type)
            return
        try:
            body = response.content
        except httpx2.ResponseNotRead:
            tap = _Tap(response, content_type, self._answers)
            if isinstance(response.stream, httpx2.AsyncByteStream):
                response.stream = _AsyncCopy(response.stream, tap)
            else:
                response.stream = _Copy(response.stream, tap)
        else:
            self._answers.answered(self._answers.answering(read_message(body, content_type)))


class _Tap:
    """Feeds a reader with what passes, as it passes: a loop may execute a block before the answer is over.

    What is no event stream, or compressed in a way that only an optional package can undo, is read when it is over.
    """

    def __init__(self, response: httpx2.Response, content_type: str, answers: Answers) -> None:
        self._headers = response.headers
        self._content_type = content_type
        self._answers = answers
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        self._live = "text/event-stream" in content_type.lower() and encoding in {"identity", "gzip"}
        inflate = zlib.decompressobj(_GZIP).decompress if encoding == "gzip" else bytes
        self._inflate: Callable[[bytes], bytes] = inflate
        self._reader = MessageReader()
        self._chunks: list[bytes] = []
        self._token = answers.answering(self._reader) if self._live else None
        self._over = False

    def passed(self, chunk: bytes) -> None:
        if not self._live:
            self._chunks.append(chunk)
            return
        try:
            self._reader.feed(self._inflate(chunk))
        except zlib.error:
            self._inflate = bytes  # the SDK says what is wrong; what follows is no event, and the message not whole

    def over(self) -> None:
        if self._over:
            return
        self._over = True
        if not self._live:
            self._token = self._answers.answering(self._read())
        self._answers.answered(self._token)

    def _read(self) -> MessageReader:
        try:
            whole = httpx2.Response(200, headers=self._headers, content=b"".join(self._chunks))
            return read_message(whole.content, self._content_type)
        except httpx2.DecodingError:
            return MessageReader()


class _Copy(httpx2.SyncByteStream):
    def __init__(self, stream: Any, tap: _Tap) -> None:
        self._stream = stream
        self._tap = tap

    @property
    def elapsed(self) -> Any:
        return getattr(self._stream, "elapsed", None)

    def __iter__(self) -> Iterator[bytes]:
        try:
            for chunk in self._stream:
                self._tap.passed(chunk)
                yield chunk
        finally:
            self._tap.over()

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            self._tap.over()


class _AsyncCopy(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, tap: _Tap) -> None:
        self._stream = stream
        self._tap = tap

    @property
    def elapsed(self) -> Any:
        return getattr(self._stream, "elapsed", None)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:
                self._tap.passed(chunk)
                yield chunk
        finally:
            self._tap.over()

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            self._tap.over()


def _is_message(request: APIRequest) -> bool:
    return request.method.upper() == "POST" and request.url.partition("?")[0].rstrip("/").endswith("/v1/messages")
