"""Where the cases are, and what each one is called: its path below the case folder, without the suffix."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from harness.errors import CaseError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["SUFFIXES", "case_id", "find_cases", "find_collisions", "is_case_file", "is_device_name", "shown_path"]

SUFFIXES = (".yaml", ".yml")
MAX_COMPONENT = 100
"""Bytes of one component.  File systems stop at 255; the golden and its temporary file need room behind the name."""

_COMPONENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul"} | {f"{port}{digit}" for port in ("com", "lpt") for digit in range(10)}
)


def is_case_file(path: Path) -> bool:
    """Whether a file is a case by its name.  `.YAML` counts too: a case that silently never runs guards nothing."""
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".")


def case_id(path: Path, root: Path) -> str:
    """The id of a case, such as `notes/weekly_summary`.

    Args:
        path: the case file.
        root: the folder of the cases.

    Raises:
        CaseError: a component of the id would not work as a file name everywhere, or not in a pytest node id.
    """
    shown = shown_path(path)
    try:
        parts = list(path.absolute().relative_to(root.absolute()).with_suffix("").parts)
    except ValueError:
        message = f"this file is not in the folder of the cases, {shown_path(root)}"
        raise CaseError(shown, [Problem(message)]) from None
    problems = [Problem(fault) for index, part in enumerate(parts) for fault in _faults(part, index == len(parts) - 1)]
    if problems:
        raise CaseError(shown, problems)
    return "/".join(parts)


def find_cases(root: Path) -> list[Path]:
    """All case files below `root`, sorted by id.

    Hidden files and folders are passed over.  Linked folders are entered, each real folder once, so that a link to a
    folder above does not lead round in circles.

    Args:
        root: the folder of the cases; one that does not exist holds none.

    Raises:
        CaseError: a folder cannot be read: its cases would be skipped without a word.
    """
    return sorted(_walk(root), key=lambda path: path.relative_to(root).with_suffix("").as_posix())


def find_collisions(paths: Iterable[Path], root: Path) -> dict[Path, Problem]:
    """The case files whose ids are the same, or would be on a file system that ignores case.

    Args:
        paths: the case files.
        root: the folder of the cases.

    Returns:
        For each file that collides what is wrong with it; the other files are not in it.
    """
    groups: dict[str, list[Path]] = {}
    for path in paths:
        groups.setdefault(path.relative_to(root).with_suffix("").as_posix().casefold(), []).append(path)
    return {
        path: Problem(f"the golden trace of this case would also be that of {_listed(path, group)}; rename one")
        for group in groups.values()
        if len(group) > 1
        for path in group
    }


def shown_path(path: Path) -> str:
    """A path for people: relative to the working directory when it is below, so that terminals can link to it."""
    absolute = path.absolute()
    here = path.cwd()
    return (absolute.relative_to(here) if absolute.is_relative_to(here) else path).as_posix()


def _walk(root: Path) -> Iterator[Path]:
    seen: set[tuple[int, int]] = set()
    pending = [root]
    # Links wait until every real folder was entered: a folder is found under its own name, not under a link's.
    linked: list[Path] = []
    while pending or linked:
        folder = pending.pop() if pending else linked.pop()
        try:
            status = folder.stat()
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name, reverse=True)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise CaseError(shown_path(folder), [Problem(f"the folder cannot be read: {error.strerror}")]) from error
        for entry in entries:
            path = folder / entry.name
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                (linked if entry.is_symlink() else pending).append(path)
            elif is_case_file(path):
                yield path


def _faults(part: str, last: bool) -> Iterator[str]:
    remedy = f"rename it to {_legal(part, last)!r}"
    if not _COMPONENT.fullmatch(part):
        allowed = "letters, digits, '.', '_', '-'; the first a letter or digit"
        yield f"{part!r} cannot be part of a case id ({allowed}); {remedy}"
    elif len(part) > MAX_COMPONENT:
        yield f"{part[:20]!r}... has {len(part)} characters and may have {MAX_COMPONENT}; {remedy}"
    elif part.endswith("."):
        yield f"{part!r} ends with a dot, which Windows drops; {remedy}"
    elif is_device_name(part):
        yield f"{part!r} is the name of a device on Windows; {remedy}"
    elif last and part.lower().endswith(".crash"):
        yield f"{part!r} would share its golden with the crash sweep of {part[:-6]!r}; {remedy}"


def is_device_name(part: str) -> bool:
    """Whether Windows keeps this name for a device, whatever the suffix."""
    return part.partition(".")[0].lower() in _DEVICES


def _legal(part: str, last: bool) -> str:
    """The nearest name that is allowed."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", part).lstrip("._-")[:MAX_COMPONENT].rstrip("._-") or "case"
    if last and name.lower().endswith(".crash"):
        name = f"{name[:-6]}-crash"
    if is_device_name(name):
        stem, dot, rest = name.partition(".")
        name = f"{stem}-case{dot}{rest}"
    return name


def _listed(path: Path, group: list[Path]) -> str:
    return ", ".join(shown_path(other) for other in group if other != path)
