"""A report as Markdown, for a pull request and the summary of a job: never too long, never the markup of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.escaping import markdown_code, markdown_fence, markdown_text
from harness.report.costs import change_text, counted, write_text
from harness.report.entries import Counts
from harness.report.line import fitted, printable
from harness.report.sections import sections
from harness.report.wording import advice, headline, is_shown, reason, tally, title

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.report.entries import Entry, Report
    from harness.report.line import Line
    from harness.report.sections import Section

__all__ = ["COMMENT_LIMIT", "MARKER", "render_markdown"]

MARKER: Final = "<!-- harness-report -->"
"""The first line: by it a comment is found again, to be updated instead of repeated."""

COMMENT_LIMIT: Final = 60_000
"""Bytes of a comment.  GitHub refuses 65,536 characters and more; what else an action adds must fit, too."""

_RULES: Final = 20
"""Rules that changed and are named."""

_TAIL: Final = 1_000
"""Bytes kept for what is said last."""

_TABLE: Final = 0.4
"""The part of a report that its table may take, so that the most urgent details are always there."""

_LINES: Final = (80, 30, 10, 3)
"""Lines of calls in a comparison, from what a reader likes to what still says something."""

_FAIR: Final = 3_000
"""Bytes that the details of one case may take even where there are many cases."""

_WIDTH: Final = 160
_NAME: Final = 120
_PROSE: Final = 400


def render_markdown(report: Report, limit: int = COMMENT_LIMIT, whole: str = "") -> str:
    """The headline, a table of the cases that are worth a look, and the details of each, folded.

    Args:
        report: of a run or a diff.
        limit: bytes of UTF-8 that the text stays below; at least 4,000.
        whole: where the whole report is, for those whose details did not fit: an address, or a few words.
    """
    page = _Page(limit - _TAIL)
    page.add("\n".join(_head(report)))
    entries = [entry for entry in report.entries if is_shown(entry)]
    if entries:
        left_out = _add_table(page, entries, report, int(limit * _TABLE))
        shown = _add_details(page, entries, report)
        lost = [f"the table leaves out {counted(left_out, 'case')}"] if left_out else []
        lost += [f"details of {len(entries) - shown:,} more cases did not fit"] if shown < len(entries) else []
        if lost:
            sentence = "; ".join(lost)
            page.parts.append(f"{sentence[0].upper()}{sentence[1:]}. Whole report: {_where(whole)}")
    return "\n\n".join(page.parts) + "\n"


class _Page:
    """What was written, and how much may follow."""

    def __init__(self, left: int) -> None:
        self.parts: list[str] = []
        self.left = left

    def add(self, text: str) -> bool:
        """Write a paragraph if it fits."""
        size = _size(text) + 2
        if size > self.left:
            return False
        self.left -= size
        self.parts.append(text)
        return True


def _head(report: Report) -> list[str]:
    lines = [MARKER, f"## Trajectories: {_text(headline(report))}", ""]
    lines.append(f"{_text(tally(report))}." if report.entries else "There are no cases.")
    if report.ran:
        base = f" Goldens are compared with {_code(report.base)} as well." if report.base else ""
        base += f" Goldens are not compared with a base branch: {_text(report.unbased)}." if report.unbased else ""
        commit = f" Commit {_code(report.commit)}." if report.commit else ""
        lines[-1] += base + commit
        if report.rules:
            lines += ["", "Rules that changed in this branch:", ""]
            lines += [f"- {_text(rule)}" for rule in report.rules[:_RULES]]
            more = len(report.rules) - _RULES
            lines += [f"- and {more:,} more"] if more > 0 else []
    else:
        lines[-1] += f" Compared: {_code(report.before)} → {_code(report.after)}."
    return lines


def _add_table(page: _Page, entries: Sequence[Entry], report: Report, room: int) -> int:
    """As many rows as there is room for; returns how many cases were left out."""
    branch = any(entry.branch is not None for entry in entries)
    names = ["case", "verdict", "calls", "turns", "writes", *(["golden in this branch"] if branch else [])]
    rows = [f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}"]
    room -= sum(map(_size, rows))
    for entry in entries:
        row = _row(entry, report, branch)
        room -= _size(row) + 1
        if room < 0:
            break
        rows.append(row)
    page.add("\n".join(rows))
    return len(entries) - (len(rows) - 2)


def _row(entry: Entry, report: Report, branch: bool) -> str:
    before, now = entry.before, entry.now
    calls, turns = (
        change_text(*(None if side is None else getattr(side, what) for side in (before, now)))
        for what in ("calls", "turns")
    )
    cells = [_code(entry.case), _text(_verdict(entry)), calls, turns, _text(write_text(before, now))]
    if branch:
        cells.append(_text(_golden(entry, report)))
    return f"| {' | '.join(cells)} |"


def _verdict(entry: Entry) -> str:
    """The word for a case with the facets that changed, and whether a write is among what changed in any of them."""
    change = entry.change
    facets = list(change.drift.verdicts) if change.drift else []
    if change.touches_writes and facets and "writes" not in facets:
        facets.append("of a write")
    return entry.word() + (f": {', '.join(facets)}" if facets else "")


def _golden(entry: Entry, report: Report) -> str:
    """What became of the golden in this branch, and what of its length."""
    word = entry.branch_word(report.base)
    if entry.branch is None or entry.branch.kind not in ("changed", "renamed"):
        return word
    before, now = Counts.of(entry.branch.before), Counts.of(entry.branch.after)
    if before is None or now is None or before == now:
        return word
    return f"{word}: calls {change_text(before.calls, now.calls)}, writes {write_text(before, now)}"


def _add_details(page: _Page, entries: Sequence[Entry], report: Report) -> int:
    """The details of as many cases as there is room for, the first ones at greater length; returns of how many."""
    for place, entry in enumerate(entries):
        fair = max(page.left // (len(entries) - place), _FAIR)
        text = ""
        for lines in _LINES:
            text = _details(entry, report, lines)
            if _size(text) <= fair:
                break
        if not page.add(text):
            return place
    return len(entries)


def _details(entry: Entry, report: Report, lines: int) -> str:
    why = reason(entry)
    summary = f"{_code(entry.case)}: {_text(title(entry, report))}" + (f" – {_text(why)}" if why else "")
    parts = [f"<details><summary>{summary}</summary>"]
    found = list(sections(entry, report, lines))
    for part in found:
        parts += _section(part, titled=len(found) > 1 or entry.passed)
    what = advice(entry, report)
    if what is not None:
        words = [_text(what.text)] if what.text else []
        words += [markdown_code(printable(what.command))] if what.command else []
        parts.append(f"**{what.word}**: {': '.join(words)}")
    return "\n\n".join([*parts, "</details>"])


def _section(part: Section, *, titled: bool) -> list[str]:
    texts = [f"**{_text(part.title)}**"] if titled else []
    if part.verdicts:
        texts.append("\n".join(f"- **{label}**: {_text(text)}" for label, text, _ in part.verdicts))
    if part.calls:
        texts.append(markdown_fence("\n".join(map(_diff_line, part.calls)), "diff"))
    return [*texts, f"**cost**: {_text(part.cost)}"] if part.cost else texts


def _diff_line(line: Line) -> str:
    """What changed or moved has the mark that the highlighting of a diff knows."""
    text = fitted(line, _WIDTH)[0]
    return f"!{text[1:]}" if text[:1] in ("~", ">") else text


def _where(whole: str) -> str:
    if whole.startswith("https://") and whole.isascii() and not set(whole) & set(" <>\"'`\\"):
        return f"<{whole}>"
    return _text(whole or "`harness diff --run --lines 0`")


def _text(text: str) -> str:
    return markdown_text(printable(_short(text, _PROSE)))


def _code(text: str) -> str:
    return markdown_code(printable(_short(text, _NAME)))


def _short(text: str, longest: int) -> str:
    """What is too long loses its middle: an id ends with what tells it from others."""
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]}…{text[-half:]}"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "backslashreplace"))
