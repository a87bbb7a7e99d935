"""What the last run said of each case, kept for reports: `.harness/results.json`."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Final, cast

from harness.atomic import write_atomically
from harness.report.entries import RUN_WORDS, Counts, RunStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.project import Project

__all__ = ["Result", "read_results", "write_results"]

_NAME: Final = "results.json"
_SCHEMA: Final = "harness.results/1"

Result = tuple[RunStatus, str, Counts | None]
"""Status, headline, and how long the path was, where one was observed."""


def write_results(project: Project, results: Iterable[Mapping[str, str]]) -> None:
    """Keep what a run said.  Of two tests that compare one case, the more urgent verdict is kept.

    Args:
        project: where artifacts go.
        results: as `harness.session_results.verdict_facts` makes them.
    """
    ranks = {status: rank for rank, status in enumerate(RUN_WORDS)}
    kept: dict[str, Mapping[str, str]] = {}
    for one in results:
        known = kept.get(one["case"])
        if known is None or ranks[cast("RunStatus", one["verdict"])] < ranks[cast("RunStatus", known["verdict"])]:
            kept[one["case"]] = one
    data = {"schema": _SCHEMA, "results": [dict(kept[case]) for case in sorted(kept)]}
    text = json.dumps(data, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass")
    with contextlib.suppress(OSError):  # a report is a help; its absence must not change a verdict
        ignore = project.artifacts / ".gitignore"
        if not ignore.exists():
            write_atomically(ignore, b"*\n")
        write_atomically(project.artifacts / _NAME, text)


def read_results(project: Project) -> dict[str, Result]:
    """What the last run said, by case; empty when there is no record of one."""
    try:
        data = json.loads((project.artifacts / _NAME).read_bytes().decode("utf-8", "surrogatepass"))
        return {one["case"]: _result(one) for one in data["results"] if one["verdict"] in RUN_WORDS}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _result(one: Mapping[str, Any]) -> Result:
    counts = Counts(int(one["calls"]), int(one["turns"]), json.loads(one["writes"])) if "calls" in one else None
    return (one["verdict"], str(one["headline"]), counts)
