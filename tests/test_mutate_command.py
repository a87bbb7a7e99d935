"""`harness mutate`: what a policy would let pass, seen before it happens."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from harness.commands.mutate import command
from harness.mutation import KINDS
from tests.small_loop import LOOP

if TYPE_CHECKING:
    from harness.testing import MiniProject

CASE = """\
agent: loop:run
prompt: Look, then pay.
tools:
  look: {effect: read_only, input: {place: string}, returns: here}
  pay: {effect: irreversible, input: {cents: number}, returns: paid}
model:
  name: m
  script:
    - call: {look: {place: desk}}
    - call: {pay: {cents: 1200}}
    - say: Done.
"""


def accepted(project: MiniProject, policy: str = "") -> MiniProject:
    project.write({"loop.py": LOOP, "cases/lax.yaml": CASE + policy, "cases/exact.yaml": CASE})
    assert project.harness("run", "--update-golden").exit_code == 0
    return project


def test_what_a_policy_lets_pass_is_told_with_its_reason(mini_project: MiniProject) -> None:
    """By case, then all that was tried; the exit code is 0 unless --strict."""
    project = accepted(mini_project, "compare: {arguments: {ignore: [look.place]}, turns: {at_most: '+1'}}\n")
    outcome = project.harness("mutate")
    assert (
        outcome.output
        == """\
lax: 4 of 17 drifts would pass
  another argument: look.place (each)  because of compare: arguments: without look.place
  a turn more (each)  because of compare: turns: at most +1

a write more                           4 tried  all caught
two calls swapped                      2 tried  all caught
a call dropped                         4 tried  all caught
a call repeated                        4 tried  all caught
another argument                       4 tried  1 would pass
a call fails, or no longer fails       4 tried  all caught
another stop_reason                    6 tried  all caught
a turn more                            6 tried  3 would pass
2 goldens: 30 of 34 drifts caught; 1 policy lets something pass
"""
    )
    assert (outcome.exit_code, outcome.changed) == (0, {})
    assert project.harness("mutate", "--strict").exit_code == 1
    assert project.harness("mutate", "--strict", "exact").exit_code == 0


def test_the_json_says_the_same(mini_project: MiniProject) -> None:
    """One object a case, with what was tried, caught and let pass."""
    project = accepted(mini_project, "compare: {arguments: {ignore: [look.place]}}\n")
    data = json.loads(project.harness("mutate", "lax", "--kind", "argument", "--format", "json").output)
    assert data == {
        "schema": "harness.mutate/1",
        "cases": [
            {
                "case": "lax",
                "tried": {"argument": 2},
                "caught": {"argument": 1},
                "gaps": [
                    {
                        "kind": "argument",
                        "what": "look.place",
                        "write": False,
                        "passed": 1,
                        "tried": 1,
                        "because": {"arguments": "without look.place"},
                    }
                ],
                "places": {},
            }
        ],
    }


def test_an_unknown_case_and_a_spoilt_golden_are_one_error(mini_project: MiniProject) -> None:
    """With what to do, and exit code 2."""
    project = accepted(mini_project)
    outcome = project.harness("mutate", "exat")
    assert (outcome.exit_code, outcome.errors) == (2, "error: no golden is called 'exat'; did you mean 'exact'?\n")
    project.write({"golden_traces/exact.json": "{"})
    outcome = project.harness("mutate")
    assert (outcome.exit_code, outcome.errors.splitlines()[0][:49]) == (
        2,
        "error: golden_traces/exact.json is not JSON: Expe",
    )


def test_every_kind_can_be_asked_for() -> None:
    """The choices are spelt out in the command, which must start without loading the comparison."""
    option = next(one for one in command.params if one.name == "kinds")
    assert tuple(option.type.choices) == tuple(KINDS)
