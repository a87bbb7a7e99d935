"""Foreign text inside Markdown and GitHub's workflow commands, where it must not begin markup of its own."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["command_data", "command_property", "markdown_code", "markdown_fence", "markdown_text"]

# In CommonMark a character reference is never structure: what is written as one cannot begin anything.
_MARKUP: Final = {ord(char): f"&#{ord(char)};" for char in "&<>|`*_[]~\\$"}

_UNSEEN: Final = "\u200b"
"""A space of no width: it breaks what forges look for after Markdown was rendered, and nobody sees it."""

_CALLED: Final = re.compile(r"([@#!%&~$]|\bGH-|www\.)(?=\w)|:(?=//)", re.IGNORECASE)
"""Mentions, references to issues and the like, bare addresses: forges make links of them wherever prose has them."""


def markdown_text(text: str) -> str:
    """Prose for any place in Markdown, a table's cell and HTML included; what stands between backticks is code.

    It begins no markup, no HTML, no link, mention or reference to an issue.  One line stays one line.
    """
    parts = " ".join(text.split("\n")).split("`")
    if len(parts) % 2 == 0:  # a backtick without a partner is a backtick
        return _prose(text)
    return "".join(_prose(part) if not place % 2 else markdown_code(part) for place, part in enumerate(parts))


def markdown_code(text: str) -> str:
    """A name or a command for any place in Markdown, a table's cell and HTML included."""
    if not text:
        return "<code>&#96;&#96;</code>"
    return f"<code>{' '.join(text.split(chr(10))).translate(_MARKUP)}</code>"


def _prose(text: str) -> str:
    broken = _CALLED.sub(lambda found: f"{found[0]}{_UNSEEN}", " ".join(text.split("\n")))
    return broken.translate(_MARKUP)


def markdown_fence(text: str, language: str) -> str:
    """Lines as a block of code, whose fence is longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"


def command_data(text: str) -> str:
    """The message of a workflow command, escaped as GitHub's own toolkit does it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def command_property(text: str) -> str:
    """A property of a workflow command: those end at a comma, their list at a colon."""
    return command_data(text).replace(":", "%3A").replace(",", "%2C")
