"""Time and memory of `harness.align` on the traces that hurt: `python benchmarks/align.py [--size CALLS]`.

The budgets are those of the design: 10,000 against 10,000 calls in 50 ms, 100,000 against 100,000 in 2 s, and 20
microseconds for ten calls; 400,000 may take four times what 100,000 may, since time must not grow with the square.
`budget` is the share of it that the median took; `peak MB` is how far the resident set of a fresh process grew, the
script and the import of rapidfuzz included.  What takes over half a second is run once.  Fails when a budget is broken.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import resource
import statistics
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.align import align, apply

if TYPE_CHECKING:
    from collections.abc import Callable

Key = tuple[str, str]
Case = tuple[list[Key], list[Key]]

BUDGET_MS = {10: 0.02, 10_000: 50.0, 100_000: 2_000.0, 400_000: 8_000.0}
SEED = 20_260_101


def calls(numbers: list[int], tool: str = "read_file") -> list[Key]:
    """Keys as traces have them: equal ones are equal strings, not one object."""
    return [(tool, f"{number:012x}") for number in numbers]


def random_calls(size: int, distinct: int, rng: random.Random) -> list[int]:
    return [rng.randrange(distinct) for _ in range(size)]


def equal(size: int, rng: random.Random) -> Case:
    numbers = random_calls(size, 50, rng)
    return calls(numbers), calls(numbers)


def one_change(size: int, rng: random.Random) -> Case:
    numbers = random_calls(size, 50, rng)
    return calls(numbers), calls([*numbers[: size // 2], 99, *numbers[size // 2 + 1 :]])


def few_edits(size: int, rng: random.Random) -> Case:
    """Ten changed, added or dropped calls, from the first to the last."""
    numbers = random_calls(size, 50, rng)
    after = list(numbers)
    for step in range(10):
        position = step * (len(after) - 1) // 9
        after[position : position + step % 3] = [1_000 + step]
    return calls(numbers), calls(after)


def repetitive(distinct: int) -> Callable[[int, random.Random], Case]:
    def build(size: int, rng: random.Random) -> Case:
        return calls(random_calls(size, distinct, rng)), calls(random_calls(size, distinct, rng))

    return build


def all_different(size: int, _: random.Random) -> Case:
    return calls(list(range(size)), "read_file"), calls(list(range(size)), "write_file")


def arguments_changed(size: int, _: random.Random) -> Case:
    return calls(list(range(size))), calls(list(range(size, 2 * size)))


def reversed_unique(size: int, _: random.Random) -> Case:
    return calls(list(range(size))), calls(list(range(size))[::-1])


def reversed_repetitive(size: int, rng: random.Random) -> Case:
    numbers = random_calls(size, 3, rng)
    return calls(numbers), calls(numbers[::-1])


def block_moved(distinct: int | None) -> Callable[[int, random.Random], Case]:
    def build(size: int, rng: random.Random) -> Case:
        numbers = random_calls(size, distinct, rng) if distinct else list(range(size))
        first, second, third = size // 10, size // 3, size * 9 // 10
        after = numbers[:first] + numbers[second:third] + numbers[first:second] + numbers[third:]
        return calls(numbers), calls(after)

    return build


def cyclic_shift(distinct: int | None) -> Callable[[int, random.Random], Case]:
    def build(size: int, rng: random.Random) -> Case:
        numbers = random_calls(size, distinct, rng) if distinct else list(range(size))
        return calls(numbers), calls(numbers[size // 3 :] + numbers[: size // 3])

    return build


def shuffled(times: int) -> Callable[[int, random.Random], Case]:
    """Each call so many times, in random order: the ground between unique calls and few distinct ones."""

    def build(size: int, rng: random.Random) -> Case:
        numbers = [number for number in range(size // times) for _ in range(times)]
        a, b = list(numbers), list(numbers)
        rng.shuffle(a)
        rng.shuffle(b)
        return calls(a), calls(b)

    return build


def loop_grown(size: int, _: random.Random) -> Case:
    """A loop of four calls, in which every tenth round does one of them twice."""
    rounds = size // 4
    after = [number for turn in range(rounds) for number in ([0, 1, 1, 2, 3] if turn % 10 == 5 else [0, 1, 2, 3])]
    return calls([0, 1, 2, 3] * rounds), calls(after[:size])


def one_call_only(size: int, _: random.Random) -> Case:
    """The same call over and over, with a stranger at either end, so that nothing can be trimmed."""
    return calls([1, *[0] * (size - 2), 2]), calls([3, *[0] * (size // 2), 4])


CASES: dict[str, Callable[[int, random.Random], Case]] = {
    "equal": equal,
    "one change": one_change,
    "few edits": few_edits,
    "random, 2 distinct": repetitive(2),
    "random, 3 distinct": repetitive(3),
    "random, 5 distinct": repetitive(5),
    "random, 100 distinct": repetitive(100),
    "random, 1,000 distinct": repetitive(1_000),
    "shuffled, each 3 times": shuffled(3),
    "shuffled, each 5 times": shuffled(5),
    "shuffled, each 10 times": shuffled(10),
    "shuffled, each 25 times": shuffled(25),
    "shuffled, each 40 times": shuffled(40),
    "all different": all_different,
    "every argument changed": arguments_changed,
    "reversed, unique": reversed_unique,
    "reversed, 3 distinct": reversed_repetitive,
    "block moved, unique": block_moved(None),
    "block moved, 5 distinct": block_moved(5),
    "cyclic shift, unique": cyclic_shift(None),
    "cyclic shift, 5 distinct": cyclic_shift(5),
    "loop grown by calls": loop_grown,
    "one call only": one_call_only,
}


# At the ends of the scale only what tells something new.
SELECTED = {10: ["equal", "one change"], 400_000: ["few edits", "random, 3 distinct", "reversed, unique"]}


@dataclass(frozen=True, slots=True)
class Row:
    """What one case cost at one size; `edits` counts the entries that are not `equal`."""

    name: str
    size: int
    median_ms: float
    peak_mb: float
    edits: int

    def render(self) -> str:
        ratio = self.median_ms / BUDGET_MS[self.size]
        return (
            f"{self.name:<26}{self.size:>9,}{self.median_ms:>12.3f}{ratio:>9.2f}{self.peak_mb:>10.1f}{self.edits:>10,}"
        )


def measure(task: tuple[str, int]) -> Row:
    """One case in a process of its own, so that its peak is its own."""
    name, size = task
    a, b = CASES[name](size, random.Random(SEED))
    before = peak_mb()
    start = time.perf_counter()
    edits = align(a, b)
    first_ms = (time.perf_counter() - start) * 1e3
    peak = peak_mb() - before
    if apply(edits, a, b) != b:
        raise SystemExit(f"{name}, {size}: the script does not turn a into b")
    changed = sum(edit.op != "equal" for edit in edits)
    del edits
    return Row(name, size, first_ms if first_ms > 500 else median_ms(a, b), peak, changed)


def median_ms(a: list[Key], b: list[Key]) -> float:
    """Of as many rounds as half a second holds, but five at most; tiny cases by the thousand."""
    rounds = 1_000 if len(a) < 100 else 1
    times: list[float] = []
    end = time.perf_counter() + 0.5
    while len(times) < 5 and (not times or time.perf_counter() < end):
        start = time.perf_counter()
        for _ in range(rounds):
            align(a, b)
        times.append((time.perf_counter() - start) * 1e3 / rounds)
    return statistics.median(times)


def peak_mb() -> float:
    """The most memory that this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def main() -> int:
    parser = argparse.ArgumentParser(description="Time and memory of harness.align.")
    parser.add_argument("--size", type=int, choices=sorted(BUDGET_MS), action="append", help="only these sizes")
    sizes = parser.parse_args().size or sorted(BUDGET_MS)
    tasks = [(name, size) for size in sizes for name in SELECTED.get(size, CASES)]
    print(f"{'case':<26}{'calls':>9}{'median ms':>12}{'budget':>9}{'peak MB':>10}{'edits':>10}")
    worst = 0.0
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for row in pool.imap(measure, tasks):
            print(row.render(), flush=True)
            worst = max(worst, row.median_ms / BUDGET_MS[row.size])
    print(f"worst: {worst:.2f} of the budget")
    return int(worst > 1)


if __name__ == "__main__":
    sys.exit(main())
