"""Laws of the guard: what holds for every sequence of calls."""

from __future__ import annotations

import pickle
from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.stuck import Config, Event, Record, State, fold, record_of, step
from harness.stuck.fold import MAX_CALLS
from tests.stuck.calls import CONFIG, call, edit, fail, grep, read, script, send, shot, think, verdicts, web

unhurried = settings(deadline=None)  # the machine may be busy; what a call costs is measured elsewhere

QUIET = [call(f"quiet_{number}", {"n": number}, f"q{number}", read_only=True) for number in range(30)]
"""Thirty calls that no detector has a word for, by tools that nothing else uses."""

CALLS = st.one_of(
    st.builds(read, st.sampled_from("ab"), st.sampled_from(["same", "other", None])),
    st.builds(lambda n: edit(n % 3, "done"), st.integers(0, 5)),
    st.builds(send, st.just("hi"), st.integers(0, 3)),
    st.builds(lambda kind: fail("api", {"n": 1}, kind=kind), st.sampled_from(["conflict", "validation", "timeout"])),
    st.builds(lambda n: fail("api", {"n": n}, kind="conflict"), st.integers(0, 9)),
    st.just(call("api", {"n": 1}, "works")),
    st.builds(lambda n: grep(f"p{n}"), st.integers(0, 20)),
    st.builds(lambda n: web(f"climate {n}", topic="climate"), st.integers(0, 20)),
    st.sampled_from([think(), think("x"), shot("p"), script("s"), call("browser_click", {"t": 1}, "page")]),
)
SERIES = [
    lambda n: fail("api", {"n": n}, kind="conflict"),
    lambda n: fail("api", {"n": n}, kind="timeout"),
    lambda n: grep(f"p{n}"),
    lambda n: web(f"climate {n}", topic="climate"),
    lambda n: call("browser_click", {"t": n}, "page"),
    lambda n: call("add_note", {"n": n}, f"id {n}"),
    lambda n: think(f"t{n}"),
    edit,
]
BURSTS = st.one_of(
    st.builds(lambda item: [item], st.sampled_from(list(Event))),
    st.builds(lambda cycle, times: cycle * times, st.lists(CALLS, min_size=1, max_size=3), st.integers(1, 8)),
    st.builds(lambda make, times: [make(n) for n in range(times)], st.sampled_from(SERIES), st.integers(3, 14)),
)
ITEMS = st.lists(BURSTS, max_size=8).map(lambda bursts: [item for burst in bursts for item in burst])
STEPS = st.lists(st.lists(CALLS, min_size=1, max_size=3), max_size=18).map(
    lambda steps: [replace(one, turn=turn) for turn, calls in enumerate(steps, 1) for one in calls]
)


@unhurried
@given(ITEMS, st.integers(0, 60))
def test_folding_in_parts_is_folding_at_once(items: list[Record | Event], cut: int) -> None:
    """A run that was killed and folds its ledger again is where it would have been."""
    whole_state, whole = fold(items)
    state, first = fold(items[:cut])
    state, rest = fold(items[cut:], state=pickle.loads(pickle.dumps(state)))
    assert (state, first + rest) == (whole_state, whole)


@unhurried
@given(ITEMS)
def test_a_step_changes_nothing_that_was_there(items: list[Record | Event]) -> None:
    """The fold is pure: an older state gives the same answer a second time."""
    state, _ = fold(items)
    before = pickle.dumps(state)
    answer = step(state, read("a"))
    assert pickle.dumps(state) == before
    assert step(state, read("a")) == answer


@unhurried
@given(ITEMS, CALLS)
def test_only_the_window_is_remembered(items: list[Record | Event], then: Record) -> None:
    """After a window of quiet steps (and the cooldown) nothing that happened before makes a difference."""
    long, _ = fold([*items, *QUIET])
    short, _ = fold(QUIET)
    shift = long.step - short.step

    def shifted(state: State) -> State:
        window = tuple(
            one._replace(seq=one.seq - long.calls + short.calls, step=one.step - shift) for one in state.window
        )
        return replace(state, calls=short.calls, step=short.step, window=window)

    assert shifted(long) == short
    said, expected = step(long, then)[1], step(short, then)[1]
    assert (said.kind, said.detector, said.message) == (expected.kind, expected.detector, expected.message)


