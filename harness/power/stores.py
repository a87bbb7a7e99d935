"""The power-loss check of a store: one run that uses all of it, recorded, cut everywhere, loaded and gone on with.

python -m harness.power.stores                          # both stores of the durable loop
python -m harness.power.stores mypackage.state:MyStore  # or your own, which takes a directory
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from harness.agent.results import ToolResult
from harness.agent.state import Answered, Asked, Call, Prompted, Returned, Settled, Started, State
from harness.errors import HarnessError
from harness.power.check import begin, cut_everywhere, done
from harness.power.strace import record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.agent.state import Change
    from harness.agent.store import Store
    from harness.power.check import Finding, Verdict
    from harness.power.operations import Operation

__all__ = ["STORES", "check_store", "record_store"]

STORES: Final = ("harness.agent.json_store:JsonStore", "harness.agent.sqlite_store:SqliteStore")

_Factory: TypeAlias = "Callable[[Path], Store]"

_MEMORY: Final = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108, PTH112
"""Where thousands of states are laid out and synced: what is recorded are calls, and they are the same in memory."""

_MODULE: Final = "harness.power.stores"

_ROOM: Final = "runs/one"
"""The state_dir below the root.  Its folders are part of what must last."""


def _calls() -> tuple[Call, ...]:
    return (
        Call("toolu_1", 1, 0, "read_notes", {"path": "notes.md"}, "read_only"),
        Call("toolu_2", 1, 1, "send_email", {"to": "team@example.com"}, "irreversible"),
    )


def _asks(call: Call) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.tool_use_id, "name": call.tool, "input": call.input}


_NOTES: Final = "The launch moved to Thursday. " * 40
"""Longer than two sectors, so that a write of it can be torn."""

_SCRIPT: Final[tuple[Change | None, ...]] = (
    Asked(),
    Answered([_asks(call) for call in _calls()], {"stop_reason": "tool_use", "model": "claude-test"}, 120, _calls()),
    Started("toolu_1", 1.0),
    Settled("toolu_1", "done", ToolResult(_NOTES), 2.0),
    Started("toolu_2", 3.0),
    Settled("toolu_2", "done", ToolResult("sent"), 4.0),
    Returned(),
    None,  # the process ends in good order, and another one goes on
    Asked(),
    Answered([{"type": "text", "text": "Sent."}], {"stop_reason": "end_turn", "model": "claude-test"}, 180, (), "done"),
    Prompted("And again tomorrow."),
)
"""Every kind of save that a run makes, over two processes.  `create` comes before: it is the first save."""

_SAVES: Final = tuple(change for change in _SCRIPT if change is not None)


def record_store(factory: str, work: Path) -> list[Operation]:
    """Record the run of a store in a process of its own.

    Args:
        factory: `module:callable`; called with the state directory it returns a store.
        work: an empty directory of our own.

    Raises:
        HarnessError: As `record`; or the factory is not there.
    """
    root, marks = work / "root", work / "marks"
    root.mkdir()
    marks.touch()
    return record([sys.executable, "-m", _MODULE, "--run", factory, str(root / _ROOM), str(marks)], root, marks)


def check_store(
    factory: str, work: Path, *, finish: bool = True, bound: int = 64, sample: int = 32, seed: int = 0
) -> Verdict:
    """Record the run of a store, cut the power everywhere, load what may be left, and finish the run from there.

    Args:
        factory: `module:callable`; called with the state directory it returns a store.
        work: an empty directory of our own.
        finish: also finish the run from each state, which is most of the time that it takes.
        bound: up to so many states of one moment are tried all.
        sample: above that, so many random ones.
        seed: of the sample.

    Raises:
        HarnessError: Nothing can be recorded here; or the factory is not there.
    """
    make = _import(factory)
    log = record_store(factory, work)
    saves = _saves(make, work / "smooth", work / "copy")

    def load(root: Path) -> State | None:
        return _load(make, root / _ROOM)

    def go_on(root: Path, save: int) -> None:
        _finish(make, root / _ROOM, save)
        if load(root) != saves[-1]:
            raise HarnessError(f"finished from save {save}, the run is not what it is without the loss of power")

    left, go = work / "left", go_on if finish else None
    return cut_everywhere(log, load, saves, left, go_on=go, bound=bound, sample=sample, seed=seed)


def _begun() -> State:
    state = State(run_id="0" * 32)
    state.apply(Prompted("Mail the notes to the team."))
    return state


def _run(make: _Factory, directory: Path, around: Callable[[str], None]) -> None:
    """The whole script on one state directory; `around` is told when a save begins and when it is done."""
    store, number = make(directory), 1
    store.load()
    around(begin(number))
    store.create(_begun())
    around(done(number))
    for change in _SCRIPT:
        if change is None:
            store.close()
            store = make(directory)
            store.load()
        else:
            number += 1
            around(begin(number))
            store.commit(change)
            around(done(number))
    store.close()


def _saves(make: _Factory, directory: Path, copy: Path) -> list[State | None]:
    """What loading gives after each save when the power stays."""
    saves: list[State | None] = [None]

    def keep(mark: str) -> None:
        if mark.startswith("done"):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(directory, copy)
            saves.append(_load(make, copy))

    _run(make, directory, keep)
    return saves


def _load(make: _Factory, directory: Path) -> State | None:
    with closing(make(directory)) as store:
        return store.load()


def _finish(make: _Factory, directory: Path, save: int) -> None:
    with closing(make(directory)) as store:
        if store.load() is None:
            store.create(_begun())
        for change in _SAVES[max(save - 1, 0) :]:
            store.commit(change)


def _import(factory: str) -> _Factory:
    module, _, name = factory.partition(":")
    try:
        made: _Factory = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise HarnessError(f"there is no store {factory!r}: {error}; give it as module:callable") from error
    return made


def _record_here(factory: str, directory: Path, marks: Path) -> None:
    """The recorded process."""
    make = _import(factory)
    descriptor = os.open(marks, os.O_WRONLY | os.O_APPEND)
    _run(make, directory, lambda mark: (os.write(descriptor, f"{mark}\n".encode()), None)[1])


def _plainest(findings: list[Finding]) -> list[Finding]:
    """Of each problem the one where the least was lost: it shows best what is missing."""
    by_problem: dict[str, Finding] = {}
    for finding in sorted(findings, key=lambda finding: len(finding.lost)):
        by_problem.setdefault(finding.problem, finding)
    return list(by_problem.values())


def _main(wanted: Sequence[str]) -> int:
    failed = 0
    for factory in wanted or STORES:
        with tempfile.TemporaryDirectory(dir=_MEMORY) as work:
            verdict = check_store(factory, Path(work))
        failed += bool(verdict.findings)
        print(
            f"{factory}: power cut at {verdict.cuts} moments, {verdict.states} states, "
            f"{verdict.sampled} moments sampled: {len(verdict.findings)} wrong"
        )
        for finding in _plainest(verdict.findings):
            print(finding)
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        _record_here(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
    else:
        try:
            sys.exit(_main(sys.argv[1:]))
        except HarnessError as error:
            sys.exit(str(error))
