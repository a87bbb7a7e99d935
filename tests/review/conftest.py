"""A project whose last run left traces that wait: reads, a write, an argument, a limit, a case without golden."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.golden import dump_trace
from harness.testing import MiniProject
from tests.report.drifts import GOLDEN, GROWN, SEARCH, SEVEN, at, trace

if TYPE_CHECKING:
    from pathlib import Path

    from harness.trace import Trace

CASE = """\
agent: loop:run
prompt: Refund order 7.
tools: {refund: {effect: irreversible, input: {id: string}, returns: done}}
model: {name: m, script: [{say: Done.}]}
"""


def waits(project: MiniProject, case: str, now: Trace, golden: Trace | None = GOLDEN) -> None:
    """As a run of the case would have left it."""
    files = {
        f"cases/{case}.yaml": CASE,
        f".harness/pending/{case}.json": dump_trace(replace(now, case=case)),
    }
    if golden is not None:
        files[f"golden_traces/{case}.json"] = dump_trace(replace(golden, case=case), results=False)
    project.write(files)


def crash_failed(project: MiniProject, case: str) -> None:
    """As a run with a failing sweep would have left it."""
    one = {"case": f"{case}.crash", "verdict": "failed", "headline": "killed at turn5.save_b: executed_twice"}
    project.write({".harness/results.json": json.dumps({"schema": "harness.results/1", "results": [one]})})


@pytest.fixture
def waiting(tmp_path: Path) -> MiniProject:
    """Six cases wait."""
    project = MiniProject(tmp_path)
    project.write({"loop.py": "def run(): pass\n"})
    waits(project, "dear", SEVEN["argument"])
    waits(project, "grown", GROWN)
    waits(project, "new", GOLDEN, None)
    waits(project, "slow", replace(GROWN, problems=("25 turns, limit 24",)))
    waits(project, "notes/failed", SEVEN["failed"])
    waits(project, "notes/mail", SEVEN["write"])
    return project


READ_MORE = trace(*GOLDEN.calls[:3], SEARCH, at(3, SEARCH), *GOLDEN.calls[4:], last="max_tokens")
"""A read repeated, and another stop_reason."""
