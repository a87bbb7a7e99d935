"""The crash golden: what becomes of a case at each of its crash points, one line a point, written for `git diff`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harness.errors import GoldenError, GoldenMissingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["CRASH_SUFFIX", "SCHEMA", "Row", "crash_golden_path", "dump_rows", "load_rows", "parse_crash", "parse_rows"]

CRASH_SUFFIX: Final = ".crash.json"

SCHEMA: Final = "harness.crash/1"

_CONFLICT: Final = re.compile(rb"^(<{7,}|>{7,})( |\r?$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Row:
    """One line.

    Args:
        point: where the process was killed.
        outcome: `same`, `unknown`, or the name of a broken invariant.
        executions: by tool that writes, how often it ran.
        unknown: how many calls were given up as unknown.
        turns: of the conversation in the end.
    """

    point: str
    outcome: str
    executions: Mapping[str, int] = field(default_factory=dict)
    unknown: int = 0
    turns: int = 0

    def data(self) -> dict[str, Any]:
        """As it is written; no call given up is not worth a word."""
        head: dict[str, Any] = {"point": self.point, "outcome": self.outcome, "executions": dict(self.executions)}
        if self.unknown:
            head["unknown"] = self.unknown
        return {**head, "turns": self.turns}


def crash_golden_path(folder: Path, case: str) -> Path:
    """The file of a case's crash golden."""
    return folder / f"{case}{CRASH_SUFFIX}"


def dump_rows(case: str, rows: Iterable[Row]) -> str:
    """The text of a crash golden: keys in a fixed order, LF, a final newline."""
    lines = ",\n".join(f"    {json.dumps(row.data(), ensure_ascii=False)}" for row in rows)
    body = f"[\n{lines}\n  ]" if lines else "[]"
    name = json.dumps(case, ensure_ascii=False)
    return f'{{\n  "schema": "{SCHEMA}",\n  "case": {name},\n  "points": {body}\n}}\n'


def load_rows(path: Path, source: str, case: str) -> list[Row]:
    """The lines of a crash golden on disk.

    Args:
        path: the file.
        source: what to call it in errors.
        case: whose it must be.

    Raises:
        GoldenError: `kind` says why it cannot be used.
    """
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise GoldenMissingError(
            f"no crash golden yet: {source} does not exist; look at the matrix, then accept it with: "
            f"harness crash {case} --update-golden"
        ) from None
    except OSError as error:
        raise GoldenError(f"{source} cannot be read: {error.strerror or error}", "unreadable") from None
    return parse_rows(data, source, case)


def parse_rows(text: bytes, source: str, case: str) -> list[Row]:
    """The lines of a crash golden.

    Args:
        text: as `dump_rows` writes it, in UTF-8.
        source: what to call it in errors.
        case: whose it must be.

    Raises:
        GoldenError: `not_json`, `conflict`, `invalid` or `foreign`.
    """
    owner, rows = parse_crash(text, source)
    if owner != case:
        raise GoldenError(f"{source} belongs to another case, {owner!r}; accept a new sweep", "foreign")
    return rows


def parse_crash(text: bytes, source: str) -> tuple[str, list[Row]]:
    """The case that a crash golden belongs to, and its lines.

    Raises:
        GoldenError: `not_json`, `conflict` or `invalid`.
    """
    try:
        data = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        if _CONFLICT.search(text):
            raise GoldenError(
                f"{source} holds unresolved merge conflict markers; finish merging the code, then sweep again and "
                f"accept what it does now with: harness crash CASE --update-golden",
                "conflict",
            ) from None
        raise GoldenError(f"{source} is not JSON: {error}; restore it from git", "not_json") from None
    try:
        if data["schema"] != SCHEMA:
            raise GoldenError(f"{source} has the schema {data['schema']!r}; this version reads {SCHEMA!r}", "invalid")
        return _name(data["case"]), [_row(row) for row in data["points"]]
    except (KeyError, TypeError, ValueError) as error:
        raise GoldenError(f"{source} is no crash golden: {error}; restore it from git", "invalid") from None


def _name(case: object) -> str:
    if not isinstance(case, str):
        raise TypeError(f"its case is {case!r}")
    return case


def _row(data: Mapping[str, Any]) -> Row:
    row = Row(**data)
    counts = (row.unknown, row.turns, *dict(row.executions).values())
    if (
        not isinstance(row.point, str)
        or not isinstance(row.outcome, str)
        or not all(type(one) is int for one in counts)
    ):
        raise TypeError(f"{row.point!r} holds what was never written there")
    return row
