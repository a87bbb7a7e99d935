"""Cost of a call under the stuck guard, and its memory over a million calls: `python benchmarks/stuck.py [--calls N]`.

Budgets of the design: 50 microseconds a call, and memory that does not grow.  `evidence` is making the record from
arguments and result (1 kB), `fold` the nine detectors on it; a call costs both.  Traffic: ordinary work, a loop whose
incidents stay armed, writes that need the search for novel ones, and turns of ten parallel calls.  Fails when a budget
is broken.  Machines are noisy: the time is that of the processor, the best of five rounds.
"""

from __future__ import annotations

import argparse
import pickle
import resource
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.stuck import Config, Record, State, record_of, step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BUDGET_US = 50.0
ROUND = 2_000
TEXT = "def parse(source: str) -> Tree:  # one line of a file that an agent reads\n" * 14

CONFIG = Config()


def made(
    tool: str, arguments: dict[str, object], result: object, *, ok: bool = True, read_only: bool = False
) -> Record:
    return record_of(tool, arguments, result, ok=ok, read_only=read_only, profile=CONFIG.profile(tool))


def work(number: int) -> Record:
    """Search, read, edit, test, in turn, always with something new."""
    match number % 4:
        case 0:
            return made("grep", {"pattern": f"name_{number}"}, f"a.py:{number}: {TEXT}", read_only=True)
        case 1:
            return made("read_file", {"path": f"src/{number}.py"}, f"{number}{TEXT}", read_only=True)
        case 2:
            return made("edit_file", {"path": "src/a.py", "change": f"{number}{TEXT}"}, f"done {number}")
        case _:
            return made("shell", {"cmd": "pytest -q"}, f"{number} failed\n{TEXT}", ok=False)


def loop(number: int) -> Record:
    """Three look-ups in turn that never change."""
    return made("get_status", {"id": number % 3, "text": TEXT}, TEXT, read_only=True)


def writes(number: int) -> Record:
    """One message again and again with fresh ids, and new edits between."""
    if number % 2:
        return made("edit_file", {"path": "a", "change": f"{number}{TEXT}"}, f"done {number}")
    return made("send_message", {"to": "bo", "body": TEXT}, f"id {number}")


def fan_out(number: int) -> Record:
    """Ten reads in each turn: a window of two hundred calls of one tool."""
    record = made("read_file", {"path": f"src/{number}.py"}, f"{number}{TEXT}", read_only=True)
    return replace(record, turn=number // 10)


TRAFFIC: dict[str, Callable[[int], Record]] = {
    "ordinary work": work,
    "a loop of three": loop,
    "writes between edits": writes,
    "ten calls a turn": fan_out,
}


def micros(function: Callable[[], object], calls: int) -> float:
    """Microseconds a call, the best of five rounds."""
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best / calls * 1e6


def costs(make: Callable[[int], Record]) -> tuple[float, float]:
    """Microseconds for the evidence of a call, and for folding it."""
    records = [make(number) for number in range(ROUND)]

    def run() -> None:
        state = State()
        for record in records:
            state, _ = step(state, record, CONFIG)

    return micros(lambda: [make(number) for number in range(ROUND)], ROUND), micros(run, ROUND)


def resident_mb() -> float:
    """Peak resident memory of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def memory(calls: int) -> Iterator[tuple[int, int, float]]:
    """After so many calls: bytes of the state, and the peak of the process."""
    marks = {mark for mark in (1_000, 10_000, 100_000, calls) if mark <= calls}
    ways = list(TRAFFIC.values())
    state = State()
    for number in range(calls):
        state, _ = step(state, ways[number // 50 % len(ways)](number), CONFIG)
        if number + 1 in marks:
            yield number + 1, len(pickle.dumps(state)), resident_mb()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1_000_000, help="how many calls the memory test makes")
    calls = parser.parse_args().calls
    broken = False
    print(f"{'traffic':<24} {'evidence µs':>12} {'fold µs':>9} {'a call µs':>10} {'budget':>8}")
    for name, make in TRAFFIC.items():
        evidence, folding = costs(make)
        total = evidence + folding
        broken |= total > BUDGET_US
        print(f"{name:<24} {evidence:>12.1f} {folding:>9.1f} {total:>10.1f} {total / BUDGET_US:>8.0%}")
    print(f"\n{'calls':>10} {'state bytes':>12} {'peak MB':>8}")
    figures = []
    for figure in memory(calls):
        figures.append(figure)
        print(f"{figure[0]:>10,} {figure[1]:>12,} {figure[2]:>8.1f}")
    grown = figures[-1][2] - figures[0][2] if figures else 0.0
    if grown > 1.0:
        broken = True
        print(f"memory grew by {grown:.1f} MB")
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
