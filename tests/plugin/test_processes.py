"""Several processes, and processes that die: same verdicts, same files, never half a golden."""

from __future__ import annotations

import json
import random
import re
import signal
import sys
import time
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from harness.golden import load_trace

if TYPE_CHECKING:
    from harness.testing import MiniProject, Outcome


def goldens(project: MiniProject) -> dict[str, bytes]:
    """Every file in the folder of the goldens."""
    folder = project.root / "golden_traces"
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_eight_workers_update_two_hundred_cases(library: MiniProject) -> None:
    """All drifting, all accepted at once: 200 valid files, exactly 200 changed, and the next run is green."""
    before = goldens(library)
    library.edit("loop.py", "FIRST = 0", "FIRST = 3")
    outcome = library.pytest("-n", "8", "--update-golden")
    assert outcome.exit_code == 0, outcome.output
    assert outcome.summary[0] == "200 cases: 200 accepted"
    assert outcome.changed == {f"golden_traces/{name}": "changed" for name in before}
    for path in (library.root / "golden_traces").rglob("*.json"):
        assert len(load_trace(path).calls) == 3
    outcome = library.pytest()
    assert (outcome.exit_code, outcome.summary) == (0, ["200 cases: 200 same as golden"])


def test_workers_change_nothing_but_the_time(library: MiniProject) -> None:
    """With `-n 2`: the same verdicts, reasons, reports, JUnit file, summary, record and goldens as without."""
    for number in range(200):
        if number > 5:
            (library.root / f"cases/shelf{number % 7}/book{number}.yaml").unlink()
    library.write({
        "cases/broken.yaml": "agent\n",
        "cases/new.yaml": library.read("cases/shelf0/book0.yaml"),
        "cases/skipped.yaml": "marks: [skip]\n" + library.read("cases/shelf0/book0.yaml"),
        "golden_traces/shelf1/book1.json": "{",
        "test_it.py": """\
            from harness import Recorder

            def test_strange(golden_trace):
                recorder = Recorder(case="strange", writes=())
                recorder.instrument(lambda name, input: "ok")("half \\ud800", {"a": 1})
                golden_trace(recorder)
            """,
    })  # fmt: skip
    library.edit("cases/shelf2/book2.yaml", "book 2", "book two")
    library.edit("cases/shelf3/book3.yaml", "agent:", "limits: {calls: 2}\nagent:")
    library.edit("cases/shelf4/book4.yaml", "loop:run", "loop:runn")

    alone = library.pytest("--junit-xml=alone.xml")
    record = library.read(".harness/last_run.json")
    together = library.pytest("-n", "2", "--junit-xml=together.xml", env={"CI": "1"})
    assert together.exit_code == alone.exit_code == 1
    assert together.summary == alone.summary
    assert alone.summary[0] == (
        "10 cases: 2 same as golden, 1 drifted, 2 without golden, 1 with an unusable golden, 1 failed, "
        "2 with a broken case file, 1 skipped"
    )
    assert library.read(".harness/last_run.json") == record
    assert failures(together) == failures(alone)
    assert junit(library, "together.xml") == junit(library, "alone.xml")
    for case in ("shelf2/book2", "shelf3/book3", "shelf4/book4", "broken", "new"):
        assert report(together, case) == report(alone, case)

    before = goldens(library)
    library.pytest("--update-golden")
    after = goldens(library)
    for name in {*before, *after}:
        (library.root / "golden_traces" / name).unlink()
    for name, data in before.items():
        (library.root / "golden_traces" / name).write_bytes(data)
    library.pytest("-n", "2", "--update-golden")
    assert goldens(library) == after != before


def failures(outcome: Outcome) -> list[str]:
    """The short summary, in any order, without the last line of the run."""
    return sorted(line for line in outcome.section("short test summary info") if line.startswith("FAILED"))


def report(outcome: Outcome, case: str) -> list[str]:
    """The report of a case, without the names of the worker and of the JUnit file."""
    lines = outcome.section(f"case {case}")
    assert lines
    return [line for line in lines if not re.match(r"\[gw\d+\] |-+ generated xml file: ", line)]


def junit(project: MiniProject, name: str) -> set[tuple[str | None, ...]]:
    """What a JUnit file says of each test, without times."""
    return {
        (
            case.get("classname"),
            case.get("name"),
            *[f"{one.get('name')}={one.get('value')}" for one in case.iter("property")],
            *[one.get("message") for one in case.iter("failure")],
        )
        for case in ElementTree.fromstring(project.read(name)).iter("testcase")
    }


