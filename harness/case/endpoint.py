"""One address of the local model for the whole process, for loops that build their own client.

Such a client may be made when the loop's module is imported, which happens once: its URL has to be right for every case
that follows.  So the address is known before anything is imported, and a server stands behind it once it is needed.
"""

from __future__ import annotations

import atexit
import os
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.local import LocalModel
    from harness.model.server import ModelServer

__all__ = ["Endpoint", "endpoint"]


class Endpoint:
    """A port on loopback that is held for the process, with or without a server behind it."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._held: socket.socket | None = socket.socket()
        self._held.bind(("127.0.0.1", 0))  # bound and not listening: nobody else gets it, and a connection is refused
        self._port: int = self._held.getsockname()[1]
        self._server: ModelServer | None = None

    @property
    def url(self) -> str:
        """What `ANTHROPIC_BASE_URL` is set to."""
        return f"http://127.0.0.1:{self._port}"

    @contextmanager
    def serving(self, model: LocalModel) -> Iterator[None]:
        """`model` answers at the address until the end of the block.

        The server is started by the first use and stays: stopping it takes 0.1 s, starting it 1 ms, and importing it as
        much as 100 cases.
        """
        if self._server is None:
            from harness.model.server import ModelServer

            server = ModelServer(port=self._port)
            self._release()
            self._server = server.__enter__()
        self._server.model = model
        try:
            yield
        finally:
            self._server.model = None

    def close(self) -> None:
        """Stops the server and lets the port go."""
        self._release()
        if self._server is not None:
            self._server.__exit__(None, None, None)
            self._server = None

    def _release(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


_current: Endpoint | None = None


def endpoint() -> Endpoint:
    """The endpoint of this process.  A forked child gets its own: threads do not survive a fork."""
    global _current  # noqa: PLW0603 - it belongs to the process
    if _current is None or _current.pid != os.getpid():
        _current = Endpoint()
        atexit.register(_current.close)
    return _current
