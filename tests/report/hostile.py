"""Reports made of names that want to be something else: Hypothesis strategies for the laws of the text formats."""

from __future__ import annotations

import dataclasses
from typing import Final

from hypothesis import strategies as st

from harness.changes import Change
from harness.drift import compare
from harness.report.entries import Counts, Entry, Report
from harness.trace import Call, Trace

__all__ = ["NASTY", "reports"]

NASTY: Final = (
    "</summary></details><script>alert(1)</script>",
    "<!-- harness-report -->",
    "<b>bold</b><img src=x onerror=alert(1)>",
    "`", "``", "```", "`````diff",
    "|", "| --- |", "\\|", "\\",
    "[link](https://evil.example)", "![i](https://evil.example/i.png)", "[ref]: https://evil.example",
    "<https://evil.example>", "https://evil.example", "www.evil.example", "mail@evil.example",
    "@everyone", "@org/team", "#12", "GH-12", "!34", "~label", "%milestone", "$x$", "&amp;", "&#64;me", "&lt;b&gt;",
    "*a*", "**a**", "_a_", "__a__", "~~a~~", "# heading", "- item", "> quote", "===", "---", "1. one", "    code",
    "\n", "\r", "\t", "\n\n", "\n::error::x", "::error file=a::b", "##[error]x", "%0A::error::x", "\x1b[31m", "\u202e",
    "\u2028", "\x85", "\ud800", "e" * 5_000, "漢字",
)  # fmt: skip

names = st.lists(st.sampled_from(NASTY) | st.text(max_size=8), min_size=1, max_size=4).map("".join)
arguments = st.dictionaries(names, names, max_size=3)


@st.composite
def traces(draw: st.DrawFn, tools: list[str]) -> Trace:
    calls = tuple(
        Call(
            turn, draw(st.sampled_from(tools)), f"{draw(st.integers(0, 3)):012x}", draw(st.booleans()), draw(arguments)
        )
        for turn in range(1, 1 + draw(st.integers(0, 4)))
    )
    writes = frozenset(tools[:1]) & {call.tool for call in calls}
    reasons = tuple(draw(st.sampled_from([*tools, "tool_use", None])) for _ in calls)
    return Trace("x", calls, len(calls), reasons, writes=writes, detail="plain")


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    case, tools = draw(names), draw(st.lists(names, min_size=1, max_size=3))
    before, after = (dataclasses.replace(draw(traces(tools)), case=case) for _ in range(2))
    drift = compare(before, after)
    change = Change(case, "changed" if drift else "same", before, after, drift)
    kind = draw(st.sampled_from(["changed", "new", "deleted", "conflict", "unusable", "renamed"]))
    other = {
        "changed": change,
        "new": Change(case, "new", None, after),
        "deleted": Change(case, "deleted", before, None),
        "conflict": dataclasses.replace(change, kind="conflict", names=(draw(names), draw(names))),
        "unusable": Change(case, "unusable", before, after, problem=draw(names)),
        "renamed": dataclasses.replace(change, kind="renamed", was=draw(names)),
    }[kind]
    files = {"golden_file": draw(names), "case_file": draw(names)}
    match draw(st.sampled_from(["run", "blessed", "diff"])):
        case "run":
            status = draw(st.sampled_from(["drift", "failed", "missing", "unusable", "broken", "skipped", "same"]))
            return Entry(case, other, status, draw(names), None, Counts.of(after), **files)
        case "blessed":
            return Entry(case, Change(case, "same", after), "same", "", other, Counts.of(after), **files)
    return Entry(case, other, **files)


@st.composite
def reports(draw: st.DrawFn) -> Report:
    """Of a run or a diff, with up to 4 cases, every name of them hostile."""
    found = draw(st.lists(entries(), max_size=4))
    ran = draw(st.booleans())
    named = [entry for entry in found if (entry.status is not None) == ran]
    return Report.of(draw(names), draw(names), draw(names), named, base=draw(names), commit=draw(names), ran=ran)
