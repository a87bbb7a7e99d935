"""What must hold after every crash and resume, each rule by itself (DESIGN 10).

A rule compares a history of kills with the smooth one, in which nobody was killed, and says what happened when it is
broken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from harness.faults.history import says_unknown
from harness.faults.journal import Asked, Began

if TYPE_CHECKING:
    from harness.faults.history import Execution, History, Life

__all__ = ["INVARIANTS", "Breach", "broken"]


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that did not hold.

    Args:
        invariant: its name, a key of `INVARIANTS`.
        message: what happened, in a sentence.
    """

    invariant: str
    message: str


Rule: TypeAlias = Callable[["History", "History"], Iterator[str]]

_NEVER_RAN: Final = re.compile(
    r"not executed|never (?:ran|run|started|executed)|(?:did|was) not (?:run|start)", re.IGNORECASE
)
"""How loops say that a call did not run."""

_LOST_RESULT: Final = re.compile(r"took effect", re.IGNORECASE)
"""How our loop says that a call did run and its result is gone."""


def executed_twice(history: History, smooth: History) -> Iterator[str]:
    """1: no irreversible call is executed twice, and no idempotent one with different keys, or without any.

    Nor does the world see twice what it sees once without the kill: a model that is told "status unknown" may call
    again under a new id, and then every call by itself ran once.
    """
    yield from _repeated_by_the_model(history, smooth)
    for call, executions in history.executions.items():
        runs = history.attempts(call)
        began = executions[0].began
        if len(runs) < 2 or began.effect == "read_only":
            continue
        if began.effect == "irreversible":
            ran = "ran" if all(one.ran for one in runs) else "was begun"
            yield f"{_name(began)} {ran} {len(runs)} times, {_where(runs)}: it cannot be taken back"
            continue
        keys = list(dict.fromkeys(one.began.key for one in runs))
        if len(keys) > 1:
            shown = " and ".join("none" if key is None else repr(key) for key in keys)
            yield f"{_name(began)} ran {len(runs)} times, {_where(runs)}, with different idempotency keys: {shown}"
        elif began.wants_key and keys == [None]:
            yield f"{_name(began)} ran {len(runs)} times, {_where(runs)}, without the idempotency key that it takes"


def _repeated_by_the_model(history: History, smooth: History) -> Iterator[str]:
    expected = _irreversible(smooth)
    for (tool, digest), calls in _irreversible(history).items():
        doubtful = [call for call in calls if call in history.unknown - smooth.unknown]
        before = len(expected.get((tool, digest), ()))
        if doubtful and before and len(calls) > before:
            yield (
                f"`{tool}` had its effect {_times(len(calls))} for one input, {_times(before)} without the kill: told "
                f"that nobody knows of {_call_name(history, doubtful[0])}, the model called it again, and it had run"
            )


def _irreversible(history: History) -> dict[tuple[str, str], list[str]]:
    """By tool and digest of the input, the irreversible calls that had their effect."""
    found: dict[tuple[str, str], list[str]] = {}
    for call in history.executions:
        for run in history.runs(call)[:1]:
            if run.began.effect == "irreversible":
                found.setdefault((run.began.tool, run.began.digest), []).append(call)
    return found


def made_up(history: History, smooth: History) -> Iterator[str]:
    """2: no call is answered that never ran, none that ran is answered "never ran", none with another's result."""
    for call, sent in history.results.items():
        for life, result in sent:
            ran = [one for one in history.runs(call) if one.life <= life]
            name = _call_name(history, call)
            if not result["is_error"] and not history.attempts(call) and smooth.runs(call):
                yield f"{name} never ran, and life {life} gave the model a result of it"
                break
            if result["is_error"] and ran and not says_unknown(result) and _denies(result, smooth, call):
                yield f"{name} ran {_where(ran)}, and life {life} told the model that it did not"
                break
            other = _result_of_another(smooth, call, result, ran)
            if other is not None:
                yield f"{name} was answered by life {life} with {other}"
                break


def needless_unknown(history: History, smooth: History) -> Iterator[str]:
    """3: "status unknown" is said only where nobody can know."""
    for call in sorted(history.unknown - smooth.unknown):
        execution = next(iter(smooth.executions.get(call, ())), None)
        name = _call_name(history, call)
        if execution is not None and execution.began.effect != "irreversible":
            yield f"{name} is {execution.began.effect} and was given up as unknown: it could simply have run again"
        elif not any(_undecidable(life, call, history) for life in history.lives[:-1]):
            yield (
                f"{name} was given up as unknown, and was not under way at any kill: either it had provably not been "
                "started, or its end was recorded"
            )


def protocol(history: History, smooth: History) -> Iterator[str]:
    """4: every request keeps the rules of the protocol, and the conversation is still the script's."""
    del smooth
    for life, refused in history.refusals:
        yield f"life {life} sent a request that the model refused ({refused.kind}): {refused.message}"


