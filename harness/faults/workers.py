"""Work spread over forked processes that each own what they start; results in the order of the items."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import select
import signal
import sys
import traceback
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from harness.errors import HarnessError
from harness.forked import fork
from harness.orphans import adopt_orphans, die_with_parent, end_all_children

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["fan_out"]

T = TypeVar("T")
R = TypeVar("R")


def fan_out(
    items: Sequence[T],
    work: Callable[[int, T], R],
    *,
    jobs: int,
    done: Callable[[], None] = lambda: None,
) -> list[R]:
    """`work(worker, item)` for every item, in forked processes.

    A worker inherits the orphans of what it starts, and ends with nothing of it still running.  It ends with this
    process, however this one ends.

    Args:
        items: what there is to do; worker `k` takes every `jobs`-th from `k` on.
        work: called in the worker; its result is pickled.
        jobs: how many workers, at least 1.
        done: called here after each item.

    Raises:
        HarnessError: as `work` raised it, or a worker did not do all of its work.
        RuntimeError: `work` raised anything else; the text is the traceback.
    """
    results: dict[int, R] = {}
    jobs = max(1, min(jobs, len(items)))
    sys.stdout.flush()  # or the children would hold a copy of what is still to be written
    sys.stderr.flush()
    workers: dict[int, tuple[int, bytearray]] = {}
    try:
        for number in range(jobs):
            reading, pid = _start(number, items, work, jobs, list(workers))
            workers[reading] = (pid, bytearray())
        _gather(workers, results, done)
    except BaseException:
        for pid, _ in workers.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        raise
    finally:
        for reading, (pid, _) in workers.items():
            os.close(reading)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
    missing = [index for index in range(len(items)) if index not in results]
    if missing:
        raise HarnessError(f"a worker ended before its work was done, at {items[missing[0]]!r}")
    return [results[index] for index in range(len(items))]


def _start(
    number: int, items: Sequence[T], work: Callable[[int, T], R], jobs: int, others: list[int]
) -> tuple[int, int]:
    parent = os.getpid()
    reading, writing = os.pipe()
    pid = fork()
    if pid:
        os.close(writing)
        return reading, pid
    try:
        for descriptor in (reading, *others):
            os.close(descriptor)
        signal.signal(signal.SIGTERM, _leave)
        adopt_orphans()
        die_with_parent(signal.SIGTERM, parent)
        # What the parent has built is never collected here: a collection touches, and so copies, all of it (0.4 s where
        # the parent is a test session with 90 MB).
        gc.freeze()
        for index in range(number, len(items), jobs):
            _send(writing, ("result", index, work(number, items[index])))
    except HarnessError as error:
        _send(writing, ("error", str(error), None))
    except Exception:  # noqa: BLE001 (it must be known in the parent, and cannot go there as it is)
        _send(writing, ("fault", traceback.format_exc(), None))
    except BaseException:  # noqa: BLE001, S110 (told to stop)
        pass
    finally:
        with contextlib.suppress(BaseException):
            end_all_children()
        os._exit(0)


def _leave(number: int, frame: object) -> NoReturn:
    del number, frame
    raise SystemExit


def _send(writing: int, message: tuple[str, Any, Any]) -> None:
    data = pickle.dumps(message)
    with contextlib.suppress(BrokenPipeError):
        view = memoryview(len(data).to_bytes(8) + data)
        while view:
            view = view[os.write(writing, view) :]


def _gather(workers: dict[int, tuple[int, bytearray]], results: dict[int, Any], done: Callable[[], None]) -> None:
    poll = select.poll()
    for reading in workers:
        poll.register(reading, select.POLLIN)
    open_ends = set(workers)
    while open_ends:
        for reading, _ in poll.poll():
            _, buffer = workers[reading]
            chunk = os.read(reading, 1 << 16)
            if not chunk:
                poll.unregister(reading)
                open_ends.discard(reading)
            buffer += chunk
            for kind, index, result in _messages(buffer):
                if kind == "error":
                    raise HarnessError(index)
                if kind == "fault":
                    raise RuntimeError(f"a worker of the sweep failed\n{index}")
                results[index] = result
                done()


def _messages(buffer: bytearray) -> list[tuple[str, Any, Any]]:
    found = []
    while len(buffer) >= 8 and len(buffer) >= 8 + (size := int.from_bytes(buffer[:8])):
        found.append(pickle.loads(buffer[8 : 8 + size]))  # noqa: S301 (from our own child)
        del buffer[: 8 + size]
    return found
