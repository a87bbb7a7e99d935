"""A drift, or a trace, as styled lines: what the terminal, the plugin and the report files show."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from harness.facets import changed_arguments
from harness.policy import FACETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from harness.align import Edit
    from harness.drift import Drift
    from harness.trace import Call, Trace

__all__ = ["SHOWN", "Line", "Style", "drift_lines", "plain_text", "printable", "trace_lines"]

Style: TypeAlias = Literal["plain", "faint", "title", "added", "removed", "changed", "moved"]

CONTEXT: Final = 2
"""Equal calls shown before and after each difference."""

SHOWN: Final = 120
"""Lines of the aligned diff that a terminal gets; the report file holds all."""

_MARKS: Final[dict[str, tuple[str, Style]]] = {
    "equal": (" ", "plain"),
    "changed": ("~", "changed"),
    "moved": (">", "moved"),
    "added": ("+", "added"),
    "removed": ("-", "removed"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text and how it is meant.

    Names and messages in it come from models, tools and loops, so the text is made `printable`.
    """

    text: str
    style: Style = "plain"

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", printable(self.text))


def printable(text: str) -> str:
    """The text with everything escaped that would break a line, move a cursor, or that UTF-8 cannot hold."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text.expandtabs(4))


def plain_text(lines: Iterable[Line]) -> str:
    """The lines without any style, each ended by a newline."""
    return "".join(f"{line.text}\n" for line in lines)


def drift_lines(drift: Drift, limit: int | None = SHOWN, whole: str = "") -> list[Line]:
    """Causes, one verdict a facet, then the aligned calls with what stands around each difference.

    Args:
        drift: what to show.
        limit: lines of the aligned diff; None for all.
        whole: where to find those that the limit leaves out.
    """
    lines = [Line(f"cause   {cause}", "changed") for cause in drift.causes]
    width = max(map(len, FACETS))
    lines += [Line(f"{facet:<{width}}  {verdict}", "title") for facet, verdict in drift.verdicts.items()]
    lines.append(Line(""))
    lines.append(Line("  golden     now", "faint"))
    blocks = list(_blocks(drift))
    shown = len(blocks) if limit is None else bisect_right(list(accumulate(map(len, blocks))), limit)
    lines += chain.from_iterable(blocks[:shown])
    return [*lines, _hidden(blocks[shown:], whole)] if shown < len(blocks) else lines


def _hidden(blocks: Sequence[Sequence[Line]], whole: str) -> Line:
    count = sum(any(line.style not in ("plain", "faint") for line in block) for block in blocks)
    where = f", all of them in {whole}" if whole else ""
    return Line(f"… {count:,} more difference{'s' * (count != 1)}{where}", "title")


def trace_lines(trace: Trace, shown: int | None = None) -> list[Line]:
    """The turns with their stop_reasons and calls, and the summary."""
    lines: list[Line] = []
    turn = 0
    for index, call in enumerate(trace.calls if shown is None else trace.calls[:shown]):
        while turn < call.turn:
            turn += 1
            lines.append(_turn_line(trace, turn))
        mark = "!" if call.tool in trace.writes else " "
        failed = "" if call.ok else "  failed"
        lines.append(Line(f"  {mark} {index + 1:>3}  {_call_text(call)}{failed}", "plain" if call.ok else "removed"))
    if shown is not None and len(trace.calls) > shown:
        return [*lines, Line(f"… {len(trace.calls) - shown} more calls", "title")]
    lines += [_turn_line(trace, number) for number in range(turn + 1, trace.turns + 1)]
    lines += [Line(f"{one.verdict} by {one.detector} after turn {one.turn}", "changed") for one in trace.interventions]
    lines += [Line(f"problem: {problem}", "removed") for problem in trace.problems]
    summary = f"{_counted(len(trace.calls), 'call')}, {_counted(trace.turns, 'turn')}"
    for what, counts in (("repeated", trace.duplicates), ("writes", trace.write_counts)):
        if counts:
            summary += f", {what}: " + ", ".join(f"`{tool}` {count}" for tool, count in counts.items())
    return [*lines, Line(summary, "title")]


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _turn_line(trace: Trace, turn: int) -> Line:
    reason = trace.stop_reasons[turn - 1] if turn <= len(trace.stop_reasons) else "?"
    return Line(f"turn {turn}  {reason}", "faint")


def _call_text(call: Call) -> str:
    if call.args is None:
        return f"{call.tool}  {call.digest}"
    return f"{call.tool}({', '.join(f'{name}={_value(value)}' for name, value in call.args.items())})"


def _value(value: object) -> str:
    text = str(value).replace("\n", "⏎")
    return text if len(text) <= 40 else f"{text[:39]}…"


def _blocks(drift: Drift) -> Iterator[list[Line]]:
    """The aligned calls, one block each, equal ones folded where nothing near them changed; then the stop_reasons."""
    edits = _in_reading_order(drift)
    notes = _turn_notes(drift)
    differs = [_differs(drift, edit) or edit.b in notes for edit in edits]
    near = [False] * len(edits)
    for place, different in enumerate(differs):
        if different:
            for other in range(max(0, place - CONTEXT), min(len(edits), place + CONTEXT + 1)):
                near[other] = True
    folded = 0
    for place, edit in enumerate(edits):
        if not near[place]:
            folded += 1
            continue
        if folded:
            yield [Line(_folded(folded), "faint")]
            folded = 0
        yield list(_block(drift, edit, notes))
    if folded:
        yield [Line(_folded(folded), "faint")]
    if drift.verdicts.keys() & {"stop_reasons", "turns"}:
        yield [
            Line(""),
            Line(f"- stop_reasons  {_reasons(drift.golden)}", "removed"),
            Line(f"+ stop_reasons  {_reasons(drift.trace)}", "added"),
        ]


def _folded(count: int) -> str:
    return f"       …       {count} equal call{'s' * (count > 1)}"


def _in_reading_order(drift: Drift) -> Sequence[Edit]:
    """The edits by the observed calls; a call that went stands where its predecessor in the golden stands."""
    place = -1
    keyed: list[tuple[int, int, Edit]] = []
    for order, edit in enumerate(drift.edits):
        place = edit.b if edit.b is not None else place
        keyed.append((place, order, edit))
    return [edit for _, _, edit in sorted(keyed, key=lambda entry: entry[:2])]


def _differs(drift: Drift, edit: Edit) -> bool:
    if edit.op != "equal" or edit.a is None or edit.b is None:
        return True
    before, now = drift.golden.calls[edit.a], drift.trace.calls[edit.b]
    return before.ok != now.ok or _has_other_result(drift, before, now)


def _has_other_result(drift: Drift, before: Call, now: Call) -> bool:
    return (
        drift.policy.wants_results and before.result != now.result and now.tool not in drift.policy["results"].ignored
    )


def _turn_notes(drift: Drift) -> dict[int, str]:
    """What to say of calls that are the same, but came in another company of calls than in the golden."""
    golden, trace = drift.golden.calls, drift.trace.calls
    apart, together, elsewhere = (
        [finding for finding in drift.findings if finding.facet == "order" and finding.kind == kind]
        for kind in ("sequential", "parallel", "turn")
    )
    split = {golden[one.golden_call].turn for one in apart if one.golden_call is not None}
    joined = {trace[one.call].turn for one in together if one.call is not None}
    moved = {one.call for one in elsewhere}
    notes: dict[int, str] = {}
    for edit in drift.edits:
        if edit.a is None or edit.b is None:
            continue
        if golden[edit.a].turn in split:
            notes[edit.b] = "was parallel"
        elif trace[edit.b].turn in joined:
            notes[edit.b] = "was sequential"
        elif edit.b in moved:
            notes[edit.b] = f"was in turn {golden[edit.a].turn}"
    return notes


def _block(drift: Drift, edit: Edit, turn_notes: Mapping[int, str]) -> Iterator[Line]:
    mark, style = _MARKS[edit.op]
    before = drift.golden.calls[edit.a] if edit.a is not None else None
    now = drift.trace.calls[edit.b] if edit.b is not None else None
    call = now or before
    if call is None:
        return
    if edit.op == "equal" and (_differs(drift, edit) or edit.b in turn_notes):
        mark, style = _MARKS["changed"]
    notes = "  write" if call.tool in drift.golden.writes | drift.trace.writes else ""
    if before and now and before.ok != now.ok:
        notes += "  succeeded, golden: failed" if now.ok else "  failed, golden: succeeded"
    elif not call.ok:
        notes += "  failed"
    if before and now and _has_other_result(drift, before, now):
        notes += "  another result"
    if edit.op == "moved":
        notes += f"  was call {(edit.a or 0) + 1}"
    elif edit.b is not None and edit.b in turn_notes:
        notes += f"  {turn_notes[edit.b]}"
    left, right = _place(edit.a, before), _place(edit.b, now)
    yield Line(f"{left:>8} {right:>7}  {mark} {_call_text(call)}{notes}", style)
    if edit.op == "changed" and before and now:
        for text in _changed_values(before, now):
            yield Line(f"{'':>22}{text}", "changed")


def _place(index: int | None, call: Call | None) -> str:
    """A call's number and turn: `3 t2`."""
    return "" if index is None or call is None else f"{index + 1} t{call.turn}"


