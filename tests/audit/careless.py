"""Tools with every bad habit that an audit should find, and a few good ones."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Literal

from anthropic import beta_tool
from pydantic import BaseModel

from harness.agent import tool


class Row(BaseModel):
    note: str
    amount: int = 1


def truncates(path: str, content: str) -> str:
    """Empties the file first, and then finds that there is nothing to write."""
    with open(path, "w") as file:  # noqa: PTH123 (as written in the wild)
        file.write(content)
    return "ok"


def empties_workspace(folder: str) -> str:
    for entry in Path("./" + folder).iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    return "removed"


def sleeps(text: str) -> str:
    if text == "":
        time.sleep(60)
    return text.upper()


def exits(text: str) -> str:
    return text.upper() if text else sys.exit(3)


def is_killed(text: str) -> str:
    if text == "":
        os.kill(os.getpid(), signal.SIGKILL)
    return text.upper()


def leaves_a_process(text: str) -> str:
    with open(os.environ["AUDIT_TEST_LOCK"], "w") as lock:  # noqa: PTH123 (a descriptor is what is needed)
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.Popen(["sleep", "60"], pass_fds=[lock.fileno()])
    if not isinstance(text, str) or not text:
        raise ValueError("no text")
    return text


def always_fails(order: str) -> str:
    raise KeyError(order)


def creates(path: str) -> str:
    if not isinstance(path, str) or not path:
        raise ValueError("path must be a text")
    with Path(path).open("x"):
        return "made"


def says_it_in_words(text: str) -> str:
    return text.upper() if isinstance(text, str) and text else "Error: no text"


def blocks(text: str) -> dict[str, Any]:
    bad = not isinstance(text, str) or not text
    return {"type": "tool_result", "content": "no" if bad else "yes", "is_error": bad}


async def async_echo(text: str) -> str:
    return f"{text}"


def nothing_required(text: str = "") -> str:
    return text


@tool(effect="read_only")
def nested(rows: list[Row], mode: Literal["fast", "slow"]) -> str:
    """Count rows."""
    return f"{len(rows)} {mode}"


@tool(effect="idempotent")
def replaces(settings: dict[str, str]) -> str:
    """Replace the settings."""
    Path("notes.txt").write_text("".join(settings))
    return "ok"


@tool(effect="idempotent", allow_empty=["note"])
def annotate(note: str) -> str:
    """An empty note is a note."""
    return note


@beta_tool
def sdk_tool(order: str) -> str:
    """Find an order.

    Args:
        order: Its number.
    """
    return order or "nothing"


DEFINITIONS = [
    {
        "name": "write",
        "input_schema": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            "required": ["path", "content"],
        },
    },
    {"type": "bash_20250124", "name": "bash"},
]


def write(path: str, content: str | None = None) -> str:
    Path(path).write_text(content or "")
    return "ok"


async def dispatch(name: str, sent: dict[str, Any]) -> str:
    return write(**sent)
