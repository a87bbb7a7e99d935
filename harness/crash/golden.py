"""The crash golden: what becomes of a case at each of its crash points, one line a point, written for `git diff`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harness.errors import GoldenError, GoldenMissingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from harness.faults.crashes import Crash

__all__ = ["SCHEMA", "Row", "dump_rows", "golden_path", "load_rows", "row_of"]

SCHEMA: Final = "harness.crash/1"


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


def row_of(crash: Crash) -> Row:
    """The line of a history that was killed once."""
    return Row(crash.kills[0], crash.outcome, crash.executions, crash.unknown, crash.turns)


def golden_path(folder: Path, case: str) -> Path:
    """The file of a case's crash golden."""
    return folder / f"{case}.crash.json"


def dump_rows(case: str, rows: Iterable[Row]) -> str:
    """The text of a crash golden: keys in a fixed order, LF, a final newline."""
    lines = ",\n".join(f"    {json.dumps(row.data(), ensure_ascii=False)}" for row in rows)
    body = f"[\n{lines}\n  ]" if lines else "[]"
    name = json.dumps(case, ensure_ascii=False)
    return f'{{\n  "schema": "{SCHEMA}",\n  "case": {name},\n  "points": {body}\n}}\n'


def load_rows(path: Path, source: str, case: str) -> list[Row]:
    """The lines of a crash golden.

    Args:
        path: the file.
        source: what to call it in errors.
        case: whose it must be.

    Raises:
        GoldenError: `kind` says why it cannot be used.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise GoldenMissingError(
            f"no crash golden yet: {source} does not exist; look at the matrix, then accept it with: "
            f"harness crash {case} --update-golden"
        ) from None
    except OSError as error:
        raise GoldenError(f"{source} cannot be read: {error.strerror or error}", "unreadable") from None
    except ValueError as error:
        raise GoldenError(f"{source} is not JSON: {error}; restore it from git", "not_json") from None
    try:
        if data["schema"] != SCHEMA:
            raise GoldenError(f"{source} has the schema {data['schema']!r}; this version reads {SCHEMA!r}", "invalid")
        if data["case"] != case:
            raise GoldenError(f"{source} belongs to another case, {data['case']!r}; accept a new sweep", "foreign")
        return [Row(**row) for row in data["points"]]
    except (KeyError, TypeError) as error:
        raise GoldenError(f"{source} is no crash golden: {error}; restore it from git", "invalid") from None
