"""The guard itself: a pure fold over calls and events.

`state, verdict = step(state, item, config)`.  No clock, no randomness, no messages: the same items give the same
verdicts, so that a run that was killed folds its ledger again and knows what had been said.

An incident is nudged once when its count reaches a limit, and again only after its count was seen below.  So the tiers
that the detectors document are real: were every call beyond the limit a nudge, the third one would end the run, and no
stop limit would ever be reached.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from harness.stuck.config import Config, excluded
from harness.stuck.evidence import Event, Key, Record
from harness.stuck.verdict import Evidence, Verdict, stop_message
from harness.stuck.window import Placed, View

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.stuck.sighting import Detector, Sighting, Via

__all__ = ["MAX_CALLS", "Incident", "State", "fold", "step"]

MAX_CALLS: Final = 512
"""Calls that the window holds at most, whatever the number of siblings: 25 a step in a full window.  Beyond that the
oldest are forgotten, which can only lower counts."""

Incident: TypeAlias = tuple[str, ...]
"""The name of a detector, and what repeats."""

_DEFAULT: Final = Config()


@dataclass(frozen=True, slots=True)
class State:
    """All that the guard remembers.  Its size is bounded by the window, not by the run.

    Args:
        calls: how many calls there were.
        step: number of the newest step.
        turn: the model response of the newest step, where calls name it.
        window: the calls of the last steps, oldest first.
        reached: how many nudge limits an incident had reached when it was last seen, and in which step that was.
        quiet: by detector with a cooldown, the first step in which it may speak again.
        nudges: the nudges that count towards an escalation: step and call.
        rereads: reads that a compaction allows once more.
    """

    calls: int = 0
    step: int = 0
    turn: int | None = None
    window: tuple[Placed, ...] = ()
    reached: Mapping[Incident, tuple[int, int]] = field(default_factory=dict)
    quiet: Mapping[str, int] = field(default_factory=dict)
    nudges: tuple[tuple[int, int], ...] = ()
    rereads: frozenset[Key] = frozenset()


def step(state: State, item: Record | Event, config: Config = _DEFAULT) -> tuple[State, Verdict]:
    """Take one executed call, or one event, into account.

    Args:
        state: what is known so far; it is not changed.
        item: what happened next.  A call that the loop itself vetoed is none.
        config: the settings, the same ones through the whole run.
    """
    if isinstance(item, Event):
        return _after(state, item), Verdict("continue", state.calls)
    state, view = _placed(state, item, config)
    return _judged(state, view, config)


def fold(
    items: Iterable[Record | Event], config: Config = _DEFAULT, state: State | None = None
) -> tuple[State, list[Verdict]]:
    """Take many into account; the verdicts are those of the calls, in their order."""
    state = state or State()
    verdicts = []
    for item in items:
        state, verdict = step(state, item, config)
        if isinstance(item, Record):
            verdicts.append(verdict)
    return state, verdicts


def _after(state: State, event: Event) -> State:
    if event is Event.USER_MESSAGE:
        return State(calls=state.calls, step=state.step)
    reads = frozenset(one.key for one in state.window if one.record.read_only)
    return _with(state, rereads=reads)


def _placed(state: State, record: Record, config: Config) -> tuple[State, View]:
    """Put a record into its step, and forget what the window does not hold any more."""
    siblings = record.turn is not None and record.turn == state.turn and bool(state.window)
    number = state.step if siblings else state.step + 1
    window, reached, quiet, nudges, rereads = state.window, state.reached, state.quiet, state.nudges, state.rereads
    if not siblings:
        oldest = number - config.window + 1
        window = _since(window, oldest)
        if reached and any(seen < oldest for _, seen in reached.values()):
            reached = {incident: at for incident, at in reached.items() if at[1] >= oldest}
        if quiet and any(until <= number for until in quiet.values()):
            quiet = {name: until for name, until in quiet.items() if until > number}
        if nudges and nudges[0][0] <= number - config.nudge_window:
            nudges = tuple(one for one in nudges if one[0] > number - config.nudge_window)
        if rereads:
            rereads &= {one.key for one in window}
    free, rereads = _free(record, number, window, rereads)
    window = (*window[-MAX_CALLS + 1 :], Placed(state.calls + 1, number, free, record, record.tool, record.args_digest))
    placed = State(state.calls + 1, number, record.turn, window, reached, quiet, nudges, rereads)
    return placed, View(window)


def _since(window: tuple[Placed, ...], oldest: int) -> tuple[Placed, ...]:
    for index, one in enumerate(window):
        if one.step >= oldest:
            return window[index:] if index else window
    return ()


def _free(
    record: Record, number: int, window: tuple[Placed, ...], rereads: frozenset[Key]
) -> tuple[bool, frozenset[Key]]:
    """Whether a call is the re-read that a compaction allows, or the sibling of one, which is the same attempt."""
    if not record.read_only:
        return False, rereads
    if record.key in rereads:
        return True, rereads - {record.key}
    for one in reversed(window):
        if one.step != number:
            break
        if one.free and one.key == record.key:
            return True, rereads
    return False, rereads


def _judged(state: State, view: View, config: Config) -> tuple[State, Verdict]:
    """Ask the detectors in their order; the first one with something new to say is heard."""
    tool = view.latest.record.tool
    reached: dict[Incident, tuple[int, int]] | None = None
    quiet = state.quiet
    for name, detector, exclusions in config.asked:
        if exclusions and excluded(tool, exclusions):
            continue
        sighting = detector.judge(view)
        if sighting is None:
            continue
        incident = (name, *sighting.incident)
        tier = sighting.limits.tier(sighting.steps)
        before, _ = state.reached.get(incident, (0, 0))
        kept = before if sighting.excused else tier
        if kept or before:
            reached = dict(state.reached) if reached is None else reached
            reached[incident] = (kept, state.step)
            if not kept:
                del reached[incident]
        if sighting.excused:
            continue
        if sighting.limits.stop is not None and sighting.steps >= sighting.limits.stop:
            state = _with(state, reached=reached)
            return state, _stop(state, view, name, sighting, sighting.limits.stop, sighting.via)
        if tier <= before:
            continue
        if sighting.cooldown:
            if state.step < quiet.get(name, 0):
                continue
            quiet = {**quiet, name: state.step + sighting.cooldown}
        return _nudge(_with(state, reached=reached, quiet=quiet), view, name, detector, sighting, config)
    return _with(state, reached=reached), Verdict("continue", state.calls)


def _nudge(
    state: State, view: View, name: str, detector: Detector, sighting: Sighting, config: Config
) -> tuple[State, Verdict]:
    """A nudge; nothing more in a step that has one already; a stop when it is one too many."""
    if state.nudges and state.nudges[-1][0] == state.step:
        return state, Verdict("continue", state.calls)
    earlier = tuple(call for _, call in state.nudges)
    state = _with(state, nudges=(*state.nudges, (state.step, state.calls)))
    limit = sighting.limits.nudges[sighting.limits.tier(sighting.steps) - 1]
    if len(state.nudges) >= config.nudge_max:
        return state, _stop(state, view, name, sighting, limit, "escalation", earlier)
    evidence = _evidence(view, sighting, limit)
    message = detector.advice(sighting)
    return state, Verdict("nudge", state.calls, name, sighting.via, message, evidence)


def _stop(
    state: State, view: View, name: str, sighting: Sighting, limit: int, via: Via, nudges: tuple[int, ...] = ()
) -> Verdict:
    evidence = _evidence(view, sighting, limit, nudges)
    return Verdict("force_stop", state.calls, name, via, stop_message(evidence), evidence)


def _evidence(view: View, sighting: Sighting, limit: int, nudges: tuple[int, ...] = ()) -> Evidence:
    calls = sorted(sighting.calls, key=lambda one: one.seq)
    return Evidence(
        tool=view.latest.record.tool,
        rule=sighting.rule,
        count=sighting.steps,
        limit=limit,
        stop=sighting.limits.stop,
        calls=tuple(one.seq for one in calls),
        call_ids=tuple(one.record.call_id for one in calls if one.record.call_id),
        otherwise=sighting.otherwise,
        nudges=nudges,
    )


def _with(
    state: State,
    *,
    reached: Mapping[Incident, tuple[int, int]] | None = None,
    quiet: Mapping[str, int] | None = None,
    nudges: tuple[tuple[int, int], ...] | None = None,
    rereads: frozenset[Key] | None = None,
) -> State:
    """A state with some of its fields replaced; the very same one when none is (this runs at each call)."""
    if reached is None and nudges is None and rereads is None and (quiet is None or quiet is state.quiet):
        return state
    return State(
        state.calls,
        state.step,
        state.turn,
        state.window,
        state.reached if reached is None else reached,
        state.quiet if quiet is None else quiet,
        state.nudges if nudges is None else nudges,
        state.rereads if rereads is None else rereads,
    )
