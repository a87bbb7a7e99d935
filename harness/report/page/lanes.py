"""Two aligned traces as swim lanes: one block a turn, in it one row a call or a pair of calls."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from harness.facets import changed_arguments
from harness.report.lines import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.align import Edit
    from harness.drift import Drift
    from harness.trace import Call, Trace

__all__ = ["OPS", "Argument", "Block", "Row", "RowOp", "blocks_of", "lone_blocks", "value_text"]

RowOp: TypeAlias = Literal["equal", "changed", "moved", "added", "removed", "regrouped", "differs"]

OPS: Final[tuple[RowOp, ...]] = ("equal", "changed", "moved", "added", "removed", "regrouped", "differs")

Argument: TypeAlias = tuple[str, str, str]
"""The name of an argument that changed, its text before, its text now."""

_SHOWN: Final = 60  # characters of one argument: with `detail: plain` a call may hold a whole document
_ABSENT: Final = "absent"
_COUNTING: Final = frozenset({"writes", "order", "arguments", "outcomes", "results"})


@dataclass(frozen=True, slots=True)
class Row:
    """One call, or a call and the one that answers to it.

    Args:
        op: as in `harness.align.Edit`; `regrouped` is the same call in another turn, `differs` the same call with
            another outcome or result.
        a: index into the golden's calls; None where the golden has none in this row.
        b: index into the observed calls, likewise.
        notes: what to say beside it.
        changes: of its arguments.
        allowed: the difference is one that the policy of the case lets pass.
        partner: index of the call that answers to it, where that stands in another row.
    """

    op: RowOp
    a: int | None
    b: int | None
    notes: tuple[str, ...] = ()
    changes: tuple[Argument, ...] = ()
    allowed: bool = False
    partner: int | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A turn of the golden beside the turn that answers to it; None where a side has no such turn.

    Turn 0 is a call outside of any turn.
    """

    golden: int | None
    now: int | None
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class _Step:
    """One turn of one side, with the indices of its calls."""

    turn: int
    calls: tuple[int, ...] = ()


def blocks_of(drift: Drift) -> list[Block]:
    """The blocks of a comparison, in the order of both runs."""
    golden, now = list(_steps(drift.golden)), list(_steps(drift.trace))
    matches = _Matches.of(drift)
    return [_block(matches, *pair) for pair in _paired(matches, golden, now)]


def lone_blocks(trace: Trace, *, now: bool) -> list[Block]:
    """The blocks of a trace that there is nothing to compare with, in the lane of the golden or of what ran."""
    blocks: list[Block] = []
    for step in _steps(trace):
        rows = tuple(Row("equal", None, one) if now else Row("equal", one, None) for one in step.calls)
        blocks.append(Block(None, step.turn, rows) if now else Block(step.turn, None, rows))
    return blocks


def _steps(trace: Trace) -> Iterator[_Step]:
    """The turns in order, those without calls too, and each call outside of any turn by itself."""
    told = index = 0
    for group in trace.groups():
        turn = group[0].turn
        yield from (_Step(empty) for empty in range(told + 1, turn))
        told = max(told, turn)
        yield _Step(turn, tuple(range(index, index + len(group))))
        index += len(group)
    yield from (_Step(empty) for empty in range(told + 1, trace.turns + 1))


_Pair: TypeAlias = "tuple[_Step | None, _Step | None]"


@dataclass(frozen=True, slots=True)
class _Matches:
    """What became of each call of either side, by its index there."""

    drift: Drift
    golden: Mapping[int, Edit]
    now: Mapping[int, Edit]
    counted: frozenset[tuple[str, int]] | None
    """The calls that a finding is about; None where all differences count."""

    @classmethod
    def of(cls, drift: Drift) -> _Matches:
        golden = {edit.a: edit for edit in drift.edits if edit.a is not None}
        now = {edit.b: edit for edit in drift.edits if edit.b is not None}
        return cls(drift, golden, now, _counted(drift))


def _counted(drift: Drift) -> frozenset[tuple[str, int]] | None:
    found = [one for one in drift.findings if one.facet in _COUNTING]
    if drift.policy.is_exact or any(one.kind == "at_most" for one in found):
        return None
    places = [("golden", one.golden_call) for one in found] + [("now", one.call) for one in found]
    return frozenset((side, place) for side, place in places if place is not None)


def _paired(matches: _Matches, golden: Sequence[_Step], now: Sequence[_Step]) -> Iterator[_Pair]:
    """Turns that share calls stand beside each other; what is between them as it comes."""
    reached_a = reached_b = 0
    for a, b in _anchors(matches, golden, now):
        yield from _gap(golden[reached_a:a], now[reached_b:b])
        yield golden[a], now[b]
        reached_a, reached_b = a + 1, b + 1
    yield from _gap(golden[reached_a:], now[reached_b:])


