"""The calls of a drift side by side, turn by turn: what a reader sees of an edit script, whatever the format."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.align import Edit
    from harness.drift import Drift
    from harness.trace import Call, Trace

__all__ = ["CallRow", "InterventionRow", "Mark", "TurnBlock", "aligned_turns"]

Mark: TypeAlias = Literal[" ", "~", ">", "+", "-"]
"""The same, changed, moved, came, went."""

_MARKS: dict[str, Mark] = {"equal": " ", "changed": "~", "moved": ">", "added": "+", "removed": "-"}


@dataclass(frozen=True, slots=True)
class CallRow:
    """One call.

    Args:
        mark: what became of it.
        golden: its index in the golden's calls; None for one that came.
        now: its index in the observed calls; None for one that went.
        bracket: `┌`, `│`, `└` beside the calls of one parallel group; a space for a call that stands alone.
        notes: what else there is to say of it, in the order of importance.
    """

    mark: Mark
    golden: int | None
    now: int | None
    bracket: str = " "
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InterventionRow:
    """A verdict of the stuck-loop guard, after the calls of its turn."""

    mark: Mark
    text: str


@dataclass(frozen=True, slots=True)
class TurnBlock:
    """One response of the model: its stop_reason on both sides, and the calls that it asked for.

    Args:
        golden: the number of the turn in the golden; None for one that came.
        now: its number now; None for one that went.  Both are None for calls that were made outside of any response.
        before, after: the stop_reasons.
        rows: what was done in it, in the order of the observed calls.
    """

    golden: int | None = None
    now: int | None = None
    before: str | None = None
    after: str | None = None
    rows: list[CallRow | InterventionRow] = field(default_factory=list)

    @property
    def mark(self) -> Mark:
        """What became of the turn itself."""
        if self.golden is None and self.now is None:
            return " "
        if self.golden is None or self.now is None:
            return "+" if self.golden is None else "-"
        return " " if self.before == self.after else "~"


def aligned_turns(drift: Drift) -> list[TurnBlock]:
    """The turns of both sides in one order, each with its calls; a turn that went stands behind the one before it."""
    golden, trace = drift.golden, drift.trace
    partners = _paired_turns(drift)
    blocks = _Blocks(golden, trace, partners)
    notes = _company_notes(drift)
    for edit in _in_reading_order(drift):
        row = _call_row(drift, edit, notes)
        block = blocks.of_now(edit.b) if edit.b is not None else blocks.of_golden(edit.a or 0)
        block.rows.append(row)
    for block in blocks.in_order():
        _bracket(block, golden, trace)
    _add_interventions(drift, blocks)
    return blocks.in_order()


class _Blocks:
    """The blocks of all turns, found by the calls that belong in them.

    Calls outside of any response stand in blocks of their own, behind the turn before them.
    """

    def __init__(self, golden: Trace, trace: Trace, partners: Mapping[int, int]) -> None:
        self._before = _places(golden.calls)
        self._after = _places(trace.calls)
        back = {now: before for before, now in partners.items()}
        self._partners = partners
        self._now = {turn: _turn(golden, trace, back.get(turn), turn) for turn in range(1, _last(trace) + 1)}
        self._gone = {
            turn: _turn(golden, trace, turn, None) for turn in range(1, _last(golden) + 1) if turn not in partners
        }
        self._loose: dict[int, TurnBlock] = defaultdict(TurnBlock)

    def of_now(self, index: int) -> TurnBlock:
        """Where an observed call stands."""
        turn, previous = self._after[index]
        return self._now[turn] if turn else self._loose[previous]

    def of_golden(self, index: int) -> TurnBlock:
        """Where a call that went stands."""
        turn, previous = self._before[index]
        return self.of_golden_turn(turn) if turn else self._loose[self._anchor(previous)]

    def of_now_turn(self, turn: int) -> TurnBlock:
        """The block of an observed turn."""
        return self._now.get(turn) or self._loose[max(self._now, default=0)]

    def of_golden_turn(self, turn: int) -> TurnBlock:
        """The block of a turn of the golden."""
        if turn in self._partners:
            return self._now[self._partners[turn]]
        return self._gone.get(turn) or self._loose[max(self._now, default=0)]

    def _anchor(self, golden_turn: int) -> int:
        """The observed turn that a turn of the golden, or what follows it, stands behind."""
        while golden_turn and golden_turn not in self._partners:
            golden_turn -= 1
        return self._partners.get(golden_turn, 0)

    def in_order(self) -> list[TurnBlock]:
        """All blocks as a reader meets them."""
        gone: dict[int, list[TurnBlock]] = defaultdict(list)
        anchor = 0
        for turn in range(1, max([0, *self._gone]) + 1):
            anchor = max(anchor, self._partners.get(turn, 0))
            if turn in self._gone:
                gone[anchor].append(self._gone[turn])
        order: list[TurnBlock] = []
        for turn in range(max([0, *self._now]) + 1):
            order += [self._now[turn]] if turn else []
            order += [self._loose[turn]] if turn in self._loose else []
            order += gone.get(turn, [])
        return order


def _places(calls: Sequence[Call]) -> list[tuple[int, int]]:
    """For each call its turn, and the last turn before it for one that has none."""
    places: list[tuple[int, int]] = []
    previous = 0
    for call in calls:
        places.append((call.turn, previous))
        previous = max(previous, call.turn)
    return places


def _last(trace: Trace) -> int:
    return max(trace.turns, max((call.turn for call in trace.calls), default=0))


def _turn(golden: Trace, trace: Trace, before: int | None, now: int | None) -> TurnBlock:
    return TurnBlock(before, now, _reason(golden, before), _reason(trace, now))


def _reason(trace: Trace, turn: int | None) -> str | None:
    if turn is None or turn > len(trace.stop_reasons):
        return None
    reason = trace.stop_reasons[turn - 1]
    return "none" if reason is None else str(reason)


def _paired_turns(drift: Drift) -> dict[int, int]:
    """Which turn of the golden is which observed turn: by the calls that stayed, then by place among what is left."""
    golden, trace = drift.golden, drift.trace
    if _last(golden) == _last(trace):  # no turn came or went, whatever moved between them
        return {turn: turn for turn in range(1, _last(golden) + 1)}
    candidates: dict[int, set[int]] = defaultdict(set)
    for edit in drift.edits:
        if edit.a is not None and edit.b is not None and edit.op != "moved":
            before, now = golden.calls[edit.a].turn, trace.calls[edit.b].turn
            if before and now:
                candidates[before].add(now)
    pairs: dict[int, int] = {}
    last = 0
    for before in sorted(candidates):
        later = [now for now in candidates[before] if now > last]
        if later:
            pairs[before] = last = min(later)
    busy_before, busy_now = ({call.turn for call in side.calls} for side in (golden, trace))
    ends = [(0, 0), *sorted(pairs.items()), (_last(golden) + 1, _last(trace) + 1)]
    for (low_a, low_b), (high_a, high_b) in pairwise(ends):
        left, right = list(range(low_a + 1, high_a)), list(range(low_b + 1, high_b))
        if len(left) != len(right):
            # Responses without calls are each other's partners, from the end: a run that grew still ends as it did.
            quiet_left = [turn for turn in left if turn not in busy_before]
            quiet_right = [turn for turn in right if turn not in busy_now]
            quiet = list(zip(reversed(quiet_left), reversed(quiet_right), strict=False))
            pairs.update(quiet)
            left = [turn for turn in left if turn in busy_before]
            right = [turn for turn in right if turn in busy_now]
        pairs.update(zip(left, right, strict=False))
    return pairs


def _in_reading_order(drift: Drift) -> Sequence[Edit]:
    """The edits by the observed calls; a call that went stands where its predecessor in the golden stands."""
    place = -1
    keyed: list[tuple[int, int, Edit]] = []
    for order, edit in enumerate(drift.edits):
        place = edit.b if edit.b is not None else place
        keyed.append((place, order, edit))
    return [edit for _, _, edit in sorted(keyed, key=lambda entry: entry[:2])]


def _call_row(drift: Drift, edit: Edit, company: Mapping[int, str]) -> CallRow:
    before = drift.golden.calls[edit.a] if edit.a is not None else None
    now = drift.trace.calls[edit.b] if edit.b is not None else None
    mark = _MARKS[edit.op]
    notes = list(_outcome_notes(drift, before, now))
    regarded = before is not None and now is not None and before.asked != now.asked
    if edit.op == "equal" and (notes or edit.b in company or regarded):
        mark = "~"
    call = now or before
    if call is not None and not call.ok and not (before and now and before.ok != now.ok):
        notes.insert(0, "failed")
    if edit.op == "moved":
        notes.append(f"moved {(edit.a or 0) + 1} → {(edit.b or 0) + 1}")
    elif edit.b is not None and edit.b in company:
        notes.append(company[edit.b])
    if call is not None and not call.asked:
        notes.insert(0, "not asked for")
    if call is not None and call.tool in drift.golden.writes | drift.trace.writes:
        notes.insert(0, "write")
    return CallRow(mark, edit.a, edit.b, notes=tuple(notes))


def _outcome_notes(drift: Drift, before: Call | None, now: Call | None) -> Iterator[str]:
    """What makes an equal call a changed one."""
    if before is None or now is None:
        return
    if before.ok != now.ok:
        yield "succeeded, golden: failed" if now.ok else "failed, golden: succeeded"
    results = drift.policy["results"]
    if drift.policy.wants_results and before.result != now.result and now.tool not in results.ignored:
        yield "another result"


def _company_notes(drift: Drift) -> dict[int, str]:
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


def _bracket(block: TurnBlock, golden: Trace, trace: Trace) -> None:
    """Make the parallel groups visible.  A group of either side counts: one that went was a group, too."""
    if block.golden is None and block.now is None:
        return
    rows = [row for row in block.rows if isinstance(row, CallRow)]
    asked = [row for row in rows if _call_of(row, golden, trace).asked]
    sides = [sum(row.golden is not None and golden.calls[row.golden].turn == block.golden for row in asked)]
    sides.append(sum(row.now is not None and trace.calls[row.now].turn == block.now for row in asked))
    if len(asked) < 2 or max(sides) < 2:
        return
    first, last = rows.index(asked[0]), rows.index(asked[-1])
    block.rows[:] = [
        replace(
            row, bracket=" " if not first <= place <= last else "┌" if place == first else "└" if place == last else "│"
        )
        for place, row in enumerate(rows)
    ]


def _call_of(row: CallRow, golden: Trace, trace: Trace) -> Call:
    """What a row is about: the call now, or the one that went."""
    return trace.calls[row.now] if row.now is not None else golden.calls[row.golden or 0]


def _add_interventions(drift: Drift, blocks: _Blocks) -> None:
    """What the guard said, behind the calls of its turn; on both sides, or on one."""
    left: dict[int, Counter[str]] = defaultdict(Counter)
    for one in drift.golden.interventions:
        left[id(blocks.of_golden_turn(one.turn))][f"{one.verdict} by {one.detector}"] += 1
    for one in drift.trace.interventions:
        block, text = blocks.of_now_turn(one.turn), f"{one.verdict} by {one.detector}"
        known = left[id(block)][text] > 0
        left[id(block)][text] -= known
        block.rows.append(InterventionRow(" " if known else "+", text))
    for one in drift.golden.interventions:
        block, text = blocks.of_golden_turn(one.turn), f"{one.verdict} by {one.detector}"
        if left[id(block)][text] > 0:
            left[id(block)][text] -= 1
            block.rows.append(InterventionRow("-", text))
