"""One styled line of a report, and how it gives way where the window is narrow."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Line", "Style", "fitted", "plain_text", "printable"]

Style: TypeAlias = Literal["plain", "faint", "title", "added", "removed", "changed", "moved"]

_SHORTEST: Final = 4
"""Cells below which a value says nothing; then all of what may give way becomes one ellipsis."""

_NARROWEST: Final = 20
"""No window is taken for narrower than this: what cannot be read need not be shortened."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text and how it is meant.

    Names and messages in it come from models, tools and loops, so the text is made `printable`.

    Args:
        text: the line, without its end.
        style: what it is.
        spans: where a line that must stay one line may be shortened, as start and end: first all that may become an
            ellipsis, then the parts of it that are shortened before.
        hang: where a line of prose goes on when it is broken between words; None for one that stays one line.
    """

    text: str
    style: Style = "plain"
    spans: tuple[tuple[int, int], ...] = ()
    hang: int | None = None

    def __post_init__(self) -> None:
        if not self.text.isprintable():
            object.__setattr__(self, "text", printable(self.text))

    @classmethod
    def of_parts(cls, before: str, values: Sequence[tuple[str, str]], after: str, style: Style = "plain") -> Self:
        """A line whose middle gives way.

        Args:
            before: what stays.
            values: the middle: pairs of what stands before a value, and the value, which is shortened first.
            after: what stays as well: it says what the line is there for.
            style: what it is.
        """
        text = printable(before)
        start = len(text)
        inner: list[tuple[int, int]] = []
        for label, value in values:
            text += printable(label)
            end = len(text) + len(printable(value))
            inner.append((len(text), end))
            text += printable(value)
        spans = ((start, len(text)), *inner) if len(text) > start else ((0, start),)
        return cls(text + printable(after), style, spans)

    def data(self) -> list[object]:
        """Plain data, for the way between processes."""
        return [self.text, self.style, [list(span) for span in self.spans], self.hang]

    @classmethod
    def from_data(cls, data: Sequence[object]) -> Self:
        """What `data` gave."""
        text, style, spans, hang = data
        return cls(text, style, tuple((start, end) for start, end in spans), hang)  # type: ignore[arg-type,attr-defined]


def printable(text: str) -> str:
    """The text with everything escaped that would break a line, move a cursor, or that UTF-8 cannot hold."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text.expandtabs(4))


def plain_text(lines: Iterable[Line]) -> str:
    """The lines without any style, each ended by a newline."""
    return "".join(f"{line.text}\n" for line in lines)


def fitted(line: Line, width: int) -> list[str]:
    """The text of a line in a window: prose is broken between words, calls are shortened; the rest stays as it is.

    Args:
        line: what to show.
        width: of the window, in cells; 0 where there is none.
    """
    if not width or len(line.text) * 2 <= width or _cells(line.text) <= width:
        return [line.text]
    width = max(width, _NARROWEST)
    if line.hang is not None:
        indent = " " * min(line.hang, width // 2)
        options = {"break_on_hyphens": False, "drop_whitespace": True, "subsequent_indent": indent}
        return textwrap.wrap(line.text, width, **options) or [""]  # type: ignore[arg-type]
    return [_shortened(line, width)] if line.spans else [line.text]


def _shortened(line: Line, width: int) -> str:
    text = line.text
    (start, end), *inner = line.spans
    head, tail = text[:start], text[end:]
    values = [text[first:last] for first, last in inner]
    room = width - _cells(head) - _cells(tail) - (_cells(text[start:end]) - sum(map(_cells, values)))
    if values and room >= _SHORTEST * len(values):
        lengths = iter(_shares([_cells(value) for value in values], room))
        place, middle = start, ""
        for (first, last), value in zip(inner, values, strict=True):
            middle += text[place:first] + _cut(value, next(lengths))
            place = last
        return head + middle + text[place:end] + tail
    tail = _cut(tail, max(width // 2, width - _NARROWEST))
    # A line with values keeps an ellipsis for them; of one without, the head itself gives way.
    head = f"{head}…" if inner else head + text[start:end]
    return _cut(head, width - _cells(tail)) + tail


def _shares(lengths: Sequence[int], room: int) -> list[int]:
    """How many cells each value gets: the longest ones give way first."""
    low, high = 0, max(lengths)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if sum(min(one, middle) for one in lengths) <= room else (low, middle - 1)
    return [min(one, low) for one in lengths]


def _cut(text: str, cells: int) -> str:
    if _cells(text) <= cells:
        return text
    if text.isascii():
        return f"{text[: max(cells - 1, 0)]}…"
    from rich.cells import set_cell_size

    return f"{set_cell_size(text, max(cells - 1, 0)).rstrip()}…"


def _cells(text: str) -> int:
    """How wide a text is.  Rich knows it, and takes 10 ms to load: only what is not plain ASCII asks it."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
