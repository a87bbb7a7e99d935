"""The case of an id, for those who have only a trace: how strict its comparison is, how its guard is set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.case.load import load_case
from harness.errors import CaseError

if TYPE_CHECKING:
    from pathlib import Path

    from harness.case.load import Case
    from harness.project import Project
    from harness.stuck.config import Config

__all__ = ["case_file", "case_named", "stuck_settings"]

_SUFFIXES: Final = (".yaml", ".yml")


def case_file(case: str, project: Project) -> Path | None:
    """The file of a case; None for the golden of a Python test, and for one whose case is gone."""
    files = (project.cases / f"{case}{suffix}" for suffix in _SUFFIXES)
    return next((file for file in files if file.is_file()), None)


def case_named(case: str, project: Project) -> Case | None:
    """The case of an id, or None when no file has it.

    Raises:
        CaseError: its file is wrong.
    """
    file = case_file(case, project)
    return None if file is None else load_case(file, project.cases)


def stuck_settings(case: str, project: Project) -> Config:
    """The settings under which a trace is judged: the project's, its case's where a sound file has them."""
    from harness.stuck.config import Config

    base = Config.parse(project.stuck)
    try:
        found = case_named(case, project)
    except CaseError:
        return base
    return base if found is None else Config.parse(found.stuck, base)