def _anchors(matches: _Matches, golden: Sequence[_Step], now: Sequence[_Step]) -> Iterator[tuple[int, int]]:
    """For each observed turn the golden's turn that it shares most calls with, never back behind the one before."""
    step_of = {call: place for place, step in enumerate(golden) for call in step.calls}
    last = -1
    for place, step in enumerate(now):
        votes: Counter[int] = Counter()
        for call in step.calls:
            edit = matches.now[call]
            if edit.a is not None and edit.op in ("equal", "changed"):
                votes[step_of[edit.a]] += 2 if edit.op == "equal" else 1
        ahead = [(-count, one) for one, count in votes.items() if one > last]
        if ahead:
            last = min(ahead)[1]
            yield last, place


def _gap(golden: Sequence[_Step], now: Sequence[_Step]) -> Iterator[_Pair]:
    """Turns that share no call: those without calls answer to each other at the end, the others in turn."""
    end: list[_Pair] = []
    while golden and now and not golden[-1].calls and not now[-1].calls:
        end.append((golden[-1], now[-1]))
        golden, now = golden[:-1], now[:-1]
    common = min(len(golden), len(now))
    yield from zip(golden[:common], now[:common], strict=True)
    yield from ((step, None) for step in golden[common:])
    yield from ((None, step) for step in now[common:])
    yield from reversed(end)


def _block(matches: _Matches, golden: _Step | None, now: _Step | None) -> Block:
    """The rows follow the observed calls; a call that went stands where it stood among its neighbours."""
    ours = golden.calls if golden else ()
    theirs = frozenset(now.calls if now else ())
    waiting = dict.fromkeys(ours)
    rows: list[Row] = []
    reached = 0
    for call in now.calls if now else ():
        partner = matches.now[call].a
        if partner not in waiting:
            rows.append(_row(matches, None, call))
            continue
        while ours[reached] != partner and (
            ours[reached] not in waiting or matches.golden[ours[reached]].b not in theirs
        ):
            if ours[reached] in waiting:
                rows.append(_row(matches, ours[reached], None))
                del waiting[ours[reached]]
            reached += 1
        del waiting[partner]
        rows.append(_row(matches, partner, call))
    rows += [_row(matches, call, None) for call in waiting]
    return Block(golden.turn if golden else None, now.turn if now else None, tuple(rows))


def _row(matches: _Matches, a: int | None, b: int | None) -> Row:
    drift = matches.drift
    edit = matches.now[b] if b is not None else matches.golden[-1 if a is None else a]
    before = None if edit.a is None else drift.golden.calls[edit.a]
    now = None if edit.b is None else drift.trace.calls[edit.b]
    if before is None or now is None:
        return Row(edit.op, a, b, _failure(now or before), allowed=_allowed(matches, edit))
    notes: list[str] = []
    op: RowOp = edit.op
    if before.ok != now.ok:
        notes.append("succeeded, golden: failed" if now.ok else "failed, golden: succeeded")
    else:
        notes += _failure(now)
    if drift.policy.wants_results and before.result != now.result and now.tool not in drift.policy["results"].ignored:
        notes.append("another result")
    if op == "equal" and (before.ok != now.ok or before.asked != now.asked or "another result" in notes):
        op = "differs"
    if a is None:
        notes.append(f"was call {_place(edit.a)} in {_turn(before)}")
    elif b is None:
        notes.append(f"now call {_place(edit.b)} in {_turn(now)}")
    elif op == "moved":
        notes.append(f"was call {_place(edit.a)}")
    if op == "equal" and (a is None or b is None):
        op = "regrouped"
    changes = tuple(_changes(before, now)) if op == "changed" else ()
    partner = edit.a if a is None else edit.b if b is None else None
    return Row(op, a, b, tuple(notes), changes, op != "equal" and _allowed(matches, edit), partner)


def _allowed(matches: _Matches, edit: Edit) -> bool:
    if matches.counted is None:
        return False
    return not ({("golden", edit.a), ("now", edit.b)} & matches.counted)


def _failure(call: Call | None) -> tuple[str, ...]:
    if call is None:
        return ()
    return (*(() if call.asked else ("not asked for",)), *(() if call.ok else ("failed",)))


def _place(index: int | None) -> str:
    return str((index or 0) + 1)


def _turn(call: Call) -> str:
    return f"turn {call.turn}" if call.turn else "no turn"


def _changes(before: Call, now: Call) -> Iterator[Argument]:
    names = changed_arguments(before, now)
    if names is None:
        yield ("arguments", before.digest, now.digest)
        return
    old, new = before.args or {}, now.args or {}
    for name in names:
        left, right = (_whole(side[name]) if name in side else _ABSENT for side in (old, new))
        yield (printable(name), *_where_they_part(left, right))


def value_text(value: object) -> str:
    """One argument of a call, shortened."""
    text = _whole(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _whole(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return printable(text.replace("\n", "⏎"))


def _where_they_part(left: str, right: str) -> tuple[str, str]:
    """Both shortened so that what tells them apart is in what is left."""
    if max(len(left), len(right)) <= _SHOWN:
        return left, right
    common = next((place for place, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), _SHOWN)
    start = max(0, common - _SHOWN // 3)
    return _cut(left, start), _cut(right, start)


def _cut(text: str, start: int) -> str:
    end = start + _SHOWN
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
