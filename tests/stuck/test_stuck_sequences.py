"""Sequences of calls with the verdicts that the decision tables of the specification demand; hits and near misses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.stuck import Event
from tests.stuck.calls import ask, call, edit, fail, grep, read, script, send, shot, think, verdicts, via, web

CD, XD, STE = "ConsecutiveDuplicate", "ExactDuplicate", "SameToolError"
FAM, SE, NP = "FamilyNoProgress", "SearchEscalation", "NoProgress"
TMS, SAE, ET = "ToolModeSwitch", "SuccessAfterError", "EmptyThink"

VALIDATION = "[validation error] write_file: 'content' is missing"


def nudge(at: int, detector: str) -> tuple[int, str, str]:
    return (at, "nudge", detector)


def stop(at: int, detector: str) -> tuple[int, str, str]:
    return (at, "force_stop", detector)


def cycle(period: int, times: int, make: object) -> list:
    """`period` different calls in turn."""
    return [make(index % period, index) for index in range(times)]


def test_empty_thoughts() -> None:
    """Two empty thoughts in consecutive steps stop the run; blank text and null are empty, anything else is not."""
    assert verdicts(think(), think()) == [stop(2, ET)]
    assert verdicts(think("  \n"), call("think", {"thought": None}, "noted")) == [stop(2, ET)]
    assert verdicts(read("a"), think(), think()) == [stop(3, ET)]
    assert verdicts(think(), think("which parser?"), think()) == []
    assert verdicts(think(), read("a"), think()) == []
    assert verdicts(think(), call("think", "{not json", "noted")) == []
    assert verdicts(think(), Event.USER_MESSAGE, think()) == []


def test_empty_thoughts_of_one_step_are_one_attempt() -> None:
    """Siblings do not count as two; the next step's first empty thought does."""
    assert verdicts(think(turn=1), think(turn=1)) == []
    assert verdicts(think(turn=1), think(turn=1), think(turn=2)) == [stop(3, ET)]
    assert verdicts(think(turn=1), read("a", turn=1), think(turn=2)) == []
    assert verdicts(read("a", turn=1), think(turn=1), think(turn=2)) == [stop(3, ET)]


def test_looking_after_a_confirmed_action() -> None:
    """A picture right after a user interface confirmed with data is advised against, once for each success."""
    assert verdicts(script("a"), shot()) == [nudge(2, TMS)]
    assert verdicts(script("a"), shot("p"), shot("q")) == [nudge(2, TMS)]
    assert verdicts(script("a", ok=False), shot()) == []
    assert verdicts(script("a"), read("log"), shot()) == []
    assert verdicts(call("shell", {"cmd": "make"}, "built"), shot()) == []
    assert verdicts(shot("p"), shot("q")) == []


def test_looking_beside_the_action_is_no_confirmation() -> None:
    """A picture of the same step was asked for before the action's result was there."""
    acted, looked = replace(script("a"), turn=1), replace(shot(), turn=1)
    assert verdicts(acted, looked) == []
    assert verdicts(acted, looked, replace(shot("q"), turn=2)) == [nudge(3, TMS)]


def test_advice_has_a_cooldown_and_never_piles_up() -> None:
    """Act, look, act, look for thirty steps: one advice in ten steps, and no stop."""
    rhythm = [one for number in range(15) for one in (script(f"{number}", f"d{number}"), shot(f"p{number}"))]
    assert verdicts(*rhythm) == [nudge(2, TMS), nudge(12, TMS), nudge(22, TMS)]


def test_a_success_is_used_up_even_when_the_advice_is_withheld() -> None:
    """The cooldown ends; the success that was passed over meanwhile is not dug out again."""
    quiet = [read(f"f{number}", f"r{number}") for number in range(6)]
    looks = [shot(f"p{number}") for number in range(9)]
    assert verdicts(script("a"), looks[0], script("b", "e"), *looks[1:]) == [nudge(2, TMS)]
    assert verdicts(script("a"), looks[0], *quiet, script("b", "e"), looks[1], looks[2], looks[3]) == [nudge(2, TMS)]


