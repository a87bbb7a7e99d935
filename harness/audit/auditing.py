"""The audit of a list of tools: what each answers to every call that its schema forbids.

A refusal is worth something only from a tool that does answer a valid call: one that raises because its file or its
server is not there would have refused anything.  So before its first forbidden call reaches a tool, a valid one must
have succeeded; otherwise the tool counts as not audited.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from harness.agent.validation import problems_of
from harness.audit.calls import REFUSAL, call_apart, refusal_by_contract
from harness.audit.draws import Draws, draw
from harness.audit.fields import required_fields
from harness.audit.probes import probes_of
from harness.audit.samples import named_paths, valid_inputs
from harness.audit.scratch import places_in, prepare, snapshot
from harness.case.workspace import fresh_directory
from harness.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from harness.agent.contract import Effect
    from harness.audit.calls import Answer
    from harness.audit.fields import Field
    from harness.audit.probes import Probe
    from harness.audit.scratch import Snapshot
    from harness.audit.targets import Target

__all__ = ["Audited", "Plan", "Status", "ToolAudit", "audit_tools"]

Status: TypeAlias = Literal["refuses", "findings", "nothing_required", "not_audited"]

_FINDINGS: Final = frozenset({"said_ok", "refused_too_late", "died", "hung"})

_PROVING: Final = frozenset({"said_ok", "refused_too_late"})
"""Outcomes that say something also about a tool that failed its valid call."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to audit.

    Args:
        disposable: tools that may change the world may be called; what they can reach may be lost.
        inputs: a valid input by name of tool, instead of one made from its schema.
        allow_empty: names of fields that may be empty, by name of tool.
        workspace: what every call finds; a copy of it.  None is a few files of our own.
        zeros: 0 and False count as empty.
        examples: invalid values that are drawn for each field, at most.
        seed: of the drawing.
        limit: seconds for one call.
        refusal: regular expression for answers that are refusals although they do not say error.
    """

    disposable: bool = False
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    allow_empty: Mapping[str, frozenset[str]] = field(default_factory=dict)
    workspace: Path | None = None
    zeros: bool = False
    examples: int = 8
    seed: int = 0
    limit: float = 5.0
    refusal: str = REFUSAL


@dataclass(frozen=True, slots=True)
class Audited:
    """One forbidden call and its answer."""

    probe: Probe
    answer: Answer


@dataclass(frozen=True, slots=True)
class ToolAudit:
    """What came of one tool.

    Args:
        target: the tool.
        status: `refuses` every call; has `findings`; has `nothing_required`; or was `not_audited`, or not in full.
        calls: every forbidden call that was judged.
        reason: why it was not audited.
        notes: what else a reader should know, one sentence each.
    """

    target: Target
    status: Status
    calls: tuple[Audited, ...] = ()
    reason: str = ""
    notes: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[Audited, ...]:
        """The calls that were answered as they must not be; none when the tool has not been shown to work."""
        proven = _PROVING if self.reason else _FINDINGS
        return tuple(one for one in self.calls if one.answer.outcome in proven)

    def count(self, outcome: str) -> int:
        """How many calls ended so."""
        return sum(one.answer.outcome == outcome for one in self.calls)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """One tool, what is tried on it, and the workspace in which."""

    target: Target
    template: Path
    before: Snapshot
    fields: tuple[Field, ...]
    inputs: Sequence[Mapping[str, Any]]
    probes: Sequence[Probe]
    draws: Draws
    problem: str = ""


def audit_tools(
    targets: Iterable[Target], plan: Plan | None = None, progress: Callable[[str, int, int], None] | None = None
) -> list[ToolAudit]:
    """Try every forbidden call on every tool.

    Each call runs in a copy of the workspace and in a process of its own, so that one that hangs, exits or is killed
    ends nothing else.  Nothing else is fenced off: a tool reaches the network and absolute paths as it always does.

    Args:
        targets: the tools.
        plan: how.
        progress: told the tool's name, the calls done and the calls in all, after each call.

    Raises:
        HarnessError: the extra for drawing is not installed, the workspace cannot be copied, or an example is no valid
            input of its tool.
    """
    plan = plan or Plan()
    with fresh_directory("audit-plan") as directory:
        listed = [(one, required_fields(one.schema or {})) for one in targets]
        draws = draw([fields for _, fields in listed], examples=plan.examples, seed=plan.seed, directory=directory)
        prepared = [
            _prepare(target, fields, drawn, plan, directory / f"tool-{index}")
            for index, ((target, fields), drawn) in enumerate(zip(listed, draws, strict=True))
        ]
        total = sum(len(one.probes) for one in prepared)
        audits: list[ToolAudit] = []
        done = 0
        for one in prepared:

            def told(name: str = one.target.name) -> None:
                nonlocal done
                done += 1
                if progress is not None:
                    progress(name, done, total)

            audits.append(_audit(one, plan, told))
    return audits


def _prepare(target: Target, fields: tuple[Field, ...], draws: Draws, plan: Plan, template: Path) -> _Prepared:
    schema = target.schema or {}
    example = plan.inputs.get(target.name)
    allowed = target.allow_empty | plan.allow_empty.get(target.name, frozenset())
    prepare(template, plan.workspace, named_paths(schema, example or {}))
    inputs = [example] if example is not None else valid_inputs(schema, places_in(template), draws.valid)
    problems = problems_of(inputs[0], schema, allowed)
    if problems and example is not None:
        raise ToolError(f"the example for {target.name!r} is no valid input: {problems[0]}")
    made = _Prepared(target, template, snapshot(template), fields, inputs, (), draws)
    if problems:
        return replace(made, problem=f"no valid input could be made from its schema ({problems[0]}); give --example")
    return replace(made, probes=_probes(made, plan, inputs[0]))


def _probes(prepared: _Prepared, plan: Plan, valid: Mapping[str, Any]) -> list[Probe]:
    target = prepared.target
    allowed = target.allow_empty | plan.allow_empty.get(target.name, frozenset())
    return probes_of(target.schema or {}, prepared.fields, valid, prepared.draws.invalid, allowed, zeros=plan.zeros)


def _audit(prepared: _Prepared, plan: Plan, told: Callable[[], None]) -> ToolAudit:
    target, notes = prepared.target, prepared.draws.notes
    if target.schema is None:
        return ToolAudit(target, "not_audited", reason="it has no input_schema: the API defines this tool")
    if prepared.problem:
        return ToolAudit(target, "not_audited", reason=prepared.problem, notes=notes)
    if not prepared.fields:
        return ToolAudit(target, "nothing_required", notes=notes)
    refused = _refused(prepared)
    reaching = len(prepared.probes) - len(refused)
    if not reaching:
        for _ in refused:
            told()
        return ToolAudit(target, "refuses", tuple(refused), notes=notes)
    if target.effect != "read_only" and not plan.disposable:
        for _ in prepared.probes:
            told()
        would = f"{reaching} of {len(prepared.probes)} calls would reach it"
        reason = f"{would}, and {_effect_words(target.effect)}; say --disposable"
        return ToolAudit(target, "not_audited", tuple(refused), reason, notes)
    valid, control = _control(prepared, plan)
    if control.outcome == "hung":  # and so would most of the others, each for the whole of its time
        for _ in prepared.probes:
            told()
        return _judged(target, tuple(refused), control, notes)
    calls: list[Audited] = []
    for probe in _probes(prepared, plan, valid):
        answer = refusal_by_contract(target, probe.input) or _call(prepared, plan, probe.input)
        calls.append(Audited(probe, answer))
        told()
    return _judged(target, tuple(calls), control, notes)


def _refused(prepared: _Prepared) -> list[Audited]:
    """What the contract refuses, which takes no call."""
    answers = ((probe, refusal_by_contract(prepared.target, probe.input)) for probe in prepared.probes)
    return [Audited(probe, answer) for probe, answer in answers if answer is not None]


def _control(prepared: _Prepared, plan: Plan) -> tuple[Mapping[str, Any], Answer]:
    """The first valid input that the tool takes, or the first of all, with its answer."""
    first: tuple[Mapping[str, Any], Answer] | None = None
    for valid in prepared.inputs:
        answer = _call(prepared, plan, valid)
        if answer.outcome == "said_ok":
            return valid, answer
        first = first or (valid, answer)
    if first is None:
        raise ToolError(f"there is no valid input for {prepared.target.name!r}")
    return first


def _call(prepared: _Prepared, plan: Plan, sent: Mapping[str, Any]) -> Answer:
    refusal = re.compile(plan.refusal)
    return call_apart(prepared.target, sent, prepared.template, prepared.before, refusal=refusal, limit=plan.limit)


def _judged(target: Target, calls: tuple[Audited, ...], control: Answer, notes: tuple[str, ...]) -> ToolAudit:
    works = control.outcome == "said_ok"
    outcomes = {one.answer.outcome for one in calls}
    reason = ""
    if not works:
        reason = (
            f"its valid call failed as well ({control.text or control.outcome}), so that its refusals prove nothing; "
            "give --example, or a --workspace in which it works"
        )
    if outcomes & (_FINDINGS if works else _PROVING):
        return ToolAudit(target, "findings", calls, reason, notes)
    if not works:
        return ToolAudit(target, "not_audited", calls, reason, notes)
    return ToolAudit(target, "refuses", calls, "", notes)


def _effect_words(effect: Effect | None) -> str:
    return "nobody has declared what it does" if effect is None else f"it is {effect}"
