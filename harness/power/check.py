"""Cutting the power at every moment of a recording, and judging what a program makes of what is left."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Literal, TypeAlias, TypeVar

from harness.errors import HarnessError
from harness.power.disk import Disk
from harness.power.operations import Mark, Write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from harness.power.disk import Remains
    from harness.power.operations import Operation

__all__ = ["Finding", "Verdict", "begin", "cut_everywhere", "done"]

Problem: TypeAlias = Literal["unreadable", "lost", "made_up", "stuck"]
"""`unreadable`: it does not load.  `lost`: it is older than what was acknowledged.  `made_up`: it is none of the states
that the run went through, or ahead of it.  `stuck`: it loads, and the run cannot go on from there.
"""

_T = TypeVar("_T")


def begin(save: int) -> str:
    """The mark that a save is asked for; the first is 1, and 0 is what there was before."""
    return f"begin {save}"


def done(save: int) -> str:
    """The mark that it has returned: from here on it may not be lost."""
    return f"done {save}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One state that a program could not live with.

    Args:
        problem: what kind.
        detail: in words.
        cut: after how many operations of the recording the power went; with the seed, this reproduces it.
        after: the last of these operations.
        acknowledged: the last save that had returned.
        lost: what did not reach the disk.
    """

    problem: Problem
    detail: str
    cut: int
    after: str
    acknowledged: int
    lost: tuple[str, ...]

    def __str__(self) -> str:
        lost = "; ".join(self.lost) or "nothing"
        return (
            f"{self.problem}: {self.detail}\n  the power went after operation {self.cut} ({self.after}), "
            f"save {self.acknowledged} had returned\n  lost: {lost}"
        )


@dataclass(slots=True)
class Verdict:
    """What was tried and found.

    Args:
        cuts: moments at which the power was cut.
        sampled: at how many of them not all states were tried, since there are too many.
        states: states tried, equal ones of neighbouring moments once.
        findings: what is wrong.
    """

    cuts: int = 0
    sampled: int = 0
    states: int = 0
    findings: list[Finding] = field(default_factory=list)


@dataclass(slots=True)
class _Judge(Generic[_T]):
    load: Callable[[Path], _T]
    saves: Sequence[_T]
    scratch: Path
    go_on: Callable[[Path, int], None] | None
    loaded: dict[object, tuple[list[int], str]] = field(default_factory=dict)

    def __call__(self, found: Remains, first: int, last: int) -> tuple[Problem, str] | None:
        mark = (frozenset(found.files.items()), found.folders)
        if mark not in self.loaded:
            self.loaded[mark] = self._load(found)
        numbers, error = self.loaded[mark]
        if not numbers:
            return ("unreadable" if error else "made_up"), error or "it is no state that the run went through"
        if max(numbers) < first:
            return "lost", f"save {max(numbers)} is found"
        if not any(first <= number <= last for number in numbers):
            return "made_up", f"save {min(numbers)} is found, which had not begun"
        return ("stuck", error) if error else None

    def _load(self, found: Remains) -> tuple[list[int], str]:
        """Which saves it may be (not all saves of a store without a ledger differ), and what went wrong."""
        _lay_out(found, self.scratch)
        try:
            value = self.load(self.scratch)
            numbers = [number for number, saved in enumerate(self.saves) if saved == value]
        except HarnessError as error:
            return [], str(error)
        if numbers and self.go_on is not None:
            try:
                self.go_on(self.scratch, numbers[0])
            except HarnessError as error:
                return numbers, str(error)
        return numbers, ""


def cut_everywhere(
    log: Sequence[Operation],
    load: Callable[[Path], _T],
    saves: Sequence[_T],
    scratch: Path,
    *,
    go_on: Callable[[Path, int], None] | None = None,
    bound: int = 64,
    sample: int = 32,
    seed: int = 0,
) -> Verdict:
    """Cut the power after each operation, and load each state that may be left (`Disk.after_power_loss`).

    Args:
        log: a recording with the marks `begin(n)` and `done(n)` around each save.
        load: reads a root directory as the program does after a restart; raises `HarnessError` when it cannot.
        saves: what it must give: `saves[0]` before the first save, `saves[n]` when the n-th has returned.
        scratch: a directory of our own; it is emptied for each state.
        go_on: continues the run from this save in the directory that was loaded; raises `HarnessError` when it cannot.
        bound: up to so many states of one moment are tried all.
        sample: above that, and with torn sectors, so many random ones.
        seed: of the sample.
    """
    verdict = Verdict()
    judge = _Judge(load, saves, scratch, go_on)
    for cut, disk, first, last in _moments(log):
        verdict.cuts += 1
        verdict.sampled += disk.count() > bound
        for found in disk.after_power_loss(bound=bound, sample=sample, seed=seed):
            if (wrong := judge(found, first, last)) is not None:
                verdict.findings.append(Finding(*wrong, cut, _words(log, cut), first, found.lost))
    verdict.states = len(judge.loaded)
    return verdict


def _moments(log: Sequence[Operation]) -> Iterator[tuple[int, Disk, int, int]]:
    """Each moment between two operations, with the saves that may be found then: the first and the last.

    A moment right before a mark is passed over: after it the disk is the same, and more may be demanded.
    """
    disk, first, last = Disk(), 0, 0
    for cut, operation in enumerate(log, 1):
        disk.apply(operation)
        if isinstance(operation, Mark):
            word, _, number = operation.text.partition(" ")
            first, last = (int(number), int(number)) if word == "done" else (first, int(number))
        if cut == len(log) or not isinstance(log[cut], Mark):
            yield cut, disk, first, last


def _lay_out(found: Remains, root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    for folder in sorted(found.folders):
        (root / folder).mkdir()
    for name, content in found.files.items():
        (root / name).write_bytes(content)


def _words(log: Sequence[Operation], cut: int) -> str:
    match log[cut - 1]:
        case Write(path, offset, data):
            return f"Write of {len(data)} bytes at {offset} of {path!r}"
        case operation:
            return repr(operation)