def test_looking_after_a_correction() -> None:
    """A picture after a call that worked with corrected arguments is advised against, once."""
    wrong, right = fail("shell", {"cmd": "imp x"}), call("shell", {"cmd": "imp y"}, "3 rows")
    assert verdicts(wrong, right, shot(), shot("q")) == [nudge(3, SAE)]
    assert verdicts(wrong, call("shell", {"cmd": "imp x"}, "3 rows"), shot()) == []
    assert verdicts(wrong, right, fail("shell", {"cmd": "imp z"}), shot()) == []
    assert verdicts(wrong, right, read("log"), shot()) == []
    assert verdicts(wrong, right, fail("read_file", {"path": "log"}), shot()) == [nudge(4, SAE)]
    assert verdicts(wrong, right, call("shell", {"cmd": "ls"}, "x"), shot()) == [nudge(4, SAE)]


def test_a_goal_that_is_visual_needs_no_excuse() -> None:
    """With visual_is_goal neither advice is given."""
    from harness.stuck import Config

    goal = Config.parse({"visual_is_goal": True})
    assert verdicts(script("a", ok=False), script("b"), shot(), shot("q"), config=goal) == []


@pytest.mark.parametrize("result", ["same", "", None, [], {"rows": []}])
def test_the_same_read_with_the_same_answer(result: object) -> None:
    """The third is nudged, the fourth stopped, also when the answer is empty or not known."""
    assert verdicts(*[read("a", result)] * 2) == []
    assert verdicts(*[read("a", result)] * 3) == [nudge(3, CD)]
    assert verdicts(*[read("a", result)] * 4) == [nudge(3, CD), stop(4, CD)]


def test_polling_with_a_moving_answer() -> None:
    """A read that brings something new each time is progress, until the backstop asks at twelve."""
    states = [read("status", f"{number} %") for number in range(12)]
    assert verdicts(*states[:11]) == []
    assert verdicts(*states) == [nudge(12, NP)]


def test_polling_that_stalls() -> None:
    """Only the stable end counts: two equal answers are free, the third is a nudge."""
    moving = [read("status", f"{number} %") for number in range(4)]
    assert verdicts(*moving, moving[-1]) == []
    assert verdicts(*moving, moving[-1], moving[-1]) == [nudge(6, CD)]


def test_an_answer_that_flips_back_is_a_new_answer() -> None:
    """Two states in turn, for a read: each differs from the one before."""
    assert verdicts(*[read("door", ("open", "shut")[number % 2]) for number in range(10)]) == []


def test_fresh_ids_of_a_repeated_message_are_no_progress() -> None:
    """A write that answers with a new id each time is a repeated write."""
    assert verdicts(*[send("hi", f"m{number}") for number in range(4)]) == [nudge(3, CD), stop(4, CD)]


def test_a_tool_that_pages_declares_it() -> None:
    """The same press with a new page each time is progress only with the trait."""
    pages = [call("browser_click", {"target": "next"}, f"page {number}") for number in range(17)]
    declared = [replace(one, traits=frozenset({"progress_by_result"})) for one in pages]
    assert verdicts(*declared) == []
    assert verdicts(*pages) == [nudge(3, CD), stop(4, CD)]
    stuck = [*declared[:5], declared[4], declared[4]]
    assert verdicts(*stuck) == [nudge(7, CD)]


def test_a_poll_tool_has_twice_the_budget_and_no_more() -> None:
    """Five equal answers are free, six a nudge, seven a stop; a write with the trait is not patient."""
    poll = ask("get_job", {"id": 1}, "running", "pollable")
    assert verdicts(*[poll] * 5) == []
    assert verdicts(*[poll] * 7) == [nudge(6, CD), stop(7, CD)]
    assert verdicts(*[replace(poll, read_only=False)] * 4) == [nudge(3, CD), stop(4, CD)]
    assert verdicts(*[poll] * 5, fail("get_job", {"id": 1})) == [stop(6, CD)]


def test_failures_of_one_call() -> None:
    """Retrying has twice the budget as long as everything failed."""
    failing = fail("sync", {"t": 1}, kind="unavailable")
    assert verdicts(*[failing] * 5) == []
    assert verdicts(*[failing] * 7) == [nudge(6, CD), stop(7, CD)]


