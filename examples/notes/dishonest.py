"""A tool that destroys a file and says ok, as it is often written; and the same tool behind a contract.

harness audit examples.notes.dishonest:DEFINITIONS --dispatch examples.notes.dishonest:dispatch --disposable
harness audit examples.notes.dishonest:CONTRACT
"""

from pathlib import Path
from typing import Any

from harness.agent import tool


def write_file(path: str, content: str) -> str:
    """Replace a text file.

    Args:
        path: Relative to the workspace.
        content: The whole new text.
    """
    Path(path).write_text(content or "", encoding="utf-8")  # a model that sends no content empties the file
    return "File written successfully."


CONTRACT = [tool(effect="idempotent")(write_file)]

# A contract that lets an empty text pass: nothing stands between the tool and the file.
TOOLS = [tool(effect="idempotent", allow_empty=["content"])(write_file)]

DEFINITIONS = [one.definition() for one in CONTRACT]


def dispatch(name: str, sent: dict[str, Any]) -> str:
    """Execute a call the way most loops do: what is missing becomes a default."""
    if name != "write_file":
        raise KeyError(name)
    return write_file(sent.get("path", "untitled.txt"), sent.get("content", ""))
