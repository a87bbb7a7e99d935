"""The detectors over traces: what they find, what they refuse to guess, and how it is shown."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count

import pytest

from harness.normalize import Normalizer
from harness.stuck import Config
from harness.stuck.audit import audit
from harness.stuck.check_report import exit_code, render_audits
from harness.trace import Call, Trace

NORMALIZER = Normalizer()


def traced(*calls: Call, writes: set[str] | None = None, detail: str = "args", **more: object) -> Trace:
    """A trace whose calls are each a turn of their own."""
    numbered = tuple(
        Call(turn, one.tool, one.digest, one.ok, one.args, one.result) for turn, one in enumerate(calls, start=1)
    )
    return Trace("loops/case", numbered, turns=len(calls) + 1, writes=frozenset(writes or ()), detail=detail, **more)


def done(tool: str, arguments: dict[str, object], result: str | None = None, ok: bool = True) -> Call:
    digest, args = NORMALIZER.digest_call(arguments)
    return Call(0, tool, digest, ok, args, None if result is None else NORMALIZER.digest(result))


def found(trace: Trace, config: Config | None = None) -> list[tuple[int, str, str | None]]:
    return [(one.verdict.at_call, one.verdict.kind, one.verdict.detector) for one in audit(trace, config).findings]


def test_a_loop_with_recorded_results_is_found_and_proved() -> None:
    """The same read with the same result: the nudge, the stop, the calls that prove it, and what came after."""
    trace = traced(done("list", {}), *[done("read", {"p": 1}, "same")] * 6)
    report = audit(trace)
    assert (report.verdict, report.judged, report.calls) == ("force_stop", 5, 7)
    assert found(trace) == [(4, "nudge", "ConsecutiveDuplicate"), (5, "force_stop", "ConsecutiveDuplicate")]
    assert [(index, call.turn, call.tool) for index, call in report.findings[1].calls] == [
        (1, 2, "read"), (2, 3, "read"), (3, 4, "read"), (4, 5, "read"),
    ]  # fmt: skip


def test_polling_with_recorded_results_is_let_be() -> None:
    """The same read with a new result each time."""
    assert found(traced(*[done("read", {"p": 1}, f"{number} %") for number in range(8)])) == []


def test_a_read_without_a_recorded_result_may_be_polling() -> None:
    """It is not judged, and that is said; a repeated write is judged, since a new receipt would not excuse it."""
    reads = traced(*[done("read", {"p": 1})] * 6)
    assert found(reads) == []
    assert audit(reads).unjudged[0].startswith("6 of 6 calls have no recorded result")
    writes = traced(*[done("send", {"to": "bo"})] * 4, writes={"send"})
    assert found(writes) == [(3, "nudge", "ConsecutiveDuplicate"), (4, "force_stop", "ConsecutiveDuplicate")]


def test_errors_of_unknown_class_have_the_higher_limits() -> None:
    """They may be an outage: twelve of one tool, not six; the same call failing is judged as at run time."""
    failing = [done("api", {"n": number}, "e", ok=False) for number in range(12)]
    assert found(traced(*failing[:11])) == []
    assert found(traced(*failing)) == [(12, "nudge", "SameToolError")]
    assert found(traced(*[done("api", {}, "e", ok=False)] * 7)) == [
        (6, "nudge", "ConsecutiveDuplicate"),
        (7, "force_stop", "ConsecutiveDuplicate"),
    ]


def test_calls_of_one_turn_are_one_step_and_calls_outside_are_their_own() -> None:
    """Turn 0 means outside of any response."""
    one = done("read", {"p": 1}, "same")
    group = tuple(Call(3, one.tool, one.digest, True, one.args, one.result) for _ in range(6))
    assert found(Trace("c", group, turns=4)) == []
    assert found(Trace("c", (one,) * 3)) == [(3, "nudge", "ConsecutiveDuplicate")]


def test_thoughts_are_empty_only_when_it_is_certain() -> None:
    """By missing argument, by the digest of an empty text, by plain values; never when digests are keyed."""
    bare, blank, full = done("think", {}), done("think", {"thought": ""}), done("think", {"thought": "why?"})
    assert found(traced(bare, bare)) == [(2, "force_stop", "EmptyThink")]
    assert found(traced(blank, blank)) == [(2, "force_stop", "EmptyThink")]
    assert found(traced(full, full)) == []
    plain = Call(0, "think", "x", args={"thought": " "})
    assert found(traced(plain, plain, detail="plain")) == [(2, "force_stop", "EmptyThink")]
    silent = Call(0, "think", bare.digest)
    assert found(traced(silent, silent, detail="digest")) == [(2, "force_stop", "EmptyThink")]
    assert found(traced(silent, silent, detail="digest", digest_key="12345678")) == []
    assert found(traced(blank, blank, digest_key="12345678")) == []


def test_topics_of_the_web_need_plain_arguments() -> None:
    """With values the rewordings are counted; without, the report says that they cannot be."""
    numbers = count()
    plain = [Call(0, "web_search", f"{next(numbers)}", args={"query": f"{word} climate"}, result=f"{word}")
             for word in ("latest", "new", "current", "recent", "top")]  # fmt: skip
    assert found(traced(*plain, detail="plain")) == [(5, "nudge", "FamilyNoProgress")]
    hidden = traced(*[done("web_search", {"query": f"{word} climate"}, word) for word in ("a", "b", "c")])
    assert any(one.startswith("FamilyNoProgress: topics") for one in audit(hidden).unjudged)


def test_what_does_not_matter_for_a_trace_is_not_said() -> None:
    """A single call with a result leaves nothing unjudged; a search does."""
    assert audit(Trace("c", (Call(1, "read", "d", result="r"),), turns=1)).unjudged == ()
    assert audit(Trace("c")).unjudged == ()
    searching = audit(Trace("c", (Call(1, "grep", "d", result="r"),), turns=1))
    assert searching.unjudged == (
        "SearchEscalation: whether a search found anything is not recorded; only failed ones count",
    )


def test_the_settings_of_the_project_hold() -> None:
    """What is declared about tools, and what is switched off."""
    trace = traced(*[done("get_job", {"id": 1}, "running")] * 5)
    assert found(trace)[-1] == (4, "force_stop", "ConsecutiveDuplicate")
    assert found(trace, Config.parse({"tools": {"get_job": {"traits": ["pollable"]}}})) == []
    off = Config.parse({"detectors": {"ConsecutiveDuplicate": False, "ExactDuplicate": False}})
    assert found(trace, off) == []


LOOP = traced(*[done("read|x", {"p": 1}, "same")] * 4)
FINE = Trace("loops/fine")


def test_the_report_for_people() -> None:
    """Each trace with its findings and their evidence, then a count."""
    made = "in a row made this same call and nothing new came of it"
    otherwise = (
        "would not fire with: other arguments; a new result of a read; or a new successful write between two of them "
        "that changed the result; or another call in between"
    )
    assert render_audits([audit(LOOP), audit(FINE)]).splitlines() == [
        "loops/case: force_stop",
        f"  call 3 (turn 3): nudge by ConsecutiveDuplicate: read|x: 3 steps {made}",
        f"    calls 1, 2, 3; limit 3, stop at 4; {otherwise}",
        f"  call 4 (turn 4): force_stop by ConsecutiveDuplicate: read|x: 4 steps {made}",
        f"    calls 1, 2, 3, 4; limit 4; {otherwise}",
        "loops/fine: continue",
        "not judged in 1 trace: messages of the user and compactions are not recorded: the trace is judged as one task",
        "2 traces, 1 stuck, 0 with a nudge only",
    ]


def test_what_cannot_be_judged_is_said_once_for_all_traces() -> None:
    """With the number of traces, and of their calls; a quiet report names only traces with a finding."""
    unrecorded = replace(FINE, calls=(Call(1, "read", "a"), Call(1, "read", "b", result="r")), turns=1)
    also = replace(unrecorded, case="loops/also", calls=(*unrecorded.calls, Call(1, "read", "c")))
    assert render_audits([audit(unrecorded), audit(also)], quiet=True).splitlines() == [
        "not judged in 2 traces: 3 of 5 calls have no recorded result and count as having brought something new: "
        "a repeated read may be polling (observed traces under .harness/ have results)",
        "2 traces, 0 stuck, 0 with a nudge only",
    ]
    assert render_audits([audit(LOOP), audit(unrecorded)], quiet=True).startswith("loops/case: force_stop\n")


def test_the_report_for_machines() -> None:
    """JSON with the schema's name, the file, and every finding with its calls and turns."""
    data = json.loads(render_audits([audit(LOOP)], "json", ["golden_traces/loops/case.json"]))
    assert data["schema"] == "harness.check/1"
    (one,) = data["traces"]
    assert (one["case"], one["verdict"], one["file"]) == ("loops/case", "force_stop", "golden_traces/loops/case.json")
    assert [(finding["verdict"], finding["calls"], finding["turns"]) for finding in one["findings"]] == [
        ("nudge", [1, 2, 3], [1, 2, 3]),
        ("force_stop", [1, 2, 3, 4], [1, 2, 3, 4]),
    ]


