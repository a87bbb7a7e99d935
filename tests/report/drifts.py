"""Drifts made by hand, and reports of them: what the tests of every format show."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from harness.changes import Change, CrashChange
from harness.crash_golden import Row
from harness.drift import compare
from harness.normalize import Normalizer
from harness.report.entries import Counts, Entry, Report, Version
from harness.stuck.audit import audit
from harness.trace import Call, Context, Trace

NORMALIZER: Final = Normalizer()


def call(turn: int, tool: str, ok: bool = True, **arguments: object) -> Call:
    digest, args = NORMALIZER.digest_call(arguments)
    return Call(turn, tool, digest, ok, args)


def trace(*calls: Call, last: str = "end_turn", case: str = "refund", **fields: Any) -> Trace:
    turns = fields.pop("turns", max((one.turn for one in calls), default=0) + 1)
    fields.setdefault("writes", frozenset({"refund", "send_email"}) & {one.tool for one in calls})
    fields.setdefault("context", Context("6b7d21fa", None, {"refund": "93aa0b1e", "send_email": "0a1f77c2"}))
    fields.setdefault("model", "claude-sonnet-5")
    return Trace(case, calls, turns, ("tool_use",) * (turns - 1) + (last,), **fields)


def at(turn: int, one: Call) -> Call:
    return dataclasses.replace(one, turn=turn)


FIND = call(1, "find_order", id="7")
CUSTOMER = call(2, "get_customer", id=12)
POLICY = call(2, "read_policy", name="refunds")
SEARCH = call(3, "search", query="late parcels")
REFUND = call(4, "refund", id="7", cents=1200)
MAIL = call(5, "send_email", to="a@example.com", subject="Your refund")
GOLDEN: Final = trace(FIND, CUSTOMER, POLICY, SEARCH, REFUND, MAIL)
"""Six turns, six calls, two of them parallel, two writes."""

SEVEN: Final = {
    "swapped": trace(at(1, SEARCH), CUSTOMER, POLICY, at(3, FIND), REFUND, MAIL),
    "argument": trace(FIND, CUSTOMER, POLICY, SEARCH, call(4, "refund", id="7", cents=12000), MAIL),
    "repeated": trace(FIND, at(1, FIND), CUSTOMER, POLICY, SEARCH, REFUND, MAIL),
    "dropped": trace(FIND, CUSTOMER, POLICY, at(3, REFUND), at(4, MAIL)),
    "stop_reason": trace(FIND, CUSTOMER, POLICY, SEARCH, REFUND, MAIL, last="max_tokens"),
    "write": trace(
        FIND, CUSTOMER, POLICY, SEARCH, REFUND, MAIL, call(5, "send_email", to="b@example.com", subject="Copy")
    ),
    "failed": trace(FIND, CUSTOMER, dataclasses.replace(POLICY, ok=False), SEARCH, REFUND, MAIL),
}
"""The seven drifts, each with the one change that its name says."""

GROWN: Final = trace(
    FIND,
    at(2, FIND),
    at(3, CUSTOMER),
    at(3, POLICY),
    at(4, SEARCH),
    call(5, "search", query="late parcels policy"),
    call(6, "search", query="late parcels refund"),
    at(7, at(3, POLICY)),
    at(8, REFUND),
    at(9, MAIL),
)
"""1.6 times the calls, the same answer."""

SEQUENTIAL: Final = trace(FIND, CUSTOMER, at(3, POLICY), at(4, SEARCH), at(5, REFUND), at(6, MAIL))
"""Parallel calls that come one after another now."""

HOSTILE: Final = trace(
    FIND,
    call(2, "<script>alert(1)</script>|`x`", **{"\n::error::a": "</script><img src=x onerror=alert(2)>"}),
    case="a|b`<img src=x onerror=alert(3)>",
)
"""Names that want to be markup, commands, or the end of a table."""

ROWS: Final = tuple(
    Row(f"turn{turn}.{what}", "same", {"refund": int(turn > 3), "send_email": int(turn > 4)}, 0, 6)
    for turn in range(1, 7)
    for what in ("request.before", "request.after", "save_a")
)
BROKEN_ROWS: Final = (
    *ROWS[:13],
    Row(ROWS[13].point, "executed_twice", {"refund": 1, "send_email": 2}, 0, 7),
    Row(ROWS[14].point, "unknown", {"refund": 1, "send_email": 1}, 1, 8),
    *ROWS[15:],
)

HISTORY: Final = (
    Version("", 1796013609, "", "", Counts(10, 10, {"refund": 1, "send_email": 1}), "4 more calls (6 → 10, +67%)"),
    Version(
        "a2dbd73564bde4242f01844a1f1be1ee23270bb2",
        1795013609,
        "Ada",
        "Look the order up first",
        Counts(6, 6, {"refund": 1, "send_email": 1}),
        "1 more call (5 → 6, +20%): `find_order`",
    ),
    Version(
        "1ddd46611526c8eb3f5792336b19a47737419dee",
        1794013609,
        "Grace",
        "Add the refund case",
        Counts(5, 5, {"refund": 1, "send_email": 1}),
    ),
)


def change(case: str, now: Trace | None, golden: Trace | None = GOLDEN) -> Change:
    """From the golden to what ran."""
    before = None if golden is None else dataclasses.replace(golden, case=case)
    after = None if now is None else dataclasses.replace(now, case=case)
    if before is None or after is None:
        return Change(case, "new" if after else "deleted", before, after)
    drift = compare(before, after)
    return Change(case, "changed" if drift else "same", before, after, drift)


def drifted(case: str, now: Trace, **fields: Any) -> Entry:
    """A case that does not pass."""
    one = change(case, now)
    assert one.drift
    files = {"golden_file": f"golden_traces/{case}.json", "case_file": f"cases/{case}.yaml"}
    return Entry(case, one, "drift", one.drift.headline, counts=Counts.of(now), audit=audit(now), **(files | fields))


def passed(case: str, **fields: Any) -> Entry:
    """A case that passes; its trace was not kept."""
    golden = dataclasses.replace(GOLDEN, case=case)
    files = {"golden_file": f"golden_traces/{case}.json", "case_file": f"cases/{case}.yaml"}
    return Entry(case, Change(case, "same", golden), "same", counts=Counts.of(golden), **(files | fields))


def run_of_everything() -> Report:
    """The seven drifts and the growth, and one case of every other kind."""
    same = Change("quiet", "same", GOLDEN, GOLDEN, compare(GOLDEN, GOLDEN))
    blessed = dataclasses.replace(change("blessed", GROWN), kind="changed")
    entries = [
        *(drifted(f"drifts/{name}", now) for name, now in SEVEN.items()),
        drifted("drifts/grown", GROWN, history=HISTORY),
        drifted("drifts/sequential", SEQUENTIAL),
        dataclasses.replace(
            drifted("x", HOSTILE),
            case="hostile/a|b`<img src=x onerror=alert(3)>",
            golden_file="golden_traces/a,b:c\n.json",
        ),
        passed("quiet", branch=same),
        dataclasses.replace(passed("blessed"), branch=blessed),
        passed("fresh", branch=change("fresh", GOLDEN, None)),
        passed(
            "moved/here", branch=dataclasses.replace(change("moved/here", GOLDEN), kind="renamed", was="moved/there")
        ),
        Entry("gone", Change("gone", "same"), "not_run", "its case file is gone", branch=change("gone", None)),
        Entry(
            "conflict",
            dataclasses.replace(change("conflict", GROWN), kind="conflict", names=("main", "more-careful")),
            "unusable",
            "golden_traces/conflict.json holds unresolved merge conflict markers",
            golden_file="golden_traces/conflict.json",
        ),
        Entry(
            "edited",
            Change("edited", "unusable", problem="golden_traces/edited.json was edited by hand"),
            "unusable",
            "golden_traces/edited.json was edited by hand",
            golden_file="golden_traces/edited.json",
        ),
        Entry(
            "first_run", change("first_run", GOLDEN, None), "missing", "no golden yet", case_file="cases/first_run.yaml"
        ),
        Entry(
            "raised",
            Change("raised", "same", GOLDEN),
            "failed",
            "the loop raised KeyError: 'hits'",
            case_file="cases/raised.yaml",
        ),
        Entry("unwanted", Change("unwanted", "same", GOLDEN), "skipped", "needs a database"),
        Entry(
            "crashing",
            Change("crashing", "same", GOLDEN, None, crash=CrashChange(ROWS, BROKEN_ROWS)),
            "same",
            counts=Counts.of(GOLDEN),
            crash_rows=BROKEN_ROWS,
            crash_status="failed",
            crash_headline="killed at turn5.request.after: executed_twice: `send_email` ran 2 times",
        ),
    ]
    return Report.of("shop", "golden", "now", entries, base="main", commit="3464efe+", ran=True)
