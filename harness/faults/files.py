"""Sees every durable file operation below one directory, before and after it, whoever makes it.

Python's own functions are replaced where everybody looks them up, which gives both sides of an operation.  Whoever has
taken them by name before (`from os import replace`) is still seen by the interpreter's audit events, which come before;
the other side is then told with whatever comes next.  Both stay for the rest of the process: this is for a forked
child, which has not long to live.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import sqlite3
import sys
import threading
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import TracebackType

__all__ = ["watch_files"]

_AUDITED: Final = {"open": "open", "os.rename": "rename", "os.remove": "remove", "os.link": "link"}

_ENDS: Final = frozenset({"COMMIT", "END"})
_WRITES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "DROP", "ALTER"})
_MAY_COMMIT: Final = _ENDS | _WRITES


def watch_files(directory: Path, tell: Callable[[str, str], None]) -> None:
    """From now on tell of every durable operation below a directory.

    Args:
        directory: by its real path.
        tell: called with the operation (`open`, `rename`, `link`, `remove`, `fsync`, `commit`) and `before` or `after`,
            in the thread that performs it.
    """
    watch = _Watch(str(directory), tell)
    for module, name, operation, touches in (
        (builtins, "open", "open", watch.opens_to_write),
        (io, "open", "open", watch.opens_to_write),
        (os, "open", "open", watch.opens_to_write),
        (os, "rename", "rename", watch.touches_any),
        (os, "replace", "rename", watch.touches_any),
        (os, "link", "link", watch.touches_any),
        (os, "remove", "remove", watch.touches_any),
        (os, "unlink", "remove", watch.touches_any),
        (os, "fsync", "fsync", watch.holds),
        (os, "fdatasync", "fsync", watch.holds),
    ):
        if hasattr(module, name):
            setattr(module, name, watch.around(getattr(module, name), operation, touches))
    for module in (sqlite3, sqlite3.dbapi2):
        setattr(module, "connect", watch.probed(module.connect))  # noqa: B010 (mypy knows `connect` by its overloads)
    sys.addaudithook(watch.audit)


class _Watch:
    def __init__(self, directory: str, tell: Callable[[str, str], None]) -> None:
        self._directory = directory
        self._below = directory + os.sep
        self._tell = tell
        self._inside = threading.local()
        self._late: str | None = None

    @contextmanager
    def operation(self, name: str) -> Iterator[None]:
        """One operation; what it does inside is not told apart."""
        if self._depth():
            yield
            return
        self._catch_up()
        self._tell(name, "before")
        self._inside.depth = self._depth() + 1
        try:
            yield
        finally:
            self._inside.depth -= 1
        self._tell(name, "after")

    def around(self, function: Callable[..., Any], name: str, touches: Callable[..., bool]) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            if self._depth() or not touches(*args, **kwargs):
                return function(*args, **kwargs)
            with self.operation(name):
                return function(*args, **kwargs)

        return watched

    def probed(self, connect: Callable[..., sqlite3.Connection]) -> Callable[..., sqlite3.Connection]:
        def connected(database: Any, *args: Any, **kwargs: Any) -> sqlite3.Connection:
            if len(args) > 4 or not self._is_below(_path_of(database)):  # a factory given by position: left alone
                return connect(database, *args, **kwargs)
            factory = kwargs.pop("factory", sqlite3.Connection)
            probe = type(f"Probed{factory.__name__}", (_Commits, factory), {"watch": self})
            return connect(database, *args, factory=probe, **kwargs)

        return connected

    def opens_to_write(self, file: Any, mode: Any = "r", *_: Any, **__: Any) -> bool:
        writes = bool(mode & (os.O_WRONLY | os.O_RDWR)) if isinstance(mode, int) else set(mode) & set("wax+")
        return bool(writes) and self._is_below(file)

    def touches_any(self, *paths: Any, **_: Any) -> bool:
        return any(self._is_below(path) for path in paths)

    def holds(self, file: Any) -> bool:
        """Whether an open file, or directory, is below the directory."""
        descriptor = file if isinstance(file, int) else file.fileno()
        try:
            return self._is_below(os.readlink(f"/proc/self/fd/{descriptor}"))  # noqa: PTH115 (text; no path of ours)
        except OSError:
            return self._is_below_elsewhere(descriptor)

    def _is_below_elsewhere(self, descriptor: int) -> bool:
        import fcntl

        asked = getattr(fcntl, "F_GETPATH", None)  # macOS
        if asked is None:
            return False
        return self._is_below(fcntl.fcntl(descriptor, asked, bytes(1024)).rstrip(b"\0"))

    def audit(self, event: str, args: tuple[Any, ...]) -> None:
        """The interpreter's event: the first test must be the cheapest."""
        name = _AUDITED.get(event)
        if name is None or self._depth():
            return
        touched = self.opens_to_write(args[0], args[2]) if name == "open" else self.touches_any(*args[:2])
        if touched:
            self._catch_up()
            self._tell(name, "before")
            self._late = name

    def _catch_up(self) -> None:
        late, self._late = self._late, None
        if late is not None:
            self._tell(late, "after")

    def _depth(self) -> int:
        return getattr(self._inside, "depth", 0)

    def _is_below(self, path: Any) -> bool:
        try:
            found = os.path.abspath(os.fsdecode(os.fspath(path)))  # noqa: PTH100 (the path need not be one of ours)
        except (TypeError, ValueError):  # an open descriptor
            return False
        return found == self._directory or found.startswith(self._below)


