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
    "broken": "with a broken case file",
    "skipped": "skipped",
    "new": "new golden",
    "accepted": "accepted",
    "unchanged": "unchanged",
}
_CHANGES: Final[dict[str, Style]] = {"new": "added", "accepted": "changed"}
_UNTOUCHED: Final = ("same", "unchanged")


def summary_lines(results: Sequence[Mapping[str, str]], project: Project, *, update: bool) -> list[Line]:
    """Counts, what an update changed, and the goldens that no case owns.

    Args:
        results: one mapping a run with `case`, `verdict` and `headline`.
        project: where the goldens are.
        update: whether goldens were being accepted.
    """
    lines: list[Line] = []
    counts = Counter(one["verdict"] for one in results)
    if counts:
        parts = ", ".join(f"{counts[status]} {word}" for status, word in _WORDS.items() if counts[status])
        sweeps = sum(one["case"].endswith(".crash") for one in results)
        cases = len(results) - sweeps
        also = f" and {sweeps} crash sweep{'s' * (sweeps != 1)}" if sweeps else ""
        lines.append(Line(f"{cases} case{'s' * (cases != 1)}{also}: {parts}"))
    store = GoldenStore.of(project)
    ordered = sorted(results, key=lambda one: (one["case"], one["verdict"]))
    if update and ordered:
        lines += _update_lines(ordered, store)
    lines += [
        Line(f"{'note':<9} {store.shown(store.path(one['case']))}  {one['headline']}", "changed")
        for one in ordered
        if one["verdict"] in _UNTOUCHED and one["headline"]
    ]
    return [*lines, *_orphan_lines(store, owned_ids(project) | {one["case"] for one in results})]


def _update_lines(results: Sequence[Mapping[str, str]], store: GoldenStore) -> list[Line]:
    """One line a golden that was written, or that was not although its case was to be accepted."""
    lines: list[Line] = []
    for one in sorted(results, key=lambda one: "writes_changed" not in one):
        path, status = store.path(one["case"]), one["verdict"]
        if status in _UNTOUCHED:
            continue
        word = status if status in _CHANGES else "kept" if path.exists() else "not made"
        writes = "changes writes: " if "writes_changed" in one else ""
        style = "removed" if writes else _CHANGES.get(status, "removed")
        lines.append(Line(f"{word:<9} {store.shown(path)}  {writes}{one['headline']}", style))
    if not any(one["verdict"] in _CHANGES for one in results):
        lines.append(Line("no golden was written" + ("" if lines else ": nothing changed")))
    return lines


def owned_ids(project: Project) -> set[str]:
    """The ids that goldens may have.  They are paths, so they are known without running or even reading a case."""
    from harness.case.ids import find_cases

    return {path.relative_to(project.cases).with_suffix("").as_posix() for path in find_cases(project.cases)}


def _orphan_lines(store: GoldenStore, owned: set[str]) -> list[Line]:
    orphans = store.orphans(owned) if store.folder.is_dir() else []
    lines = [Line(f"orphan    {store.shown(path)}  no case file owns it", "changed") for path in orphans]
    return [*lines, Line("remove orphans with: harness prune", "faint")] if lines else []
