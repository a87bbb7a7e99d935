"""The durable run in one SQLite file: messages, counters and ledger, each change one transaction."""

from __future__ import annotations

import sqlite3
import threading
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from harness.agent.disk import cannot, make_directory, sync_directory
from harness.agent.lock import LOCK_NAME, StateLock
from harness.agent.sqlite_format import CALL_COLUMNS, TABLES, check_header, connect, row_crc, trouble
from harness.agent.sqlite_rows import count_changes, read_rows, to_text
from harness.agent.state import (
    SETTLED,
    Answered,
    Asked,
    Change,
    GaveUp,
    ProcessBegan,
    Prompted,
    Returned,
    Settled,
    Started,
    State,
)
from harness.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["SqliteStore", "read_sqlite"]


class SqliteStore:
    """Keeps a run in `<directory>/state.sqlite`.

    Write-ahead log with synchronous=FULL: a commit that returned has survived the loss of power, as far as the disk
    keeps its promises.  A lock keeps a second process out; an epoch in every transaction stops a first one that was
    paused and has lost the lock.

    SQLite takes a log that was removed, or is damaged, for one that ends earlier: without a word, the run would be an
    older one, and would do again what it did since.  So the lock file carries how many changes were committed, and a
    file that holds fewer is refused.
    """

    FILE_NAME: ClassVar[str] = "state.sqlite"

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory).absolute()  # a tool may change the working directory
        self._path = self._directory / self.FILE_NAME
        self._draft = self._path.with_name(f"{self.FILE_NAME}.new")
        self._lock = StateLock(self._directory)
        self._mutex = threading.Lock()
        self._database: sqlite3.Connection | None = None
        self._epoch = 0
        self._claimed = False
        self._run_id = ""
        self._changes = 0
        self._files: list[tuple[int, int] | None] | None = None

    def load(self) -> State | None:
        """Take the lock and read the run; `None` when there is none.  Nothing is written to an existing file.

        Raises:
            StateError: See its kinds; the file is as it was.
        """
        try:
            make_directory(self._directory)
        except OSError as error:
            raise cannot("make", self._directory, error) from error
        self._lock.acquire()
        try:
            return self._load()
        except BaseException:
            self.close()
            raise

    def _load(self) -> State | None:
        if not self._path.exists():
            log = self._path.with_name(f"{self.FILE_NAME}-wal")
            if log.exists():  # SQLite would take it for the log of the file that we are about to make
                raise StateError(
                    f"{str(self._path)!r} is missing, and its log {log.name!r} is there: put the file back, or move the"
                    " log away as well to begin anew",
                    kind="damaged",
                )
            return None
        check_header(self._path)
        try:
            self._run_id, self._changes = _count(self._path)
            self._check_mark()
            self._database = connect(self._path)
            self._epoch, state = _read(self._database, self._path)
        except sqlite3.Error as error:
            raise trouble("read", self._path, error) from error
        return state

    def create(self, state: State) -> None:
        """Save a run that begins.  The file appears whole under its name, or not at all.

        Raises:
            StateError: The disk could not take it.
        """
        try:
            for stray in self._drafts():
                stray.unlink(missing_ok=True)
            draft = connect(self._draft)
            try:
                draft.executescript(TABLES)
                draft.execute("BEGIN IMMEDIATE")
                draft.execute("INSERT INTO run (id, run_id, epoch) VALUES (1, ?, 1)", (state.run_id,))
                for prompt in state.prompts:
                    _write(draft, Prompted(prompt))
                draft.execute("COMMIT")
            finally:
                draft.close()
            self._draft.replace(self._path)
            sync_directory(self._directory)
            self._database = connect(self._path)
        except sqlite3.Error as error:
            raise trouble("create", self._path, error) from error
        except OSError as error:
            raise cannot("create", self._path, error) from error
        self._epoch, self._claimed = 1, True
        self._run_id, self._changes = state.run_id, len(state.prompts)
        self._mark()

    def _check_mark(self) -> None:
        """Refuse a file that holds fewer changes than were committed to it."""
        match self._lock.read_note().split(" ", 1):
            case [count, self._run_id] if count.isdecimal() and int(count) > self._changes:
                raise StateError(
                    f"{str(self._path)!r} holds {self._changes} changes, and {int(count)} were saved: its log "
                    f"'{self.FILE_NAME}-wal' was removed or damaged, or the file is an older copy. Put back both, or "
                    f"move the file away to begin anew. To go on from the older state, and maybe do again what was "
                    f"done since, remove {LOCK_NAME!r} beside it.",
                    kind="damaged",
                )

    def _mark(self) -> None:
        """Note how far the run has come.  After the commit, so that a death between the two notes too little."""
        self._lock.write_note(f"{self._changes} {self._run_id}")

    def _drafts(self) -> Iterator[Path]:
        return self._directory.glob(f"{self._draft.name}*")

    def commit(self, change: Change) -> None:
        """Make one change durable, wholly or not at all.

        Raises:
            StateError: The disk could not take it (`full`, `io`, `read_only`), another process has taken over
                (`fenced`), or the change contradicts what is recorded (`conflict`).
        """
        with self._mutex:
            database = self._open()
            try:
                self._check_files()
                database.execute("BEGIN IMMEDIATE")
                self._claim(database)
                _write(database, change)
                database.execute("COMMIT")
                self._check_files()
            except BaseException as error:
                _roll_back(database)
                if isinstance(error, sqlite3.Error):
                    raise trouble("write", self._path, error) from error
                raise
            self._claimed = True
            self._changes += 1
            self._mark()

    def _check_files(self) -> None:
        """Make sure that what SQLite writes to still has a name: a file that was removed takes every commit, and no
        process will ever read it.  The log is removed by another program that closes the file when our locks on it are
        gone, which they are as soon as anything in this process has opened and closed it (POSIX).
        """
        found: list[tuple[int, int] | None] = []
        for path in (self._path, self._path.with_name(f"{self.FILE_NAME}-wal")):
            try:
                stat = path.stat()
                found.append((stat.st_dev, stat.st_ino))
            except FileNotFoundError:
                found.append(None)
        if self._files is None and None not in found:
            self._files = found
        elif self._files is not None and found != self._files:
            raise StateError(
                f"{str(self._path)!r} or its log was removed or replaced while this process was running on it",
                kind="fenced",
            )

    def _open(self) -> sqlite3.Connection:
        if self._database is None:
            raise StateError(f"{str(self._path)!r} is closed", kind="io")
        return self._database

    def _claim(self, database: sqlite3.Connection) -> None:
        """Fence: this process writes under an epoch of its own, raised with its first write and checked in every
        one.
        """
        (epoch,) = database.execute("SELECT epoch FROM run").fetchone()
        if epoch != self._epoch:
            raise StateError(
                f"another process has taken over {str(self._path)!r} (epoch {epoch}, ours is {self._epoch}); this one "
                "wrote nothing and must end",
                kind="fenced",
            )
        if not self._claimed:
            self._epoch = epoch + 1
            database.execute("UPDATE run SET epoch = ?", (self._epoch,))

    def close(self) -> None:
        """Fold the log into the file where possible, and give the lock back."""
        if self._database is not None:
            self._database.close()
            self._database = None
        self._lock.release()


