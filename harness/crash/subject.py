"""A case as something that can be killed: one life is one run of it under a probe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from harness.errors import CaseError
from harness.faults.journal import Ended
from harness.faults.lives import Subject

if TYPE_CHECKING:
    from harness.case.load import Case
    from harness.faults.probe import Probe
    from harness.project import Project

__all__ = ["subject_of"]

_UNREADABLE: Final = frozenset(
    {
        "BadZipFile",
        "DatabaseError",
        "EOFError",
        "JSONDecodeError",
        "ParserError",
        "TOMLDecodeError",
        "UnicodeDecodeError",
        "UnpicklingError",
        "ValidationError",
    }
)
"""What parsers raise when they are given half a file."""

_STATE_KINDS: Final = frozenset({"damaged", "foreign", "unreadable", "version"})


def subject_of(case: Case, project: Project) -> Subject:
    """A case for the sweep.

    Args:
        case: with a loop in Python and a script.
        project: whose code the loop is.
    """
    from harness.case.run import normalizer_of

    # Also compiles the rules here, and not in every life.
    digest = normalizer_of(project, case).digest
    return Subject(lambda probe: _live(case, project, probe), digest, 60.0)


def _live(case: Case, project: Project, probe: Probe) -> Ended:
    from harness.case.run import run_case
    from harness.case.verdict import error_line

    try:
        run = run_case(case, project, probe)
    except CaseError as problem:
        return Ended(error=str(problem))
    error = run.error
    return Ended(
        error=None if error is None else error_line(error, project.root),
        unreadable=error is not None and _is_unreadable(error),
        problems=run.problems,
        turns=_count(run.value, "turns"),
        tokens=_count(run.value, "tokens_used", "tokensUsed", "tokens"),
    )


def _is_unreadable(error: BaseException) -> bool:
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & _UNREADABLE) or getattr(error, "kind", None) in _STATE_KINDS


def _count(value: Any, *names: str) -> int | None:
    """A counter that a loop reports: a field, or a key, of what it returned."""
    for name in names:
        found = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if type(found) is int:
            return found
    return None