def test_a_recovery_is_not_punished() -> None:
    """The first success after failures is let pass, and the count begins with it."""
    failing, working = fail("sync", {"t": 1}), call("sync", {"t": 1}, "done")
    assert verdicts(*[failing] * 3, working) == []
    assert verdicts(*[failing] * 5, working, working) == [nudge(7, XD)]
    assert verdicts(*[failing] * 2, working, working) == []
    assert verdicts(*[failing] * 2, working, working, working) == [nudge(5, CD)]
    assert verdicts(*[failing] * 2, working, working, working, working) == [nudge(5, CD), stop(6, CD)]


def test_a_twin_of_a_recovery_is_the_same_recovery() -> None:
    """Nine spread failures, then the call works twice in one step: neither is punished."""
    kinds = ("conflict", "other")
    spread = [one for turn in range(9) for one in (fail("sync", {}, kind=kinds[turn % 2]), read(f"f{turn}", turn))]
    works = call("sync", {}, "done", turn=50)
    assert verdicts(*spread, works, works) == []
    assert verdicts(*spread, works, replace(works, turn=51)) == [stop(20, XD)]


def test_what_works_and_then_fails_is_strict() -> None:
    """A run that mixes success and error and ends in an error has the small budget."""
    failing, working = fail("sync", {"t": 1}), call("sync", {"t": 1}, "done")
    assert verdicts(working, failing) == []
    assert verdicts(working, failing, failing) == [nudge(3, CD)]
    assert verdicts(working, failing, failing, failing) == [nudge(3, CD), stop(4, CD)]
    assert verdicts(*[failing] * 4, working, failing) == [nudge(6, XD)]


def test_refused_arguments_stop_at_three() -> None:
    """The same call refused for its arguments three times in a row is stopped without a nudge."""
    refused = call("write_file", {"path": "n"}, VALIDATION, ok=False)
    assert verdicts(*[refused] * 2) == []
    assert verdicts(*[refused] * 3) == [stop(3, CD)]
    assert via(*[refused] * 3) == "validation"
    assert verdicts(*[refused] * 2, read("a"), refused) == []
    assert verdicts(*[call("write_file", {"path": f"n{number}"}, VALIDATION, ok=False) for number in range(5)]) == []


def test_only_refusals_at_the_end_count_for_the_short_cut() -> None:
    """Another error before them, or after them, and siblings of one step, make no short cut."""
    refused = call("write_file", {"path": "n"}, VALIDATION, ok=False)
    other = fail("write_file", {"path": "n"}, "disk is full")
    assert via(other, refused, refused, refused) == "validation"
    assert verdicts(refused, refused, other, refused, refused) == []
    assert verdicts(*[fail("write_file", {"path": "n"}, kind="permission")] * 3) == []
    assert verdicts(*[replace(refused, turn=1)] * 3) == []
    assert verdicts(*[replace(refused, turn=turn) for turn in (1, 1, 2, 2, 3)]) == [stop(5, CD)]


def test_an_exemption_from_duplicates_is_narrow() -> None:
    """`dup_exempt` covers its own tool, in the two duplicate detectors, and not the backstop."""
    skill = ask("load_skill", {"name": "pdf"}, "text", "dup_exempt")
    assert verdicts(*[skill] * 11) == []
    assert verdicts(*[skill] * 12) == [nudge(12, NP)]
    assert verdicts(skill, skill, skill, *[read("a")] * 3) == [nudge(6, CD)]


def test_siblings_count_once() -> None:
    """The same call many times in one step is one attempt; a fan-out that is repeated counts its steps."""
    assert verdicts(*[read("a", turn=1)] * 9) == []
    assert verdicts(*[fail("shell", {"cmd": f"rm {number}"}, kind="permission", turn=1) for number in range(12)]) == []
    fan_out = [read(path, turn=turn) for turn in (1, 2, 3) for path in "abc"]
    assert verdicts(*fan_out) == [nudge(7, CD)]
    assert verdicts(*fan_out, read("a", turn=4)) == [nudge(7, CD), stop(10, CD)]


