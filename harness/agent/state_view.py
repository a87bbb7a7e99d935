"""A run's state, for people: as the published JSON, as a table of its calls, and line by line for other programs.

Everything here reads beside a process that may be running: no lock is taken, nothing is changed.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.agent.json_store import JsonStore, read_json, to_json_document
from harness.agent.layout import to_layout
from harness.agent.sqlite_store import SqliteStore, read_sqlite
from harness.agent.state import idempotency_key
from harness.errors import StateError
from harness.wire import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.agent.state import Call, State

__all__ = ["export_state", "read_state", "show_ledger", "show_state"]


def read_state(state_dir: str | Path) -> State:
    """The run that a state directory holds, whichever store wrote it.

    Raises:
        StateError: It holds none, or one that cannot be read.
    """
    directory = Path(state_dir)
    for name, read in ((SqliteStore.FILE_NAME, read_sqlite), (JsonStore.FILE_NAME, read_json)):
        if (directory / name).exists():
            return read(directory / name)
    raise StateError(
        f"{str(directory)!r} holds neither {SqliteStore.FILE_NAME} nor {JsonStore.FILE_NAME}; name a run's state_dir",
        kind="unreadable",
    )


def show_state(state_dir: str | Path) -> str:
    """The state in the published layout, as `checkpoint.json` has it.

    Raises:
        StateError: As `read_state`.
    """
    return to_json_document(to_layout(read_state(state_dir))).decode()


def show_ledger(state_dir: str | Path) -> str:
    """One line a call: what was asked for, how far it came, when, and under which id.  Inputs and results are left out.

    Raises:
        StateError: As `read_state`.
    """
    state = read_state(state_dir)
    head = f"{state.task!r}: turn {state.turns}, {len(state.calls)} calls, {state.attempts} requests, " + (
        f"ended ({state.status})" if state.status else "not ended"
    )
    columns = ("turn", "tool", "effect", "state", "starts", "started (UTC)", "took", "tool_use_id")
    rows = [columns, *(_row(call) for call in state.calls.values())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(columns))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([head, "", *(table if state.calls else ["no calls"]), ""])


def _row(call: Call) -> tuple[str, ...]:
    started, took = "-", "-"
    if call.started_at is not None:
        at = datetime.datetime.fromtimestamp(call.started_at, datetime.UTC)
        started = at.strftime("%Y-%m-%d %H:%M:%S")
        if call.settled_at is not None:
            took = f"{max(0.0, call.settled_at - call.started_at):.3f} s"
    return (
        str(call.turn),
        call.tool,
        call.effect,
        call.state,
        str(call.starts),
        started,
        took,
        call.tool_use_id,
    )


def export_state(state_dir: str | Path) -> str:
    """The trajectory as JSON Lines: the run, then each message with the calls that it asks for.

    The messages are those that the next request would carry, in the same order and unchanged.

    Raises:
        StateError: As `read_state`.
    """
    return "".join(f"{to_json(line).decode()}\n" for line in _lines(read_state(state_dir)))


def _lines(state: State) -> Iterator[dict[str, Any]]:
    yield {
        "kind": "run",
        "run_id": state.run_id,
        "turns": state.turns,
        "tokens_used": state.tokens_used,
        "attempts": state.attempts,
        "status": state.status,
        "stop_reason": state.stop_reason,
        "interventions": state.interventions,
    }
    for message in state.messages:
        yield {"kind": "message", **message}
        if message["role"] != "assistant" or isinstance(message["content"], str):
            continue
        for block in message["content"]:
            if block.get("type") == "tool_use" and block.get("id") in state.calls:
                yield _call_line(state.calls[block["id"]], state.run_id)


def _call_line(call: Call, run_id: str) -> dict[str, Any]:
    return {
        "kind": "call",
        "tool_use_id": call.tool_use_id,
        "turn": call.turn,
        "tool": call.tool,
        "input": call.input,
        "effect": call.effect,
        "state": call.state,
        "is_error": None if call.result is None else call.result.is_error,
        "starts": call.starts,
        "started_at": call.started_at,
        "settled_at": call.settled_at,
        "idempotency_key": idempotency_key(run_id, call.tool_use_id),
    }
