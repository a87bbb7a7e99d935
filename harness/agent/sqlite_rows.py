"""The rows of a run, read back into a state by going through its changes again."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.agent.results import ToolResult
from harness.agent.sqlite_format import CALL_COLUMNS, row_crc
from harness.agent.state import Answered, Call, OwnProcess, Prompted, Returned, State
from harness.errors import StateError
from harness.wire import to_json

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

__all__ = ["count_changes", "read_rows", "to_text"]


def to_text(value: Any) -> str:
    """A JSON value as it stands in a row: compact, Unicode unescaped."""
    return to_json(value).decode()


def read_rows(database: sqlite3.Connection, path: Path) -> tuple[int, State]:
    """The epoch and the state that the rows of a run amount to.

    Raises:
        StateError: The rows contradict each other (`damaged`).
        sqlite3.Error: They cannot be read.
    """
    try:
        return _replay(database)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise StateError(
            f"{str(path)!r} is damaged ({error}); restore it from a backup, or move it away to begin anew",
            kind="damaged",
        ) from error


def count_changes(database: sqlite3.Connection) -> tuple[str, int]:
    """The id of the run, and how many changes its rows amount to.

    Every change leaves one trace that is never taken away: a message, an attempt, a start, a process, or the time at
    which a call was settled.  So each commit counts exactly one more, and a file that has lost commits counts fewer.

    Raises:
        sqlite3.Error: They cannot be read.
    """
    run_id, changes = database.execute(
        "SELECT (SELECT run_id FROM run), (SELECT count(*) FROM message) + (SELECT count(*) FROM attempt) + "
        "(SELECT count(*) FROM process) + (SELECT CAST(total(starts) AS INTEGER) + count(settled_at) FROM call)"
    ).fetchone()
    return str(run_id), changes


def _replay(database: sqlite3.Connection) -> tuple[int, State]:
    epoch, run_id = database.execute("SELECT epoch, run_id FROM run").fetchone()
    calls = _read_calls(database)
    state = State(run_id)
    query = "SELECT kind, turn, content, about, tokens_used, status, crc32 FROM message ORDER BY seq"
    for kind, turn, content, about, tokens_used, status, crc in database.execute(query):
        if zlib.crc32(content.encode()) != crc:
            raise ValueError(f"message {len(state.messages) + 1} was changed")
        _apply_row(state, kind, json.loads(content), (about, tokens_used, status), calls.get(turn, []))
        if state.turns != turn:
            raise ValueError(f"message {len(state.messages)} belongs to turn {turn}, not to turn {state.turns}")
    if not state.messages:
        raise ValueError("it holds no message")
    _count_attempts(database, state)
    return epoch, state


def _apply_row(state: State, kind: str, content: Any, rest: tuple[Any, ...], calls: list[Call]) -> None:
    if kind == "prompt":
        state.apply(Prompted(content))
    elif kind == "answer":
        about, tokens_used, status = rest
        given = {block["id"]: block["input"] for block in content if block["type"] == "tool_use"}
        if set(given) != {call.tool_use_id for call in calls}:
            raise ValueError(f"the ledger does not hold the calls of turn {state.turns + 1}")
        known = tuple(replace(call, input=given[call.tool_use_id]) for call in calls)
        state.apply(Answered(content, json.loads(about), tokens_used, known, status))
    else:
        state.apply(Returned(content["intervention"], content["prompt"]))


def _read_calls(database: sqlite3.Connection) -> dict[int, list[Call]]:
    processes: dict[str, list[OwnProcess]] = {}
    for *row, crc in database.execute("SELECT tool_use_id, pid, began, crc32 FROM process ORDER BY seq"):
        tool_use_id, pid, began = row
        if row_crc(*row) != crc:
            raise ValueError(f"the process of the call {tool_use_id!r} was changed")
        processes.setdefault(tool_use_id, []).append(OwnProcess(pid, began))
    calls: dict[int, list[Call]] = {}
    query = f"SELECT {', '.join(CALL_COLUMNS)}, crc32 FROM call ORDER BY turn, position"  # noqa: S608 (names of columns)
    for *row, crc in database.execute(query):
        tool_use_id, turn, position, tool, effect, state, starts, started, settled, is_error, result = row
        if row_crc(*row) != crc:
            raise ValueError(f"the record of the call {tool_use_id!r} was changed")
        call = Call(
            tool_use_id=tool_use_id,
            turn=turn,
            position=position,
            tool=tool,
            input={},
            effect=effect,
            state=state,
            result=None if result is None else ToolResult(json.loads(result), bool(is_error)),
            starts=starts,
            started_at=started,
            settled_at=settled,
            processes=tuple(processes.get(tool_use_id, ())),
        )
        calls.setdefault(turn, []).append(call)
    return calls


def _count_attempts(database: sqlite3.Connection, state: State) -> None:
    for turn, event in database.execute("SELECT turn, event FROM attempt ORDER BY seq"):
        state.attempts += event == "asked"
        if turn > state.turns:
            state.attempts_of_turn = 0 if event == "gave_up" else state.attempts_of_turn + 1