def counters(history: History, smooth: History) -> Iterator[str]:
    """5: turns never decrease and never begin anew, the limit holds over all lives, tokens are carried."""
    most = 0
    for life in history.lives:
        asked = [event.turn for event in life.events if isinstance(event, Asked)]
        if asked and asked[0] < most:
            yield f"life {life.number} asked for turn {asked[0]} when turn {most} had been reached already"
            break
        most = max([most, *asked])
    if history.unknown - smooth.unknown:
        return  # the model may have gone another way
    if history.turns > smooth.turns:
        yield f"the run took {history.turns} turns, {smooth.turns} without the kill: its limit began anew"
    ended, plain = history.last.ended, smooth.last.ended
    if ended is None or plain is None or ended.error:
        return
    if plain.turns is not None and ended.turns != plain.turns:
        yield f"the loop reports {ended.turns} turns, {plain.turns} without the kill"
    # What was read again may be longer by now, and then there are more tokens to it.
    if plain.tokens is not None and ended.tokens != plain.tokens and _results(history) == _results(smooth):
        yield f"the loop reports {ended.tokens} tokens, {plain.tokens} without the kill"


def _results(history: History) -> dict[str, str]:
    """By call, what its tool gave last."""
    return {call: runs[-1].ran.result for call in history.executions if (runs := history.runs(call)) and runs[-1].ran}


def world(history: History, smooth: History) -> Iterator[str]:
    """6: the run ends as it does without the kill, with the same world, or with an explicit unknown."""
    ended, plain = history.last.ended, smooth.last.ended
    if history.last.death.timed_out or (ended is not None and ended.unreadable):
        return  # other rules say so
    if ended is None:
        yield f"life {history.last.number} was not killed, and did not come to its end: {history.last.death.words}"
        return
    if ended.error and (plain is None or ended.error != plain.error):
        yield f"life {history.last.number} failed: {ended.error}"
        return
    if not history.refusals:
        for problem in ended.problems:
            yield f"life {history.last.number}: {problem}"
    if not history.unknown - smooth.unknown:
        yield from _other_world(history, smooth)
        return
    for call in smooth.executions.keys() - history.unknown:
        before, now = len(smooth.runs(call)), len(history.runs(call))
        if before and not now and history.results.get(call) is None and call in _called(history):
            yield f"{_call_name(history, call)} was asked for, and neither ran nor was answered"


def unreadable(history: History, smooth: History) -> Iterator[str]:
    """7: no saved state is unreadable, and no stray temporary file is taken for one."""
    del smooth
    for life in history.lives:
        if life.ended is not None and life.ended.unreadable:
            yield f"life {life.number} could not read what was saved: {life.ended.error}"


def liveness(history: History, smooth: History) -> Iterator[str]:
    """8: resuming always ends, and resuming a finished run changes nothing."""
    for life in history.lives:
        if life.death.timed_out:
            did = life.points[-1] if life.points else "nothing"
            yield f"life {life.number} did not end within {life.death.seconds:.1f} s; the last thing it passed: {did}"
    again = history.again
    if again is None:
        return
    if again.death.timed_out:
        yield f"resuming the finished run did not end within {again.death.seconds:.1f} s"
        return
    ran = [event for event in again.events if isinstance(event, Began)]
    asked = [event for event in again.events if isinstance(event, Asked)]
    if ran:
        yield f"resuming the finished run executed {', '.join(f'`{one.tool}`' for one in ran)} again"
    elif asked:
        yield f"resuming the finished run asked the model again, for turn {asked[0].turn}"
    elif again.ended is None or (again.ended.error and (smooth.last.ended or again.ended).error != again.ended.error):
        how = again.ended.error if again.ended else f"it ended with {again.death.words}"
        yield f"resuming the finished run failed: {how}"
    elif history.saved is not None and history.saved[0] != history.saved[1]:
        changed = sorted(name for name, _ in history.saved[0].items() ^ history.saved[1].items())
        yield f"resuming the finished run changed its saved state: {', '.join(dict.fromkeys(changed))}"


INVARIANTS: Final[dict[str, Rule]] = {
    "executed_twice": executed_twice,
    "made_up": made_up,
    "needless_unknown": needless_unknown,
    "protocol": protocol,
    "counters": counters,
    "world": world,
    "unreadable": unreadable,
    "liveness": liveness,
}
"""The rules by the names that goldens and reports call them by, in the order of DESIGN 10."""


def broken(history: History, smooth: History) -> list[Breach]:
    """The rules that a history breaks, in their order.

    Args:
        history: lives that were killed, and one that was not.
        smooth: the same run without a kill.
    """
    return [Breach(name, message) for name, rule in INVARIANTS.items() for message in rule(history, smooth)]


def _denies(result: dict[str, Any], smooth: History, call: str) -> bool:
    """Whether a result says that its call did not run, and did not say so without the kill (a tool's own words)."""
    said = [one["digest"] for _, one in smooth.results.get(call, ())]
    return bool(_NEVER_RAN.search(result["text"])) and result["digest"] not in said


