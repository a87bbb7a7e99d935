"""The guard as the detector of a durable loop: asked after each turn with all calls of the run.

Such a loop keeps a ledger of its calls and asks again with the same ones after a crash.  Folding them anew gives the
same answer, so nothing has to be stored; the calls of earlier turns are folded once and remembered as long as the
ledger only grows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from harness.stuck.config import Config
from harness.stuck.evidence import Record, record_of
from harness.stuck.fold import State, step
from harness.stuck.verdict import Verdict, severity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["LedgerCall", "LedgerResult", "TurnDetector"]


class LedgerResult(Protocol):
    """What a call gave: text or content blocks, and whether it is an error."""

    @property
    def content(self) -> str | list[dict[str, object]]: ...

    @property
    def is_error(self) -> bool: ...


class LedgerCall(Protocol):
    """A call as a ledger holds it; more fields do no harm."""

    @property
    def tool_use_id(self) -> str: ...

    @property
    def turn(self) -> int: ...

    @property
    def tool(self) -> str: ...

    @property
    def input(self) -> Mapping[str, object]: ...

    @property
    def effect(self) -> str: ...

    @property
    def ok(self) -> bool: ...

    @property
    def result(self) -> LedgerResult | None: ...


class TurnDetector:
    """`run(..., detector=TurnDetector())`.

    A call that was refused for its arguments counts: three of them in a row are the `[validation error]` short cut.

    Args:
        config: the settings.
    """

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or Config()
        self._state = State()
        self._folded: tuple[int, str] = (0, "")  # how many calls of earlier turns, and the id of the last of them

    def __call__(self, calls: Sequence[LedgerCall], /) -> Verdict:
        """The worst verdict among the calls of the last turn."""
        worst = Verdict("continue", len(calls))
        if not calls:
            return worst
        begin = len(calls) - 1
        while begin and calls[begin - 1].turn == calls[-1].turn:
            begin -= 1
        state = self._before(calls, begin)
        for call in calls[begin:]:
            state, verdict = step(state, self._record(call), self.config)
            if severity(verdict) > severity(worst):
                worst = verdict
        return worst

    def _before(self, calls: Sequence[LedgerCall], begin: int) -> State:
        """The state before the last turn."""
        done, last = self._folded
        if done > begin or (done and calls[done - 1].tool_use_id != last):
            done, self._state = 0, State()
        for call in calls[done:begin]:
            self._state, _ = step(self._state, self._record(call), self.config)
        self._folded = (begin, calls[begin - 1].tool_use_id if begin else "")
        return self._state

    def _record(self, call: LedgerCall) -> Record:
        return record_of(
            call.tool,
            call.input,
            None if call.result is None else call.result.content,
            ok=call.ok,
            read_only=call.effect == "read_only",
            turn=call.turn,
            call_id=call.tool_use_id,
            profile=self.config.profile(call.tool),
        )
