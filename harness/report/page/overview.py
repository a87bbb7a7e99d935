"""What the page says at its top, in the order of the questions: did the path change, what changed, what it costs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from harness.policy import FACETS
from harness.report.entries import BRANCH_WORDS, CHANGE_WORDS, RUN_WORDS, Counts
from harness.report.lines import printable
from harness.report.page.advice import Advice, accept_all
from harness.report.wording import headline

if TYPE_CHECKING:
    from harness.report.entries import Entry, Report
    from harness.trace import Trace

__all__ = ["Cost", "Overview", "Tone", "index_row", "overview_of", "tone_of"]

Tone: TypeAlias = Literal["bad", "warn", "off", "good"]
"""Fails; passes, but is not what the branch began with; was left out; passes."""

_RULES: Final = 10
"""Rules that changed and are named."""

_LEFT_OUT: Final = ("skipped", "not_run")

_REBLESSED: Final = {
    "conflict": "merge conflict",
    "unusable": "unusable golden",
    "changed": "accepted anew",
    "deleted": "golden deleted",
    "renamed": "renamed",
    "new": "new golden",
}
"""What a case is called that passes with a golden that the branch did not begin with: never just that it passes."""


@dataclass(frozen=True, slots=True)
class Cost:
    """One thing that a path costs, over all cases of which both sides are known."""

    what: str
    before: int
    now: int

    @property
    def change(self) -> str:
        """As people say it: `+67%`, `2 more`, `same`."""
        if self.before == self.now:
            return "same"
        if self.before and not self.what.startswith("writes"):
            return f"{(self.now - self.before) * 100 / self.before:+.0f}%"
        return f"{abs(self.now - self.before)} {'more' if self.now > self.before else 'fewer'}"


@dataclass(frozen=True, slots=True)
class Overview:
    """The top of the page.

    Args:
        tone: of the whole.
        sentence: whether the path changed.
        further: what else a reviewer must know, one sentence each.
        verdicts: word, tone and number of cases, the most urgent first.
        facets: what changed, and in how many cases; writes first.
        costs: calls, turns and the writes of each tool, now against golden.
        measured: of how many cases both sides are known.
        advice: how to accept it, one way or another.
    """

    tone: Tone
    sentence: str
    further: tuple[str, ...]
    verdicts: tuple[tuple[str, Tone, int], ...]
    facets: tuple[tuple[str, int], ...]
    costs: tuple[Cost, ...]
    measured: int
    advice: tuple[Advice, ...]


def overview_of(report: Report) -> Overview:
    """The answers that a report gives before anything is opened."""
    words: dict[tuple[str, Tone], int] = {}
    for entry in report.entries:
        key = (printable(_shown_word(entry)), tone_of(entry))
        words[key] = words.get(key, 0) + 1
    costs, measured = _costs(report)
    return Overview(
        _tone(report),
        _sentence(report),
        tuple(map(printable, _further(report))),
        tuple((word, tone, count) for (word, tone), count in words.items()),
        tuple(_facets(report)),
        costs,
        measured,
        accept_all(report) if report.ran else (),
    )


def tone_of(entry: Entry) -> Tone:
    """How a case is meant: one that was accepted anew in this branch is never simply good."""
    if entry.status in _LEFT_OUT and not entry.reblessed:
        return "off"
    if not entry.passed and entry.status not in _LEFT_OUT:
        return "bad"
    return "warn" if entry.reblessed else "good"


def _shown_word(entry: Entry) -> str:
    if tone_of(entry) == "warn" and entry.branch is not None:
        return _REBLESSED[entry.branch.kind]
    return entry.word()


def index_row(entry: Entry, report: Report, tools: dict[str, int]) -> dict[str, Any]:
    """What the list of cases shows of one before it is opened, and what it is filtered by.

    Args:
        entry: the case.
        report: whose it is.
        tools: number by name; what is not in it is added.
    """
    row: dict[str, Any] = {
        "id": printable(entry.case),
        "word": printable(entry.word()),
        "shown": printable(_shown_word(entry)),
        "tone": tone_of(entry),
        "headline": printable(_headline(entry)),
        "tools": sorted({tools.setdefault(printable(name), len(tools)) for name in _tools(entry)}),
        "counts": [None, None] if entry.change.kind == "conflict" else [_lengths(entry.before), _lengths(entry.now)],
    }
    if entry.branch is not None:
        row |= {"branch": entry.branch.kind, "said": printable(entry.branch_word(report.base))}
        if entry.reblessed:
            row["base"] = _lengths(Counts.of(entry.branch.before))
    if entry.touches_writes:
        row["writes"] = 1
    if entry.audit is not None and entry.audit.findings:
        row["stuck"] = entry.audit.verdict
    return row


def _headline(entry: Entry) -> str:
    run_passed = replace(entry, crash_status=None).passed
    if entry.crash_headline and (run_passed or not entry.headline):
        return entry.crash_headline
    if entry.headline:
        return entry.headline
    if entry.change.drift:
        return entry.change.drift.headline
    if entry.change.problem:
        return entry.change.problem
    if entry.branch is not None and entry.branch.drift:
        return f"in this branch: {entry.branch.drift.headline}"
    return ""


def _lengths(counts: Counts | None) -> list[int] | None:
    return None if counts is None else [counts.calls, counts.turns, sum(counts.writes.values())]


def _tools(entry: Entry) -> set[str]:
    changes = [entry.change, *([entry.branch] if entry.branch else [])]
    traces: list[Trace | None] = [side for change in changes for side in (change.before, change.after)]
    return {call.tool for trace in traces if trace is not None for call in trace.calls}


def _tone(report: Report) -> Tone:
    if report.failing:
        return "bad"
    if report.ran and not any(entry.passed for entry in report.entries):
        return "off"
    return "warn" if report.unbased or report.rules or any(entry.reblessed for entry in report.entries) else "good"


def _sentence(report: Report) -> str:
    """As in every other format."""
    return f"{headline(report)}." if report.entries else "There are no cases."


def _further(report: Report) -> list[str]:
    said = []
    failing = [entry for entry in report.entries if tone_of(entry) == "bad"]
    writes = sum(entry.touches_writes for entry in failing)
    if writes:
        said.append(f"{writes:,} of them touch{'es' * (writes == 1)} writes.")
    kinds: Counter[str] = Counter(
        entry.branch.kind for entry in report.entries if entry.branch is not None and entry.reblessed
    )
    if kinds:
        count = sum(kinds.values())
        parts = ", ".join(
            f"{kinds[kind]:,} {BRANCH_WORDS[kind].removesuffix(' in this branch')}"
            for kind in CHANGE_WORDS
            if kinds[kind]
        )
        said.append(f"{count:,} golden{'s are' if count != 1 else ' is'} not what {report.base} has: {parts}.")
    said += [f"A rule changed in this branch: {rule}." for rule in report.rules[:_RULES]]
    if len(report.rules) > _RULES:
        said.append(f"And {len(report.rules) - _RULES:,} rules more.")
    for status in _LEFT_OUT:
        count = sum(entry.status == status for entry in report.entries)
        if count:
            said.append(f"{count:,} {'was' if count == 1 else 'were'} {RUN_WORDS[status]}.")
    return said


def _facets(report: Report) -> list[tuple[str, int]]:
    counts: Counter[str] = Counter()
    for entry in report.entries:
        if tone_of(entry) == "bad" and entry.change.drift and entry.change.kind != "conflict":
            counts.update(entry.change.drift.verdicts.keys())
    found = [(facet, counts[facet]) for facet in FACETS if counts[facet]]
    crashes = sum(entry.crash_status is not None and bool(entry.change.crash) for entry in report.entries)
    return [*found, *([("crash points", crashes)] if crashes else [])]


def _costs(report: Report) -> tuple[tuple[Cost, ...], int]:
    pairs = [
        (entry.before, entry.now)
        for entry in report.entries
        if entry.before is not None and entry.now is not None and entry.change.kind != "conflict"
    ]
    if not pairs:
        return (), 0
    costs = [
        Cost(what, sum(getattr(before, what) for before, _ in pairs), sum(getattr(now, what) for _, now in pairs))
        for what in ("calls", "turns")
    ]
    before, now = Counter[str](), Counter[str]()
    for golden, ran in pairs:
        before.update(golden.writes)
        now.update(ran.writes)
    costs += [
        Cost(f"writes: {printable(tool)}", before[tool], now[tool])
        for tool in sorted({*before, *now})
        if before[tool] != now[tool]
    ]
    return tuple(costs), len(pairs)
