"""Thoughts without content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.stuck.limits import Limits
from harness.stuck.sighting import Sighting

if TYPE_CHECKING:
    from harness.stuck.window import Placed, View

__all__ = ["EmptyThink"]


@dataclass(frozen=True, slots=True)
class EmptyThink:
    """The model calls its thinking tool and thinks nothing, twice.

    Rule: the newest call is a `think` whose `thought` is missing or blank, and so is the last call of each step
    before, as far back as the limit says.  There is no nudge: one would have to talk to a model that says nothing.

    Incident: instead of answering, a model filled the rest of its turn with calls that do nothing, until the limit of
    steps ended it (MoonshotAI/kimi-code#1314).  An empty thought is the purest of them, and Kocoro, where this rule
    comes from, asks for it before anything else.

    Exempt: arguments that could not be parsed (nobody knows what was thought); siblings of one step, which are one
    attempt.
    """

    limits: Limits = Limits(stop=2)
    tools: frozenset[str] = frozenset({"think"})

    def judge(self, view: View) -> Sighting | None:
        """Count the steps that end in an empty thought, beginning with this one."""
        if not self._is_empty(view.latest):
            return None
        calls = []
        for _, step in view.steps():
            if not self._is_empty(step[0]):
                break
            calls.append(step[0])
        return Sighting(
            incident=(),
            steps=len(calls),
            limits=self.limits,
            calls=calls,
            rule="in a row ended with an empty thought",
            otherwise="a thought with content, or any other call at the end of the step before",
        )

    def advice(self, sighting: Sighting) -> str:
        """Only heard where a project sets a nudge."""
        return (
            f"The last {sighting.steps} thoughts were empty. Write down what is undecided, or take the next step, or "
            "give your answer."
        )

    def _is_empty(self, one: Placed) -> bool:
        return one.record.blank_thought and one.record.tool in self.tools