def _changed_values(before: Call, now: Call) -> Iterator[str]:
    names = changed_arguments(before, now)
    if names is None:
        yield f"arguments: {before.digest} → {now.digest}"
        return
    old, new = before.args or {}, now.args or {}
    for name in names:
        if name in old and name in new and isinstance(old[name], dict | list) and type(old[name]) is type(new[name]):
            yield from (f"{name}{inner}" for inner in _inner_changes(old[name], new[name]))
        else:
            left, right = (_value(side[name]) if name in side else "absent" for side in (old, new))
            yield f"{name}: {left} → {right}"


def _inner_changes(old: object, new: object) -> Iterator[str]:
    """Where inside a plain value something changed.  DeepDiff is imported only here: it costs a third of a second."""
    from deepdiff import DeepDiff

    diff = DeepDiff(old, new, verbose_level=2)
    for kind, entries in sorted(diff.items()):
        for path, change in sorted(entries.items()):
            where = path.removeprefix("root")
            if isinstance(change, dict) and "old_value" in change:
                yield f"{where}: {_value(change['old_value'])} → {_value(change['new_value'])}"
            elif kind.endswith("_added"):
                yield f"{where}: absent → {_value(change)}"
            else:
                yield f"{where}: {_value(change)} → absent"


def _reasons(trace: Trace) -> str:
    """The sequence, runs of one reason counted: `tool_use ×3, end_turn`."""
    runs: list[tuple[str, int]] = []
    for reason in map(str, trace.stop_reasons):
        if runs and runs[-1][0] == reason:
            runs[-1] = (reason, runs[-1][1] + 1)
        else:
            runs.append((reason, 1))
    return ", ".join(f"{reason} ×{count}" if count > 1 else reason for reason, count in runs) or "none"
