"""All that the page shows of one case, as plain data: what a reader sees when the case is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.report.entries import RUN_WORDS, Counts
from harness.report.lines import printable
from harness.report.page.advice import accept_one
from harness.report.page.lanes import OPS, Row, blocks_of, lone_blocks, value_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.changes import Change
    from harness.crash_golden import Row as CrashRow
    from harness.drift import Drift
    from harness.report.entries import Entry, Report, Version
    from harness.report.page.lanes import Block
    from harness.stuck.audit import Audit
    from harness.trace import Call, Trace

__all__ = ["Data", "cost_rows", "entry_details"]

Data = dict[str, Any]
"""Plain data for JSON."""

_OPS: Final = {op: number for number, op in enumerate(OPS)}


def entry_details(entry: Entry, report: Report) -> Data:
    """What the page shows of one case.

    Calls are written once (`calls`) and named by their number: `[tool, ok, [[argument, value], …] or digest]`, a tool
    by its number in `tools`.  `blocks` are those of `harness.report.page.lanes`, one a turn; a row is `[op, a, call a,
    b, call b, notes, changes, allowed, number of its partner in another row]`, shortened where nothing is said.
    """
    calls = _Calls()
    names = entry.change.names or (report.before, report.after)
    data: Data = {
        "shown": _shown(entry, report),
        "change": _change(entry.change, names, calls),
        "costs": cost_rows(entry.before, entry.now),
        "advice": accept_one(entry, report.base) if report.ran else [],
        "files": [printable(file) for file in (entry.case_file, entry.golden_file) if file],
    }
    if entry.change.after is not None and entry.change.after.problems:
        data["problems"] = [printable(problem) for problem in entry.change.after.problems]
    if entry.branch is not None and entry.reblessed:
        data["branch"] = _branch(entry.branch, entry.branch_word(report.base), report.base, calls)
    crash = _crash(entry)
    if crash:
        data["crash"] = crash
    if entry.audit is not None and (entry.audit.findings or entry.audit.unjudged):
        data["stuck"] = _stuck(entry.audit)
    if entry.history:
        data["history"] = [_version(one) for one in entry.history]
    data["calls"], data["tools"] = calls.written, list(map(printable, calls.tools))
    data["writes"] = sorted(calls.tools[tool] for tool in calls.writes)
    return data


class _Calls:
    """Each call once, by number: the lanes of one case say most of them twice or more."""

    def __init__(self) -> None:
        self.written: list[list[Any]] = []
        self.tools: dict[str, int] = {}
        self.writes: set[str] = set()
        self._numbers: dict[tuple[Any, ...], int] = {}

    def number(self, call: Call, trace: Trace) -> int:
        """The number of a call."""
        if call.tool in trace.writes:
            self.writes.add(call.tool)
        key = (call.tool, call.digest, call.ok, call.args is None, call.asked)
        if key not in self._numbers:
            self._numbers[key] = len(self.written)
            tool = self.tools.setdefault(call.tool, len(self.tools))
            self.written.append([tool, int(call.ok), _arguments(call), *([] if call.asked else [1])])
        return self._numbers[key]


def _arguments(call: Call) -> str | list[list[str]]:
    if call.args is None:
        return call.digest
    return [[printable(name), value_text(value)] for name, value in call.args.items()]


def _shown(entry: Entry, report: Report) -> str:
    """What stands in the lanes, where it is not plain to see."""
    if entry.change.kind == "conflict":
        return "An unresolved merge left both versions of this golden."
    if entry.change.drift is not None or (entry.change.before is None and entry.change.after is None):
        return ""
    if entry.change.after is None:
        if not report.ran:
            return f"Only {printable(report.before)} has it."
        return (
            "The path is the golden's: a run that passes leaves no trace of its own."
            if entry.passed
            else "No trace of this run was left; this is the path of the golden."
        )
    return "There is no golden that it could be compared with." if report.ran else f"Only {report.after} has it."


def _change(change: Change, names: tuple[str, str], calls: _Calls) -> Data:
    data: Data = {"names": list(map(printable, names))}
    if change.problem:
        data["problem"] = printable(change.problem)
    if change.drift is not None:
        data |= _drift(change.drift, calls)
    elif change.before is not None:
        data["blocks"] = _blocks(lone_blocks(change.before, now=False), change.before, None, calls)
    elif change.after is not None:
        data["blocks"] = _blocks(lone_blocks(change.after, now=True), None, change.after, calls)
    return data


def _drift(drift: Drift, calls: _Calls) -> Data:
    data: Data = {"blocks": _blocks(blocks_of(drift), drift.golden, drift.trace, calls)}
    if drift:
        touched = {finding.facet for finding in drift.findings if finding.write} | {"writes"}
        data["facets"] = [[facet, printable(text), facet in touched] for facet, text in drift.verdicts.items()]
    if drift.causes:
        data["causes"] = list(map(printable, drift.causes))
    return data


def _blocks(blocks: Sequence[Block], golden: Trace | None, now: Trace | None, calls: _Calls) -> list[Data]:
    return [_block(block, golden, now, calls) for block in blocks]


def _block(block: Block, golden: Trace | None, now: Trace | None, calls: _Calls) -> Data:
    data: Data = {}
    for side, turn, trace in (("a", block.golden, golden), ("b", block.now, now)):
        if turn is None or trace is None:
            continue
        data[side] = [turn, _stop_reason(trace, turn)]
        said = [printable(f"{one.verdict} by {one.detector}") for one in trace.interventions if one.turn == turn]
        if said:
            data[side].append(said)
    data["rows"] = [_row(row, golden, now, calls) for row in block.rows]
    return data


def _stop_reason(trace: Trace, turn: int) -> str:
    if not 0 < turn <= len(trace.stop_reasons):
        return ""
    reason = trace.stop_reasons[turn - 1]
    return "none" if reason is None else printable(reason)


def _row(row: Row, golden: Trace | None, now: Trace | None, calls: _Calls) -> list[Any]:
    written: list[Any] = [_OPS[row.op]]
    for index, trace in ((row.a, golden), (row.b, now)):
        known = index is not None and trace is not None
        written += (
            [index, calls.number(trace.calls[index], trace)] if known and trace and index is not None else [-1, -1]
        )
    written += [list(map(printable, row.notes)), list(map(list, row.changes)), int(row.allowed)]
    written.append(0 if row.partner is None else row.partner + 1)
    while len(written) > 5 and not written[-1]:
        written.pop()
    return written


def cost_rows(before: Counts | None, now: Counts | None) -> list[list[Any]]:
    """Calls, turns and writes by tool: name, before, now; None where a side is not known."""
    rows: list[list[Any]] = [
        [what, before and getattr(before, what), now and getattr(now, what)] for what in ("calls", "turns")
    ]
    tools = sorted({*(before.writes if before else ()), *(now.writes if now else ())})
    rows += [
        [f"writes: {printable(tool)}", before and before.writes.get(tool, 0), now and now.writes.get(tool, 0)]
        for tool in tools
    ]
    return rows if before or now else []


def _branch(change: Change, word: str, base: str, calls: _Calls) -> Data:
    data: Data = {"word": printable(word), **_change(change, change.names or (base, "golden now"), calls)}
    data["costs"] = cost_rows(Counts.of(change.before), Counts.of(change.after))
    if change.crash:
        points = _points(change.crash.before, change.crash.after)
        data["points"] = [point for point in points if "was" in point]
    return data


def _crash(entry: Entry) -> Data | None:
    golden, now = entry.change.crash.before, entry.crash_rows
    if not golden and not now:
        return None
    data: Data = {"points": _points(golden, now), "swept": now is not None}
    if entry.crash_status is not None:
        data["word"] = RUN_WORDS[entry.crash_status]
    if entry.crash_headline:
        data["headline"] = printable(entry.crash_headline)
    return data


def _points(golden: Sequence[CrashRow] | None, now: Sequence[CrashRow] | None) -> list[Data]:
    """One entry a crash point, in the order of the sweep; those that only the golden has come last."""
    before = {row.point: row for row in golden or ()}
    after = {row.point: row for row in now or ()} if now is not None else before
    points = []
    for name in [*after, *(point for point in before if point not in after)]:
        row, old = after.get(name), before.get(name)
        point: Data = {"point": printable(name)} | (_outcome(row) if row else {"outcome": "not reached"})
        if golden is not None and row != old:
            point["was"] = _outcome(old) if old else {"outcome": "no such point"}
        points.append(point)
    return points


def _outcome(row: CrashRow) -> Data:
    ran = ", ".join(f"{printable(tool)} ×{count}" for tool, count in row.executions.items())
    unknown = f"; {row.unknown} given up as unknown" if row.unknown else ""
    return {"outcome": printable(row.outcome), "ran": f"{ran or 'no writes'}{unknown}; {row.turns} turns"}


def _stuck(audit: Audit) -> Data:
    return {
        "verdict": audit.verdict,
        "findings": [
            {
                "verdict": one.verdict.kind,
                "detector": one.verdict.detector,
                "call": one.verdict.at_call,
                "turn": one.turn,
                "sentence": printable(one.verdict.evidence.sentence()),
                "explanation": printable(one.verdict.evidence.explanation()),
            }
            for one in audit.findings
            if one.verdict.evidence is not None
        ],
        "unjudged": list(map(printable, audit.unjudged)),
    }


def _version(one: Version) -> Data:
    counts = one.counts and [one.counts.calls, one.counts.turns, sum(one.counts.writes.values())]
    return {
        "commit": one.commit[:7],
        "time": one.time,
        "author": printable(one.author),
        "subject": printable(one.subject),
        "counts": counts,
        "headline": printable(one.headline),
    }
