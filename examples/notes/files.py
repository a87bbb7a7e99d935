"""A tool that replaces a file, with the contract that keeps it from replacing one by nothing."""

from pathlib import Path

from harness.agent import tool


@tool(effect="idempotent")
def write_file(path: str, content: str) -> str:
    """Replace a text file.

    Args:
        path: Relative to the workspace.
        content: The whole new text; an empty one is refused, as is a missing one.
    """
    Path(path).write_text(content, encoding="utf-8")
    return f"wrote {len(content)} characters"


TOOLS = [write_file]
