"""Tools over a folder of notes, and a mail that cannot be taken back."""

from pathlib import Path

from harness.agent import tool


@tool(effect="read_only")
def list_dir(path: str) -> list[str]:
    """List the files of a folder.

    Args:
        path: Relative to the workspace.
    """
    return sorted(entry.name for entry in Path(path).iterdir())


@tool(effect="read_only")
def read_file(path: str) -> str:
    """Read a text file.

    Args:
        path: Relative to the workspace.
    """
    return Path(path).read_text(encoding="utf-8")


@tool(effect="irreversible")
def send_email(to: str, subject: str, body: str) -> str:
    """Send a mail.

    Args:
        to: One address.
        subject: One line.
        body: Plain text.
    """
    with Path("outbox.txt").open("a", encoding="utf-8") as outbox:
        outbox.write(f"{to}: {subject}\n{body}\n")
    return "sent"


TOOLS = [list_dir, read_file, send_email]
