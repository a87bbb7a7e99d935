"""Sweeps of loops that the tests write."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.case.load import load_case
from harness.crash.subject import subject_of
from harness.crash.warm import warm_up
from harness.faults.lives import Subject
from harness.faults.sweep import Plan, Sweep, sweep
from harness.project import Project

CASE = """\
agent: {agent}
prompt: Go.
tools: loop:TOOLS
model:
  name: claude-test
  script:
    - call:
        - look: {{at: a}}
        - put: {{name: b}}
        - mail: {{to: c}}
    - say: Done.
"""


@pytest.fixture(scope="session")
def subject_in() -> Callable[..., Subject]:
    """Make a subject of a loop, given as the text of a module `loop` with `run` and `TOOLS`, in a folder."""

    def make(folder: Path, loop: str, case: str = CASE, agent: str = "loop:run") -> Subject:
        warm_up()
        (folder / "loop.py").write_text(textwrap.dedent(loop))
        path = folder / "cases" / "case.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(case).format(agent=agent) if "{agent}" in case else textwrap.dedent(case))
        project = Project.at(folder)
        return subject_of(load_case(path, project.cases), project)

    return make


@pytest.fixture
def subject(subject_in: Callable[..., Subject], tmp_path: Path) -> Callable[..., Subject]:
    """Make a subject of a loop in the test's own folder."""
    return functools.partial(subject_in, tmp_path)


@pytest.fixture
def swept(subject: Callable[..., Subject]) -> Callable[..., Sweep]:
    """Sweep a loop on two cores."""

    def run(loop: str, case: str = CASE, **plan: Any) -> Sweep:
        return sweep(subject(loop, case), Plan(**{"jobs": 2, **plan}))

    return run
