"""Which cases are swept, how each wants it, and doing it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from harness.crash.subject import subject_of
from harness.crash.warm import warm_up
from harness.errors import HarnessError, NoSuchPointError
from harness.faults.branches import BRANCHES
from harness.faults.sweep import Plan, Sweep, enumerate_points, resume_here, sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harness.case.load import Case
    from harness.faults.journal import Ended
    from harness.project import Project

__all__ = ["is_swept", "list_points", "plan_for", "resume_case_here", "sweep_case", "unreached"]

_OUR_LOOPS: Final = frozenset({"harness.agent:arun", "harness.agent:run"})


def is_swept(case: Case) -> bool:
    """Whether a case asks for crashes (`faults: {crash: …}`)."""
    return case.faults.crash != "none"


def plan_for(case: Case, plan: Plan) -> Plan:
    """A plan narrowed to the points that the case names, unless the plan names its own."""
    if plan.points is None and isinstance(case.faults.crash, list):
        return replace(plan, points=tuple(case.faults.crash))
    return plan


def sweep_case(case: Case, project: Project, plan: Plan, tell: Callable[[int, int], None] | None = None) -> Sweep:
    """Sweep one case.

    Args:
        case: with a loop in Python and a script.
        project: whose it is.
        plan: how.
        tell: as for `harness.faults.sweep.sweep`.

    Raises:
        CaseError: the case cannot be swept: its loop is a command, its model is no script, or its run is not right even
            when nobody kills it.
        NoSuchPointError: the plan names a point that the run does not have; one that the case names is a `CaseError`.
    """
    _check(case)
    warm_up()
    subject, whole = subject_of(case, project), plan_for(case, plan)
    try:
        return sweep(subject, whole) if tell is None else sweep(subject, whole, tell)
    except NoSuchPointError as error:
        if plan.points is not None:  # asked for by whoever sweeps: no fault of the file
            raise NoSuchPointError(f"{case.id}: {error}") from None
        raise case.error(str(error), ("faults", "crash")) from None
    except HarnessError as error:
        raise case.error(str(error), ("faults",)) from None


def list_points(case: Case, project: Project) -> tuple[str, ...]:
    """The crash points of a case, in order.

    Raises:
        CaseError: as `sweep_case`.
    """
    _check(case)
    warm_up()
    try:
        return enumerate_points(subject_of(case, project))
    except HarnessError as error:
        raise case.error(str(error), ("faults",)) from None


def resume_case_here(case: Case, project: Project, point: str) -> Ended:
    """Kill a case at one point and resume it in this process, for a debugger.

    Raises:
        CaseError, NoSuchPointError: as `sweep_case`.
    """
    _check(case)
    warm_up()
    try:
        return resume_here(subject_of(case, project), point)
    except NoSuchPointError as error:
        raise NoSuchPointError(f"{case.id}: {error}") from None
    except HarnessError as error:
        raise case.error(str(error), ("faults",)) from None


def _check(case: Case) -> None:
    if case.command is not None:
        raise case.error("a loop in another process cannot be swept yet; name one in Python ('agent')", ("command",))
    if case.script is None:
        raise case.error("only a scripted model ('script') can be swept: it answers alike in every life", ("model",))


def unreached(swept: Iterable[tuple[Case, Sweep]]) -> list[str]:
    """The branches of the durable loop's reconciling that no sweep of it has taken; none when it was not swept."""
    taken: set[str] = set()
    ours = False
    for case, found in swept:
        if case.agent in _OUR_LOOPS:
            ours = True
            taken |= found.branches
    return [branch for branch in BRANCHES if branch not in taken] if ours else []
