"""What a session says about all its cases at the end."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from harness.golden import GoldenStore
from harness.report.lines import Line, Style

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.project import Project

__all__ = ["owned_ids", "summary_lines"]

_WORDS: Final = {
    "same": "same as golden",
    "drift": "drifted",
    "missing": "without golden",
    "unusable": "with an unusable golden",
    "failed": "failed",
    "new": "new golden",
    "accepted": "accepted",
    "unchanged": "unchanged",
}
_CHANGES: Final[dict[str, tuple[str, Style]]] = {"new": ("new      ", "added"), "accepted": ("accepted ", "changed")}


def summary_lines(results: Sequence[Mapping[str, str]], project: Project, *, update: bool) -> list[Line]:
    """Counts, what an update changed, and the goldens that no case owns.

    Args:
        results: one mapping a case with `case`, `verdict` and `headline`.
        project: where the goldens are.
        update: whether goldens were being accepted.
    """
    lines: list[Line] = []
    counts = Counter(one["verdict"] for one in results)
    if counts:
        parts = ", ".join(f"{counts[status]} {word}" for status, word in _WORDS.items() if counts[status])
        lines.append(Line(f"{len(results)} case{'s' * (len(results) != 1)}: {parts}"))
    if update:
        lines += _update_lines(results, project)
    lines += _orphan_lines(project)
    return lines


def _update_lines(results: Sequence[Mapping[str, str]], project: Project) -> list[Line]:
    store = GoldenStore.of(project)
    lines: list[Line] = []
    for one in sorted(results, key=lambda one: one["case"]):
        if one["verdict"] in _CHANGES:
            word, style = _CHANGES[one["verdict"]]
            lines.append(Line(f"{word} {store.shown(store.path(one['case']))}  {one['headline']}", style))
        elif one["verdict"] != "unchanged":
            lines.append(Line(f"kept      {store.shown(store.path(one['case']))}  {one['headline']}", "removed"))
    if results and not any(one["verdict"] in _CHANGES for one in results):
        lines.append(Line("no golden was written: nothing changed"))
    return lines


def owned_ids(project: Project) -> set[str]:
    """The ids that goldens may have.  They are paths, so they are known without running or even reading a case."""
    from harness.case.ids import find_cases

    return {path.relative_to(project.cases).with_suffix("").as_posix() for path in find_cases(project.cases)}


def _orphan_lines(project: Project) -> list[Line]:
    store = GoldenStore.of(project)
    orphans = store.orphans(owned_ids(project)) if store.folder.is_dir() else []
    lines = [Line(f"orphan    {store.shown(path)}  no case file owns it", "changed") for path in orphans]
    return [*lines, Line("remove orphans with: harness prune", "faint")] if lines else []
