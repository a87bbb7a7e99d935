"""The backstop: one tool that takes up the window and shows no progress of any declared kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.stuck.limits import Limits
from harness.stuck.sighting import Sighting
from harness.stuck.window import steps_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.stuck.evidence import Record
    from harness.stuck.window import Placed, View

__all__ = ["NoProgress"]

_BUSY = frozenset({"pollable", "semi_repeatable"})


@dataclass(frozen=True, slots=True)
class NoProgress:
    """One tool fills the window, and nothing that is declared about it says that this is progress.

    Rule: count the steps of the window with this tool.  `limits`, or the higher `busy` ones for user interfaces and for
    tools with the trait `pollable` or `semi_repeatable`, of which many calls are normal.

    Incident: a sequential-thinking tool was called 1,039 times with new text and the same reply
    (google-gemini/gemini-cli#25671); a "yield" 303 times (can1357/oh-my-pi#10895).  Neither repeats a call.

    Exempt: the family `search`; the trait `no_progress_exempt`; and whoever shows progress: reads with at least half of
    their arguments and half of their results distinct; `batch_tolerant` tools with half of their arguments distinct;
    `progress_by_args` tools whose calls all succeeded with new arguments and new results; `progress_by_result` tools
    whose calls all succeeded with new results.  Writes to the outside with new arguments and fresh ids are not exempt:
    nobody can tell a batch from a flood, so the question is asked.
    """

    limits: Limits = Limits(nudges=(12,), stop=18)
    busy: Limits = Limits(nudges=(16,), stop=20)

    def judge(self, view: View) -> Sighting | None:
        """Count the steps of this tool, unless they show progress."""
        latest = view.latest.record
        if latest.family == "search" or "no_progress_exempt" in latest.traits:
            return None
        calls = view.same_tool
        is_busy = (
            latest.family in ("browser", "gui") or latest.modality is not None or not _BUSY.isdisjoint(latest.traits)
        )
        limits = self.busy if is_busy else self.limits
        count = steps_of(calls)
        excused = limits.lowest is not None and count >= limits.lowest and _shows_progress(latest, calls)
        return Sighting(
            incident=(latest.tool,),
            steps=count,
            limits=limits,
            calls=calls,
            rule="of late used this tool, without progress that could be told",
            otherwise="fewer calls of it, or distinct arguments with distinct results if the tool reads or declares so",
            excused=excused,
        )

    def advice(self, sighting: Sighting) -> str:
        """What is the next call going to show?"""
        newest = sighting.calls[0].record
        return (
            f"{sighting.steps} of the last steps used `{newest.tool[:80]}`. Before the next call, state what it will "
            "show that the ones so far have not; if there is nothing, finish or take another way."
        )


def _is_busy(latest: Record) -> bool:
    is_interface = latest.family in ("browser", "gui") or latest.modality is not None
    return is_interface or not _BUSY.isdisjoint(latest.traits)


def _shows_progress(latest: Record, calls: Sequence[Placed]) -> bool:
    arguments = len({one.args_digest for one in calls})
    results = len({one.record.result_digest for one in calls} - {None})
    half = len(calls) / 2
    if arguments >= half and "batch_tolerant" in latest.traits:
        return True
    if arguments >= half and results >= half and {one.record.read_only for one in calls} == {True}:
        return True
    if results < len(calls) or not all(one.record.ok for one in calls):
        return False
    return "progress_by_result" in latest.traits or ("progress_by_args" in latest.traits and arguments == len(calls))
