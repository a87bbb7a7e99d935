"""How many loaded pairs of traces are compared in a second, with the number rightly flagged; and DeepDiff beside it.

    python benchmarks/comparing.py

Budgets: 300,000 pairs of 10-call traces a second; 1,000 pairs of 200-call traces at least 100 times faster than
DeepDiff on the same dictionaries; alignment and drift of two traces of 10,000 calls within 50 ms.
"""

from __future__ import annotations

import dataclasses
import json
import random
import time
from typing import TYPE_CHECKING, Any

from deepdiff import DeepDiff

from harness import Call, Trace, compare
from harness.golden import dump_trace, parse_trace
from harness.normalize import Normalizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NORMALIZER = Normalizer()


def call(turn: int, tool: str, **arguments: object) -> Call:
    digest, args = NORMALIZER.digest_call(arguments)
    return Call(turn, tool, digest, True, args)


def trace(size: int, seed: int) -> Trace:
    """A trace of `size` calls: five tools, a tenth of the calls parallel, a write now and then."""
    rng = random.Random(seed)
    calls: list[Call] = []
    turn = 0
    for index in range(size):
        turn += rng.random() > 0.1 or not turn
        tool = "send_email" if index % 10 == 9 else rng.choice(["search", "read_file", "list_dir", "fetch"])
        calls.append(call(turn, tool, path=f"notes/{rng.randrange(size)}.md", limit=index % 3))
    reasons = (*["tool_use"] * turn, "end_turn")
    writes = frozenset({"send_email"} & {one.tool for one in calls})
    return Trace("bench", tuple(calls), len(reasons), reasons, writes=writes)


def changed(one: Trace, index: int) -> Trace:
    calls = list(one.calls)
    calls[index] = call(calls[index].turn, calls[index].tool, path="elsewhere", limit=1)
    return dataclasses.replace(one, calls=tuple(calls))


def swapped_in_group(one: Trace) -> Trace:
    """The same trace with the calls of every parallel group in reverse: no drift."""
    calls = [call for group in one.groups() for call in reversed(group)]
    return dataclasses.replace(one, calls=tuple(calls))


MUTATIONS: dict[str, tuple[Callable[[Trace], Trace], bool]] = {
    "nothing": (lambda one: one, False),
    "parallel calls swapped": (swapped_in_group, False),
    "an argument changed": (lambda one: changed(one, len(one.calls) // 2), True),
    "a call dropped": (lambda one: dataclasses.replace(one, calls=one.calls[1:]), True),
    "a call repeated": (lambda one: dataclasses.replace(one, calls=(*one.calls, one.calls[-1])), True),
    "another stop_reason": (
        lambda one: dataclasses.replace(one, stop_reasons=(*one.stop_reasons[:-1], "max_tokens")),
        True,
    ),
    "a tool failed": (
        lambda one: dataclasses.replace(one, calls=(*one.calls[:-1], dataclasses.replace(one.calls[-1], ok=False))),
        True,
    ),
    "a turn more": (
        lambda one: dataclasses.replace(one, turns=one.turns + 1, stop_reasons=(*one.stop_reasons, "end_turn")),
        True,
    ),
}


def loaded(one: Trace) -> Trace:
    """As it comes from a file, with nothing computed yet but what loading computes."""
    return parse_trace(dump_trace(one), "benchmark")


def pairs_of(size: int, count: int) -> list[tuple[Trace, Trace, bool]]:
    pairs = []
    for index in range(count):
        mutate, drifts = list(MUTATIONS.values())[index % len(MUTATIONS)]
        golden = trace(size, index)
        pairs.append((loaded(golden), loaded(mutate(golden)), drifts))
    return pairs


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def report(label: str, seconds: float, count: int, flags: Sequence[bool], expected: Sequence[bool]) -> None:
    right = sum(flag == one for flag, one in zip(flags, expected, strict=True))
    print(f"{label:<52} {count / seconds:>12,.0f} pairs/s   rightly flagged {right:,} of {count:,}")


def main() -> None:
    pairs = pairs_of(10, 20_000)
    expected = [drifts for _, _, drifts in pairs]
    first, flags = timed(lambda: [bool(compare(golden, now)) for golden, now, _ in pairs])
    report("10 calls, first comparison after loading", first, len(pairs), flags, expected)
    again = min(timed(lambda: [bool(compare(golden, now)) for golden, now, _ in pairs])[0] for _ in range(5))
    report("10 calls, loaded pairs", again, len(pairs), flags, expected)

    pairs = pairs_of(200, 1_000)
    expected = [drifts for _, _, drifts in pairs]
    verdict, flags = timed(lambda: [bool(compare(golden, now)) for golden, now, _ in pairs])
    report("200 calls, verdict", verdict, len(pairs), flags, expected)
    full, flags = timed(lambda: [bool(compare(golden, now).findings) for golden, now, _ in pairs])
    report("200 calls, all findings and alignment", full, len(pairs), flags, expected)
    texts = [(json.loads(dump_trace(golden)), json.loads(dump_trace(now))) for golden, now, _ in pairs[:80]]
    deep, flags = timed(lambda: [bool(DeepDiff(golden, now)) for golden, now in texts])
    report("200 calls, DeepDiff on the same dictionaries (80)", deep, len(texts), flags, expected[:80])
    ratio = deep / len(texts) * len(pairs)
    print(f"{'':52} verdict {ratio / verdict:,.0f} x faster, findings {ratio / full:,.0f} x faster than DeepDiff")

    golden = trace(10_000, 1)
    cases = {
        "equal": golden,
        "one argument changed": changed(golden, 5_000),
        "100 calls dropped": dataclasses.replace(golden, calls=golden.calls[:4_000] + golden.calls[4_100:]),
        "every argument changed": dataclasses.replace(
            golden,
            calls=tuple(dataclasses.replace(one, digest=f"{index:012x}") for index, one in enumerate(golden.calls)),
        ),
    }
    for name, now in cases.items():
        seconds = min(timed(lambda now=now: compare(golden, now).findings)[0] for _ in range(5))
        print(f"{f'10,000 calls, {name}: alignment and drift':<52} {seconds * 1000:>12.1f} ms")


if __name__ == "__main__":
    main()
