"""Which observed call answers to which golden call, under a policy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from harness.align import Edit, align

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.align import Op
    from harness.policy import Policy
    from harness.trace import Call, Trace

__all__ = ["Pairing", "pair"]

_Key: TypeAlias = "tuple[str, str]"


@dataclass(frozen=True)
class Pairing:
    """The edit script between the calls of two traces; its indices point into `Trace.calls`."""

    edits: tuple[Edit, ...]

    @cached_property
    def matched(self) -> list[tuple[int, int, str]]:
        """Golden index, observed index and what became of the call, for each call that is on both sides."""
        return [(e.a, e.b, e.op) for e in self.edits if e.a is not None and e.b is not None]


def pair(
    golden: Trace, trace: Trace, policy: Policy, writes: frozenset[str], only: frozenset[str] | None = None
) -> Pairing:
    """Pair the calls of two traces.

    The order inside a parallel group carries no meaning, unless the policy says that it does: the calls of a group are
    sorted on both sides before they are aligned.  Arguments that the policy ignores do not tell calls apart.

    Args:
        golden: the accepted trace.
        trace: the observed one.
        policy: what to overlook.
        writes: the tools that write; the policy does not apply to them.
        only: the tools whose calls are paired; None for all.
    """
    tools = {call.tool for side in (golden, trace) for call in side.calls}
    tools = tools if only is None else tools & only
    # Calls whose order is ignored must not push others out of their places: they are paired among themselves.
    loose = tools & (policy["order"].ignored - writes)
    keys = _Keys(policy, writes)
    edits = _aligned(golden, trace, keys, tools - loose if loose or only is not None else None)
    for tool in sorted(loose):
        edits += _pair_anywhere(_aligned(golden, trace, keys, {tool}), golden.calls, trace.calls)
    if policy["order"].mode == "unordered":
        edits = _pair_anywhere(edits, golden.calls, trace.calls)
    return Pairing(tuple(edits))


def _aligned(golden: Trace, trace: Trace, keys: _Keys, tools: set[str] | None) -> list[Edit]:
    common = keys.of(golden.calls) & keys.of(trace.calls)
    ours, golden_keys = keys.sequence(golden.calls, tools, common)
    theirs, observed_keys = keys.sequence(trace.calls, tools, common)
    edits = align(golden_keys, observed_keys)
    if not (_is_identity(ours) and _is_identity(theirs)):
        edits = [
            Edit(edit.op, None if edit.a is None else ours[edit.a], None if edit.b is None else theirs[edit.b])
            for edit in edits
        ]
    if keys.sorts:
        _let_the_first_answer(edits, trace.calls, "b", "added")
        _let_the_first_answer(edits, golden.calls, "a", "removed")
    return edits


def _let_the_first_answer(edits: list[Edit], calls: Sequence[Call], side: Literal["a", "b"], alone: Op) -> None:
    """Of equal calls in one parallel group the first ones answer to the other side, and the later ones came or went.

    Sorting a group has lost which of them was first, and a reader expects the repeated one to be the second.
    """
    ours = [edit.a if side == "a" else edit.b for edit in edits]
    groups: dict[tuple[int, str, str, bool], list[tuple[bool, bool, int, int]]] = {}
    for lone in (True, False):
        for place, (edit, index) in enumerate(zip(edits, ours, strict=True)):
            if index is not None and (edit.op == alone) is lone and calls[index].turn:
                call = calls[index]
                alike = (call.turn, call.tool, call.digest, call.ok)
                if lone or alike in groups:
                    groups.setdefault(alike, []).append((lone, not call.asked, index, place))
        if not groups:
            return
    for group in groups.values():
        indices = [index for _, index in sorted((unasked, index) for _, unasked, index, _ in group)]
        for (*_, place), index in zip(sorted(group), indices, strict=True):
            edits[place] = replace(edits[place], a=index) if side == "a" else replace(edits[place], b=index)


def _is_identity(indices: list[int]) -> bool:
    return indices == list(range(len(indices)))


class _Keys:
    """What makes two calls the same call under a policy.

    Attributes:
        sorts: whether the order inside a parallel group carries no meaning.
    """

    def __init__(self, policy: Policy, writes: frozenset[str]) -> None:
        arguments = policy["arguments"]
        self._writes = writes
        self._ignored = arguments.ignored
        self._none = arguments.mode == "ignore"
        self._plain = not self._none and not self._ignored
        self.sorts = not policy["order"].parallel_ordered

    def of(self, calls: Sequence[Call]) -> set[_Key]:
        """The keys of some calls."""
        return {call.key if self._plain else self._key(call) for call in calls}

    def sequence(
        self, calls: Sequence[Call], tools: set[str] | None, common: set[_Key]
    ) -> tuple[list[int], list[_Key]]:
        """The indices of the calls of some tools in the order of comparison, and the key of each.

        In a parallel group the calls that are on both sides (`common`) come first, tool by tool, so that those whose
        arguments changed stand beside each other and not where their digests happen to fall.
        """
        indices = [index for index, call in enumerate(calls) if tools is None or call.tool in tools]
        keys = [calls[index].key if self._plain else self._key(calls[index]) for index in indices]
        start = 0
        for end in range(1, len(indices) + 1 if self.sorts else 0):
            turn = calls[indices[start]].turn
            if end < len(indices) and turn != 0 and calls[indices[end]].turn == turn:
                continue
            if end - start > 1:
                ranks = {
                    place: (
                        keys[place][0],
                        keys[place] not in common,
                        keys[place],
                        calls[indices[place]].ok,
                        not calls[indices[place]].asked,
                    )
                    for place in range(start, end)
                }
                order = sorted(ranks, key=ranks.__getitem__)
                indices[start:end] = [indices[place] for place in order]
                keys[start:end] = [keys[place] for place in order]
            start = end
        return indices, keys

    def _key(self, call: Call) -> _Key:
        if call.tool in self._writes:
            return call.key
        if self._none or call.tool in self._ignored:
            return (call.tool, "")
        prefix = f"{call.tool}."
        names = {name.removeprefix(prefix) for name in self._ignored if name.startswith(prefix)}
        if not names or call.args is None:
            return call.key
        return (call.tool, repr(sorted((name, value) for name, value in call.args.items() if name not in names)))


def _pair_anywhere(edits: list[Edit], golden: Sequence[Call], calls: Sequence[Call]) -> list[Edit]:
    """Where order does not count, a call that went and one of the same tool that came elsewhere are one change."""
    gone: dict[str, list[int]] = {}
    for edit in reversed(edits):
        if edit.op == "removed" and edit.a is not None:
            gone.setdefault(golden[edit.a].tool, []).append(edit.a)
    paired: dict[int, int] = {}
    for edit in edits:
        if edit.op == "added" and edit.b is not None and gone.get(calls[edit.b].tool):
            paired[edit.b] = gone[calls[edit.b].tool].pop()
    taken = set(paired.values())
    return [
        Edit("changed", paired[edit.b], edit.b) if edit.op == "added" and edit.b in paired else edit
        for edit in edits
        if not (edit.op == "removed" and edit.a in taken)
    ]
