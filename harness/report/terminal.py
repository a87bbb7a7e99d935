"""A report for people at a terminal: the cases that differ, the most urgent first, and the verdict as the last line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.report.line import Line
from harness.report.lines import SHOWN, labelled
from harness.report.sections import sections
from harness.report.wording import advice, headline, is_shown, reason, tally, title

if TYPE_CHECKING:
    from harness.report.entries import Entry, Report

__all__ = ["report_lines"]


def report_lines(report: Report, limit: int | None = SHOWN, whole: str = "") -> list[Line]:
    """All that is to be said.

    Args:
        report: of a run or a diff.
        limit: lines of aligned calls in each comparison; None for all.
        whole: where to find those that the limit leaves out.
    """
    lines: list[Line] = []
    for entry in report.entries:
        if is_shown(entry):
            lines += [*_entry_lines(entry, report, limit, whole), Line("")]
    lines += [Line(f"rule changed in this branch: {rule}", "changed", hang=2) for rule in report.rules]
    lines += [Line("")] if report.rules else []
    between = f"{report.before} → {report.after}: " if not report.ran else ""
    lines.append(Line(f"{between}{headline(report)}", "title", hang=2))
    lines += [Line(tally(report), hang=2)] if report.entries else []
    return lines


def _entry_lines(entry: Entry, report: Report, limit: int | None, whole: str) -> list[Line]:
    first, why = f"{entry.case}: {title(entry, report)}", reason(entry)
    parts = list(sections(entry, report, limit, whole))
    told = any(part.verdicts for part in parts) and (entry.passed or entry.status in (None, "drift", "unusable"))
    lines = [Line(first if told or not why else f"{first}: {why}", "changed" if entry.passed else "removed", hang=2)]
    for part in parts:
        lines.append(Line(part.title, "faint", hang=2))
        lines += [labelled(*verdict) for verdict in part.verdicts]
        lines += [Line("")] if part.verdicts and part.calls else []
        lines += part.calls
        lines += [Line(""), labelled("cost", part.cost)] if part.cost else []
    what = advice(entry, report)
    return [*lines, labelled(what.word, str(what), "faint")] if what else lines
