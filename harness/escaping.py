"""Foreign text inside Markdown tables and GitHub's workflow commands, where it must not begin markup of its own."""

from __future__ import annotations

__all__ = ["command_data", "command_property", "table_cell"]


def table_cell(text: str) -> str:
    """The text as one cell of a Markdown table."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("\n", " ").replace("`", "\\`")


def command_data(text: str) -> str:
    """The message of a workflow command, escaped as GitHub's own toolkit does it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def command_property(text: str) -> str:
    """A property of a workflow command: those end at a comma, their list at a colon."""
    return command_data(text).replace(":", "%3A").replace(",", "%2C")
