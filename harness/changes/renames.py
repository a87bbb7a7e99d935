"""Which cases of one side are cases of the other under another id."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from harness.changes.side import Side
    from harness.trace import Trace

__all__ = ["find_renames"]


def find_renames(before: Side, after: Side) -> dict[str, str]:
    """By the new id, the old one.

    A case was renamed when one that went and one that came are each other's only match: by all that a comparison looks
    at, or else by the prompt and the tools that were offered.  Two candidates make it a guess, and none is taken.
    """
    gone = {case: trace for case, trace in before.traces.items() if case not in after.cases()}
    came = {case: trace for case, trace in after.traces.items() if case not in before.cases()}
    found: dict[str, str] = {}
    for likeness in (_whole, _sent):
        pairs = _only_matches(gone, came, likeness)
        found |= pairs
        gone = {case: trace for case, trace in gone.items() if case not in pairs.values()}
        came = {case: trace for case, trace in came.items() if case not in pairs}
    return found


def _only_matches(
    gone: dict[str, Trace], came: dict[str, Trace], likeness: Callable[[Trace], Hashable]
) -> dict[str, str]:
    old, new = _by(gone, likeness), _by(came, likeness)
    return {
        new[like][0]: cases[0]
        for like, cases in old.items()
        if like is not None and len(cases) == 1 and len(new.get(like, ())) == 1
    }


def _by(traces: dict[str, Trace], likeness: Callable[[Trace], Hashable]) -> dict[Hashable, list[str]]:
    groups: dict[Hashable, list[str]] = {}
    for case, trace in traces.items():
        groups.setdefault(likeness(trace), []).append(case)
    return groups


def _whole(trace: Trace) -> Hashable:
    turns, reasons, calls, interventions, writes = trace.signature
    return (turns, reasons, tuple(calls), interventions, tuple(writes.items()), _sent(trace))


def _sent(trace: Trace) -> Hashable:
    """What the loop sent first; None when nothing is known of it."""
    context = trace.context
    if context.prompt is None:
        return None
    return (context.prompt, context.system, tuple(sorted(context.tools)), trace.digest_key)
