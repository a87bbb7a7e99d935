"""A golden that an unresolved merge left: what each branch made of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.errors import GoldenError
from harness.golden import decode_trace

if TYPE_CHECKING:
    from harness.trace import Trace

__all__ = ["Conflict", "find_conflict", "whole_sides"]

_MARKER: Final = re.compile(rb"(<{7,}|={7,}|>{7,}|\|{7,})(?: (.*?))?\r?\n?")


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
    sides: dict[str, list[bytes]] = {"ours": [], "theirs": []}
    names: dict[str, str] = {}
    wanted: tuple[str, ...] = ("ours", "theirs")
    size = 0  # of the markers around us; what is longer belongs to a conflict between ancestors, inside the base
    for line in data.splitlines(keepends=True):
        marker = _MARKER.fullmatch(line)
        sign, label = (marker[1], marker[2] or b"") if marker else (b"", b"")
        if not size and sign.startswith(b"<"):
            size, wanted = len(sign), ("ours",)
            names.setdefault("ours", label.decode("utf-8", "replace").strip())
        elif not sign or len(sign) != size:
            for side in wanted:
                sides[side].append(line)
        elif sign.startswith(b"|"):
            wanted = ()  # the common ancestor, with merge.conflictStyle = diff3
        elif sign.startswith(b"="):
            wanted = ("theirs",)
        elif sign.startswith(b">"):
            size, wanted = 0, ("ours", "theirs")
            names.setdefault("theirs", label.decode("utf-8", "replace").strip())
    try:
        ours, theirs = (decode_trace(b"".join(sides[side]), source) for side in ("ours", "theirs"))
    except GoldenError:
        return None
    return Conflict(ours, theirs, names.get("ours") or "ours", names.get("theirs") or "theirs")


def whole_sides(ours: bytes, theirs: bytes, ours_name: str, theirs_name: str, size: int = 7) -> bytes:
    """A file with conflict markers around two whole versions, which `find_conflict` reads back.

    git's own text merge marks what differs line by line and takes the rest from both sides; what then stands between
    the markers and around them is neither version.

    Args:
        ours, theirs: the two versions.
        ours_name, theirs_name: what to call them.
        size: of the markers, in characters.
    """
    parts: list[bytes] = []
    for sign, name, version in ((b"<", ours_name, ours), (b"=", "", theirs), (b">", theirs_name, b"")):
        label = f" {name}".encode("utf-8", "surrogateescape") if name else b""
        parts += [sign * size, label, b"\n", version]
        if version and not version.endswith(b"\n"):
            parts.append(b"\n")
    return b"".join(parts)