def test_the_reports_for_a_pull_request() -> None:
    """A table whose cells cannot break it, and annotations whose text cannot become a command."""
    markdown = render_audits([audit(LOOP), audit(FINE)], "markdown")
    assert "| 4 | 4 | force&#95;stop | ConsecutiveDuplicate | read&#124;x: 4 steps" in markdown
    assert "loops/fine" not in markdown
    first, second = render_audits([audit(LOOP)], "github", ["golden_traces/loops/case.json"]).splitlines()
    assert first.startswith("::warning file=golden_traces/loops/case.json,title=loops/case%3A nudge")
    assert second.startswith("::error file=golden_traces/loops/case.json,title=loops/case%3A force_stop")
    assert "%0Acalls 1, 2, 3, 4" in second
    assert render_audits([audit(FINE)], "github") == ""


@pytest.mark.parametrize(("calls", "stops", "nudges"), [(2, 0, 0), (3, 0, 1), (4, 1, 1)])
def test_the_exit_code(calls: int, stops: int, nudges: int) -> None:
    """1 on a stop; on a nudge only if asked to."""
    audits = [audit(FINE), audit(traced(*[done("read", {"p": 1}, "same")] * calls))]
    assert (exit_code(audits), exit_code(audits, fail_on="nudge")) == (stops, nudges)
