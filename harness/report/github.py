"""A report as workflow commands of GitHub Actions: annotations at the golden's line of the changed call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from harness.escaping import command_data, command_property
from harness.report.line import printable
from harness.report.places import place_of
from harness.report.sections import sections
from harness.report.wording import NOT_COMPARED, advice, fails, is_shown, reason, title

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.report.entries import Entry, Report

__all__ = ["render_annotations"]

_Level: TypeAlias = Literal["error", "warning", "notice"]

_RULES: Final = 5
"""Rules that changed and get an annotation."""

_SHOWN: Final = 10
"""Annotations of one level that GitHub shows of a step; it drops the others without a word."""

_LONGEST: Final = 500
"""Characters of a line: annotations are read in a narrow box."""


def render_annotations(report: Report) -> str:
    """One command a line: an error for a case that does not pass, a warning or a notice for a golden accepted anew."""
    by_level: dict[_Level, list[Entry]] = {"error": [], "warning": [], "notice": []}
    for entry in report.entries:
        if is_shown(entry):
            by_level[_level(entry)].append(entry)
    lines = [line for level, entries in by_level.items() for line in _annotations(level, entries, report)]
    rules = (command_data(printable(rule)[:_LONGEST]) for rule in report.rules[:_RULES])
    lines += [f"::notice title=A rule of the gate changed::{rule}" for rule in rules]
    if report.unbased:
        title = command_property(NOT_COMPARED.capitalize())
        lines.append(f"::notice title={title}::{command_data(printable(report.unbased)[:_LONGEST])}")
    return "".join(f"{line}\n" for line in lines)


def _level(entry: Entry) -> _Level:
    if entry.status is not None and fails(entry):
        return "error"
    changed = entry.change if entry.status is None else entry.branch
    accepted = changed is not None and changed.drift is not None and entry.touches_writes
    return "warning" if accepted else "notice"


def _annotations(level: _Level, entries: Sequence[Entry], report: Report) -> list[str]:
    shown = entries if len(entries) <= _SHOWN else entries[: _SHOWN - 1]
    lines = [_annotation(level, entry, report) for entry in shown]
    if len(shown) < len(entries):
        rest = entries[len(shown) :]
        names = ", ".join(printable(entry.case) for entry in rest[:_SHOWN]) + (", …" if len(rest) > _SHOWN else "")
        more = command_property(f"{len(rest)} more cases")
        lines.append(f"::{level} title={more}::{command_data(names[:_LONGEST])}")
    return lines


def _annotation(level: _Level, entry: Entry, report: Report) -> str:
    file, line = place_of(entry)
    first = f"{entry.case}: {title(entry, report)}"
    why = reason(entry)
    texts = [why] if why else []
    for part in sections(entry, report, 0):
        told = [f"{label}: {text}" for label, text, _ in part.verdicts if text not in why]
        texts += [*told, f"cost: {part.cost}"] if part.cost else told
    what = advice(entry, report)
    texts += [f"{what.word}: {what}"] if what else []
    message = "\n".join(printable(text)[:_LONGEST] for text in texts)
    where = f"file={command_property(printable(file))},line={line},"
    return f"::{level} {where}title={command_property(printable(first)[:_LONGEST])}::{command_data(message)}"