def read_sqlite(path: Path) -> State:
    """Read a run for people, beside a process that may be writing it: no lock is taken and nothing is changed.

    Raises:
        StateError: It cannot be read.
    """
    check_header(path)
    try:
        database = connect(path, read_only=True)
        try:
            return _read(database, path)[1]
        finally:
            database.close()
    except sqlite3.Error as error:
        raise trouble("read", path, error) from error


def _count(path: Path) -> tuple[str, int]:
    """Count by a connection that cannot write: one that can folds the log in, and a damaged log away, as it closes."""
    database = connect(path, read_only=True)
    try:
        return count_changes(database)
    finally:
        database.close()


def _read(database: sqlite3.Connection, path: Path) -> tuple[int, State]:
    (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise StateError(
            f"{str(path)!r} is damaged ({verdict}); restore it from a backup, or move it away to begin anew",
            kind="damaged",
        )
    return read_rows(database, path)


def _roll_back(database: sqlite3.Connection) -> None:
    try:
        if database.in_transaction:
            database.execute("ROLLBACK")
    except sqlite3.Error:
        return  # SQLite has rolled back by itself, as it does when the disk is full


def _write(database: sqlite3.Connection, change: Change) -> None:
    match change:
        case Prompted(text):
            _add_message(database, "prompt", _last_turn(database), to_text(text))
        case Asked():
            _add_attempt(database, "asked")
        case GaveUp():
            _add_attempt(database, "gave_up")
        case Answered():
            _add_answer(database, change)
        case Started(tool_use_id, at):
            changes = {"state": "'started'", "starts": "starts + 1", "started_at": ":at"}
            _change_call(database, tool_use_id, changes, at=float(at))
        case ProcessBegan(tool_use_id, process):
            row = (tool_use_id, process.pid, process.began)
            database.execute(
                "INSERT INTO process (tool_use_id, pid, began, crc32) VALUES (?, ?, ?, ?)", (*row, row_crc(*row))
            )
        case Settled(tool_use_id, state, result, at):
            changes = {"state": ":state", "result": ":result", "is_error": ":is_error", "settled_at": ":at"}
            text = to_text(result.content)
            _change_call(
                database, tool_use_id, changes, state=state, result=text, is_error=int(result.is_error), at=float(at)
            )
        case Returned():
            _add_results(database, change)


def _add_message(database: sqlite3.Connection, kind: str, turn: int, content: str, *rest: Any) -> None:
    about, tokens_used, status = rest or (None, None, None)
    database.execute(
        "INSERT INTO message (kind, turn, content, about, tokens_used, status, crc32) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (kind, turn, content, about, tokens_used, status, zlib.crc32(content.encode())),
    )


def _add_answer(database: sqlite3.Connection, change: Answered) -> None:
    turn = _last_turn(database) + 1
    _add_message(
        database, "answer", turn, to_text(change.content), to_text(change.about), change.tokens_used, change.status
    )
    for call in change.calls:
        result = None if call.result is None else to_text(call.result.content)
        is_error = None if call.result is None else int(call.result.is_error)
        row = (
            call.tool_use_id,
            turn,
            call.position,
            call.tool,
            call.effect,
            call.state,
            0,
            None,
            None,
            is_error,
            result,
        )
        marks = ", ".join("?" * len(row))
        database.execute(
            f"INSERT INTO call ({', '.join(CALL_COLUMNS)}, crc32) VALUES ({marks}, ?)",  # noqa: S608 (names of columns)
            (*row, row_crc(*row)),
        )


def _add_results(database: sqlite3.Connection, change: Returned) -> None:
    """Save point B, in one transaction with the check that it may be taken."""
    kind, turn = database.execute("SELECT kind, turn FROM message ORDER BY seq DESC LIMIT 1").fetchone()
    (calls,) = database.execute("SELECT count(*) FROM call WHERE turn = ?", (turn,)).fetchone()
    if kind != "answer" or not calls:
        raise StateError(f"turn {turn} has no results to return, or they were returned already", kind="conflict")
    marks = ", ".join("?" * len(SETTLED))
    (left,) = database.execute(
        f"SELECT count(*) FROM call WHERE turn = ? AND state NOT IN ({marks})",  # noqa: S608 (question marks only)
        (turn, *sorted(SETTLED)),
    ).fetchone()
    if left:
        raise StateError(f"{left} of {calls} calls of turn {turn} have no result yet", kind="conflict")
    _add_message(database, "results", turn, to_text({"intervention": change.intervention, "prompt": change.prompt}))


def _add_attempt(database: sqlite3.Connection, event: str) -> None:
    database.execute("INSERT INTO attempt (turn, event) VALUES (?, ?)", (_last_turn(database) + 1, event))


def _change_call(database: sqlite3.Connection, tool_use_id: str, changes: Mapping[str, str], **values: Any) -> None:
    """Change a call that is not settled, and its checksum with it: a second statement would write its result twice.

    Args:
        database: In a transaction.
        tool_use_id: Which call.
        changes: By column, the SQL of what it becomes.
        values: The parameters of that.
    """
    becomes = ", ".join(f"{column} = {expression}" for column, expression in changes.items())
    sealed = ", ".join(changes.get(column, column) for column in CALL_COLUMNS)
    cursor = database.execute(
        f"UPDATE call SET {becomes}, crc32 = row_crc({sealed}) "  # noqa: S608 (columns, and expressions from above)
        "WHERE tool_use_id = :tool_use_id AND state IN ('planned', 'started')",
        {"tool_use_id": tool_use_id, **values},
    )
    if cursor.rowcount != 1:
        raise StateError(f"the call {tool_use_id!r} is settled already, or was never planned", kind="conflict")


def _last_turn(database: sqlite3.Connection) -> int:
    row = database.execute("SELECT turn FROM message ORDER BY seq DESC LIMIT 1").fetchone()
    return 0 if row is None else int(row[0])