def test_a_call_in_between_breaks_the_run_but_a_sibling_does_not() -> None:
    """Consecutive means consecutive steps that hold the call, whatever else they hold."""
    assert verdicts(read("a"), read("a"), read("b"), read("a")) == []
    accompanied = [one for turn in (1, 2, 3) for one in (read("a", turn=turn), read(f"x{turn}", f"r{turn}", turn=turn))]
    assert verdicts(*accompanied) == [nudge(5, CD)]


def test_compaction_allows_one_re_read() -> None:
    """Each read of the window is free once after a compaction; the next one counts on, and writes are not free."""
    a, b = read("a"), read("b")
    assert verdicts(a, a, Event.COMPACTION, a) == []
    assert verdicts(a, a, Event.COMPACTION, a, a) == [nudge(4, CD)]
    assert verdicts(a, a, Event.COMPACTION, a, a, Event.COMPACTION, a, a) == [nudge(4, CD), stop(6, CD)]
    assert verdicts(a, b, Event.COMPACTION, b, a, Event.COMPACTION, a, b) == []
    assert verdicts(a, a, Event.COMPACTION, read("c"), a, a) == []
    assert verdicts(send("hi", 1), send("hi", 2), Event.COMPACTION, send("hi", 3)) == [nudge(3, CD)]


def test_a_free_re_read_is_no_gap_and_its_siblings_are_free_too() -> None:
    """Free re-reads are transparent to the runs of other calls; twins in one step are one re-read."""
    a, b = read("a"), read("b")
    assert verdicts(a, a, b, b, Event.COMPACTION, a, b) == []
    assert verdicts(b, b, a, Event.COMPACTION, a, b, a) == []
    twins = [replace(a, turn=7)] * 2
    assert verdicts(a, a, Event.COMPACTION, *twins) == []


def test_a_free_re_read_is_evidence_all_the_same() -> None:
    """It is not counted, but its success shows that the tool works, and its hit that searching does."""
    failing = [fail("read_file", {"path": f"x{number}"}, "gone", "not_found") for number in range(6)]
    assert verdicts(read("a"), *failing[:5], Event.COMPACTION, read("b"), failing[5]) == []
    assert verdicts(read("a"), *failing[:5], Event.COMPACTION, read("a"), failing[5]) == []
    assert verdicts(read("a"), *failing[:5], Event.COMPACTION, failing[5]) == [nudge(7, STE)]
    hit, fruitless = grep("hit", "a.py: hit"), [grep(f"p{number}") for number in range(7)]
    assert verdicts(hit, *fruitless[:6], Event.COMPACTION, hit, fruitless[6]) == []
    assert verdicts(*fruitless[:6], Event.COMPACTION, fruitless[0], fruitless[6]) == [nudge(8, SE)]


def test_a_message_of_the_user_clears_everything() -> None:
    """Runs, nudges that count towards an escalation, and incidents that had been nudged are forgotten."""
    assert verdicts(*[read("a")] * 2, Event.USER_MESSAGE, *[read("a")] * 2) == []
    assert verdicts(*[read("a")] * 3, Event.USER_MESSAGE, *[read("a")] * 3) == [nudge(3, CD), nudge(6, CD)]
    two = [*[read("a")] * 3, *[read("b")] * 3]
    assert verdicts(*two, Event.USER_MESSAGE, *[read("c")] * 3) == [nudge(3, CD), nudge(6, CD), nudge(9, CD)]
    assert verdicts(script("a"), shot(), Event.USER_MESSAGE, script("b"), shot()) == [nudge(2, TMS), nudge(4, TMS)]


@pytest.mark.parametrize(
    ("kind", "period", "first", "last"),
    [
        ("read", 1, 3, 4), ("read", 2, 9, 19), ("read", 3, 13, 15), ("read", 4, 17, 19), ("read", 5, None, None),
        ("write", 1, 3, 4), ("write", 2, 10, 20), ("write", 3, 15, 17), ("write", 4, 20, 22), ("write", 5, None, None),
        ("error", 1, 6, 7), ("error", 2, 11, 19), ("error", 3, 16, 18), ("error", 4, None, None),
    ],
)  # fmt: skip
def test_pure_cycles(kind: str, period: int, first: int | None, last: int | None) -> None:
    """The measured table of the specification: first nudge and stop of a cycle, by its period."""
    make = {
        "read": lambda which, _: call(f"look_{which}", {"n": which}, "same", read_only=True),
        "write": lambda which, index: call(f"post_{which}", {"n": which}, f"id {index}"),
        "error": lambda which, _: fail(f"try_{which}", {"n": which}, kind="conflict"),
    }[kind]
    said = verdicts(*cycle(period, 60, make))
    assert (said[0][0], said[-1][:2]) == (first, (last, "force_stop")) if first else said == []


