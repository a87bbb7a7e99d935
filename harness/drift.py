"""Whether the path of a run drifted from the golden one, and how, facet by facet."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

from harness.facets import Comparison, Finding, find
from harness.policy import FACETS, Policy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.align import Edit
    from harness.trace import Trace

__all__ = ["Drift", "Finding", "compare"]

_EXACT = Policy()


class Drift:
    """All findings of one comparison.  Falsy when there is none.

    Whether two traces drift is decided at once; the findings, the alignment and the words are made when asked for.

    Attributes:
        golden: the accepted trace.
        trace: the observed one.
        policy: how strict the comparison was.
    """

    def __init__(self, golden: Trace, trace: Trace, policy: Policy) -> None:
        self.golden = golden
        self.trace = trace
        self.policy = policy

    def __bool__(self) -> bool:
        if self.policy.is_exact:
            return self.golden.signature != self.trace.signature
        return bool(self.findings)

    def __repr__(self) -> str:
        return f"<Drift of {self.trace.case}: {self.headline or 'none'}>"

    @cached_property
    def _comparison(self) -> Comparison:
        return Comparison.of(self.golden, self.trace, self.policy)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Every difference, facet by facet, what costs most first."""
        return find(self._comparison)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edit script from the golden's calls to the observed ones."""
        return self._comparison.pairing.edits

    @cached_property
    def verdicts(self) -> dict[str, str]:
        """One phrase for each facet that drifted, those that concern writes first."""
        found = {facet: of_facet for facet in FACETS if (of_facet := self._of(facet))}
        ordered = sorted(found, key=lambda facet: not _concerns_writes(found[facet]))
        return {facet: _verdict(self, facet, found[facet]) for facet in ordered}

    @property
    def touches_writes(self) -> bool:
        """Whether a call of a tool that writes came, went, moved or changed."""
        return _concerns_writes(self.findings)

    @property
    def headline(self) -> str:
        """The first verdicts in one line: what a reader of a test summary sees."""
        phrases = list(self.verdicts.values())
        left = len(phrases) - 3
        more = f"; {left} more facet{'s' * (left > 1)}" if left > 0 else ""
        return "; ".join(phrases[:3]) + more

    @cached_property
    def causes(self) -> tuple[str, ...]:
        """What the loop sent that was not what it sent for the golden; never a drift by itself."""
        before, now = self.golden.context, self.trace.context
        causes = [
            f"the {what} changed"
            for what, old, new in (("prompt", before.prompt, now.prompt), ("system prompt", before.system, now.system))
            if old != new
        ]
        for tool in sorted({*before.tools, *now.tools}):
            if tool not in now.tools:
                causes.append(f"the tool `{tool}` is no longer offered")
            elif tool not in before.tools:
                causes.append(f"the tool `{tool}` is offered now")
            elif before.tools[tool] != now.tools[tool]:
                causes.append(f"the definition of `{tool}` changed")
        if self.golden.model != self.trace.model:
            causes.append(f"the model changed from {self.golden.model} to {self.trace.model}")
        return tuple(causes)

    def _of(self, facet: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.facet == facet]


def compare(golden: Trace, trace: Trace, policy: Policy | None = None) -> Drift:
    """Compare an observed trace with the golden one.

    Two traces compare exactly unless a policy relaxes a facet; no similarity is ever computed.
    """
    return Drift(golden, trace, policy or _EXACT)


def _concerns_writes(findings: Iterable[Finding]) -> bool:
    return any(finding.write or finding.facet == "writes" for finding in findings)


def _verdict(drift: Drift, facet: str, found: list[Finding]) -> str:
    if facet == "order":
        return _order_verdict(drift, found)
    if len(found) <= 2:
        return "; ".join(finding.message for finding in found)
    if facet == "arguments":
        return f"{len(found)} calls with other arguments: {_tools(found)}"
    if facet == "outcomes":
        failed = sum(finding.kind == "failed" for finding in found)
        return f"{failed} more calls failed, {len(found) - failed} no longer fail: {_tools(found)}"
    if facet == "results":
        return f"{len(found)} calls with other results: {_tools(found)}"
    return f"{found[0].message}; {len(found) - 1} more"


def _order_verdict(drift: Drift, found: list[Finding]) -> str:
    by_kind: dict[str, list[Finding]] = {}
    for finding in found:
        by_kind.setdefault(finding.kind, []).append(finding)
    added, removed = by_kind.pop("added", []), by_kind.pop("removed", [])
    before, now = len(drift.golden.calls), len(drift.trace.calls)
    phrases: list[str] = []
    for calls, sign in ((added, 1), (removed, -1)):
        if calls:
            count = len(calls)
            word = f"{count} more call{'s' * (count > 1)}" if sign > 0 else f"{count} call{'s' * (count > 1)} fewer"
            net = (
                f" ({before} → {now}, {(now - before) * 100 / before:+.0f}%)"
                if before and not (added and removed)
                else ""
            )
            phrases.append(f"{word}{net}: {_tools(calls)}{_unasked(drift, calls) if sign > 0 else ''}")
    moved = by_kind.pop("moved", [])
    if moved:
        phrases.append(moved[0].message if len(moved) == 1 else f"{len(moved)} calls moved: {_tools(moved)}")
    phrases += [
        others[0].message + (f"; {len(others) - 1} more" if len(others) > 1 else "") for others in by_kind.values()
    ]
    return "; ".join(phrases)


def _unasked(drift: Drift, came: list[Finding]) -> str:
    """How many of the calls that came no response asked for: then it is the loop that grew, not the model's path."""
    count = sum(one.call is not None and not drift.trace.calls[one.call].asked for one in came)
    if not count:
        return ""
    return " (not asked for by the model)" if count == len(came) else f" ({count} not asked for by the model)"


def _tools(found: list[Finding], shown: int = 4) -> str:
    counts = Counter(finding.tool or "?" for finding in found)
    names = [f"`{tool}`" + (f" ×{count}" if count > 1 else "") for tool, count in counts.most_common(shown)]
    return ", ".join(names) + (f" and {len(counts) - shown} more tools" if len(counts) > shown else "")
