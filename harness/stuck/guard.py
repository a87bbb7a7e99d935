"""The guard for a loop of one's own: tell it each executed call, and do what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.stuck.config import Config
from harness.stuck.evidence import ErrorClass, Event, Record, record_of
from harness.stuck.fold import State, step
from harness.stuck.verdict import Verdict, severity

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Guard"]


class Guard:
    """Keeps the state of the fold for one run.  A new run, or a sub-agent, has its own.

    ::

        guard = Guard()
        verdict = guard.call("read_file", {"path": "a"}, text, read_only=True, turn=3)
        if verdict.kind == "nudge":          # after the results of the turn, never before
            messages.append({"role": "user", "content": verdict.message})

    Ask `of_turn` when all calls of a turn are through: it is the worst verdict among them, and the one to act on.

    Args:
        config: the settings.
        on_verdict: called with every verdict that is not `continue`.
        state: where to go on, for a run that was folded before.
    """

    def __init__(
        self,
        config: Config | None = None,
        on_verdict: Callable[[Verdict], object] | None = None,
        state: State | None = None,
    ) -> None:
        self.config = config or Config()
        self.state = state or State()
        self.of_turn = Verdict("continue", self.state.calls)
        self._on_verdict = on_verdict

    def call(
        self,
        tool: str,
        arguments: object,
        result: object = None,
        *,
        ok: bool = True,
        error_class: ErrorClass | None = None,
        read_only: bool = False,
        turn: int | None = None,
        call_id: str = "",
    ) -> Verdict:
        """Take one executed call into account; the arguments are those of `record_of`.

        A call that the loop itself vetoed was not executed and is not told.
        """
        record = record_of(
            tool,
            arguments,
            result,
            ok=ok,
            error_class=error_class,
            read_only=read_only,
            turn=turn,
            call_id=call_id,
            profile=self.config.profile(tool),
        )
        return self.observe(record)

    def observe(self, record: Record) -> Verdict:
        """Take the evidence of one executed call into account."""
        before = self.state.step
        self.state, verdict = step(self.state, record, self.config)
        if self.state.step != before or severity(verdict) > severity(self.of_turn):
            self.of_turn = verdict
        if verdict.kind != "continue" and self._on_verdict is not None:
            self._on_verdict(verdict)
        return verdict

    def event(self, event: Event) -> None:
        """Take a person's message or a compaction into account.  What a loop injects itself is no such message."""
        self.state, self.of_turn = step(self.state, event, self.config)
