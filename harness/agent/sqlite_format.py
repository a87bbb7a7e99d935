"""The SQLite file of a run: its tables, how it is opened, and how it is known before it is touched.

    sqlite3 state.sqlite "SELECT turn, tool, state FROM call"

A turn costs what it appends.  The result of a call stands in its ledger row alone; the message that returns it refers
to the turn.  That, small pages and a write-ahead log that is folded in seldom keep what a long run writes to disk below
three times what it leaves there (`benchmarks/store.py`).
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from typing import TYPE_CHECKING, Final

from harness.agent.disk import cannot
from harness.errors import StateError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "APPLICATION_ID",
    "CALL_COLUMNS",
    "FORMAT_VERSION",
    "TABLES",
    "check_header",
    "connect",
    "row_crc",
    "trouble",
]

FORMAT_VERSION: Final = 2
"""Of the state as such; version 1 was a JSON file only."""

APPLICATION_ID: Final = 0x68726E73
"""`hrns`, in the place that SQLite keeps for telling whose file it is."""

_PAGE_SIZE: Final = 512
"""Bytes.  A commit writes whole pages, and most of ours change a few dozen bytes.  Measured with `benchmarks/store.py`
(400 turns of 10 kB), a run writes 2.6 times its final state with 512, 2.9 with 1024, 3.6 with 2048, 5.0 with 4096."""

_LOG_BYTES: Final = 4_000_000
"""Size at which the write-ahead log is folded into the file: SQLite's own default, of 1000 pages of 4096 bytes."""

TABLES: Final = f"""
PRAGMA page_size = {_PAGE_SIZE};
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT_VERSION};

CREATE TABLE run (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    run_id    TEXT NOT NULL,
    epoch     INTEGER NOT NULL   -- raised by each process that writes; an older process is fenced by it
);

CREATE TABLE message (
    seq         INTEGER PRIMARY KEY,
    kind        TEXT NOT NULL CHECK (kind IN ('prompt', 'answer', 'results')),
    turn        INTEGER NOT NULL,  -- of an answer: its own; of results: the one whose calls they answer
    content     TEXT NOT NULL,     -- JSON: a prompt's text; an answer's blocks; what follows the results
    about       TEXT,              -- JSON: the rest of an answer (stop_reason, usage, id, model, ...)
    tokens_used INTEGER,
    status      TEXT,              -- how the run ends with this answer
    crc32       INTEGER NOT NULL   -- of content
);

CREATE TABLE call (
    seq         INTEGER PRIMARY KEY,
    tool_use_id TEXT NOT NULL UNIQUE,
    turn        INTEGER NOT NULL,
    position    INTEGER NOT NULL,
    tool        TEXT NOT NULL,
    effect      TEXT NOT NULL CHECK (effect IN ('read_only', 'idempotent', 'irreversible')),
    state       TEXT NOT NULL CHECK (state IN ('planned', 'started', 'done', 'failed', 'unknown')),
    starts      INTEGER NOT NULL DEFAULT 0,
    started_at  REAL,
    settled_at  REAL,
    is_error    INTEGER,
    result      TEXT,              -- JSON: a string or a list of content blocks
    crc32       INTEGER NOT NULL,  -- of the other columns
    CHECK ((state IN ('done', 'failed', 'unknown')) = (result IS NOT NULL))
);

CREATE TABLE process (
    seq         INTEGER PRIMARY KEY,
    tool_use_id TEXT NOT NULL,
    pid         INTEGER NOT NULL,
    began       TEXT NOT NULL,
    crc32       INTEGER NOT NULL   -- of the other columns
);

CREATE TABLE attempt (
    seq         INTEGER PRIMARY KEY,
    turn        INTEGER NOT NULL,
    event       TEXT NOT NULL CHECK (event IN ('asked', 'gave_up'))
);
"""


CALL_COLUMNS: Final = (
    "tool_use_id",
    "turn",
    "position",
    "tool",
    "effect",
    "state",
    "starts",
    "started_at",
    "settled_at",
    "is_error",
    "result",
)
"""The columns of a call that its checksum covers, in the order in which it does."""