def test_the_same_question_around_work() -> None:
    """A read around edits: equal answers are counted over the window, moving ones are not."""
    stable = [
        one for number in range(10) for one in (read("main"), call(f"probe_{number}", {}, number, read_only=True))
    ]
    assert verdicts(*stable) == [nudge(9, XD), stop(19, XD)]
    moving = [one for number in range(10) for one in (read("main", f"v{number}"), edit(number))]
    assert verdicts(*moving) == []


def test_a_build_after_each_edit() -> None:
    """A new edit and a changed report are progress, for failures too; an unchanged report is not."""

    def rounds(report: object, ok: bool = True, times: int = 6) -> list:
        return [
            one
            for number in range(times)
            for one in (edit(number), call("shell", {"cmd": "make"}, report(number), ok=ok))
        ]  # fmt: skip

    assert verdicts(*rounds(lambda number: f"{9 - number} failed")) == []
    assert verdicts(*rounds(lambda _: "3 failed")) == [nudge(10, XD)]
    assert verdicts(*rounds(lambda number: f"error {number}", ok=False)) == []
    assert verdicts(*rounds(lambda _: "assert 1 == 2", ok=False)) == [nudge(12, STE)]


def test_what_is_no_novel_write_gives_no_credit() -> None:
    """An edit that is made again, that failed, that is a read or a thought, does not vouch for a new result."""

    def around(between: object) -> list:
        return [one for number in range(5) for one in (call("deploy", {}, f"id {number}"), between(number))]

    assert verdicts(*around(edit)) == []
    assert verdicts(*around(lambda _: edit(0))) == [nudge(10, XD)]  # two runs: the first edit was novel
    assert verdicts(*around(lambda number: fail("edit_file", {"change": number}, kind="other"))) == [nudge(9, XD)]
    assert verdicts(*around(lambda number: read(f"f{number}", number))) == [nudge(9, XD)]
    assert verdicts(*around(lambda number: think(f"t{number}"))) == [nudge(9, XD)]


def test_a_read_that_works_and_fails_in_turn_is_no_progress() -> None:
    """An error and an answer differ, but only two answers can show that something moved."""
    flapping = [
        one
        for number in range(5)
        for one in (read("a", "text") if number % 2 else fail("read_file", {"path": "a"}), grep("x", "hit"))
    ]
    flapping = [replace(one, read_only=True) for one in flapping]
    assert verdicts(*flapping[:9]) == [nudge(9, XD)]


def test_a_relapse_after_a_pause_is_a_new_incident() -> None:
    """A known limit: the same loop comes back after other work and is nudged anew, not stopped."""
    assert verdicts(*[read("a")] * 3, *[read(f"f{number}", number) for number in range(8)], *[read("a")] * 3) == [
        nudge(3, CD),
        nudge(13, XD),
        nudge(14, CD),
    ]


def test_every_failure_of_a_spread_call_counts_with_patience() -> None:
    """The same call failing with differing errors among other work: a nudge at the tenth."""
    spread = [
        one
        for number in range(10)
        for one in (fail("sync", {}, kind=("conflict", "permission")[number % 2]), read(f"f{number}", number))
    ]
    assert verdicts(*spread[:18]) == []
    assert verdicts(*spread) == [nudge(19, XD)]


def test_the_window_slides() -> None:
    """Five equal reads within twenty steps are an incident; the fifth at the twenty-first step is not."""

    def spaced(*at: int) -> list:
        return [read("todo") if number in at else read(f"f{number}", number) for number in range(1, max(at) + 1)]

    assert verdicts(*spaced(1, 6, 11, 16, 20)) == [nudge(20, XD)]
    assert verdicts(*spaced(1, 6, 11, 16, 21)) == []


