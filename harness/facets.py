"""One function a facet: what differs in it between a golden and an observed trace, as findings.

Calls of write tools are compared exactly whatever the policy says; policies relax reads.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.align import align
from harness.pairing import Pairing, pair
from harness.policy import FACETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from harness.align import Edit
    from harness.policy import FacetPolicy, Policy
    from harness.trace import Call, Trace

__all__ = ["Comparison", "Finding", "find"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference in one facet.

    Args:
        facet: as in `harness.policy.FACETS`.
        kind: what happened, e.g. `added`, `changed`, `sequential`.
        message: one phrase for people.
        tool: the tool that it is about, if it is about one.
        write: whether that tool writes.
        golden_call: index into the golden's calls.
        call: index into the observed calls.
    """

    facet: str
    kind: str
    message: str
    tool: str | None = None
    write: bool = False
    golden_call: int | None = None
    call: int | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What every facet looks at: both traces, the policy, the tools that write, and which call answers to which.

    `write_pairing` pairs write calls among themselves; it is `pairing` when the order of all calls is exact.
    """

    golden: Trace
    trace: Trace
    policy: Policy
    writes: frozenset[str]
    pairing: Pairing
    write_pairing: Pairing

    @classmethod
    def of(cls, golden: Trace, trace: Trace, policy: Policy) -> Comparison:
        """Pair the calls of two traces."""
        writes = golden.writes | trace.writes
        pairing = pair(golden, trace, policy, writes)
        order = policy["order"]
        if order.mode == "exact" and not order.ignored:
            return cls(golden, trace, policy, writes, pairing, pairing)
        return cls(golden, trace, policy, writes, pairing, pair(golden, trace, policy, writes, only=writes))

    def relaxed(self, facet: str, tool: str) -> bool:
        """Whether the policy leaves a tool out of a facet."""
        policy = self.policy[facet]
        return tool not in self.writes and (policy.mode == "ignore" or tool in policy.ignored)


def find(comparison: Comparison) -> tuple[Finding, ...]:
    """All findings, facet by facet in the order of `FACETS`."""
    findings: list[Finding] = []
    for facet in FACETS:
        findings += _FACETS[facet](comparison)
    if _keeps_turns(comparison) and not any(finding.facet == "order" for finding in findings):
        findings += _other_turns(comparison)
    return tuple(findings)


def _keeps_turns(comparison: Comparison) -> bool:
    """Whether each call has to come in its own turn: order and turns are exact, and the turns themselves are equal."""
    order, turns = comparison.policy["order"], comparison.policy["turns"]
    exact = order.mode == turns.mode == "exact" and not order.ignored and not turns.at_most
    golden, trace = comparison.golden, comparison.trace
    return exact and golden.turns == trace.turns and golden.stop_reasons == trace.stop_reasons


def _writes(comparison: Comparison) -> Iterable[Finding]:
    golden, trace = comparison.golden, comparison.trace
    for tool in sorted(comparison.writes):
        before, now = (sum(call.tool == tool for call in side.calls) for side in (golden, trace))
        if before != now:
            count = abs(now - before)
            word = (
                f"{count} more write{'s' * (count > 1)}" if now > before else f"{count} write{'s' * (count > 1)} fewer"
            )
            yield Finding("writes", "count", f"{word}: `{tool}` ({before} → {now})", tool, write=True)
        elif now and (tool in golden.writes) != (tool in trace.writes):
            became = "counts as a write now" if tool in trace.writes else "no longer counts as a write"
            yield Finding("writes", "effect", f"`{tool}` {became}", tool, write=True)


def _order(comparison: Comparison) -> Iterable[Finding]:
    found = list(_order_findings(comparison))
    # "Moved from call 2 to call 2": only what moved around it is worth telling, where that is told.
    telling = [one for one in found if one.kind != "moved" or one.golden_call != one.call]
    return telling or found


def _order_findings(comparison: Comparison) -> Iterable[Finding]:
    policy = comparison.policy["order"]
    yield from _groups(comparison)
    for edit in _order_edits(comparison, policy):
        where = edit.a if edit.op == "removed" else edit.b
        side = comparison.golden if edit.op == "removed" else comparison.trace
        if where is None:
            continue
        call = side.calls[where]
        yield Finding(
            "order",
            edit.op,
            _order_message(edit.op, call, edit.a, edit.b),
            call.tool,
            call.tool in comparison.writes,
            edit.a,
            edit.b,
        )
    yield from _unasked(comparison)
    if policy.at_most:
        before, now = (
            sum(not comparison.relaxed("order", call.tool) for call in side.calls)
            for side in (comparison.golden, comparison.trace)
        )
        if now > policy.at_most.bound(before):
            yield Finding("order", "at_most", _bound_message("calls", before, now, policy))


def _unasked(comparison: Comparison) -> Iterable[Finding]:
    """Calls that the model asked for on one side only: on the other the loop made them by itself."""
    golden, trace = comparison.golden.calls, comparison.trace.calls
    for a, b, _ in _matched(comparison):
        before, now = golden[a], trace[b]
        if before.asked != now.asked and not comparison.relaxed("order", now.tool):
            said = "asked for (golden: not)" if now.asked else "not asked for (golden: asked for)"
            message = f"`{now.tool}` (call {b + 1}) was {said}"
            yield Finding("order", "asked", message, now.tool, now.tool in comparison.writes, a, b)


def _order_edits(comparison: Comparison, policy: FacetPolicy) -> Iterable[Edit]:
    drifts = {
        "exact": ("added", "removed", "moved"),
        "unordered": ("added", "removed"),
        "subsequence": ("removed", "moved"),
        "ignore": (),
    }[policy.mode]
    exact = comparison.pairing is comparison.write_pairing
    moved: set[int | None] = set()
    for edit in comparison.pairing.edits:
        if edit.op not in drifts:
            continue
        tool = _tool(comparison, edit)
        # Where order counts, a write that moved among the reads has moved; it is only its count that pairs by itself.
        judged = exact or edit.op == "moved" or tool not in comparison.writes
        if judged and tool not in policy.ignored - comparison.writes:
            moved.add(edit.b)
            yield edit
    if not exact:
        yield from (
            edit
            for edit in comparison.write_pairing.edits
            if edit.op in ("added", "removed") or (edit.op == "moved" and edit.b not in moved)
        )


def _tool(comparison: Comparison, edit: Edit) -> str:
    return comparison.trace.calls[edit.b].tool if edit.b is not None else comparison.golden.calls[edit.a or 0].tool


def _order_message(op: str, call: Call, golden: int | None, observed: int | None) -> str:
    if op == "added":
        return f"`{call.tool}` came (call {(observed or 0) + 1})"
    if op == "removed":
        return f"`{call.tool}` went (call {(golden or 0) + 1} of the golden)"
    return f"`{call.tool}` moved from call {(golden or 0) + 1} to call {(observed or 0) + 1}"


def _groups(comparison: Comparison) -> Iterable[Finding]:
    """Calls that ran in parallel and no longer do, and the other way round."""
    exact = comparison.policy["order"].mode == "exact"
    matched = comparison.pairing.matched if exact else comparison.write_pairing.matched
    ignored = comparison.policy["order"].ignored - comparison.writes
    golden, trace = comparison.golden.calls, comparison.trace.calls
    kept = [(a, b) for a, b, _ in matched if trace[b].tool not in ignored and golden[a].asked and trace[b].asked]
    for kind, pairs, ours, theirs in (
        ("sequential", kept, golden, trace),
        ("parallel", [(b, a) for a, b in kept], trace, golden),
    ):
        sizes = Counter([ours[one].turn for one, _ in pairs])
        members: dict[int, list[tuple[int, int]]] = {}
        for one, other in pairs:
            turn = ours[one].turn
            if turn and sizes[turn] > 1:
                members.setdefault(turn, []).append((one, other))
        for turn, group in sorted(members.items()):
            turns = {theirs[other].turn for _, other in group}
            if len(turns) > 1 or 0 in turns:
                tools = ", ".join(f"`{ours[one].tool}`" for one, _ in sorted(group)[:4]) + (", …" * (len(group) > 4))
                one, other = min(group)
                a, b = (one, other) if kind == "sequential" else (other, one)
                if kind == "sequential":
                    message = f"the parallel calls of turn {turn} now come one after another: {tools}"
                else:
                    message = f"calls that came one after another now run in parallel in turn {turn}: {tools}"
                yield Finding("order", kind, message, golden_call=a, call=b)


def _other_turns(comparison: Comparison) -> Iterable[Finding]:
    """The same calls, turns and stop_reasons, but a call came in another turn."""
    golden, trace = comparison.golden.calls, comparison.trace.calls
    for a, b, _ in comparison.pairing.matched:
        if golden[a].turn != trace[b].turn:
            message = f"`{trace[b].tool}` came in turn {trace[b].turn}, golden: turn {golden[a].turn}"
            yield Finding("order", "turn", message, trace[b].tool, trace[b].tool in comparison.writes, a, b)


def _arguments(comparison: Comparison) -> Iterable[Finding]:
    golden, trace = comparison.golden.calls, comparison.trace.calls
    ignored = comparison.policy["arguments"].ignored
    for a, b, op in _matched(comparison):
        if op != "changed":
            continue
        before, now = golden[a], trace[b]
        if comparison.relaxed("arguments", now.tool):
            continue
        names = changed_arguments(before, now)
        if ignored and names is not None and now.tool not in comparison.writes:
            names = [name for name in names if f"{now.tool}.{name}" not in ignored]
            if not names:
                continue
        what = ", ".join(f"`{name}`" for name in names) if names else "the arguments"
        message = f"`{now.tool}` (call {b + 1}): {what} changed"
        yield Finding("arguments", "changed", message, now.tool, now.tool in comparison.writes, a, b)


def changed_arguments(before: Call, now: Call) -> list[str] | None:
    """The names of the top-level arguments that differ, came or went; None when a side does not hold them."""
    if before.args is None or now.args is None:
        return None
    old, new = before.args, now.args
    if old.keys() == new.keys():
        return sorted([name for name in old if old[name] != new[name]])
    return sorted(name for name in {*old, *new} if name not in old or name not in new or old[name] != new[name])


def _matched(comparison: Comparison) -> Iterable[tuple[int, int, str]]:
    """Each call that is on both sides once: write calls as paired among themselves, the others as paired with all."""
    if comparison.pairing is comparison.write_pairing:
        return comparison.pairing.matched
    reads = [(a, b, op) for a, b, op in comparison.pairing.matched if _read(comparison, b)]
    return sorted([*reads, *comparison.write_pairing.matched], key=lambda match: match[1])


def _read(comparison: Comparison, index: int) -> bool:
    return comparison.trace.calls[index].tool not in comparison.writes


def _outcomes(comparison: Comparison) -> Iterable[Finding]:
    golden, trace = comparison.golden.calls, comparison.trace.calls
    for a, b, _ in _matched(comparison):
        before, now = golden[a], trace[b]
        if before.ok != now.ok and not comparison.relaxed("outcomes", now.tool):
            message = f"`{now.tool}` (call {b + 1}) " + (
                "succeeded (golden: failed)" if now.ok else "failed (golden: succeeded)"
            )
            kind = "succeeded" if now.ok else "failed"
            yield Finding("outcomes", kind, message, now.tool, now.tool in comparison.writes, a, b)


def _duplicates(comparison: Comparison) -> Iterable[Finding]:
    golden, trace = comparison.golden.duplicates, comparison.trace.duplicates
    policy = comparison.policy["duplicates"]
    tools = [tool for tool in sorted({*golden, *trace}) if not comparison.relaxed("duplicates", tool)]
    bounded = [tool for tool in tools if policy.at_most and tool not in comparison.writes]
    for tool in tools:
        before, now = golden.get(tool, 0), trace.get(tool, 0)
        if tool in bounded or before == now:
            continue
        message = f"`{tool}` repeated with the same arguments {_times(now)} (golden: {_times(before)})"
        yield Finding("duplicates", "count", message, tool, tool in comparison.writes)
    if policy.at_most:
        before, now = (sum(side.get(tool, 0) for tool in bounded) for side in (golden, trace))
        if now > policy.at_most.bound(before):
            yield Finding("duplicates", "at_most", _bound_message("repeated calls", before, now, policy))


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def _turns(comparison: Comparison) -> Iterable[Finding]:
    before, now = comparison.golden.turns, comparison.trace.turns
    policy = comparison.policy["turns"]
    if policy.at_most:
        if now > policy.at_most.bound(before):
            yield Finding("turns", "at_most", _bound_message("turns", before, now, policy))
    elif policy.mode == "exact" and before != now:
        yield Finding("turns", "count", f"turns {before} → {now}{_percent(before, now)}")


def _percent(before: int, now: int) -> str:
    return f" ({(now - before) * 100 / before:+.0f}%)" if before else ""


def _bound_message(what: str, before: int, now: int, policy: FacetPolicy) -> str:
    bound = policy.at_most.bound(before) if policy.at_most else before
    return f"{what} {before} → {now}, at most {bound} ({policy.at_most})"


def _stop_reasons(comparison: Comparison) -> Iterable[Finding]:
    before, now = list(comparison.golden.stop_reasons), list(comparison.trace.stop_reasons)
    policy = comparison.policy["stop_reasons"]
    turns = comparison.policy["turns"]
    if "stop_reasons" not in comparison.policy.facets and (turns.at_most or turns.mode == "ignore"):
        # A bound on turns would mean nothing if each further turn were a drift of the stop_reasons.
        before, now = _without_repeats(before), _without_repeats(now)
    yield from _sequences("stop_reasons", before, now, policy, lambda reason: f"`{reason}`")


def _without_repeats(reasons: list[str | None]) -> list[str | None]:
    return [reason for index, reason in enumerate(reasons) if not index or reasons[index - 1] != reason]


def _interventions(comparison: Comparison) -> Iterable[Finding]:
    def said(sides: Iterable[Any], with_turn: bool) -> list[Any]:
        return [(one.verdict, one.detector, *([one.turn] if with_turn else [])) for one in sides]

    policy = comparison.policy["interventions"]
    exact = policy.mode == "exact"
    before, now = (said(side.interventions, exact) for side in (comparison.golden, comparison.trace))
    if policy.at_most and len(now) > policy.at_most.bound(len(before)):
        yield Finding("interventions", "at_most", _bound_message("interventions", len(before), len(now), policy))
    yield from _sequences("interventions", before, now, policy, _intervention_text)


def _intervention_text(one: Any) -> str:
    verdict, detector, *turn = one
    return f"{verdict} by {detector}" + (f" after turn {turn[0]}" if turn else "")


def _sequences(
    facet: str, before: list[Any], now: list[Any], policy: FacetPolicy, text: Callable[[Any], str]
) -> Iterable[Finding]:
    """Two short sequences under a policy; a position that changed, else what came and what went."""
    if policy.mode == "ignore" or before == now:
        return
    label = facet.replace("_", " ").removesuffix("s").replace("stop reason", "stop_reason")
    if policy.mode == "exact" and len(before) == len(now):
        for index, (old, new) in enumerate(zip(before, now, strict=True)):
            if old != new:
                where = f" of turn {index + 1}" if facet == "stop_reasons" else f" {index + 1}"
                yield Finding(facet, "changed", f"{label}{where}: {text(old)} → {text(new)}")
        return
    if policy.mode == "unordered":
        came, went = list((Counter(now) - Counter(before)).items()), list((Counter(before) - Counter(now)).items())
    else:
        edits = align(before, now, kind=lambda _: 0)
        came = list(Counter(now[e.b] for e in edits if e.b is not None and e.op not in ("equal", "moved")).items())
        went = list(Counter(before[e.a] for e in edits if e.a is not None and e.op != "equal").items())
        if policy.mode == "subsequence":
            came = []
    for kind, entries in (("added", came), ("removed", went)):
        for value, count in entries:
            word = f"{count} more" if kind == "added" else f"{count} fewer"
            yield Finding(facet, kind, f"{label}s: {word} {text(value)}")


def _results(comparison: Comparison) -> Iterable[Finding]:
    policy = comparison.policy["results"]
    if policy.mode == "ignore":
        return
    for a, b, _ in _matched(comparison):
        before, now = comparison.golden.calls[a], comparison.trace.calls[b]
        if before.result == now.result or now.tool in policy.ignored:
            continue
        what = "has another result" if before.result else "has a result that the golden does not hold"
        message = f"`{now.tool}` (call {b + 1}) {what}"
        yield Finding("results", "changed", message, now.tool, now.tool in comparison.writes, a, b)


_FACETS: Final[Mapping[str, Callable[[Comparison], Iterable[Finding]]]] = {
    "writes": _writes,
    "order": _order,
    "arguments": _arguments,
    "outcomes": _outcomes,
    "duplicates": _duplicates,
    "turns": _turns,
    "stop_reasons": _stop_reasons,
    "interventions": _interventions,
    "results": _results,
}
