"""Normalize and digest one call of 1 kB, against `json.dumps` + `sha256` of the same value.

    python benchmarks/normalizing.py

Budget: at most 3 times.  All figures of one line come from one run; machines are noisy, ratios are less so.
"""

from __future__ import annotations

import hashlib
import json
import timeit
from collections.abc import Callable

from harness.normalize import Normalizer

PLAIN = {
    "to": "team@example.com",
    "subject": "This week's numbers and what they mean",
    "body": "We shipped the parser, fixed the lexer, and the release comes on Friday. " * 10,
    "cc": ["a@example.com", "b@example.com"],
    "options": {"html": False, "reply_to": "x@example.com", "priority": 3},
}
VOLATILE = PLAIN | {"at": "2026-11-30T04:00:58.123+02:00", "job": "6B7D21FA-1111-2222-3333-444455556666"}


def best(function: Callable[[], object], number: int = 2000) -> float:
    """Microseconds a call, the best of seven rounds."""
    return min(timeit.repeat(function, number=number, repeat=7)) / number * 1e6


def main() -> None:
    plain, rules = Normalizer(), Normalizer(patterns={"build": r"build-\d+"})
    print(f"{'value':<34} {'bytes':>6} {'µs':>8} {'of json+sha256':>15}")
    for name, value in (("nothing volatile", PLAIN), ("a time and a uuid", VOLATILE)):
        size = len(json.dumps(value))

        def base(value: object = value) -> str:
            return hashlib.sha256(json.dumps(value).encode()).hexdigest()

        ways = {
            f"{name}: json.dumps + sha256": base,
            f"{name}: digest": lambda value=value: plain.digest(value),
            f"{name}: digest + each argument": lambda value=value: plain.digest_call(value),
            f"{name}: with a project's pattern": lambda value=value: rules.digest_call(value),
        }
        reference = best(base)
        for label, function in ways.items():
            time = best(function)
            print(f"{label:<46} {size:>6} {time:>8.1f} {time / reference:>8.1f} x")


if __name__ == "__main__":
    main()
