"""What several lives did to one run, read off the journal: the facts on which every invariant is decided."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from harness.faults.journal import Answered, Asked, Began, Ended, Event, Ran, Reached, Refused, Verified

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness.forked import Death

__all__ = ["UNKNOWN", "Execution", "History", "Life", "says_unknown"]

UNKNOWN: Final = "status unknown"
"""What a loop says, in whatever words around it, of a call whose outcome nobody can know."""


def says_unknown(result: Mapping[str, Any]) -> bool:
    """Whether a tool_result says that nobody can know."""
    return bool(result["is_error"]) and UNKNOWN in result["text"].lower()


@dataclass(frozen=True)
class Life:
    """One process.

    Args:
        number: from 1.
        events: what it did.
        death: how it ended.
        kill_at: the point at which it was to be killed, or None.
        reference: the points that the same life passes when it is not killed; empty when that is itself.
        kill_after: the time after which it was to be killed wherever it was, in seconds, or None.
    """

    number: int
    events: tuple[Event, ...]
    death: Death
    kill_at: str | None = None
    reference: tuple[str, ...] = ()
    kill_after: float | None = None

    @cached_property
    def points(self) -> tuple[str, ...]:
        """The crash points that it passed, in order."""
        return tuple(event.point for event in self.events if isinstance(event, Reached))

    @property
    def ended(self) -> Ended | None:
        """What the loop came back with, where it came back."""
        last = self.events[-1] if self.events else None
        return last if isinstance(last, Ended) else None

    @property
    def killed(self) -> bool:
        """Whether it provably died of signal 9 at the point, or at the time, at which it was to."""
        if self.kill_after is not None:
            return self.death.struck and self.death.signal == 9
        last = self.events[-1] if self.events else None
        return (
            isinstance(last, Reached)
            and last.kill
            and last.point == self.kill_at
            and self.death.signal == 9
            and not self.death.timed_out
        )

    @property
    def end(self) -> str:
        """Where it was killed: the point, or the last one and how long after it (`turn1.model.before + 2.1 ms`)."""
        if self.kill_after is None:
            return str(self.kill_at)
        last = next((event for event in reversed(self.events) if isinstance(event, Reached)), None)
        since = self.death.began if last is None else last.at
        late = max(0.0, self.death.began + self.kill_after - since)
        return f"{'start.birth' if last is None else last.point} + {late * 1000:.1f} ms"


@dataclass(frozen=True, slots=True)
class Execution:
    """One run of one tool: in which life, what of, and whether it came to its end."""

    life: int
    began: Began
    ran: Ran | None


@dataclass(frozen=True)
class History:
    """Lives one after another on the same state, the last one to its end.

    Args:
        lives: the killed ones, then the one that lived.
        files: the workspace afterwards, digests by path.
        again: one more life on the finished run, where there was one.
        saved: the state before and after that one, digests by path.
        left: processes that were still running when all was over.
    """

    lives: tuple[Life, ...]
    files: Mapping[str, str]
    again: Life | None = None
    saved: tuple[Mapping[str, str], Mapping[str, str]] | None = None
    left: int = 0

    @property
    def last(self) -> Life:
        """The life that was not killed."""
        return self.lives[-1]

    def events(self) -> Iterator[tuple[int, Event]]:
        """All events, each with the number of its life."""
        for life in self.lives:
            for event in life.events:
                yield life.number, event

    @cached_property
    def executions(self) -> dict[str, list[Execution]]:
        """By tool_use id, every run of its tool."""
        found: dict[str, list[Execution]] = {}
        for life, event in self.events():
            if isinstance(event, Began):
                found.setdefault(event.call, []).append(Execution(life, event, None))
            elif isinstance(event, Ran):
                began = found[event.call].pop()
                found[event.call].append(Execution(life, began.began, event))
        return found

    def runs(self, call: str) -> list[Execution]:
        """The executions of a call that had their effect."""
        return [one for one in self.executions.get(call, []) if one.ran is not None]

    def attempts(self, call: str) -> list[Execution]:
        """The executions of a call that had their effect or may have had it: a kill from outside can come in their
        middle.

        One of which the tool said later that it did not take effect is none.
        """
        denied = [life for life, verdict in self.verdicts if verdict.call == call and verdict.found is False]
        return [
            one
            for one in self.executions.get(call, [])
            if one.ran is not None or not any(life > one.life for life in denied)
        ]

    def confirmed(self, call: str) -> bool:
        """Whether the tool said that a call took effect."""
        return any(verdict.call == call and verdict.found for _, verdict in self.verdicts)

    @cached_property
    def answers(self) -> dict[int, Answered]:
        """By turn, the response that counted: the last one, where it was asked for again."""
        return {event.turn: event for _, event in self.events() if isinstance(event, Answered)}

    @cached_property
    def results(self) -> dict[str, list[tuple[int, dict[str, Any]]]]:
        """By tool_use id, every result that was sent to the model, with the life that sent it."""
        found: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        for life, event in self.events():
            if isinstance(event, Asked):
                for call, result in event.results.items():
                    found.setdefault(call, []).append((life, result))
        return found

    @cached_property
    def unknown(self) -> frozenset[str]:
        """The calls that the model was told nobody can know about."""
        return frozenset(call for call, sent in self.results.items() if any(says_unknown(result) for _, result in sent))

    @cached_property
    def refusals(self) -> tuple[tuple[int, Refused], ...]:
        """What the model refused, with the life that asked."""
        return tuple((life, event) for life, event in self.events() if isinstance(event, Refused))

    @cached_property
    def verdicts(self) -> tuple[tuple[int, Verified], ...]:
        """What tools said that were asked whether they took effect."""
        return tuple((life, event) for life, event in self.events() if isinstance(event, Verified))

    def effects(self) -> Counter[tuple[str, str]]:
        """The writes that the world has seen, by tool and digest of the input.

        An idempotent call counts once, however often it ran.
        """
        counts: Counter[tuple[str, str]] = Counter()
        for call in self.executions:
            began, runs = self.executions[call][0].began, len(self.runs(call))
            if began.effect != "read_only" and (runs or self.confirmed(call)):
                counts[began.tool, began.digest] += 1 if began.effect == "idempotent" else max(1, runs)
        return counts

    def writes(self) -> dict[str, int]:
        """By tool that writes, how often it was executed, by name in order."""
        counts = Counter(
            one.began.tool for call in self.executions for one in self.runs(call) if one.began.effect != "read_only"
        )
        return {tool: counts[tool] for tool in sorted(counts)}

    @property
    def turns(self) -> int:
        """The turns of the conversation in the end."""
        return max(self.answers, default=0)