class _Statements:
    """What is mixed into connections and cursors alike: a connection's `execute` makes its cursor past `cursor()`."""

    watch: _Watch

    def execute(self, sql: str, *args: Any) -> Any:
        if not self._commits(sql):  # as most statements do not
            return super().execute(sql, *args)  # type: ignore[misc]
        with self.watch.operation("commit"):
            return super().execute(sql, *args)  # type: ignore[misc]

    def executemany(self, sql: str, *args: Any) -> Any:
        if not self._commits(sql):
            return super().executemany(sql, *args)  # type: ignore[misc]
        with self.watch.operation("commit"):
            return super().executemany(sql, *args)  # type: ignore[misc]

    def executescript(self, sql: str) -> Any:
        with self.watch.operation("commit"):
            return super().executescript(sql)  # type: ignore[misc]

    def _commits(self, sql: str) -> bool:
        """Whether a statement is a commit: one that says so, or a change outside of a transaction."""
        word = _first_word(sql)
        if word not in _MAY_COMMIT:
            return False
        connection: Any = getattr(self, "connection", self)
        if word in _ENDS:
            return bool(connection.in_transaction)
        by_itself = connection.isolation_level is None or getattr(connection, "autocommit", None) is True
        return by_itself and not connection.in_transaction


class _Commits(_Statements):
    """What is mixed into a connection besides: the ways in which it ends a transaction itself."""

    def commit(self) -> None:
        active = self.in_transaction  # type: ignore[attr-defined]
        with self.watch.operation("commit") if active else nullcontext():
            super().commit()  # type: ignore[misc]

    def cursor(self, factory: type[sqlite3.Cursor] = sqlite3.Cursor) -> sqlite3.Cursor:
        probe = type(f"Probed{factory.__name__}", (_Statements, factory), {"watch": self.watch})
        return super().cursor(probe)  # type: ignore[misc,no-any-return]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:
        if kind is None:
            self.commit()
        return super().__exit__(kind, error, trace)  # type: ignore[misc]


@functools.lru_cache(maxsize=256)
def _first_word(sql: str) -> str:
    words = sql.split(None, 1)
    return words[0].upper().rstrip(";") if words else ""


def _path_of(database: Any) -> Any:
    """The path in what `sqlite3.connect` takes: a path, or a `file:` URI."""
    if isinstance(database, str) and database.startswith("file:"):
        from urllib.parse import unquote, urlsplit

        return unquote(urlsplit(database).path)
    return database
