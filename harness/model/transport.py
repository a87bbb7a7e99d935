"""The local model in the same process: the SDK's own client, with a transport that opens no socket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anthropic
import httpx2

from harness.errors import NetworkBlockedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from harness.model.local import LocalModel
    from harness.model.reply import Reply

__all__ = ["MODEL_URL", "LocalTransport", "async_client", "sync_client"]

MODEL_URL: Final = "http://local-model"
_API_KEY: Final = "harness"


class _BlockedError(NetworkBlockedError, anthropic.AnthropicError):
    """Both, since the SDK wraps and retries whatever is not its own, which would hide the host that was asked for."""


class LocalTransport(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """An HTTP transport, sync and async, behind which a `LocalModel` answers.

    Raises:
        NetworkBlockedError: a request goes to another host than `MODEL_URL`.
    """

    def __init__(self, model: LocalModel) -> None:
        self._model = model

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answers a request of a sync client."""
        return self._answer(request, request.read())

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answers a request of an async client."""
        return self._answer(request, await request.aread())

    def _answer(self, request: httpx2.Request, body: bytes) -> httpx2.Response:
        url = request.url
        if url.host != _HOST:
            message = (
                f"a request to {url.scheme}://{url.netloc.decode()} was blocked: a run with a local model never leaves"
                " the machine. Let the loop use the client that the harness gives it, or its ANTHROPIC_BASE_URL"
            )
            self._model.report("network", message)
            raise _BlockedError(message)
        reply = self._model.handle(request.method, url.raw_path.decode(), request.headers, body)
        if not reply.status:
            if reply.end == "never":
                # The client's time is not spent waiting for it.
                raise httpx2.ReadTimeout("timed out", request=request)
            raise httpx2.RemoteProtocolError("Server disconnected without sending a response.", request=request)
        return httpx2.Response(reply.status, headers=reply.headers, stream=_Body(reply), request=request)


class _Body(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """The body of a reply in one piece: in one process, nobody can see when its parts arrive."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    def __iter__(self) -> Iterator[bytes]:
        yield b"".join(self._reply.chunks)
        if self._reply.end == "cut":
            raise _cut_off()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"".join(self._reply.chunks)
        if self._reply.end == "cut":
            raise _cut_off()


def _cut_off() -> httpx2.RemoteProtocolError:
    return httpx2.RemoteProtocolError("peer closed connection without sending complete message body")


_HOST: Final = httpx2.URL(MODEL_URL).host


def sync_client(model: LocalModel, **options: Any) -> anthropic.Anthropic:
    """An `anthropic.Anthropic` whose model is `model`.

    Args:
        model: who answers.
        options: as for `anthropic.Anthropic`, for example `max_retries=0` or `middleware=[…]`; `api_key` and `base_url`
            are placeholders unless they are given.
    """
    http_client = httpx2.Client(transport=LocalTransport(model))
    return anthropic.Anthropic(**{"api_key": _API_KEY, "base_url": MODEL_URL, **options, "http_client": http_client})


def async_client(model: LocalModel, **options: Any) -> anthropic.AsyncAnthropic:
    """An `anthropic.AsyncAnthropic` whose model is `model`; arguments as for `sync_client`."""
    http_client = httpx2.AsyncClient(transport=LocalTransport(model))
    return anthropic.AsyncAnthropic(
        **{"api_key": _API_KEY, "base_url": MODEL_URL, **options, "http_client": http_client}
    )
