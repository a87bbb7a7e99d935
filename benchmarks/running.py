"""What a case costs: against the bare loop, and a thousand of them beside a thousand syrupy snapshot tests.

    python benchmarks/running.py [--cases N]

Budgets: a scripted 6-turn case in pytest at most 1.5 times the bare loop; 1,000 of them within 10 s on one core.

The bare loop is the same loop with the same SDK client, answered in process by the same scripted model; nothing is
recorded, compared or reported.  The snapshot tests do no more than compare the same trace text with a stored one.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LOOP = Path(__file__).parents[1] / "examples" / "plain.py"
CASE = """\
agent: plain:run_agent
prompt: Task {number}.
tools:
  search: {{effect: read_only, input: {{query: string}}, returns: {{hits: [a, b]}}}}
  save: {{effect: idempotent, input: {{text: string}}, returns: ok}}
model:
  name: claude-sonnet-5
  script:
    - call: {{search: {{query: first {number}}}}}
    - call: {{search: {{query: second {number}}}}}
    - call: {{search: {{query: third {number}}}}}
    - call: {{search: {{query: fourth {number}}}}}
    - call: {{save: {{text: what was found {number}}}}}
    - say: Done.
"""
SNAPSHOTS = """\
import pytest

TEXT = {text!r}

@pytest.mark.parametrize("number", range({count}))
def test_trace(number, snapshot):
    assert TEXT.replace("c0000", f"c{{number:04}}") == snapshot
"""
# The first 100 runs warm up imports and caches; the import of the SDK alone takes a second.
BARE = """\
import sys, time
from pathlib import Path
sys.path.insert(0, ".")
import plain
from harness.case.load import load_case
from harness.case.tools import stub_tools
from harness.model.local import LocalModel
from harness.model.transport import sync_client
cases = [load_case(path, Path("cases").absolute()) for path in sorted(Path("cases").absolute().glob("*.yaml"))]
def run(case):
    tools = stub_tools(case.tools)
    client = sync_client(LocalModel(case.script, name="m"))
    return plain.run_agent(case.prompt, client, tools.definitions(), tools.dispatch, "m")
for case in cases[:20]:
    run(case)
start = time.perf_counter()
for case in cases:
    run(case)
print((time.perf_counter() - start) / len(cases))
"""


def pytest(folder: Path, *arguments: str) -> tuple[float, str]:
    """Seconds and output of a pytest run in a process of its own."""
    quiet = ("-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:xdist", "-p", "no:cov", "-p", "no:timeout")
    # Compiled modules are kept, as they are for everybody who has not forbidden it.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *quiet, *arguments],
        cwd=folder, capture_output=True, text=True, check=False, env=kept,
    )  # fmt: skip
    elapsed = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    return elapsed, done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    count = parser.parse_args().cases
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "cases").mkdir()
        (root / "plain.py").write_text(LOOP.read_text())
        (root / "pyproject.toml").write_text("[tool.pytest]\n")
        for number in range(count):
            (root / "cases" / f"c{number:04}.yaml").write_text(CASE.format(number=number))
        pytest(root, "--update-golden", "-p", "no:syrupy")
        rounds = [
            (pytest(root, "-p", "no:syrupy")[0], pytest(root, "-p", "no:syrupy", "cases/c0000.yaml")[0], bare(root))
            for _ in range(3)
        ]
        whole, one, loop = (min(times) for times in zip(*rounds, strict=True))
        each = (whole - one) / (count - 1)
        print(f"bare loop, 6 turns                  {loop * 1000:8.2f} ms")
        print(
            f"case in pytest, 6 turns             {each * 1000:8.2f} ms   "
            f"{each / loop:.2f} x the bare loop, budget 1.5 x"
        )
        print(f"{count} cases in pytest               {whole:8.2f} s    budget 10 s for 1,000")
        snapshots = root / "snapshots"
        snapshots.mkdir()
        text = (root / "golden_traces" / "c0000.json").read_text()
        (snapshots / "test_snapshots.py").write_text(SNAPSHOTS.format(text=text, count=count))
        pytest(snapshots, "-p", "no:harness", "--snapshot-update")
        syrupy = min(pytest(snapshots, "-p", "no:harness")[0] for _ in range(2))
        print(f"{count} syrupy snapshot tests         {syrupy:8.2f} s    "
              f"{whole / syrupy:.1f} x that for running the loop as well")  # fmt: skip


def bare(root: Path) -> float:
    """Seconds a run of the bare loop."""
    done = subprocess.run([sys.executable, "-c", BARE], cwd=root, capture_output=True, text=True, check=True)
    match = re.search(r"[\d.e-]+\s*$", done.stdout)
    if match is None:
        raise SystemExit(done.stdout)
    return float(match[0])


if __name__ == "__main__":
    main()
