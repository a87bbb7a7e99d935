"""Conversations that the API holds: a request may name the answer it follows, and send only what is new.

The SDK's `beta.messages.tool_runner` does so by default.  What is held is memory of one process.  That loses nothing:
an answer that is not known is refused with `thread_not_found`, upon which the SDK sends the whole conversation again
(SDK 2.14, `lib/threads/_thread_state.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Threads"]

# What a continued thread takes from the request that began it, unless it is sent again.
_KEPT: Final[tuple[str, ...]] = ("system", "thinking", "tool_choice", "tools")


class Threads:
    """The conversations held so far, by the id of the answer that each ends with."""

    def __init__(self) -> None:
        self._held: dict[str, dict[str, Any]] = {}

    def whole(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """The request with all that went before it; None when it continues an answer that is not held."""
        thread = request.get("thread")
        if not isinstance(thread, dict) or thread.get("type") != "continue":
            return dict(request)
        held = self._held.get(str(thread.get("previous_message_id")))
        if held is None:
            return None
        kept: dict[str, Any] = {key: held[key] for key in _KEPT if key in held}
        return {**kept, **request, "messages": [*held["messages"], *request["messages"]]}

    def keep(self, request: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        """Hold the conversation of a whole request and its answer, if it asked for that."""
        if request.get("thread"):
            answer = {"role": "assistant", "content": message["content"]}
            self._held[str(message["id"])] = {**request, "messages": [*request["messages"], answer]}
