"""Start-up: `harness --help`, and what the plugin costs a project that has no cases.

    python benchmarks/startup.py

Budgets: 150 ms for `--help`; 30 ms for the plugin.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def seconds(*arguments: str, cwd: Path | None = None, rounds: int = 9) -> float:
    """Median seconds of a command."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], cwd=cwd, check=False, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    bare = seconds("-c", "pass")
    text = seconds("-m", "harness", "--help")
    print(f"python -c pass                      {bare * 1000:6.0f} ms")
    print(f"harness --help                      {text * 1000:6.0f} ms   budget 150 ms")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "test_one.py").write_text("def test_one():\n    assert True\n")
        quiet = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:hypothesispytest")
        without = seconds(*quiet, "-p", "no:harness", cwd=root)
        beside = seconds(*quiet, cwd=root)
    print(f"pytest, one test, without plugin    {without * 1000:6.0f} ms")
    print(f"pytest, one test, with plugin       {beside * 1000:6.0f} ms   "
          f"{(beside - without) * 1000:+.0f} ms, budget 30 ms")  # fmt: skip


if __name__ == "__main__":
    main()
