"""Tells git of the drivers: a line in .gitattributes, which is committed, and settings, which each clone has itself.

git runs no command that a repository names by itself, or a clone could run anything.  Without the settings the line
does no harm: git falls back to its own diff and merge.
"""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Final

from harness.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["attributes_with", "remove_settings", "settings", "write_settings"]

_ATTRIBUTES: Final = ("text", "eol=lf", "diff=harness", "merge=harness")


def attributes_with(text: str, pattern: str) -> str:
    """The text of a .gitattributes file in which goldens have all that they need.

    A line that is there keeps what it says: only what it does not mention is added to it.

    Args:
        text: the file as it is; empty where there is none.
        pattern: of the goldens, such as `golden_traces/**/*.json`.
    """
    quoted = f'"{pattern}"' if any(sign.isspace() for sign in pattern) else pattern
    lines = text.splitlines(keepends=True)
    for place, line in enumerate(lines):
        body = line.strip()
        if body == quoted or body.startswith((f"{quoted} ", f"{quoted}\t")):
            said = {_name(word) for word in body.removeprefix(quoted).split()}
            missing = [word for word in _ATTRIBUTES if _name(word) not in said]
            if not missing:
                return text
            lines[place] = f"{' '.join([body, *missing])}\n"
            return "".join(lines)
    before = text if not text or text.endswith("\n") else f"{text}\n"
    return f"{before}{quoted} {' '.join(_ATTRIBUTES)}\n"


def _name(word: str) -> str:
    return word.lstrip("-!").partition("=")[0]


def settings(python: str | None = None) -> dict[str, str]:
    """The settings, by name.  Where Python or the harness is gone, each shows or merges lines of text as git would.

    Args:
        python: the interpreter that has the harness (default: this one).
    """
    # -P: the working directory is the user's repository, where a folder may be called harness.
    run = f"{shlex.quote(python or sys.executable)} -P -m harness.drivers"
    text_diff = 'diff -u -L "a/$1" -L "b/${8:-$1}" "$2" "$5"'
    # A result of 3 is a conflict; any other failure is one of the driver itself.
    text_merge = 'git merge-file --marker-size="$4" -L HEAD -L base -L theirs "$2" "$1" "$3"'
    return {
        "diff.harness.textconv": f'f() {{ {run} textconv "$1" 2>/dev/null || cat "$1"; }}; f',
        "diff.harness.command": f'f() {{ {run} diff "$@" 2>/dev/null || {text_diff}; :; }}; f',
        "merge.harness.name": "golden traces, whole and never line by line",
        "merge.harness.driver": (
            f'f() {{ {run} merge "$@"; r=$?; [ $r -eq 0 ] && return 0; [ $r -eq 3 ] && return 1; {text_merge}; }}; '
            "f %O %A %B %L %P %X %Y"
        ),
        # Between ancestors a conflict has no reader: the version of the older ancestor is whole, and stays.
        "merge.harness.recursive": "binary",
    }


def write_settings(folder: Path) -> Iterator[tuple[str, bool]]:
    """Write the settings of the repository that a folder is in; yields each name and whether it was new.

    Raises:
        HarnessError: the folder is in no repository, or its configuration cannot be written.
    """
    repository = Repository.around(folder.absolute())
    for name, value in settings().items():
        new = repository.setting(name) != value
        if new:
            repository.configure(name, value)
        yield name, new


def remove_settings(folder: Path) -> Iterator[tuple[str, bool]]:
    """Remove them; yields each name and whether it was there.

    Raises:
        HarnessError: as for `write_settings`.
    """
    repository = Repository.around(folder.absolute())
    for name in settings():
        there = repository.setting(name) is not None
        repository.configure(name, None)
        yield name, there
