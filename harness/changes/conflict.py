"""A golden that an unresolved merge left: what each branch made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.errors import GoldenError
from harness.golden import parse_trace

if TYPE_CHECKING:
    from harness.trace import Trace

__all__ = ["Conflict", "find_conflict"]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Both versions of a golden, and what git calls them.

    Args:
        ours: of the branch that was checked out.
        theirs: of the branch that was merged into it.
        ours_name, theirs_name: as the conflict markers say.
    """

    ours: Trace
    theirs: Trace
    ours_name: str = "ours"
    theirs_name: str = "theirs"


def find_conflict(data: bytes, source: str) -> Conflict | None:
    """Both versions in a file with conflict markers; None when they do not come out whole.

    Args:
        data: the file.
        source: what to call it in errors.
    """
    sides: dict[str, list[str]] = {"ours": [], "theirs": []}
    names = {"ours": "", "theirs": ""}
    wanted: tuple[str, ...] = ("ours", "theirs")
    for line in data.decode("utf-8", "replace").splitlines(keepends=True):
        if line.startswith("<<<<<<< "):
            wanted, names["ours"] = ("ours",), names["ours"] or line[8:].strip()
        elif line.startswith("||||||| "):
            wanted = ()  # the common ancestor, with merge.conflictStyle = diff3
        elif line.rstrip("\r\n") == "=======":
            wanted = ("theirs",)
        elif line.startswith(">>>>>>> "):
            wanted, names["theirs"] = ("ours", "theirs"), names["theirs"] or line[8:].strip()
        else:
            for side in wanted:
                sides[side].append(line)
    try:
        ours, theirs = (parse_trace("".join(sides[side]), source) for side in ("ours", "theirs"))
    except GoldenError:
        return None
    return Conflict(ours, theirs, names["ours"] or "ours", names["theirs"] or "theirs")
