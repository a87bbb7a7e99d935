"""The longest common subsequence of two sequences of integers, as pairs of indices, by the method that suits.

It is a longest one up to 100,000 x 100,000 entries; beyond that, and only there, it is found in linear time and may be
a little shorter.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from itertools import accumulate
from operator import add
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Pairs", "common_ends", "common_subsequence"]

Pairs: TypeAlias = "list[tuple[int, int]]"
_Chain: TypeAlias = "tuple[int, int, _Chain] | None"

_FEW_PAIRS = 4_000  # searched in 1 ms; importing rapidfuzz takes 30 ms, and most traces never need it
_MATRIX_CELLS = 5 * 10**8  # rapidfuzz keeps a bit for each: 60 MB
_EXACT_CELLS = 12 * 10**9  # 100,000 x 100,000 calls and some; 1 s, and as much again for each further such square
_MASK_BYTES = 60 * 10**6  # for the masks of frequent keys; those of rare ones are made when they are needed
_WINDOW = 10_000  # squared, it must fit in the matrix


def common_ends(a: Sequence[Any], b: Sequence[Any]) -> tuple[int, int]:
    """Lengths of the longest common prefix, and of the longest common suffix of what follows it."""
    size = min(len(a), len(b))
    head = next((index for index in range(size) if a[index] != b[index]), size)
    tail = next((index for index in range(size - head) if a[-1 - index] != b[-1 - index]), size - head)
    return head, tail


def common_subsequence(a: Sequence[int], b: Sequence[int]) -> Pairs:
    """A longest common subsequence of `a` and `b`."""
    head, tail = common_ends(a, b)
    shared = set(a[head : len(a) - tail]).intersection(b[head : len(b) - tail])
    pairs = [(index, index) for index in range(head)]
    if shared:
        rows = [i for i in range(head, len(a) - tail) if a[i] in shared]
        columns = [j for j in range(head, len(b) - tail) if b[j] in shared]
        found = _search([a[i] for i in rows], [b[j] for j in columns])
        pairs += [(rows[i], columns[j]) for i, j in found]
    pairs += zip(range(len(a) - tail, len(a)), range(len(b) - tail, len(b)), strict=True)
    return pairs


def _search(a: list[int], b: list[int]) -> Pairs:
    """A longest common subsequence, by the method that suits.  Every key is on both sides.

    Unless many keys are equal, going through the pairs of equal keys is fastest (0.5 microseconds each).  Else
    rapidfuzz compares 64 calls at a time (5 to 40 cells a nanosecond), if its matrix fits in memory; a larger one is
    halved until it does (10 cells a nanosecond).  What would take many seconds is searched window by window: linear,
    and the one method whose subsequence may not be a longest one.
    """
    counts = Counter(b)
    pairs = sum(counts[key] for key in a)
    cells = len(a) * len(b)
    if pairs <= max(_FEW_PAIRS, min(cells // 4_000, 16 * (len(a) + len(b)))):
        return _by_pairs(a, b)
    if cells <= _MATRIX_CELLS:
        return _by_matrix(a, b)
    if cells <= _EXACT_CELLS:
        return _by_halves(a, b)
    return _by_windows(a, b)


def _by_pairs(a: list[int], b: list[int]) -> Pairs:
    """Hunt and Szymanski 1977: time grows with the number of pairs of equal keys."""
    places = _places(b)
    ends: list[int] = []  # ends[n]: where the common subsequence of n + 1 keys that ends first in b ends
    chains: list[_Chain] = []  # that subsequence, last pair first
    for i, key in enumerate(a):
        for j in reversed(places[key]):
            length = bisect_left(ends, j)
            if length == len(ends):
                ends.append(j)
                chains.append((i, j, chains[-1] if chains else None))
            elif j < ends[length]:
                ends[length] = j
                chains[length] = (i, j, chains[length - 1] if length else None)
    pairs = []
    link = chains[-1]
    while link:
        i, j, link = link
        pairs.append((i, j))
    return pairs[::-1]


def _by_matrix(a: list[int], b: list[int]) -> Pairs:
    """Hyyrö 2004, bit-parallel, by rapidfuzz: time and memory grow with the cells of the matrix."""
    from rapidfuzz.distance import LCSseq

    blocks = LCSseq.opcodes(a, b).as_matching_blocks()
    return [(block.a + step, block.b + step) for block in blocks for step in range(block.size)]


def _by_halves(a: list[int], b: list[int]) -> Pairs:
    """Hirschberg 1975: cut `a` in the middle and `b` where both parts together keep most."""
    middle = len(a) // 2
    above = _kept_by_prefix(a[:middle], b)
    below = _kept_by_prefix(a[middle:][::-1], b[::-1])
    totals = list(map(add, above, reversed(below)))
    cut = totals.index(max(totals))
    rest = common_subsequence(a[middle:], b[cut:])
    return common_subsequence(a[:middle], b[:cut]) + [(middle + i, cut + j) for i, j in rest]


def _kept_by_prefix(a: list[int], b: list[int]) -> list[int]:
    """For each prefix of `b`, from the empty one on, the length of its longest common subsequence with `a`.

    Hyyrö's method on Python's long integers: one row of the matrix is four operations on |b| bits.  Bit j
    of `flat` is set where `b[:j + 1]` keeps no more than `b[:j]`.
    """
    places = _places(b)
    often = sorted(places, key=lambda key: -len(places[key]))[: 8 * _MASK_BYTES // len(b)]
    masks = {key: _mask(places[key]) for key in often}
    every = flat = (1 << len(b)) - 1
    for row, key in enumerate(a):
        hits = flat & (masks[key] if key in masks else _mask(places[key]))
        flat = (flat + hits) | (flat ^ hits)
        if row % 64 == 0:
            flat &= every  # carries run out of the top, one bit a row at most
    steps = format(every & ~flat, f"0{len(b)}b")
    return list(accumulate(map(int, reversed(steps)), initial=0))


def _mask(places: list[int]) -> int:
    if len(places) < 10:
        return sum(1 << place for place in places)
    octets = bytearray(places[-1] // 8 + 1)
    for place in places:
        octets[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(octets, "little")


def _by_windows(a: list[int], b: list[int]) -> Pairs:
    """The linear way out: keep the first half of what a window keeps, move the window behind it."""
    pairs: Pairs = []
    i = j = 0
    half = _WINDOW // 2
    while i < len(a) and j < len(b):
        found = common_subsequence(a[i : i + _WINDOW], b[j : j + _WINDOW])
        if i + _WINDOW >= len(a) and j + _WINDOW >= len(b):
            return pairs + [(i + x, j + y) for x, y in found]
        beyond = next((n for n, (x, y) in enumerate(found) if x >= half or y >= half), len(found))
        pairs += [(i + x, j + y) for x, y in found[:beyond]]
        x, y = found[beyond] if beyond < len(found) else (half, half)
        i, j = i + x, j + y
    return pairs


def _places(keys: list[int]) -> dict[int, list[int]]:
    places: dict[int, list[int]] = defaultdict(list)
    for index, key in enumerate(keys):
        places[key].append(index)
    return places