def test_an_incident_is_nudged_again_only_after_it_had_fallen() -> None:
    """Beyond its limit it is silent; once fewer than the limit are in the window, it can come again."""

    def steady(times: int) -> list:
        return [
            read("todo") if number % 4 == 0 else call(f"probe_{number}", {}, number, read_only=True)
            for number in range(times)
        ]

    assert verdicts(*steady(60)) == [nudge(17, XD)]
    pause = [call(f"other_{number}", {}, number, read_only=True) for number in range(10)]
    assert verdicts(*steady(18), *pause, *steady(18))[1:] == [nudge(18 + 10 + 17, XD)]


def test_one_tool_failing_in_one_way() -> None:
    """Six failures of one class are a nudge and twelve a stop, whatever the arguments."""
    variants = [fail("ssh", {"cmd": f"v{number}"}, f"refused {number}", "permission") for number in range(12)]
    assert verdicts(*variants[:5]) == []
    assert verdicts(*variants) == [nudge(6, STE), stop(12, STE)]
    assert verdicts(*variants[:5], call("ssh", {"cmd": "id"}, "root"), *variants[5:10]) == []


def test_classes_are_counted_apart_and_outages_with_patience() -> None:
    """Alternating classes need twice as many calls; passing trouble has 12 and 18."""
    mixed = [fail("api", {"n": number}, kind=("conflict", "not_found")[number % 2]) for number in range(11)]
    assert verdicts(*mixed[:10]) == []
    assert verdicts(*mixed) == [nudge(11, STE)]
    for kind in ("timeout", "rate_limit", "unavailable"):
        outage = [fail("api", {"n": number}, "503", kind) for number in range(18)]
        assert verdicts(*outage[:11]) == []
        assert verdicts(*outage) == [nudge(12, STE), nudge(13, NP), stop(18, STE)]


