"""docs/durable.md is true: its worker is run, killed and started again here, by the commands that it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from harness.model.local import LocalModel
from harness.model.script import Script
from harness.model.server import ModelServer

DOCUMENT = (Path(__file__).parents[2] / "docs" / "durable.md").read_text(encoding="utf-8")

SCRIPT = Script.parse([
    {"call": {"read_file": {"path": "plan.txt"}}},
    {
        "call": {"send_email": {"to": "team", "body": "Friday."}},
        "on_unknown": [{"say": "I cannot tell whether the mail went out; please check."}],
    },
    {"say": "The team knows."},
])  # fmt: skip


def neutral(text: str) -> str:
    """Without what varies by run: ids and times, and the width of the column of ids."""
    text = re.sub(r"toolu_\w+", "<id>", re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "<time>", text))
    return re.sub(r" *\b[\d.]+ s\b *", " <took> ", text)


def test_the_session_is_real(tmp_path: Path) -> None:
    """The program of the document, under its commands, prints what the document shows."""
    program = re.findall(r"```python\n(# worker\.py\n.*?)```", DOCUMENT, re.DOTALL)[0]
    session = re.findall(r"```text\n(\$ echo .*?)```", DOCUMENT, re.DOTALL)[0]
    (tmp_path / "worker.py").write_text(program, encoding="utf-8")
    commands = [line[2:] for line in session.splitlines() if line.startswith("$ ")]
    scripts = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with ModelServer(LocalModel(SCRIPT)) as server:
        environment = {**os.environ, "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "any", "PATH": scripts}
        shown = ""
        for command in commands:
            done = subprocess.run(
                ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60,
                check=False,
            )  # fmt: skip
            shown += f"$ {command}\n{done.stdout}"
    assert neutral(shown) == neutral(session)
