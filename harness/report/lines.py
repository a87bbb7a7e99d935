"""A drift, or a trace, as styled lines: what the terminal, the plugin, the report files and Markdown show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.policy import FACETS
from harness.report.alignment import CallRow, InterventionRow, aligned_turns
from harness.report.calls import call_line, changed_values
from harness.report.costs import cost_text, counted
from harness.report.entries import Counts
from harness.report.line import Line, Style, fitted, plain_text, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.drift import Drift
    from harness.report.alignment import Mark, TurnBlock
    from harness.trace import Trace

__all__ = [
    "SHOWN",
    "Line",
    "Style",
    "call_lines",
    "drift_lines",
    "fitted",
    "labelled",
    "plain_text",
    "printable",
    "trace_lines",
    "verdict_lines",
    "verdicts",
]

CONTEXT: Final = 2
"""Equal calls shown before and after each difference."""

SHOWN: Final = 120
"""Lines of the aligned diff that a terminal gets; the report file holds all."""

_STYLES: Final[Mapping[Mark, Style]] = {" ": "plain", "~": "changed", ">": "moved", "+": "added", "-": "removed"}

_LABEL: Final = max(map(len, FACETS))
_GUTTER: Final = 14
"""Mark, the two numbers of a call, a space."""


def drift_lines(drift: Drift, limit: int | None = SHOWN, whole: str = "") -> list[Line]:
    """Causes, one verdict a facet, the aligned calls with what stands around each difference, and what it costs.

    Args:
        drift: what to show.
        limit: lines of the aligned diff; None for all.
        whole: where to find those that the limit leaves out.
    """
    cost = labelled("cost", cost_text(Counts.of(drift.golden), Counts.of(drift.trace)))
    return [*verdict_lines(drift), Line(""), *call_lines(drift, limit, whole), Line(""), cost]


def labelled(label: str, text: str, style: Style = "plain") -> Line:
    """A line of prose with a word in the column where facets are named."""
    return Line(f"{label:<{_LABEL}}  {text}", style, hang=_LABEL + 2)


def verdict_lines(drift: Drift) -> list[Line]:
    """What was sent that was not sent for the golden, then one verdict a facet, what costs most first."""
    return [labelled(*verdict) for verdict in verdicts(drift)]


def verdicts(drift: Drift) -> list[tuple[str, str, Style]]:
    """What `verdict_lines` says, for those who lay it out themselves: a label, the text, how it is meant."""
    causes: list[tuple[str, str, Style]] = [("cause", cause, "changed") for cause in drift.causes]
    return [*causes, *((facet, verdict, "title") for facet, verdict in drift.verdicts.items())]


def call_lines(drift: Drift, limit: int | None = SHOWN, whole: str = "") -> list[Line]:
    """The calls of both sides, turn by turn, equal ones folded where nothing near them changed.

    The first character of each line says what became of it: ` ` the same, `~` changed, `>` moved, `+` came, `-` went.

    Args:
        drift: what to show.
        limit: how many lines; None for all.
        whole: where to find those that the limit leaves out.
    """
    lines = [Line(f"{'golden':>7}{'now':>6}", "faint")]
    entries = _entries(aligned_turns(drift))
    items = list(_folded(entries))
    for place, item in enumerate(items):
        rendered = _rendered(drift, item)
        if limit is not None and len(lines) + len(rendered) > limit + 1:
            left = sum(entry.differs for one in items[place:] for entry in one)
            return [*lines, _hidden(left, whole)] if left else lines
        lines += rendered
    return lines


def _hidden(count: int, whole: str) -> Line:
    where = f", all of them in {whole}" if whole else ""
    return Line(f"… {count:,} more difference{'s' * (count != 1)}{where}", "title", hang=2)


@dataclass(slots=True)
class _Entry:
    """A line of the alignment before it is decided whether it is shown: a turn, a call, a verdict of the guard."""

    block: TurnBlock
    row: CallRow | InterventionRow | None
    shown: bool = False

    @property
    def mark(self) -> Mark:
        """What became of it."""
        return self.block.mark if self.row is None else self.row.mark

    @property
    def differs(self) -> bool:
        """Whether it is a difference."""
        return self.mark != " "


def _entries(blocks: Sequence[TurnBlock]) -> list[_Entry]:
    """All lines; shown are the differences, what stands near them, and the turns of what is shown."""
    entries: list[_Entry] = []
    for block in blocks:
        if block.golden is not None or block.now is not None:
            entries.append(_Entry(block, None))
        entries += [_Entry(block, row) for row in block.rows]
    rows = [entry for entry in entries if entry.row is not None]
    behind = 0  # how many rows stand above
    for entry in entries:
        if entry.differs:
            entry.shown = True
            after = behind + CONTEXT + (entry.row is not None)
            for near in rows[max(0, behind - CONTEXT) : after]:
                near.shown = True
        behind += entry.row is not None
    _show_turns(entries)
    _unfold_single(entries)
    return entries


def _unfold_single(entries: Sequence[_Entry]) -> None:
    """One hidden call takes no more room than the line that says so."""
    hidden: list[_Entry] = []
    for entry in [*entries, None]:
        if entry is not None and not entry.shown:
            hidden.append(entry)
            continue
        if sum(one.row is not None for one in hidden) == 1:
            for one in hidden:
                one.shown = True
        hidden.clear()


def _show_turns(entries: Sequence[_Entry]) -> None:
    """A call without its turn hangs in the air; and where the last call is shown, so is how the run ended."""
    visible = {id(entry.block) for entry in entries if entry.shown and entry.row is not None}
    previous = True
    for entry in entries:
        if entry.row is None and (id(entry.block) in visible or (not entry.block.rows and previous)):
            entry.shown = True
        previous = entry.shown


def _folded(entries: Sequence[_Entry]) -> Iterator[list[_Entry]]:
    """Each shown line by itself, and each stretch of hidden ones together."""
    hidden: list[_Entry] = []
    for entry in entries:
        if not entry.shown:
            hidden.append(entry)
            continue
        if hidden:
            yield hidden
            hidden = []
        yield [entry]
    if hidden:
        yield hidden


def _rendered(drift: Drift, item: Sequence[_Entry]) -> list[Line]:
    entry = item[0]
    if not entry.shown:
        return _fold_line(item)
    if entry.row is None:
        return [_block_line(entry.block)]
    if isinstance(entry.row, InterventionRow):
        return [Line(f"{entry.mark}{'':{_GUTTER + 1}}{entry.row.text}", _STYLES[entry.mark])]
    return _call_rows(drift, entry.row)


def _fold_line(hidden: Sequence[_Entry]) -> list[Line]:
    calls = sum(isinstance(entry.row, CallRow) for entry in hidden)
    turns = len(hidden) - calls
    what = f"equal call{'s' * (calls != 1)}" if calls else f"equal turn{'s' * (turns != 1)}"
    return [Line(f"{'…':>7}{'…':>6}  {calls or turns:,} {what}", "faint")]


def _block_line(block: TurnBlock) -> Line:
    number = block.now if block.now is not None else block.golden
    text = f"turn {number}"
    if block.golden is not None and block.now is not None and block.golden != block.now:
        text += f" (was {block.golden})"
    before, after = block.before or "?", block.after or "?"
    reason = f"{before} → {after}" if block.mark == "~" else before if block.now is None else after
    style = _STYLES[block.mark]
    return Line(f"{block.mark}{'':{_GUTTER - 1}}{text}  {reason}", "faint" if style == "plain" else style)


def _call_rows(drift: Drift, row: CallRow) -> list[Line]:
    before = drift.golden.calls[row.golden] if row.golden is not None else None
    now = drift.trace.calls[row.now] if row.now is not None else None
    call = now or before
    if call is None:
        return []
    left, right = ("" if index is None else str(index + 1) for index in (row.golden, row.now))
    notes = "".join(f"  {note}" for note in row.notes)
    lines = [call_line(f"{row.mark}{left:>6}{right:>6} {row.bracket} ", call, notes, _STYLES[row.mark])]
    if before and now and before.key != now.key and row.mark != " ":
        indent = "│" if row.bracket in "┌│" and row.bracket != " " else " "
        lines += changed_values(f"{row.mark}{'':{_GUTTER - 1}}{indent}     ", before, now)
    return lines


def trace_lines(
    trace: Trace, shown: int | None = None, notes: Mapping[int, Sequence[Line]] | None = None
) -> list[Line]:
    """The turns with their stop_reasons and calls, and the summary.

    Args:
        trace: what to show.
        shown: how many calls; None for all.
        notes: lines that go below a call, by its number from 1.
    """
    lines: list[Line] = []
    turn = 0
    for index, call in enumerate(trace.calls if shown is None else trace.calls[:shown]):
        while turn < call.turn:
            turn += 1
            lines.append(_turn_line(trace, turn))
        facts = (("write", call.tool in trace.writes), ("not asked for", not call.asked), ("failed", not call.ok))
        said = "".join(f"  {word}" for word, true in facts if true)
        lines.append(call_line(f"{index + 1:>7}  ", call, said, "plain" if call.ok else "removed"))
        lines += (notes or {}).get(index + 1, ())
    if shown is not None and len(trace.calls) > shown:
        return [*lines, Line(f"… {len(trace.calls) - shown} more calls", "title")]
    lines += [_turn_line(trace, number) for number in range(turn + 1, trace.turns + 1)]
    lines += [Line(f"{one.verdict} by {one.detector} after turn {one.turn}", "changed") for one in trace.interventions]
    lines += [Line(f"problem: {problem}", "removed", hang=2) for problem in trace.problems]
    summary = f"{counted(len(trace.calls), 'call')}, {counted(trace.turns, 'turn')}"
    for what, counts in (("repeated", trace.duplicates), ("writes", trace.write_counts)):
        if counts:
            summary += f", {what}: " + ", ".join(f"`{tool}` {count}" for tool, count in counts.items())
    return [*lines, Line(summary, "title", hang=2)]


def _turn_line(trace: Trace, turn: int) -> Line:
    reason = trace.stop_reasons[turn - 1] if turn <= len(trace.stop_reasons) else "?"
    return Line(f"turn {turn}  {reason}", "faint")