def test_failures_of_many_tools_are_nobodys_fault() -> None:
    """Each tool has its own count; a step of many failures is one."""
    assert verdicts(*[fail(f"tool_{number % 3}", {"n": number}) for number in range(15)]) == []
    steps = [fail("look_up", {"n": number}, "none", "not_found", turn=number // 10) for number in range(50)]
    assert verdicts(*steps) == []
    assert verdicts(*steps, fail("look_up", {"n": 50}, "none", "not_found", turn=5)) == [nudge(51, STE)]


def test_one_topic_in_ever_new_words() -> None:
    """Five rewordings are a nudge, eight a firmer one, twelve a stop, even with new sources each time."""
    searches = [web(f"climate v{number}", topic="climate") for number in range(12)]
    assert verdicts(*searches[:4]) == []
    assert verdicts(*searches) == [nudge(5, FAM), nudge(8, FAM), stop(12, FAM)]
    assert verdicts(*[replace(one, turn=1) for one in searches]) == []


def test_the_same_sources_under_any_topic() -> None:
    """What is found counts as well, across the tools of the family and around a fetch."""
    found = [web(f"question {number}", ["a.org", "b.org"]) for number in range(12)]
    assert verdicts(*found[:4]) == []
    assert verdicts(*found) == [nudge(5, FAM), nudge(8, FAM), stop(12, FAM)]
    page = call("web_fetch", {"url": "https://a.org/x"}, "page https://a.org/y", read_only=True)
    assert verdicts(*found[:2], page, *found[2:5]) == [nudge(6, FAM)]
    assert verdicts(*[web(f"question {number}") for number in range(11)]) == []


def test_a_page_that_is_polled_is_not_reworded() -> None:
    """The same address with moving content is free, although the links in it stay the same."""
    polled = [call("web_fetch", {"url": "https://ci/1"}, f"{n} % https://ci/", read_only=True) for n in range(11)]
    assert verdicts(*polled) == []


def test_repeats_are_no_rewordings() -> None:
    """Two queries in turn have two wordings; the duplicate detectors own what repeats."""
    turns = [web(("climate a", "climate b")[number % 2], [f"s{number}.org"], "climate") for number in range(11)]
    assert verdicts(*turns) == []


def test_an_interface_that_does_not_move() -> None:
    """Five different actions that leave the same state are a nudge; a form whose state moves is work."""
    unmoved = [call("browser_click", {"target": number}, "same page") for number in range(12)]
    assert verdicts(*unmoved) == [nudge(5, FAM), nudge(8, FAM), stop(12, FAM)]
    form = [call("browser_type", {"field": number}, f"form {number}") for number in range(15)]
    assert verdicts(*form) == []
    assert verdicts(*form, call("browser_type", {"field": 16}, "form 16")) == [nudge(16, NP)]
    unknown = [call("browser_click", {"target": number}, None) for number in range(11)]
    assert verdicts(*unknown) == []


def test_searches_that_find_nothing() -> None:
    """Seven fruitless searches in a row are a nudge and twelve a stop."""
    searches = [grep(f"p{number}", "") for number in range(12)]
    assert verdicts(*searches[:6]) == []
    assert verdicts(*searches) == [nudge(7, SE), stop(12, SE)]
    assert verdicts(*[replace(one, turn=number // 4) for number, one in enumerate(searches)]) == []
    broken = [
        fail("grep", {"pattern": number}, f"bad {number}", ("other", "timeout")[number % 2]) for number in range(7)
    ]
    assert verdicts(*broken) == [nudge(7, SE)]


def test_what_ends_a_streak_of_searches() -> None:
    """A hit or any other tool does; a thought does not; a search that says nothing counts as useful."""
    six = [grep(f"p{number}", "") for number in range(6)]
    assert verdicts(*six, grep("hit", "a.py:1: hit"), *six) == []
    assert verdicts(*six, read("a"), *[grep(f"q{number}", "") for number in range(6)]) == []
    assert verdicts(*six, think("another name?"), grep("q", "")) == [nudge(8, SE)]
    assert verdicts(*[replace(grep(f"p{number}", f"{number}"), useful=None) for number in range(14)]) == []
    assert verdicts(*[grep(f"p{number}", f"a.py:{number}: hit") for number in range(20)]) == []
    accompanied = [one for n in range(8) for one in (replace(grep(f"p{n}", ""), turn=n), read(f"f{n}", n, turn=n))]
    assert verdicts(*accompanied) == []


def test_the_backstop_for_writes() -> None:
    """Twelve calls of one write tool are asked about and eighteen stopped, with receipts or with fresh ids."""
    for result in (lambda _: "saved", lambda number: f"id {number}"):
        notes = [call("add_note", {"text": number}, result(number)) for number in range(18)]
        assert verdicts(*notes[:11]) == []
        assert verdicts(*notes) == [nudge(12, NP), stop(18, NP)]


def test_an_exemption_from_the_backstop_is_narrow() -> None:
    """`no_progress_exempt` silences the backstop for its tool; the duplicate detectors still look at it."""
    ticks = [
        replace(call("tick", {"n": number}, "ok"), traits=frozenset({"no_progress_exempt"})) for number in range(18)
    ]
    assert verdicts(*ticks) == []
    assert verdicts(*[ticks[0]] * 3) == [nudge(3, CD)]


def test_what_shows_progress_is_left_alone() -> None:
    """Batches of reads, of declared requests, of edits; each by its own condition."""
    assert verdicts(*[read(f"f{number}", number) for number in range(40)]) == []
    assert verdicts(*[call("http", {"body": number}, "ok") for number in range(40)]) == []
    assert verdicts(*[edit(number) for number in range(40)]) == []
    assert verdicts(*[call("shell", {"cmd": number}, "done") for number in range(40)]) == []
    searches = [grep(f"p{number}", "a.py: hit") for number in range(40)]
    assert verdicts(*searches) == []


def test_what_does_not_show_progress_is_not() -> None:
    """Reads with one answer, edits without effect or with one failure, requests that repeat."""
    assert verdicts(*[call("ls", {"dir": number}, "total 0", read_only=True) for number in range(12)]) == [
        nudge(12, NP)
    ]
    assert verdicts(*[edit(number, "no changes") for number in range(12)]) == [nudge(12, NP)]
    one_failed = [edit(number) if number != 5 else fail("edit_file", {"n": number}) for number in range(12)]
    assert verdicts(*one_failed) == [nudge(12, NP)]
    repeating = [call("http", {"body": number % 4}, number) for number in range(12)]
    assert nudge(12, NP) in verdicts(*repeating)


def test_half_is_enough_for_reads_and_less_is_not() -> None:
    """The share of distinct arguments and of distinct results, at its border."""

    def reads(distinct: int) -> list:
        return [read(f"f{number % distinct}", f"r{number}") for number in range(12)]

    assert verdicts(*reads(6)) == []
    assert verdicts(*reads(5)) == [nudge(12, NP)]


def test_thoughts_count_for_the_backstop() -> None:
    """Ever new thoughts are nudged at twelve and stopped at eighteen."""
    assert verdicts(*[think(f"step {number}") for number in range(18)]) == [nudge(12, NP), stop(18, NP)]


def test_busy_tools_have_more_room() -> None:
    """Polls whose answer is a clock, shells that repeat, user interfaces: sixteen and twenty."""
    ticking = [ask("get_job", {"id": 1}, f"tick {number}", "pollable") for number in range(20)]
    assert verdicts(*ticking) == [nudge(16, NP), stop(20, NP)]
    clicks = [call("browser_click", {"target": number}, f"page {number}") for number in range(20)]
    assert verdicts(*clicks) == [nudge(16, NP), stop(20, NP)]


def test_steps_of_many_reads_are_few_steps() -> None:
    """Thirty reads in three steps are three."""
    assert verdicts(*[read(f"f{number}", "same", turn=number // 10) for number in range(30)]) == []


def test_the_third_nudge_within_ten_steps_is_a_stop() -> None:
    """Inclusive: nudges at 3, 6 and 12 are within ten steps, at 3, 6 and 13 they are not."""

    def thrice(path: str) -> list:
        return [read(path)] * 3

    def others(times: int) -> list:
        return [call(f"probe_{number}", {}, number, read_only=True) for number in range(times)]

    ended = [*thrice("a"), *thrice("b"), *others(3), *thrice("c")]
    assert verdicts(*ended) == [nudge(3, CD), nudge(6, CD), stop(12, CD)]
    assert via(*ended) == "escalation"
    spread = [*thrice("a"), *thrice("b"), *others(4), *thrice("c")]
    assert verdicts(*spread) == [nudge(3, CD), nudge(6, CD), nudge(13, CD)]


def test_nudges_of_different_detectors_add_up() -> None:
    """Advice, a failing tool and a repeated read within ten steps end the run."""
    failing = [fail("api", {"n": number}, kind="conflict") for number in range(6)]
    assert verdicts(script("a"), shot(), *failing, *[read("a")] * 3) == [nudge(2, TMS), nudge(8, STE), stop(11, CD)]


def test_ordinary_work() -> None:
    """Find, read, edit, test; the same verifier twice; parallel waits: nobody says anything."""
    work = [
        grep("foo", "a.py:1: foo"), read("a", "r1"), edit(1), call("shell", {"cmd": "pytest"}, "2 failed", ok=False),
        read("a", "r2"), edit(2), call("shell", {"cmd": "pytest"}, "1 failed", ok=False), read("a", "r3"), edit(3),
        call("shell", {"cmd": "pytest"}, "all passed"), call("shell", {"cmd": "git diff"}, "d"),
        call("shell", {"cmd": "pytest"}, "all passed"), think("done"),
    ]  # fmt: skip
    assert verdicts(*work) == []
    waits = [call("shell", {"cmd": f"sleep 2; echo {number}"}, f"{number}", turn=1) for number in range(3)]
    assert verdicts(*waits, call("shell", {"cmd": "ls"}, "1 2 3", turn=2)) == []


def test_pages_of_one_file_are_different_calls() -> None:
    """Ranges, cursors and offsets are arguments like any other."""
    ranges = [
        call("read_file", {"path": "a", "from": 40 * n, "cursor": f"c{n}"}, f"lines {n}", read_only=True)
        for n in range(20)
    ]
    assert verdicts(*ranges) == []
    in_turn = [
        call("read_file", {"path": "a", "from": 40 * (n % 2)}, f"lines {n % 2}", read_only=True) for n in range(9)
    ]
    assert verdicts(*in_turn) == [nudge(9, XD)]
