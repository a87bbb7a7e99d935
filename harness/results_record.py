"""What the last run said of each case, kept for reports: `.harness/results.json`."""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

from harness.atomic import write_atomically
from harness.errors import GoldenError
from harness.golden import dump_trace, load_trace
from harness.report.entries import RUN_WORDS, Counts, RunStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from harness.project import Project
    from harness.trace import Trace

__all__ = ["Result", "file_digest", "forget_results", "path_digest", "read_results", "write_results"]

_NAME: Final = "results.json"
_SCHEMA: Final = "harness.results/1"


@dataclass(frozen=True, slots=True)
class Result:
    """What the last run said of one case, and of which files: when those change, it says nothing any more.

    Args:
        status: the verdict in a word.
        headline: the reason in one line.
        counts: how long the path was, where one was observed.
        golden: the golden's file as the run left it (`file_digest`); None where that was not noted.
        case_file: the case's file, likewise.
        observed: of a run that waits for a decision, the path that it took (`path_digest`); empty where none waits.
    """

    status: RunStatus
    headline: str = ""
    counts: Counts | None = None
    golden: str | None = None
    case_file: str | None = None
    observed: str = ""


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
    data = {"schema": _SCHEMA, "results": [{**kept[case], **_files(project, case)} for case in sorted(kept)]}
    text = json.dumps(data, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass")
    with contextlib.suppress(OSError):  # a report is a help; its absence must not change a verdict
        ignore = project.artifacts / ".gitignore"
        if not ignore.exists():
            write_atomically(ignore, b"*\n")
        write_atomically(project.artifacts / _NAME, text)


def forget_results(project: Project) -> None:
    """A run begins: what an earlier one said is no longer what the last one did, however this one ends."""
    with contextlib.suppress(OSError):
        (project.artifacts / _NAME).unlink(missing_ok=True)


def read_results(project: Project) -> dict[str, Result]:
    """What the last run said, by case; empty when there is no record of one, or none that the harness wrote."""
    try:
        data = json.loads((project.artifacts / _NAME).read_bytes().decode("utf-8", "surrogatepass"))
        return {_id(one["case"]): _result(one) for one in data["results"] if one["verdict"] in RUN_WORDS}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def file_digest(path: Path) -> str:
    """SHA-256 of a file; empty when there is none that can be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def path_digest(trace: Trace) -> str:
    """SHA-256 of all that a golden takes over from a run, and of nothing else."""
    told = dump_trace(replace(trace, owner=None, problems=()), results=False)
    return hashlib.sha256(told.encode("utf-8")).hexdigest()


def _files(project: Project, case: str) -> dict[str, str]:
    """The files that a verdict is about, as they are now."""
    from harness.case.named import case_file

    file = case_file(case, project)
    facts = {
        "golden": file_digest(project.golden_traces / f"{case}.json"),
        "case_file": "" if file is None else file_digest(file),
    }
    try:
        facts["observed"] = path_digest(load_trace(project.pending / f"{case}.json"))
    except GoldenError:  # nothing waits
        return facts
    return facts


def _id(case: object) -> str:
    """An id as a run can have it: it becomes the name of a file."""
    if not isinstance(case, str) or "\0" in case or any("\ud800" <= char <= "\udfff" for char in case):
        raise ValueError(f"{case!r} is no id")
    return case


def _result(one: Mapping[str, Any]) -> Result:
    counts = None
    if "calls" in one:
        writes = {str(tool): int(count) for tool, count in dict(json.loads(one["writes"])).items()}
        counts = Counts(int(one["calls"]), int(one["turns"]), writes)
    golden, case_file = (None if name not in one else str(one[name]) for name in ("golden", "case_file"))
    return Result(one["verdict"], str(one["headline"]), counts, golden, case_file, str(one.get("observed", "")))
