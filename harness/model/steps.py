"""The steps of a script: answers, and failures before them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from harness.model.conversation import is_blank

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Answer", "Block", "Fail", "Path", "Step", "identifier"]

Path: TypeAlias = tuple[str | int, ...]
Block: TypeAlias = dict[str, Any]

_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SILENCED: Final = "Tool use is switched off, so this is where I stop."


@dataclass(frozen=True)
class Answer:
    """One response of the model.

    Args:
        path: where in the script it stands.
        message_id: the id of the message.
        content: its blocks, ids included.
        stop_reason: as in the API, likewise `stop_sequence` and `stop_details`.
        usage: what the script says of the token counts, over the estimate.
        on_unknown: what is played when the loop is told that the status of a call is unknown; None: nothing special.
        on_error: what is played when a call failed.
    """

    path: Path
    message_id: str
    content: tuple[Block, ...]
    stop_reason: str
    stop_sequence: str | None = None
    stop_details: Mapping[str, Any] | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    on_unknown: tuple[Step, ...] | None = None
    on_error: tuple[Step, ...] | None = None

    @cached_property
    def calls(self) -> list[Block]:
        """The tool_use blocks, which the loop has to answer."""
        return [block for block in self.content if block["type"] == "tool_use"]

    @cached_property
    def shown(self) -> list[Block]:
        """What the conversation has to hold of it afterwards: all but blank text, which the API does not take back."""
        return [block for block in self.content if not is_blank(block)]

    @cached_property
    def thoughts(self) -> list[Block]:
        """Its thinking blocks, which have to come back unchanged."""
        return [block for block in self.content if block["type"] in {"thinking", "redacted_thinking"}]

    def silenced(self) -> Answer:
        """The same answer where no tool may be called (`tool_choice: none`): a sentence in place of the calls."""
        spoken = [block for block in self.content if block["type"] != "tool_use"]
        content = (*spoken, {"type": "text", "text": _SILENCED})
        return replace(self, content=content, stop_reason="end_turn", message_id=identifier("msg_", self.message_id))


@dataclass(frozen=True, slots=True)
class Fail:
    """The next attempts at this place fail.

    Args:
        path: where in the script it stands.
        kind: `status`, or one of `disconnect`, `mid_stream`, `truncated`, `timeout`.
        status: the HTTP status of kind `status`.
        times: how many attempts fail.
        retry_after: seconds, for the `retry-after` header.
        message: the text of the error in place of the usual one.
    """

    path: Path
    kind: str
    status: int = 0
    times: int = 1
    retry_after: float | None = None
    message: str | None = None


Step: TypeAlias = Answer | Fail


def identifier(prefix: str, *material: object) -> str:
    """An id that looks like the API's (`toolu_01…`, 22 characters of base 62), the same for the same material."""
    number = int.from_bytes(hashlib.sha256(repr(material).encode()).digest(), "big")
    digits = []
    for _ in range(22):
        number, digit = divmod(number, 62)
        digits.append(_BASE62[digit])
    return f"{prefix}01{''.join(digits)}"
