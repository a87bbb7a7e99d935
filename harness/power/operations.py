"""What a program does to files, as far as it matters when the power goes.

Paths are relative to the root of a recording, which is `""` itself and stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Log", "Make", "Map", "Mark", "Move", "Operation", "Remove", "Sync", "Truncate", "Write"]


@dataclass(frozen=True, slots=True)
class Make:
    """A new file, empty, or a new folder."""

    path: str
    folder: bool = False


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes into a file; what lies between its end and `offset` becomes zeros."""

    path: str
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncate:
    """Another size, in bytes."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Map:
    """A file is mapped for writing: from here on nobody sees what is written, so it may hold anything."""

    path: str


@dataclass(frozen=True, slots=True)
class Sync:
    """An fsync or fdatasync that returned: of a file its bytes and size, of a folder the names in it.

    fsync of a file says nothing of its name: POSIX does not, and the Linux manual page says that it does not.
    """

    path: str


@dataclass(frozen=True, slots=True)
class Move:
    """A rename within one folder; a file of the name `target` is replaced."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Remove:
    """A name goes; of an empty folder as well."""

    path: str


@dataclass(frozen=True, slots=True)
class Mark:
    """Nothing happens to a file; the program says how far it is."""

    text: str


Operation: TypeAlias = Make | Write | Truncate | Map | Sync | Move | Remove | Mark
Log: TypeAlias = "Sequence[Operation]"
