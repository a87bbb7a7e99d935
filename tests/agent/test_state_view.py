"""What people are shown of a run's state."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.agent import StateError
from harness.agent.state_view import export_state, read_state, show_ledger, show_state

SCRIPT = [
    {"call": [{"read_file": {"path": "a"}}, {"send_email": {"to": "secret@example.com"}}, {"put": {"name": ""}}]},
    {"say": "Done."},
]


@pytest.fixture
def torn(play: Any, world: Any, tmp_path: Path) -> Path:
    """A run that died while it was mailing."""
    world.broken["mail secret@example.com"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        play(SCRIPT)
    return tmp_path / "state"


def test_the_state_is_shown_in_the_published_layout(torn: Path, play: Any) -> None:
    """As `checkpoint.json` has it, whichever store wrote it."""
    shown = json.loads(show_state(torn))
    assert list(shown)[:6] == ["version", "task", "turns", "tokens_used", "messages", "pending_tool_uses"]
    assert (shown["version"], shown["task"], shown["turns"]) == (2, "Do it.", 1)
    assert [use["name"] for use in shown["pending_tool_uses"]] == ["read_file", "send_email", "put"]
    play(SCRIPT)
    assert json.loads(show_state(torn))["pending_tool_uses"] == []


def test_the_ledger_is_shown_without_its_secrets(torn: Path) -> None:
    """One line a call: state, effect, starts; and neither inputs nor results."""
    text = show_ledger(torn)
    head, _, columns, *rows = text.splitlines()
    assert head == "'Do it.': turn 1, 3 calls, 1 requests, not ended"
    assert columns.split() == ["turn", "tool", "effect", "state", "starts", "started", "(UTC)", "took", "tool_use_id"]
    assert [re.split(r"  +", row)[:5] for row in rows] == [
        ["1", "read_file", "read_only", "done", "1"],
        ["1", "send_email", "irreversible", "started", "1"],
        ["1", "put", "idempotent", "failed", "0"],
    ]
    assert "secret" not in text


def test_the_trajectory_is_exported_line_by_line(torn: Path, play: Any) -> None:
    """The run, then each message with its calls, with what an investigation needs."""
    lines = [json.loads(line) for line in export_state(torn).splitlines()]
    assert [line["kind"] for line in lines] == ["run", "message", "message", "call", "call", "call"]
    assert lines[0]["status"] is None
    mail = lines[4]
    assert (mail["tool"], mail["state"], mail["input"]) == ("send_email", "started", {"to": "secret@example.com"})
    assert re.fullmatch(r"[0-9a-f]{32}", mail["idempotency_key"])
    play(SCRIPT)
    lines = [json.loads(line) for line in export_state(torn).splitlines()]
    assert (lines[0]["status"], lines[0]["stop_reason"], lines[4]["state"]) == ("completed", "end_turn", "unknown")


def test_reading_does_not_disturb_a_run(play: Any, world: Any, tmp_path: Path) -> None:
    """The state of a run that is going on can be shown at any time."""
    seen = []
    play(SCRIPT, on_progress=lambda _: seen.append(show_ledger(tmp_path / "state")))
    assert len(seen) == 7
    assert "not ended" in seen[0]


def test_a_directory_without_a_state_is_said_to_be_so(tmp_path: Path) -> None:
    """A wrong path gives one clear error."""
    with pytest.raises(StateError, match=r"holds neither state.sqlite nor checkpoint.json") as caught:
        read_state(tmp_path)
    assert caught.value.kind == "unreadable"
