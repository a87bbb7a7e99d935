"""The workspace that one call gets, and what the call has made of it."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from harness.audit.samples import Places
from harness.errors import HarnessError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Change", "Snapshot", "changes", "places_in", "prepare", "snapshot"]

DEFAULT_FILES: Final = {"notes.txt": "Notes that must survive a bad call.\n", "folder/inside.txt": "One more.\n"}

Snapshot: TypeAlias = Mapping[str, tuple[int, str] | None]
"""Size and digest by path of every file; None for a folder."""


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one file or folder; sizes in bytes, None where there is none."""

    path: str
    kind: Literal["created", "removed", "emptied", "changed"]
    before: int | None
    after: int | None

    @property
    def destroys(self) -> bool:
        """Whether something that was there is no longer as it was."""
        return self.kind != "created"

    def __str__(self) -> str:
        if self.before is not None and self.after is not None:
            return f"{self.path} {self.kind} ({self.before} → {self.after} bytes)"
        size = self.before if self.before is not None else self.after
        return f"{self.path} {self.kind}" + ("" if size is None else f" ({size} bytes)")

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"path": self.path, "change": self.kind, "bytes_before": self.before, "bytes_after": self.after}


def prepare(directory: Path, given: Path | None, named: Iterable[str]) -> None:
    """Fill a new directory with what every call finds.

    Args:
        directory: does not exist yet.
        given: a folder whose content is copied, links as what they lead to: no call can reach through one.
        named: further paths that should exist as files, or as folders where they end in `/`; only without `given`.

    Raises:
        HarnessError: the folder cannot be copied.
    """
    if given is not None:
        try:
            shutil.copytree(given, directory, ignore_dangling_symlinks=True)
        except (OSError, shutil.Error) as error:
            raise HarnessError(f"the workspace {str(given)!r} cannot be copied: {error}") from None
        return
    wanted = {name: "" if name.endswith("/") else DEFAULT_FILES["notes.txt"] for name in named}
    for name, text in {**DEFAULT_FILES, **wanted}.items():
        path = directory / name
        try:
            (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
            if not name.endswith("/") and not path.exists():
                path.write_text(text, encoding="utf-8")
        except OSError:
            continue  # two fields name a file and a folder of one name: the first one has it


def places_in(directory: Path) -> Places:
    """Where fields for paths should lead: the first visible file and folder, and a name that is free."""
    visible = sorted(
        (
            one
            for one in directory.rglob("*")
            if not any(part.startswith(".") for part in one.relative_to(directory).parts)
        ),
        key=lambda one: (len(one.parts), one.as_posix()),
    )
    names = {True: "", False: ""}
    for one in visible:
        names[one.is_dir()] = names[one.is_dir()] or one.relative_to(directory).as_posix()
    return Places(file=names[False] or "new.txt", folder=names[True] or ".", new="new.txt")


def snapshot(directory: Path) -> Snapshot:
    """Every file and folder below a directory; links are not followed."""
    found: dict[str, tuple[int, str] | None] = {}
    for folder, folders, files in os.walk(directory):
        here = Path(folder)
        found.update({(here / name).relative_to(directory).as_posix(): None for name in folders})
        found.update({(here / name).relative_to(directory).as_posix(): _content(here / name) for name in files})
    return found


def changes(before: Snapshot, after: Snapshot) -> tuple[Change, ...]:
    """What differs, by path."""
    return tuple(
        Change(path, _kind(path, before, after), _size(before.get(path)), _size(after.get(path)))
        for path in sorted({*before, *after})
        if path not in before or path not in after or before[path] != after[path]
    )


def _kind(path: str, before: Snapshot, after: Snapshot) -> Literal["created", "removed", "emptied", "changed"]:
    if path not in before:
        return "created"
    if path not in after:
        return "removed"
    return "emptied" if _size(before[path]) and _size(after[path]) == 0 else "changed"


def _size(content: tuple[int, str] | None) -> int | None:
    return None if content is None else content[0]


def _content(path: Path) -> tuple[int, str]:
    try:
        if path.is_symlink():
            return 0, f"link to {path.readlink()}"
        if not path.is_file():  # a pipe or a socket, which reading would wait for
            return 0, "special"
        with path.open("rb") as file:
            return path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return 0, f"unreadable: {error.errno}"