def test_a_worker_that_dies_costs_its_case_alone(library: MiniProject) -> None:
    """The case that killed its worker is red and keeps its golden; all others are accepted, and the record tells."""
    library.write({
        "loop.py": """\
            import os, signal

            def run(prompt, dispatch):
                dispatch("read", {"page": 7, "of": prompt})
                if prompt == "book 40":
                    os.kill(os.getpid(), signal.SIGKILL)
            """
    })  # fmt: skip
    outcome = library.pytest("-n", "2", "--update-golden", "cases/shelf5", "cases/shelf6")
    assert outcome.exit_code == 1
    assert outcome.summary[0] == "56 cases: 1 failed, 55 accepted"
    assert len(outcome.changed) == 55
    kept = [line for line in outcome.summary if line.startswith("kept")]
    assert len(kept) == 1
    assert re.fullmatch(
        r"kept      golden_traces/shelf5/book40.json  worker 'gw\d' crashed while running "
        r"'cases/shelf5/book40.yaml::book40'",
        kept[0],
    )
    assert json.loads(library.read(".harness/last_run.json"))["cases"]["shelf5/book40"]["verdict"] == "failed"


@pytest.mark.parametrize("attempt", range(4))
def test_a_killed_update_leaves_old_or_new_goldens(library: MiniProject, attempt: int) -> None:
    """`kill -9` at any moment: every golden is whole, and the next update finishes and tidies up."""
    before = goldens(library)
    library.edit("loop.py", "FIRST = 0", "FIRST = 3")
    process = library.start(sys.executable, "-m", "pytest", "-q", "--update-golden")
    first = library.root / "golden_traces/shelf0/book0.json"
    deadline = time.monotonic() + 60
    while first.read_bytes() == before["shelf0/book0.json"] and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    time.sleep(random.uniform(0, 0.15))
    process.kill()
    process.communicate()

    killed = goldens(library)
    outcome = library.pytest("--update-golden")
    assert outcome.exit_code == 0
    after = goldens(library)
    assert after.keys() == before.keys()
    for name, data in killed.items():
        if name in before:
            assert data in (before[name], after[name]), name
        else:
            assert re.fullmatch(rf"shelf\d/\.book\d+\.json\.{process.pid}\.tmp", name)
    if process.returncode == -signal.SIGKILL:
        assert f"{sum(killed[name] == after[name] for name in before)} unchanged" in outcome.summary[0]


def test_a_full_disk_costs_no_golden(library: MiniProject) -> None:
    """Where a new golden finds no room, the old one stays whole, and the run says what could not be written."""
    before = goldens(library)
    library.edit("loop.py", "FIRST = 0", "FIRST = 3")
    code = """\
import resource, sys, pytest
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
sys.exit(pytest.main(sys.argv[1:]))
"""
    cases = ["cases/shelf0/book7.yaml", "cases/shelf0/book0.yaml"]
    outcome = library.run(sys.executable, "-c", code, "--update-golden", "-p", "no:cacheprovider", *cases)
    assert (outcome.exit_code, outcome.changed) == (1, {}), outcome.output
    message = "could not be written: File too large; what was there is unchanged"
    assert outcome.section("case shelf0/book0")[0] == f"golden_traces/shelf0/book0.json {message}"
    assert outcome.summary == [
        "2 cases: 2 with an unusable golden",
        f"kept      golden_traces/shelf0/book0.json  golden_traces/shelf0/book0.json {message}",
        f"kept      golden_traces/shelf0/book7.json  golden_traces/shelf0/book7.json {message}",
        "no golden was written",
    ]
    assert goldens(library) == before


@pytest.mark.parametrize("how", [["-O", "-m", "pytest"], ["-m", "pytest", "--assert=plain"]], ids=["-O", "plain"])
def test_no_switch_of_the_interpreter_changes_a_verdict(library: MiniProject, how: list[str]) -> None:
    """`python -O` and `--assert=plain` take assertions away; a drift is none."""
    library.edit("cases/shelf0/book0.yaml", "book 0", "book zero")
    library.write({
        "test_it.py": """\
            from harness import Recorder

            def test_it(golden_trace):
                recorder = Recorder(case="never accepted"[:5])
                recorder.instrument(lambda name, tool_input: None)("look", {})
                golden_trace(recorder)
            """
    })  # fmt: skip
    outcome = library.run(sys.executable, *how, "cases/shelf0", "test_it.py")
    assert outcome.exit_code == 1
    assert outcome.summary == ["30 cases: 28 same as golden, 1 drifted, 1 without golden"]
