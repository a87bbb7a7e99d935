"""Every kind of drift, applied to a golden: which ones a policy would let pass.

A gate proves itself by what it catches.  Each mutation is the smallest change of its kind that an exact comparison
sees; one that a policy lets pass could happen tomorrow, and the build would be green.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

from harness.drift import compare
from harness.policy import FacetPolicy
from harness.trace import Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from harness.policy import Policy
    from harness.trace import Trace

__all__ = ["KINDS", "SITES", "Gap", "Mutation", "Proof", "mutations", "prove"]

_Make: TypeAlias = "Callable[[], Mutation]"

SITES: Final = 60
"""Places at which one kind is tried in one golden, spread over it: comparing costs as much as the trace is long."""

_UNHEARD_OF: Final = "write_of_a_tool_that_is_not_in_the_golden"


@dataclass(frozen=True, slots=True)
class Mutation:
    """A golden with one change.

    Args:
        kind: as in `KINDS`.
        what: the change in a few words: the tool, the argument, the turn.
        write: whether it concerns a tool that writes.
        trace: the changed golden.
    """

    kind: str
    what: str
    write: bool
    trace: Trace


@dataclass(frozen=True, slots=True)
class Gap:
    """Mutations of one kind, at one tool or argument, that a policy lets pass.

    Args:
        kind: of the mutations.
        what: what they have in common.
        write: whether they concern a tool that writes.
        passed: how many pass.
        tried: of how many.
        because: the settings that let them pass: facet -> its policy in words.
    """

    kind: str
    what: str
    write: bool
    passed: int
    tried: int
    because: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Proof:
    """What a gate catches of one golden.

    Args:
        case: whose.
        tried: mutations by kind.
        caught: those that the policy sees, by kind.
        gaps: those that it does not see.
        places: in how many places a kind could have been tried, where that is more than `SITES`.
    """

    case: str
    tried: Mapping[str, int]
    caught: Mapping[str, int]
    gaps: tuple[Gap, ...]
    places: Mapping[str, int]


def prove(golden: Trace, policy: Policy, kinds: Sequence[str] | None = None) -> Proof:
    """Apply each kind of drift to a golden, and see which ones its policy would let pass.

    Args:
        golden: the accepted trace.
        policy: how its case is compared.
        kinds: as in `KINDS`; all by default.
    """
    tried: dict[str, int] = {}
    caught: dict[str, int] = {}
    places: dict[str, int] = {}
    groups: dict[tuple[str, str], list[tuple[Mutation, bool]]] = {}
    for kind in kinds or KINDS:
        made = list(_KINDS[kind](golden))
        chosen = _spread(made, SITES)
        if len(chosen) < len(made):
            places[kind] = len(made)
        for make in chosen:
            mutation = make()
            if mutation.trace.signature == golden.signature:
                continue  # two calls that are the same, swapped
            seen = bool(compare(golden, mutation.trace, policy))
            tried[kind] = tried.get(kind, 0) + 1
            caught[kind] = caught.get(kind, 0) + seen
            groups.setdefault((kind, mutation.what), []).append((mutation, seen))
    gaps = tuple(gap for group in groups.values() if (gap := _gap(golden, policy, group)) is not None)
    return Proof(golden.case, tried, caught, gaps, places)


def mutations(golden: Trace) -> Iterator[Mutation]:
    """Every mutation of a golden, kind by kind; exactly compared, each is a drift."""
    for make in _KINDS.values():
        for mutation in (one() for one in make(golden)):
            if mutation.trace.signature != golden.signature:
                yield mutation


def _gap(golden: Trace, policy: Policy, group: Sequence[tuple[Mutation, bool]]) -> Gap | None:
    passed = [mutation for mutation, seen in group if not seen]
    if not passed:
        return None
    first = passed[0]
    facets = compare(golden, first.trace).verdicts
    because = {facet: str(policy[facet]) for facet in facets if policy[facet] != FacetPolicy()}
    return Gap(first.kind, first.what, first.write, len(passed), len(group), because)


def _spread(made: Sequence[_Make], most: int) -> Sequence[_Make]:
    if len(made) <= most:
        return made
    return [made[index * len(made) // most] for index in range(most)]


def _swapped(golden: Trace) -> Iterator[_Make]:
    """Two neighbours change places, each in the other's turn."""
    calls = golden.calls
    for index, (one, other) in enumerate(pairwise(calls)):
        if one.turn != other.turn or one.turn == 0:
            pair = [replace(other, turn=one.turn), replace(one, turn=other.turn)]
            yield _mutated("swap", f"{one.tool} and {other.tool}", golden, index, 2, pair, one, other)


