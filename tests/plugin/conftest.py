"""A small project to run pytest in: a shop whose agent refunds orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.testing import MiniProject

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


@pytest.fixture
def shop(mini_project: MiniProject) -> MiniProject:
    """A project with a loop and the case `refund`, not yet accepted."""
    mini_project.write({"pyproject.toml": PYPROJECT, "loop.py": LOOP, "cases/refund.yaml": CASE})
    return mini_project


@pytest.fixture
def accepted(shop: MiniProject) -> MiniProject:
    """The same with its golden."""
    outcome = shop.pytest("--update-golden")
    assert (outcome.exit_code, outcome.changed) == (0, {"golden_traces/refund.json": "added"}), outcome.output
    return shop
