"""Stores that are right but for one thing, and one that is right; each is recorded in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

from harness.agent import disk
from harness.agent.json_store import JsonStore
from harness.agent.sqlite_format import connect
from harness.agent.sqlite_store import SqliteStore


class _Bent(JsonStore):
    """A JSON store, every method of which runs with something replaced."""

    @staticmethod
    def bend() -> AbstractContextManager[Any]:
        return nullcontext()

    def load(self) -> Any:
        with self.bend():
            return super().load()

    def create(self, state: Any) -> None:
        with self.bend():
            super().create(state)

    def commit(self, change: Any) -> None:
        with self.bend():
            super().commit(change)


class NoFsync(_Bent):
    @staticmethod
    def bend() -> AbstractContextManager[Any]:
        return patch.object(os, "fsync", lambda descriptor: None)


class NoFsyncOfTheFile(_Bent):
    @staticmethod
    def bend() -> AbstractContextManager[Any]:
        def folders_only(descriptor: int, fsync: Callable[[int], None] = os.fsync) -> None:
            if Path(f"/proc/self/fd/{descriptor}").is_dir():
                fsync(descriptor)

        return patch.object(os, "fsync", folders_only)


class NoFolderFsync(_Bent):
    @staticmethod
    def bend() -> AbstractContextManager[Any]:
        return patch.object(disk, "sync_directory", lambda directory: None)


class NewFolderNotSynced(_Bent):
    @staticmethod
    def bend() -> AbstractContextManager[Any]:
        return patch(
            "harness.agent.json_store.make_directory", lambda directory: directory.mkdir(parents=True, exist_ok=True)
        )


def _renamed_too_early(path: Path, data: bytes) -> None:
    draft = path.with_name(f"{path.name}.tmp")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        draft.replace(path)
        os.fsync(file.fileno())
    disk.sync_directory(path.parent)


class RenameBeforeSync(_Bent):
    @staticmethod
    def bend() -> AbstractContextManager[Any]:
        return patch("harness.agent.json_store.write_durably", _renamed_too_early)


def _in_place(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    disk.sync_directory(path.parent)


class InPlace(_Bent):
    @staticmethod
    def bend() -> AbstractContextManager[Any]:
        return patch("harness.agent.json_store.write_durably", _in_place)


class _OtherSettings(SqliteStore):
    """A SQLite store that is opened with other settings."""

    settings: ClassVar[tuple[str, ...]] = ()

    def _opened(self) -> AbstractContextManager[Any]:
        def bent(path: Path, **options: Any) -> Any:
            database = connect(path, **options)
            try:
                for setting in self.settings:
                    database.execute(setting)
            except BaseException:  # the file is damaged
                database.close()
                raise
            return database

        return patch("harness.agent.sqlite_store.connect", bent)

    def load(self) -> Any:
        with self._opened():
            return super().load()

    def create(self, state: Any) -> None:
        with self._opened():
            super().create(state)


class Off(_OtherSettings):
    settings = ("PRAGMA synchronous = OFF",)


class Normal(_OtherSettings):
    settings = ("PRAGMA synchronous = NORMAL",)


class FoldsInOften(_OtherSettings):
    """Right: the write-ahead log is folded into the file and begun anew in the middle of the run."""

    settings = ("PRAGMA wal_autocheckpoint = 8",)


class SqliteNoFolderFsync(SqliteStore):
    def create(self, state: Any) -> None:
        with patch("harness.agent.sqlite_store.sync_directory", lambda directory: None):
            super().create(state)
