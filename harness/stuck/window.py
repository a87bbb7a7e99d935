"""What a detector may look at: the calls of the last steps, the newest one last."""

from __future__ import annotations

from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harness.stuck.evidence import Key, Record

__all__ = ["Placed", "View", "steps_of"]


class Placed(NamedTuple):  # one is made at each call, and a tuple is made four times as quickly as a frozen dataclass
    """A record in its place.

    Args:
        seq: number of the call in the run, from 1.
        step: number of its step; consecutive over the steps that hold calls.
        free: whether it is the one re-read that a compaction allows: it is not counted anywhere.
        record: the evidence.
        tool: that of the record, and
        args_digest: that of the record, both at hand because each later call looks at them.
    """

    seq: int
    step: int
    free: bool
    record: Record
    tool: str
    args_digest: str

    @property
    def key(self) -> Key:
        """What makes two calls the same call."""
        return (self.tool, self.args_digest)


class View:
    """The window as it is seen from its newest call, with the selections that several detectors need.

    All lists are newest first, as detectors walk backwards, and leave out what is not counted.
    """

    def __init__(self, window: tuple[Placed, ...]) -> None:
        self.window = window
        self.latest = window[-1]
        tool, digest = self.latest.tool, self.latest.args_digest
        self.same_tool = [one for one in window if one.tool == tool and not one.free]
        self.same_tool.reverse()
        self.same_key = [one for one in self.same_tool if one.args_digest == digest]

    @property
    def just_recovered(self) -> bool:
        """Whether the newest call succeeded where the same call failed the last time.

        A twin of the same step that succeeded as well is the same success.
        """
        if not self.latest.record.ok:
            return False
        for one in self.same_key:
            if not one.record.ok:
                return True
            if one.step != self.latest.step:
                return False
        return False

    def steps(self) -> Iterator[tuple[int, list[Placed]]]:
        """The steps, newest first, each with its calls."""
        for step, calls in groupby(reversed(self.window), key=lambda one: one.step):
            yield step, list(calls)

    def credited(self, old: Placed, new: Placed) -> bool:
        """Whether something moved between two calls of one tool.

        It takes two known results that differ, and a reason to believe that the difference means something: both are
        successful reads; or the tool declares `progress_by_result`; or a write that is new in the window succeeded
        between them (edit, then the same build with another failure: itayinbarr/little-coder#81).  The fresh id of a
        message that is sent again is none.
        """
        before, after = old.record, new.record
        if before.result_digest == after.result_digest or before.result_digest is None or after.result_digest is None:
            return False
        if before.ok and after.ok:
            if before.read_only and after.read_only:
                return True
            if "progress_by_result" in after.traits:
                return True
        return any(
            old.seq < write.seq < new.seq and write.key not in (old.key, new.key) for write in self._novel_writes
        )

    def adjoin(self, old: Placed, new: Placed) -> bool:
        """Whether no step stands between two calls, those apart that hold nothing but free re-reads."""
        return all(step in self._transparent for step in range(old.step + 1, new.step))

    @cached_property
    def _novel_writes(self) -> list[Placed]:
        """Successful writes whose tool and arguments are seen in the window for the first time."""
        novel: list[Placed] = []
        seen: set[Key] = set()
        for one in self.window:
            if (key := one.key) not in seen:
                seen.add(key)
                record = one.record
                if record.ok and not record.read_only and "inert" not in record.traits:
                    novel.append(one)
        return novel

    @cached_property
    def _transparent(self) -> frozenset[int]:
        if not any(one.free for one in self.window):
            return frozenset()
        return frozenset(step for step, calls in self.steps() if all(one.free for one in calls))


def steps_of(calls: Iterable[Placed]) -> int:
    """In how many steps these calls were made.  Siblings count once: the model saw no result between them."""
    return len({one.step for one in calls})
