"""What one crash and resume costs, against the bare run, and against starting the interpreter twice.

    python benchmarks/crash.py

Budgets: one crash and resume of a 6-turn case takes at most 2 x (the bare run + two forks), and is at least 100 times
faster than two cold starts of an interpreter that imports the SDK and runs the loop.  All of it is measured in one run,
in turn, so that the ratios hold whatever else the machine is doing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from harness.agent import run
from harness.case.load import load_case
from harness.case.tools import stub_tools
from harness.crash.subject import subject_of
from harness.crash.warm import warm_up
from harness.faults.lives import live, live_and_die
from harness.faults.site import Site
from harness.faults.workers import fan_out
from harness.model.local import LocalModel
from harness.model.transport import sync_client
from harness.project import Project

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.case.load import Case

CASE = """\
agent: harness.agent:run
prompt: Look five times, then say what you saw.
tools:
  look: {effect: read_only, input: {at: string}, returns: {seen: nothing}}
  note: {effect: irreversible, input: {text: string}, returns: ok}
model:
  name: m
  script:
    - call: {look: {at: a}}
    - call: {look: {at: b}}
    - call: {note: {text: c}}
    - call: {look: {at: d}}
    - call: {note: {text: e}}
    - say: Done.
"""

COLD = """\
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from benchmarks.crash import bare_run
from harness.case.load import load_case
root = Path(sys.argv[2])
bare_run(load_case(root / "cases" / "six.yaml", root / "cases"), root / "cold")
"""


def bare_run(case: Case, state: Path) -> None:
    """The loop alone, from an empty state."""
    shutil.rmtree(state, ignore_errors=True)
    assert case.script is not None and not isinstance(case.tools, str) and case.tools is not None
    tools = stub_tools(case.tools).tools
    client = sync_client(LocalModel(case.script, name="m"))
    run(case.prompt, client=client, model="m", toolset=tools, state_dir=state)


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def fork_once() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def measure(root: Path, rounds: int) -> dict[str, float]:
    """Median seconds of each thing, in a process like the one that sweeps."""
    project = Project.at(root)
    case = load_case(project.cases / "six.yaml", project.cases)
    subject = subject_of(case, project)
    site = Site(root / "site")
    points = live_and_die(subject, site, [], []).last.points
    middle = next(point for point in points if point == "turn3.call1.note.after")

    def crash_and_resume() -> None:
        site.clear()
        killed = live(subject, site, (), middle, points)
        assert killed.killed
        ended = live(subject, site, [killed]).ended
        assert ended is not None and ended.error is None

    bare_run(case, root / "bare")
    took: dict[str, list[float]] = {"bare": [], "fork": [], "crash": [], "whole": []}
    for _ in range(rounds):
        took["bare"].append(timed(lambda: bare_run(case, root / "bare")))
        took["fork"].append(timed(fork_once))
        took["crash"].append(timed(crash_and_resume))
        took["whole"].append(timed(lambda: live_and_die(subject, site, [middle], [points])))
    return {name: statistics.median(times) for name, times in took.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        root = Path(folder).resolve()
        (root / "cases").mkdir()
        (root / "cases" / "six.yaml").write_text(CASE)
        warm_up()
        (took,) = fan_out([root], lambda _, place: measure(place, rounds), jobs=1)
        here = Path(__file__).parents[1]
        cold_start = [sys.executable, "-c", COLD, str(here), folder]
        subprocess.run(cold_start, check=True)  # compiles what is not compiled yet
        cold = 2 * statistics.median(timed(lambda: subprocess.run(cold_start, check=True)) for _ in range(5))
    bare, fork, crash = took["bare"], took["fork"], took["crash"]
    floor = bare + 2 * fork
    print(f"bare run, 6 turns                   {bare * 1000:8.2f} ms")
    print(f"fork and exit                       {fork * 1000:8.2f} ms")
    print(
        f"one crash and resume                {crash * 1000:8.2f} ms   "
        f"{crash / floor:.2f} x bare run + two forks, budget 2 x"
    )
    print(f"  with the look at the finished run {took['whole'] * 1000:8.2f} ms")
    print(
        f"two cold starts                     {cold * 1000:8.2f} ms   "
        f"{cold / crash:.0f} x one crash and resume, budget 100 x"
    )


if __name__ == "__main__":
    main()
