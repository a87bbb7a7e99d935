"""`harness check --labelled`: run labelled sequences and say what came out otherwise than it should."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.stuck.config import Config
from harness.stuck.fold import State, step
from harness.stuck.labelled import LabelledSequence, Mark, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.stuck.evidence import Event, Record
    from harness.stuck.verdict import Verdict

__all__ = ["Judged", "check_labelled", "labelled_data", "labelled_lines", "outcome_of"]


@dataclass(frozen=True, slots=True)
class Judged:
    """One sequence with what came of it; `verdicts` are those that are not `continue`."""

    sequence: LabelledSequence
    actual: Outcome
    verdicts: tuple[Verdict, ...]

    @property
    def differences(self) -> tuple[str, ...]:
        """What differs from the label, one line each; none when all is as it should be."""
        expected, actual = self.sequence.expect, self.actual
        lines = [
            f"{name}: expected {_shown(getattr(expected, name))}, got {_shown(getattr(actual, name))}"
            for name in ("verdict", "detector", "at_call", "via")
            if getattr(expected, name) != getattr(actual, name)
        ]
        lines += [f"missing: {_mark(one)}" for one in expected.trace if one not in actual.trace]
        lines += [f"unexpected: {_mark(one)}" for one in actual.trace if one not in expected.trace]
        if not lines and expected.trace != actual.trace:
            lines.append("trace: the same verdicts in another order")
        return tuple(lines)


def outcome_of(items: Sequence[Record | Event], config: Config | None = None) -> tuple[Outcome, tuple[Verdict, ...]]:
    """What the guard makes of a sequence, up to the call that ends it."""
    config = config or Config()
    state = State()
    spoken: list[Verdict] = []
    for item in items:
        state, verdict = step(state, item, config)
        if verdict.kind != "continue":
            spoken.append(verdict)
        if verdict.kind == "force_stop":
            break
    trace: tuple[Mark, ...] = tuple((one.at_call, one.kind, one.detector or "") for one in spoken)
    if not spoken:
        return Outcome("continue", None, state.calls, None, ()), ()
    deciding = spoken[-1] if spoken[-1].kind == "force_stop" else spoken[0]
    return Outcome(deciding.kind, deciding.detector, deciding.at_call, deciding.via, trace), tuple(spoken)


def check_labelled(sequences: Iterable[LabelledSequence], config: Config | None = None) -> list[Judged]:
    """Run all sequences with one configuration."""
    return [Judged(sequence, *outcome_of(sequence.items, config)) for sequence in sequences]


def labelled_lines(judged: Sequence[Judged], file: str) -> list[str]:
    """For people: each sequence that differs with its evidence, then one line that counts."""
    lines: list[str] = []
    wrong = [one for one in judged if one.differences]
    for one in wrong:
        lines.append(f"{file}:{one.sequence.line}: {one.sequence.id}")
        lines += [f"  {difference}" for difference in one.differences]
        for verdict in one.verdicts:
            if verdict.evidence is not None:
                lines.append(
                    f"  call {verdict.at_call}: {verdict.kind} by {verdict.detector}: {verdict.evidence.sentence()}"
                )
                lines.append(f"    {verdict.evidence.explanation()}")
        if one.sequence.why:
            lines.append(f"  the label says: {one.sequence.why}")
    lines.append(f"{len(judged)} sequences, {len(wrong)} of them otherwise than labelled")
    return lines


def labelled_data(judged: Sequence[Judged]) -> dict[str, Any]:
    """For machines."""
    return {
        "sequences": len(judged),
        "differences": [
            {
                "id": one.sequence.id,
                "line": one.sequence.line,
                "differences": list(one.differences),
                "verdicts": [verdict.to_data() for verdict in one.verdicts],
            }
            for one in judged
            if one.differences
        ],
    }


def _shown(value: object) -> str:
    return "none" if value is None else str(value)


def _mark(mark: Mark) -> str:
    call, verdict, detector = mark
    return f"{verdict} by {detector} at call {call}"
