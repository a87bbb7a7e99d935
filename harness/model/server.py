"""The local model on loopback, for loops in other languages and for clients that cannot be handed a transport."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import uvicorn
from starlette.requests import ClientDisconnect, Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from harness.errors import ModelError
from harness.model.reply import error_reply
from harness.model.steps import identifier

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from starlette.types import Receive, Scope, Send

    from harness.model.local import LocalModel
    from harness.model.reply import Reply

__all__ = ["ModelServer"]

Connections: TypeAlias = dict[tuple[str, int], asyncio.Transport]

_KEEP_ALIVE_SECONDS: Final = 600  # as long as the SDK waits: a client of the loop must not find its connection closed
_NOBODY: Final = (
    "no case is running: the request came before the harness set a model, or after it took it away. A loop must have"
    " made its last request when it returns"
)


class ModelServer:
    """An HTTP server on 127.0.0.1 behind which a `LocalModel` answers, in a thread of its own.

    The model can be exchanged at any time, and the port stays: the clients that a loop made when it was imported keep
    their URL for all cases of the process.  A request is answered by the model that is set when it has arrived.

        with ModelServer(LocalModel(script)) as server:
            client = anthropic.Anthropic(api_key="any", base_url=server.url)

    Args:
        model: who answers; None for nobody yet.
        port: the port to listen on; 0 for a free one.
    """

    def __init__(self, model: LocalModel | None = None, *, port: int = 0) -> None:
        self.model = model
        self._port = port
        self._url = ""
        self._connections: Connections = {}
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """What to set as `ANTHROPIC_BASE_URL`.

        Raises:
            ModelError: the server is not running.
        """
        if not self._url:
            raise ModelError("the model server has no URL while it is not running: use it in a `with` block")
        return self._url

    def start(self) -> None:
        """Starts to listen.

        Raises:
            ModelError: the port cannot be opened.
        """
        listener = _listen(self._port)
        self._connections.clear()
        self._server = _Server(self._serve, self._connections)
        self._thread = threading.Thread(
            target=self._server.listen_on, args=(listener,), name="harness-model-server", daemon=True
        )
        self._url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self._thread.start()
        self._server.ready.wait()
        if not self._server.started:
            self._thread.join()
            raise ModelError("the model server could not start; the reason was written to stderr by its thread")

    def stop(self) -> None:
        """Drops every connection and ends the thread."""
        if self._server is not None and self._thread is not None:
            self._server.stop()
            self._thread.join()
        self._server = self._thread = None
        self._url = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application."""
        request = Request(scope, receive)
        try:
            body = await request.body()
        except ClientDisconnect:
            return
        target = scope["raw_path"].decode("ascii") + (f"?{request.url.query}" if request.url.query else "")
        if self.model is None:
            reply = error_reply(400, _NOBODY, identifier("req_", _NOBODY))
        else:
            reply = self.model.handle(request.method, target, request.headers, body)
        await _write(reply, send)
        if reply.end != "normal":
            if reply.end == "cut":
                # Closing flushes what was written and ends the connection in the middle of the body.
                self._connections[scope["client"]].close()
            while (await receive())["type"] != "http.disconnect":
                pass


class _Server(uvicorn.Server):
    """uvicorn, told to stop by an event in place of a flag that it looks at ten times a second."""

    def __init__(self, app: Callable[..., Any], connections: Connections) -> None:
        class Connection(H11Protocol):
            """A connection whose transport the application can close in the middle of a response, as ASGI cannot."""

            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                connections[transport.get_extra_info("peername")] = transport
                super().connection_made(transport)

            def connection_lost(self, exc: Exception | None) -> None:
                connections.pop(self.transport.get_extra_info("peername"), None)
                super().connection_lost(exc)

        super().__init__(
            uvicorn.Config(
                app,
                interface="asgi3",
                http=Connection,
                ws="none",
                lifespan="off",
                loop="asyncio",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            )
        )
        self.ready = threading.Event()
        self._connections = connections
        self._stopping: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def listen_on(self, listener: socket.socket) -> None:
        """Serves until it is told to stop: the body of the thread."""
        try:
            self.run(sockets=[listener])
        finally:
            self.ready.set()

    async def main_loop(self) -> None:
        """Waits until it is told to stop, then lets go of all clients."""
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        await self.on_tick(0)
        self.ready.set()
        await self._stopping.wait()
        for transport in list(self._connections.values()):
            transport.abort()

    def stop(self) -> None:
        """Ends the main loop, from another thread."""
        if self._loop is not None and self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)


async def _write(reply: Reply, send: Send) -> None:
    if not reply.status:
        return
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    for chunk in reply.chunks:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    if reply.end == "normal":
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _listen(port: int) -> socket.socket:
    # With the protocol named, asyncio sets TCP_NODELAY; else every response waits 40 ms for a delayed acknowledgement.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # So that a port which was chosen by number can be opened again right after it was closed.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise ModelError(
            f"cannot listen on 127.0.0.1:{port}: {error.strerror}; choose another port, or 0 for a free one"
        ) from None
    return listener
