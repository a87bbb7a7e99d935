"""A conversation as the API reads it: consecutive messages of one role merged into one turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Placed", "Turn", "is_blank", "text_of", "turns_of"]


class Placed(NamedTuple):
    """A content block and where the request has it: `messages[message].content[position]`."""

    message: int
    position: int
    block: Mapping[str, Any]

    @property
    def path(self) -> str:
        """The place in the form of the API's error messages."""
        return f"messages.{self.message}.content.{self.position}"


@dataclass(slots=True)
class Turn:
    """Consecutive messages of one role.

    Attributes:
        last: the index of the last of them.
        placed: all their blocks; `uses` and `results` are those of type tool_use and tool_result.
    """

    role: str
    last: int = 0
    placed: list[Placed] = field(default_factory=list)
    uses: list[Placed] = field(default_factory=list)
    results: list[Placed] = field(default_factory=list)

    def add(self, placed: Placed) -> None:
        """Appends a block."""
        self.placed.append(placed)
        kind = placed.block["type"]
        if kind == "tool_use":
            self.uses.append(placed)
        elif kind == "tool_result":
            self.results.append(placed)

    def thoughts(self) -> list[Placed]:
        """The thinking blocks, redacted ones included."""
        return [one for one in self.placed if one.block["type"] in {"thinking", "redacted_thinking"}]


def turns_of(messages: Iterable[Mapping[str, Any]]) -> list[Turn]:
    """The turns of a request whose messages are well formed.

    The API merges consecutive messages of one role and reads a string as one text block (SDK: MessageCreateParams).
    Messages of role `system` stand beside the turns and part none.
    """
    turns: list[Turn] = []
    for index, message in enumerate(messages):
        role, content = message["role"], message["content"]
        if role == "system":
            continue
        if not turns or turns[-1].role != role:
            turns.append(Turn(role))
        turn = turns[-1]
        turn.last = index
        if isinstance(content, str):
            if content:
                turn.add(Placed(index, 0, {"type": "text", "text": content}))
        else:
            for position, block in enumerate(content):
                turn.add(Placed(index, position, block))
    return turns


def is_blank(block: Mapping[str, Any]) -> bool:
    """Whether it is a text block that shows nothing: models write them, the API refuses to take them back."""
    if block["type"] != "text":
        return False
    text = block.get("text")
    return not text or (isinstance(text, str) and text.isspace())


def text_of(content: object) -> str:
    """The text of a `tool_result`'s content, whether it is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(one.get("text", "")) for one in content if isinstance(one, dict))
    return ""