@unhurried
@given(st.data())
def test_distinct_successes_meet_the_backstop_alone(data: st.DataObject) -> None:
    """Distinct successful calls with distinct results are never anybody's but NoProgress's, from its limit on."""
    tools = st.sampled_from(["read_file", "edit_file", "http", "shell", "add_note", "crm_update"])
    chosen = data.draw(st.lists(tools, max_size=60))
    items = [
        call(tool, {"n": number}, f"r{number}", read_only=tool == "read_file") for number, tool in enumerate(chosen)
    ]
    _, spoken = fold(items)
    for verdict in spoken:
        if verdict.kind != "continue":
            assert verdict.detector == "NoProgress"
            tool = items[verdict.at_call - 1].tool
            assert tool in ("add_note", "crm_update")
            assert chosen[max(0, verdict.at_call - CONFIG.window) : verdict.at_call].count(tool) >= 12


@unhurried
@given(st.lists(st.booleans(), min_size=1, max_size=50), st.data())
def test_removing_a_repeat_never_makes_a_stop(repeats: list[bool], data: st.DataObject) -> None:
    """Among distinct other reads, a sequence that is let go on stays so when one of its repeats is left out."""
    items = [
        read("again") if repeat else call(f"probe_{number}", {}, f"r{number}", read_only=True)
        for number, repeat in enumerate(repeats)
    ]
    assume(any(repeats))
    assume(not verdicts(*items))
    left_out = data.draw(st.sampled_from([index for index, repeat in enumerate(repeats) if repeat]))
    assert [one for one in verdicts(*items[:left_out], *items[left_out + 1 :]) if one[1] == "force_stop"] == []


@unhurried
@given(STEPS, st.data())
def test_removing_a_twin_changes_no_verdict_of_other_steps(items: list[Record], data: st.DataObject) -> None:
    """A call that was made twice in one step counts once: without the twin each step has the same worst verdict."""
    assume(items)
    index = data.draw(st.integers(0, len(items) - 1))
    twins = [*items[: index + 1], items[index], *items[index + 1 :]]
    assume(items[index].tool not in ("read_file", "http"))  # shares of distinct calls are counted by calls

    def worst(calls: list[Record]) -> dict[int | None, str]:
        found: dict[int | None, str] = {}
        for one, verdict in zip(calls, fold(calls)[1], strict=True):
            found[one.turn] = max(
                found.get(one.turn, ""), verdict.kind, key=["", "continue", "nudge", "force_stop"].index
            )
        return found

    assert worst(items) == worst(twins)


@unhurried
@given(STEPS)
def test_a_step_is_nudged_at_most_once(items: list[Record]) -> None:
    """However many of its calls reach a limit."""
    _, spoken = fold(items)
    nudged = [items[one.at_call - 1].turn for one in spoken if one.kind == "nudge"]
    assert len(nudged) == len(set(nudged))


@unhurried
@given(ITEMS)
def test_every_verdict_proves_itself(items: list[Record | Event]) -> None:
    """The evidence names calls of the window, the newest counted one included, a limit that was reached, and words."""
    for verdict in fold(items)[1]:
        if verdict.kind == "continue":
            assert (verdict.detector, verdict.via, verdict.message, verdict.evidence) == (None, None, "", None)
            continue
        evidence = verdict.evidence
        assert evidence is not None
        assert evidence.count >= evidence.limit
        assert list(evidence.calls) == sorted(set(evidence.calls))
        assert evidence.calls[-1] <= verdict.at_call
        assert len(evidence.calls) >= evidence.count
        assert all((verdict.message, evidence.rule, evidence.otherwise, verdict.detector))
        assert (verdict.via == "escalation") == bool(evidence.nudges)


def test_memory_does_not_grow() -> None:
    """The state after a hundred thousand calls is no larger than after a hundred, for work and for loops."""
    state, sizes = State(), {}
    for number in range(100_000):
        record = (
            QUIET[number % 30] if number % 40 < 30 else Record("api", f"{number % 7}", ok=False, error_class="other")
        )
        state, _ = step(state, record)
        if number in (199, 99_999):
            sizes[number] = len(pickle.dumps(replace(state, calls=0, step=0)))
    assert sizes[99_999] <= sizes[199] + 200  # larger numbers take a few more bytes


def test_memory_is_bounded_for_one_endless_step() -> None:
    """Even when all calls claim to be siblings."""
    state, _ = fold(Record("read_file", f"{number}", read_only=True, turn=1) for number in range(2 * MAX_CALLS))
    assert len(state.window) == MAX_CALLS
    assert state.step == 1


def test_names_that_a_model_invents_leave_nothing_behind() -> None:
    """Ten thousand unknown tools that all fail, each with its own name."""
    state, config = State(), Config()
    for number in range(10_000):
        record = record_of(f"tool_{number}", {}, "no such tool", ok=False, profile=config.profile(f"tool_{number}"))
        state, verdict = step(state, record, config)
        assert verdict.kind == "continue"
    assert (len(state.window), dict(state.reached), dict(state.quiet), state.nudges) == (20, {}, {}, ())
