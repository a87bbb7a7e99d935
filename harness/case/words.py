"""How messages about a case name the values that people wrote."""

from __future__ import annotations

from typing import Any

__all__ = ["named", "spelled"]


def named(value: Any) -> str:
    """What a value is, for a message about a value of the wrong kind."""
    match value:
        case None:
            return "nothing"
        case bool():
            return f"the boolean {spelled(value)}"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the text {value!r}" if len(value) <= 60 else f"the text {value[:57]!r}..."
        case list():
            return "a list"
        case _:
            return "a mapping"


def spelled(value: Any) -> str:
    """A plain scalar as YAML spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