def _result_of_another(smooth: History, call: str, result: dict[str, Any], ran: list[Execution]) -> str | None:
    """What is wrong with a result that is none of its call, or None.

    What a call gave is compared by digest; how a loop words it is taken from the smooth run.  A call that ran several
    times may have given several results.
    """
    plain = smooth.results.get(call)
    before = smooth.runs(call)
    if (
        result["is_error"]
        or len(ran) != 1
        or not plain
        or len(before) != 1
        or result["digest"] == plain[-1][1]["digest"]
    ):
        return None
    if _LOST_RESULT.search(result["text"]):
        return None
    gave, gives = before[0].ran, ran[0].ran
    if gave is None or gives is None or gave.result != gives.result:
        return None  # it gave something else this time: what the world has changed meanwhile is no fault of the loop
    for other, sent in smooth.results.items():
        if other != call and sent[-1][1]["digest"] == result["digest"]:
            return f"the result of {_call_name(smooth, other)}"
    return "a result that it did not give"


def _undecidable(life: Life, call: str, history: History) -> bool:
    """Whether a call was under way, as far as anybody can tell from the disk, when a life was killed.

    It is from the moment at which the last save before it has become durable (which may be its intent) to the one at
    which the first save after it has (its completion).  Where nothing is saved between the calls of a response, that is
    the whole of them.
    """
    last = life.kill_at if life.kill_after is None else (life.points or ("",))[-1]
    if last not in life.reference:
        return False
    killed = latest = life.reference.index(last)
    if life.kill_after is not None and ".before" in last:
        latest += 1  # what it was about to do may have been done, or not
    execution = _planned(history, call)
    if execution is None:
        return False
    turn, position, tool = execution
    name = f"turn{turn}.call{position}.{tool}"
    if f"{name}.before" not in life.reference:
        return False
    before = life.reference.index(f"{name}.before")
    after = life.reference.index(f"{name}.after") if f"{name}.after" in life.reference else len(life.reference)
    begin = _last_durable(life.reference[:before])
    end = next(
        (at for at in range(after, len(life.reference)) if _makes_durable(life.reference[at])), len(life.reference)
    )
    return begin <= latest and killed < end


def _planned(history: History, call: str) -> tuple[int, int, str] | None:
    for answer in history.answers.values():
        for position, one in enumerate(answer.calls, 1):
            if one["id"] == call:
                return answer.turn, position, one["tool"]
    return None


def _last_durable(points: tuple[str, ...]) -> int:
    durable = [at for at, point in enumerate(points) if _makes_durable(point)]
    if durable:
        return durable[-1]
    opened = [at for at, point in enumerate(points) if ".open.after" in point]
    return opened[-1] if opened else 0


def _makes_durable(point: str) -> bool:
    return any(f".{operation}.after" in point for operation in ("commit", "rename", "link"))


def _other_world(history: History, smooth: History) -> Iterator[str]:
    expected, found = smooth.effects(), history.effects()
    for tool, digest in sorted(expected.keys() | found.keys()):
        before, now = expected[tool, digest], found[tool, digest]
        if before != now:
            yield f"`{tool}` had its effect {_times(now)} for one input, {_times(before)} without the kill"
    if _path(history) != _path(smooth):
        yield f"the model went another way: {_shown(_path(history))}; without the kill: {_shown(_path(smooth))}"
    if history.files != smooth.files:
        yield f"the workspace is another one: {_difference(dict(smooth.files), dict(history.files))}"


def _path(history: History) -> list[tuple[int, str | None, list[str]]]:
    return [
        (turn, one.stop_reason, [call["tool"] for call in one.calls]) for turn, one in sorted(history.answers.items())
    ]


def _shown(path: list[tuple[int, str | None, list[str]]]) -> str:
    return " → ".join(", ".join(tools) or str(reason) for _, reason, tools in path)


def _difference(before: dict[str, str], now: dict[str, str]) -> str:
    from deepdiff import DeepDiff

    found = DeepDiff(before, now, threshold_to_diff_deeper=0)
    parts = [f"{change.replace('_', ' ')}: {', '.join(sorted(map(str, paths)))}" for change, paths in found.items()]
    return (
        "; ".join(parts).replace("root", "").replace("dictionary item ", "file ").replace("values changed", "changed")
    )


def _called(history: History) -> set[str]:
    return {call["id"] for answer in history.answers.values() for call in answer.calls}


def _call_name(history: History, call: str) -> str:
    found = _planned(history, call)
    if found is None:
        return f"the call {call!r}"
    return f"`{found[2]}` (turn {found[0]}, call {found[1]})"


def _name(began: Began) -> str:
    return f"`{began.tool}` (turn {began.turn}, call {began.position})"


def _where(runs: list[Execution]) -> str:
    lives = [str(one.life) for one in runs]
    return f"in {'life' if len(set(lives)) == 1 else 'lives'} {' and '.join(dict.fromkeys(lives))}"


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
