"""What the last pytest run in a project covered: the counter-check to a gate that can be switched off."""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import TYPE_CHECKING, Final

from harness.atomic import write_atomically
from harness.errors import HarnessError
from harness.gate import PASSED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from harness.project import Project

__all__ = ["forget_last_run", "unverified", "write_last_run"]

_NAME: Final = "last_run.json"


def write_last_run(project: Project, verdicts: Mapping[str, str]) -> None:
    """Record which cases ran, as they are on disk now, and what became of each."""
    with contextlib.suppress(OSError, HarnessError):  # what cannot be read or written must not change a verdict
        cases = {
            case: {"sha256": _digest(path), "verdict": verdicts[case]}
            for case, path in _case_files(project).items()
            if case in verdicts
        }
        ignore = project.artifacts / ".gitignore"
        if not ignore.exists():
            write_atomically(ignore, b"*\n")
        write_atomically(project.artifacts / _NAME, json.dumps({"cases": cases}, indent=1).encode())


def forget_last_run(project: Project) -> None:
    """A run begins: what an earlier one covered is no longer what the last one did."""
    with contextlib.suppress(OSError):
        (project.artifacts / _NAME).unlink(missing_ok=True)


def unverified(project: Project) -> list[str]:
    """One line for each case file that the last pytest run did not run as it is now, or that did not pass.

    Raises:
        HarnessError: there is no record of a run.
    """
    path = project.artifacts / _NAME
    try:
        cases = json.loads(path.read_text(encoding="utf-8"))["cases"]
        ran = {case: (one["sha256"], str(one["verdict"])) for case, one in cases.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise HarnessError(
            "the last pytest run has left no record here: none has run, it ran no case (each run begins a new record), "
            "or it ran without the harness plugin (-p no:harness, PYTEST_DISABLE_PLUGIN_AUTOLOAD); "
            "run pytest with the cases last"
        ) from None
    lines: list[str] = []
    for case, file in _case_files(project).items():
        digest, verdict = ran.get(case, (None, ""))
        if digest is None:
            lines.append(f"{case}: was not run")
        elif digest != _digest(file):
            lines.append(f"{case}: its file changed after it ran")
        elif verdict not in PASSED:
            lines.append(f"{case}: {verdict}")
    return lines


def _case_files(project: Project) -> dict[str, Path]:
    from harness.case.ids import find_cases

    return {path.relative_to(project.cases).with_suffix("").as_posix(): path for path in find_cases(project.cases)}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
