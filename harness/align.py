"""The edit script between two sequences of calls: what is equal, changed, moved, added and removed.

Three passes.  The first keeps a longest common subsequence of the keys: what stayed in order is equal.  The second
pairs leftovers of both sides that have the very same key, wherever they stand: they moved.  The third pairs leftovers
of the same kind that stand in the same place: their arguments changed.  The rest was added or removed.  At last each
run of added or removed calls slides to where a reader expects it: of equal neighbours the later one is the repeated
one, and a repeated block is one block.

Long repetitive traces stay affordable.  The subsequence is a longest one up to 100,000 x 100,000 calls; beyond that it
may be a little shorter.  The script is right in either case.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import chain, count, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from harness.subsequence import Pairs, common_ends, common_subsequence

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

__all__ = ["Edit", "Op", "align", "apply"]

Op: TypeAlias = Literal["equal", "changed", "moved", "added", "removed"]
_Key = TypeVar("_Key", bound="Hashable")

_SLIDES = 4  # steps per call: runs that meet pass the same calls again, which must not add up


@dataclass(frozen=True, slots=True)
class Edit:
    """One entry of an edit script.

    Args:
        op: `equal` and `moved` calls have the same key on both sides, `changed` ones the same kind and another key.
        a: index into the golden sequence; None for `added`.
        b: index into the observed sequence; None for `removed`.
    """

    op: Op
    a: int | None
    b: int | None


def align(a: Sequence[_Key], b: Sequence[_Key], kind: Callable[[Any], Hashable] = itemgetter(0)) -> list[Edit]:
    """The script that turns the golden sequence `a` into the observed sequence `b`.

    Every index of both appears in exactly one entry.  The entries follow `b`; a removed call stands where it stood
    among its neighbours in `a`.  The same input always gives the same script.

    Args:
        a: one key per golden call, such as `Call.key`: calls are the same call when their keys are equal.
        b: one key per observed call.
        kind: what a key and its changed form have in common; by default the first element, the tool.
    """
    head, tail = common_ends(a, b)
    if head == len(a) == len(b):
        return [Edit("equal", index, index) for index in range(head)]
    golden = _Side.between(a, b, head, tail, "removed")
    observed = _Side.between(b, a, head, tail, "added")

    middle_a, middle_b = (side[head : len(side) - tail] for side in (a, b))
    ids = dict(zip(dict.fromkeys(chain(middle_a, middle_b)), count()))
    kept = common_subsequence([ids[key] for key in middle_a], [ids[key] for key in middle_b])
    _join(golden, observed, "equal", [(head + i, head + j) for i, j in kept])

    gaps_a, gaps_b = golden.gaps(head, tail), observed.gaps(head, tail)
    _join(golden, observed, "moved", _couples({i: a[i] for i in gaps_a}, {j: b[j] for j in gaps_b}))
    in_place: set[int] = set()
    # First within one gap; then across the one equal call that separates two gaps, downwards and upwards.
    for offset in (0, 1, -1):
        left_a = {i: (gap + offset, kind(a[i])) for i, gap in gaps_a.items() if golden.partners[i] < 0}
        left_b = {j: (gap, kind(b[j])) for j, gap in gaps_b.items() if observed.partners[j] < 0}
        if not left_a or not left_b:
            break
        changed = _couples(left_a, left_b)
        _join(golden, observed, "changed", changed)
        if offset == 0:
            in_place.update(i for i, _ in changed)

    _slide(golden, observed)
    _slide(observed, golden)
    return _merged(golden, observed, in_place)


def apply(edits: Iterable[Edit], a: Sequence[_Key], b: Sequence[_Key]) -> list[_Key]:
    """What the script makes of `a`: kept calls come from `a`, new and changed ones from `b`.

    For the script of `align(a, b)` that is `b`.
    """
    result: list[_Key] = []
    for edit in edits:
        if edit.op in ("equal", "moved") and edit.a is not None:
            result.append(a[edit.a])
        elif edit.b is not None:
            result.append(b[edit.b])
    return result


# The script while it is being made.


@dataclass(slots=True)
class _Side:
    """One sequence: per entry what became of it, and the index of its partner on the other side (-1: none)."""

    keys: Sequence[Any]
    alone: Op
    ops: list[Op]
    partners: list[int]

    @classmethod
    def between(cls, keys: Sequence[Any], other: Sequence[Any], head: int, tail: int, alone: Op) -> _Side:
        """The side of `keys` when nothing is known but the common ends."""
        middle = len(keys) - head - tail
        kept: Op = "equal"
        ops = [kept] * head + [alone] * middle + [kept] * tail
        partners = [*range(head), *repeat(-1, middle), *range(len(other) - tail, len(other))]
        return cls(keys, alone, ops, partners)

    def gaps(self, head: int, tail: int) -> dict[int, int]:
        """The number of its gap for each entry without a partner: how many of the middle have one before it."""
        gap = 0
        numbers = {}
        for index in range(head, len(self.keys) - tail):
            if self.partners[index] < 0:
                numbers[index] = gap
            else:
                gap += 1
        return numbers

    def runs(self) -> Iterator[tuple[int, int]]:
        """Start and end of each longest run of entries without a partner, as they are now."""
        start = None
        for index, partner in enumerate([*self.partners, 0]):
            if partner < 0 and start is None:
                start = index
            elif partner >= 0 and start is not None:
                yield start, index
                start = None

    def trade(self, other: _Side, equal: int, lone: int) -> None:
        """Of two entries with the same key, the one without a partner takes the partner of the other one."""
        partner = self.partners[equal]
        other.partners[partner] = lone
        self.partners[equal], self.partners[lone] = -1, partner
        self.ops[equal], self.ops[lone] = self.alone, "equal"


def _join(golden: _Side, observed: _Side, op: Op, pairs: Iterable[tuple[int, int]]) -> None:
    for i, j in pairs:
        golden.partners[i], observed.partners[j] = j, i
        golden.ops[i] = observed.ops[j] = op


def _couples(left_a: dict[int, _Key], left_b: dict[int, _Key]) -> Pairs:
    """One to one and in order, the entries of both sides that carry the same token."""
    waiting: dict[_Key, list[int]] = defaultdict(list)
    for i, token in reversed(left_a.items()):
        waiting[token].append(i)
    return [(waiting[token].pop(), j) for j, token in left_b.items() if waiting.get(token)]


def _slide(side: _Side, other: _Side) -> None:
    """Move the runs of lone entries to where a reader expects them.  What is kept stays as long as it was.

    A run may trade places with equal calls beside it as long as it stays the same run, rotated: `+A B [A]` reads as
    `[A] +B A` just as well.  One run reads better than two, so a run goes up where it meets another one; of equal
    neighbours the later one is the new one, so each then goes down as far as it can.
    """
    _sink(side, other, _rise(side, other))


def _rise(side: _Side, other: _Side) -> list[tuple[int, int]]:
    """Join the runs that meet when the lower one goes up; the runs that there are then, from the top."""
    keys, ops = side.keys, side.ops
    steps = _SLIDES * len(keys)
    risen: list[tuple[int, int]] = []
    for run in side.runs():
        start, stop = run
        while risen and steps > 0:
            way = start - risen[-1][1]
            free = 0
            while free < way and ops[start - free - 1] == "equal" and keys[start - free - 1] == keys[stop - free - 1]:
                free += 1
            steps -= free + 1
            if free < way:
                break
            for step in range(1, way + 1):
                side.trade(other, equal=start - step, lone=stop - step)
            start, stop = risen.pop()[0], stop - way
        risen.append((start, stop))
    return risen


def _sink(side: _Side, other: _Side, runs: list[tuple[int, int]]) -> None:
    """Move the runs down, the lowest one first; a run that meets the next one takes it along."""
    keys, ops = side.keys, side.ops
    steps = _SLIDES * len(keys)
    sunk: list[int] = []  # where the runs further down end, the nearest last
    while runs:
        start, stop = runs.pop()
        while stop < len(keys) and steps > 0:
            if ops[stop] == side.alone:
                stop = sunk.pop()
            elif ops[stop] == "equal" and keys[stop] == keys[start]:
                side.trade(other, equal=stop, lone=start)
                start, stop = start + 1, stop + 1
            else:
                break
            steps -= 1
        sunk.append(stop)


def _merged(golden: _Side, observed: _Side, in_place: set[int]) -> list[Edit]:
    """The entries of both sides as one list, in the order of the observed side.

    A removed entry follows the one before it in the golden sequence that did not go elsewhere.
    """
    edits: list[Edit] = []
    stays = [op == "equal" or index in in_place for index, op in enumerate(golden.ops)]
    size = len(stays)

    def tell_removed(start: int) -> int:
        """Those from `start` on, up to the next one that stays."""
        while start < size and not stays[start]:
            if golden.partners[start] < 0:
                edits.append(Edit("removed", start, None))
            start += 1
        return start

    told = tell_removed(0)
    for j, (op, i) in enumerate(zip(observed.ops, observed.partners, strict=True)):
        if i < 0:
            edits.append(Edit(op, None, j))
            continue
        while told < i and stays[i]:
            told = tell_removed(told + 1)
        edits.append(Edit(op, i, j))
        if told == i:
            told = tell_removed(told + 1)
    return edits
