"""The script of a model: its steps, and the digest over them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.errors import ScriptError
from harness.model.reading import Reader, kind_of, require_json
from harness.model.steps import Answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from harness.model.steps import Step

__all__ = ["Script"]


@dataclass(frozen=True, slots=True)
class Script:
    """The steps of a scripted model.

    Args:
        steps: answers and failures, in the order in which they are played.
        digest: 64 hex digits over the steps as they were written; all ids are made from it.
    """

    steps: tuple[Step, ...]
    digest: str

    @classmethod
    def parse(cls, steps: Sequence[Any]) -> Script:
        """Reads a script.

        Args:
            steps: as they come from YAML, for example `[{"call": {"read_file": {"path": "a"}}}, {"say": "Done."}]`.

        Raises:
            ScriptError: something is wrong; its `path` leads to the place in `steps`.
        """
        if not isinstance(steps, list | tuple):
            raise ScriptError(f"a script is a list of steps, not {kind_of(steps)}")
        require_json(steps, ())
        digest = hashlib.sha256(json.dumps(steps, sort_keys=True).encode()).hexdigest()
        return cls(Reader(digest).steps(steps, ()), digest)

    def answers(self) -> Iterator[Answer]:
        """Every answer that it holds, those of branches included."""
        return _answers(self.steps)

    def signatures(self) -> frozenset[str]:
        """The signatures of all thinking blocks that it holds."""
        thoughts = (thought for answer in self.answers() for thought in answer.thoughts)
        return frozenset(thought["signature"] for thought in thoughts if "signature" in thought)


def _answers(steps: Iterable[Step]) -> Iterator[Answer]:
    for step in steps:
        if isinstance(step, Answer):
            yield step
            yield from _answers(step.on_unknown or ())
            yield from _answers(step.on_error or ())