def row_crc(*values: object) -> int:
    """The checksum of a row of the ledger.

    SQLite's own check finds what is wrong with pages, and not one bit of a value: "started" could become another state,
    and a mail be sent again.
    """
    return zlib.crc32(json.dumps(values, ensure_ascii=False).encode())


def check_header(path: Path) -> None:
    """Look at the first hundred bytes of a file, without SQLite and without writing anything.

    Raises:
        StateError: It is no state of ours, or of another version, or cut short.
    """
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except OSError as error:
        raise cannot("read", path, error) from error
    if len(header) < 100:
        raise StateError(
            f"{str(path)!r} is {len(header)} bytes long: it was cut short. Restore it from a backup, or move it away "
            "to begin anew.",
            kind="damaged",
        )
    if header[:16] != b"SQLite format 3\x00":
        raise StateError(f"{str(path)!r} is no SQLite file; move it away or use another state_dir", kind="foreign")
    if int.from_bytes(header[68:72]) != APPLICATION_ID:
        raise StateError(
            f"{str(path)!r} is the database of another program; move it away or use another state_dir", kind="foreign"
        )
    version = int.from_bytes(header[60:64])
    if version != FORMAT_VERSION:
        raise StateError(
            f"{str(path)!r} has format version {version}; this harness reads and writes {FORMAT_VERSION}. Use the "
            "harness that wrote it, or another state_dir.",
            kind="version",
        )


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open a state with the settings that its durability rests on, and make sure that they took.

    Raises:
        sqlite3.Error: It cannot be opened.
        StateError: SQLite did not accept a setting (no shared memory on this file system, for example).
    """
    mode = "ro" if read_only else "rwc"
    database = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False, timeout=5.0
    )
    try:
        database.create_function("row_crc", -1, row_crc, deterministic=True)
        if not read_only:
            _configure(database, path)
    except BaseException:
        database.close()
        raise
    return database


def _configure(database: sqlite3.Connection, path: Path) -> None:
    database.execute(f"PRAGMA page_size = {_PAGE_SIZE}")  # counts for a new file only
    settings = {
        "journal_mode": ("WAL", "wal"),
        # NORMAL may drop the last commits when the power goes: an intent that vanishes would turn "status unknown" into
        # "never started", and the mail is sent twice.
        "synchronous": ("FULL", 2),
        "wal_autocheckpoint": (str(_LOG_BYTES // _PAGE_SIZE), _LOG_BYTES // _PAGE_SIZE),
    }
    for name, (value, expected) in settings.items():
        database.execute(f"PRAGMA {name} = {value}")
        (found,) = database.execute(f"PRAGMA {name}").fetchone()
        if found != expected:
            raise StateError(
                f"{str(path)!r}: SQLite did not accept {name} = {value} (it has {found!r}); use a state_dir on a local "
                "file system",
                kind="io",
            )


_TROUBLE: Final = {
    sqlite3.SQLITE_FULL: ("full", "the disk is full; make room"),
    sqlite3.SQLITE_IOERR: ("io", "the disk reports an input/output error; check it before anything else"),
    sqlite3.SQLITE_READONLY: ("read_only", "it is read-only; check permissions, or use another state_dir"),
    sqlite3.SQLITE_CANTOPEN: ("read_only", "it cannot be opened; check permissions and free space"),
    sqlite3.SQLITE_PERM: ("read_only", "permission is denied; check owner and mode"),
    sqlite3.SQLITE_CORRUPT: ("damaged", "the file is damaged; restore it from a backup, or move it away"),
    sqlite3.SQLITE_NOTADB: ("damaged", "the file is damaged; restore it from a backup, or move it away"),
    sqlite3.SQLITE_BUSY: ("locked", "another program has it open for writing; close that one"),
    sqlite3.SQLITE_LOCKED: ("locked", "another program has it open for writing; close that one"),
    sqlite3.SQLITE_CONSTRAINT: ("conflict", "the database refused a record that contradicts what it holds"),
}


def trouble(verb: str, path: Path, error: sqlite3.Error) -> StateError:
    """An SQLite error as one that says what was attempted, where, and what to do."""
    code = getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_IOERR
    kind, advice = _TROUBLE.get(code & 0xFF, ("io", "see the error itself"))
    return StateError(f"cannot {verb} {str(path)!r}: {advice} ({error}). What was saved before is untouched.", kind)