def _dropped(golden: Trace) -> Iterator[_Make]:
    for index, call in enumerate(golden.calls):
        yield _mutated("drop", call.tool, golden, index, 1, [], call)


def _repeated(golden: Trace) -> Iterator[_Make]:
    for index, call in enumerate(golden.calls):
        yield _mutated("repeat", call.tool, golden, index, 1, [call, call], call)


def _argued(golden: Trace) -> Iterator[_Make]:
    """One argument has another value."""
    for index, call in enumerate(golden.calls):
        for name in call.args or ("",):
            args = {**call.args, name: _other(str(call.args[name]))[:8]} if call.args else call.args
            changed = replace(call, digest=_other(call.digest), args=args)
            what = f"{call.tool}.{name}" if name else call.tool
            yield _mutated("argument", what, golden, index, 1, [changed], call)


def _written(golden: Trace) -> Iterator[_Make]:
    """A write comes, with arguments that are not in the golden: after each write, and of a tool never heard of."""
    for index, call in enumerate(golden.calls):
        if call.tool in golden.writes:
            args = {name: _other(str(value))[:8] for name, value in call.args.items()} if call.args else call.args
            another = replace(call, digest=_other(call.digest), args=args)
            yield _mutated("write", call.tool, golden, index, 1, [call, another], call)
    stranger = Call(max(golden.turns, 1), _UNHEARD_OF, _other(""), args=None if golden.detail == "digest" else {})
    written = replace(golden, writes=golden.writes | {_UNHEARD_OF})
    yield _mutated("write", "a tool never heard of", written, len(golden.calls), 0, [stranger], stranger)


def _flipped(golden: Trace) -> Iterator[_Make]:
    for index, call in enumerate(golden.calls):
        yield _mutated("outcome", call.tool, golden, index, 1, [replace(call, ok=not call.ok)], call)


def _stopped(golden: Trace) -> Iterator[_Make]:
    for index in range(len(golden.stop_reasons)):
        yield partial(_with_reason, golden, index)


def _with_reason(golden: Trace, index: int) -> Mutation:
    reason = golden.stop_reasons[index]
    other = "max_tokens" if reason != "max_tokens" else "refusal"
    reasons = (*golden.stop_reasons[:index], other, *golden.stop_reasons[index + 1 :])
    return Mutation("stop_reason", f"{reason} becomes {other}", False, replace(golden, stop_reasons=reasons))


def _delayed(golden: Trace) -> Iterator[_Make]:
    for turn in range(1, golden.turns + 1):
        yield partial(_with_turn, golden, turn)


def _with_turn(golden: Trace, turn: int) -> Mutation:
    """A turn without calls comes after one, and ends for the same reason."""
    reasons = (*golden.stop_reasons[:turn], *golden.stop_reasons[turn - 1 :])
    calls = tuple(replace(call, turn=call.turn + (call.turn > turn)) for call in golden.calls)
    guards = tuple(replace(one, turn=one.turn + (one.turn > turn)) for one in golden.interventions)
    longer = replace(golden, turns=golden.turns + 1, stop_reasons=reasons, calls=calls, interventions=guards)
    return Mutation("turn", "", False, longer)


def _mutated(kind: str, what: str, golden: Trace, index: int, gone: int, come: Sequence[Call], *about: Call) -> _Make:
    """A mutation at one place, made when it is wanted: long goldens have more places than are tried."""
    write = any(call.tool in golden.writes for call in about)

    def make() -> Mutation:
        calls = (*golden.calls[:index], *come, *golden.calls[index + gone :])
        return Mutation(kind, what, write, replace(golden, calls=calls))

    return make


def _other(digest: str) -> str:
    """A digest that is another one, and the same in each run."""
    return hashlib.sha256(f"not {digest}".encode()).hexdigest()[:12]


_KINDS: Final[Mapping[str, Callable[[Trace], Iterator[_Make]]]] = {
    "write": _written,
    "swap": _swapped,
    "drop": _dropped,
    "repeat": _repeated,
    "argument": _argued,
    "outcome": _flipped,
    "stop_reason": _stopped,
    "turn": _delayed,
}
KINDS: Final[Mapping[str, str]] = {
    "write": "a write more",
    "swap": "two calls swapped",
    "drop": "a call dropped",
    "repeat": "a call repeated",
    "argument": "another argument",
    "outcome": "a call fails, or no longer fails",
    "stop_reason": "another stop_reason",
    "turn": "a turn more",
}
"""The kinds of drift that are tried, with their names for people."""
