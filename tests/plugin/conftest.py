"""Two small projects to run pytest in: a shop whose agent refunds orders, and a library of many light cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.testing import MiniProject

if TYPE_CHECKING:
    from pathlib import Path

PYPROJECT = """\
[tool.pytest]
addopts = ["-p", "no:randomly"]
strict = true
"""

LOOP = """\
def run(prompt, client, tools, dispatch):
    messages = [{"role": "user", "content": prompt}]
    while True:
        answer = client.messages.create(model="claude-sonnet-5", max_tokens=1024, tools=tools, messages=messages)
        messages.append({"role": "assistant", "content": answer.content})
        uses = [block for block in answer.content if block.type == "tool_use"]
        if not uses:
            return answer.stop_reason
        messages.append({"role": "user", "content": [perform(use, dispatch) for use in uses]})


def perform(use, dispatch):
    try:
        content, is_error = str(dispatch(use.name, use.input)), False
    except Exception as error:
        content, is_error = str(error), True
    return {"type": "tool_result", "tool_use_id": use.id, "content": content, "is_error": is_error}
"""

CASE = """\
agent: loop:run
prompt: Refund order 7.
tools:
  find_order: {effect: read_only, input: {id: string}, returns: {cents: 1200}}
  read_policy: {effect: read_only, input: {name: string}, returns: 30 days}
  refund: {effect: irreversible, input: {id: string, cents: integer}, returns: {ok: true}}
model:
  name: claude-sonnet-5
  script:
    - call: {find_order: {id: "7"}}
    - call: {read_policy: {name: refunds}}
    - call: {refund: {id: "7", cents: 1200}}
    - say: Done.
"""


LIGHT_LOOP = """\
FIRST = 0


def run(prompt, dispatch):
    for page in range(FIRST, FIRST + 3):
        dispatch("read", {"page": page, "of": prompt})
"""

LIGHT_CASE = """\
agent: loop:run
prompt: book {number}
tools:
  read: {{effect: read_only, input: {{page: integer, of: string}}, returns: text}}
model: {{name: claude-sonnet-5, script: [{{say: Never asked.}}]}}
"""


SHOP = {"pyproject.toml": PYPROJECT, "loop.py": LOOP, "cases/refund.yaml": CASE}

LIBRARY = {
    "pyproject.toml": PYPROJECT,
    "loop.py": LIGHT_LOOP,
    **{f"cases/shelf{number % 7}/book{number}.yaml": LIGHT_CASE.format(number=number) for number in range(200)},
}


def _goldens(files: dict[str, str], folder: Path) -> dict[str, str]:
    """What an update makes of a project that has no goldens yet."""
    project = MiniProject(folder)
    project.write(files)
    outcome = project.pytest("--update-golden")
    assert outcome.exit_code == 0, outcome.output
    assert set(outcome.changed.values()) == {"added"}
    return {name: project.read(name) for name in outcome.changed}


@pytest.fixture(scope="session")
def shop_goldens(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Made once: accepting them takes most of the time of a short test."""
    return _goldens(SHOP, tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="session")
def library_goldens(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Made once, as those of the shop."""
    return _goldens(LIBRARY, tmp_path_factory.mktemp("library"))


@pytest.fixture
def shop(mini_project: MiniProject) -> MiniProject:
    """A project with a loop and the case `refund`, not yet accepted."""
    mini_project.write(SHOP)
    return mini_project


@pytest.fixture
def accepted(shop: MiniProject, shop_goldens: dict[str, str]) -> MiniProject:
    """The same with its golden."""
    shop.write(shop_goldens)
    return shop


@pytest.fixture
def library(mini_project: MiniProject, library_goldens: dict[str, str]) -> MiniProject:
    """Two hundred accepted cases that need neither SDK nor server, so that processes of their own cost little.

    Changing `FIRST` in the loop makes all of them drift.
    """
    mini_project.write({**LIBRARY, **library_goldens})
    return mini_project
