"""Processes that tools start: known to the ledger before they may do anything, and ended before anybody reconciles.

Killing an agent does not kill the shell command that its tool was running.  The command goes on, and has its effect
after the resumed agent has looked and found nothing.  So a tool starts processes with `start_process` or `run_process`:
each gets a process group of its own, waits at a gate until its id stands in the ledger, and is found and ended on
resume.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.agent.state import OwnProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["CURRENT_CALL", "RunningCall", "end_groups", "group_alive", "run_process", "start_process"]

_GATE: Final = 'read -r _ < "/dev/fd/$0" || exit 125; exec "$@"'
"""What a started process does first: wait for a line, and give up when the gate's other end is gone with its parent."""

_LINUX: Final = bool(sys.platform.startswith("linux"))

_POLL: Final = 0.02

_TERM_TO_KILL: Final = 2.0
"""Seconds that a group gets between SIGTERM and SIGKILL."""


@dataclass(slots=True)
class RunningCall:
    """The call in whose name a tool runs: where its processes are recorded, and which they are."""

    tool_use_id: str
    record: Callable[[OwnProcess], None]
    processes: list[OwnProcess] = field(default_factory=list)


CURRENT_CALL: ContextVar[RunningCall | None] = ContextVar("CURRENT_CALL", default=None)


def start_process(args: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """`subprocess.Popen` for tools: a process group of its own, recorded in the ledger before the program begins.

    Outside of a call it is recorded nowhere and behaves the same.

    Args:
        args: Program and arguments; never a shell line (give `["sh", "-c", line]` for that).
        options: As for `subprocess.Popen`, but neither `shell` nor another session.

    Raises:
        OSError: The program cannot be started.
        StateError: The ledger could not be written; the program has not begun.
    """
    if isinstance(args, str) or options.get("shell"):
        raise TypeError("give the program and its arguments as a list; for a shell line: ['sh', '-c', line]")
    gate, release = os.pipe()
    try:
        inherited = (*options.pop("pass_fds", ()), gate)
        process = subprocess.Popen(  # noqa: S603 (running what the tool's author wrote is the purpose)
            ["/bin/sh", "-c", _GATE, str(gate), *args], pass_fds=inherited, start_new_session=True, **options
        )
        try:
            _record(process.pid)
            os.write(release, b"\n")
        except BaseException:
            with process:  # it has waited at the gate, and done nothing
                process.kill()
            raise
    finally:
        os.close(gate)
        os.close(release)
    return process


def _record(pid: int) -> None:
    call = CURRENT_CALL.get()
    if call is not None:
        own = OwnProcess(pid, _began(pid) or "")
        call.processes.append(own)
        call.record(own)


def run_process(
    args: Sequence[str],
    *,
    input: Any = None,  # noqa: A002 (as in subprocess)
    timeout: float | None = None,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run(..., capture_output=True)` for tools; on a timeout the whole process group is ended.

    Raises:
        subprocess.TimeoutExpired: As `subprocess.run` does.
    """
    if input is not None:
        options["stdin"] = subprocess.PIPE
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    with start_process(args, **pipes) as process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            _signal(process.pid, signal.SIGKILL)
            process.wait()
            raise
    return subprocess.CompletedProcess(list(args), process.returncode, out, err)


def end_groups(processes: Iterable[OwnProcess], *, patience: float) -> None:
    """Return when no process of these groups is alive: waited for, then asked to end, then killed.

    Args:
        processes: The leaders of the groups, as the ledger holds them.
        patience: Seconds in which they may end by themselves.
    """
    left = [process for process in processes if group_alive(process)]
    for number, seconds in ((None, patience), (signal.SIGTERM, _TERM_TO_KILL), (signal.SIGKILL, _TERM_TO_KILL)):
        for process in left:
            if number is not None:
                _signal(process.pid, number)
        until = time.monotonic() + seconds
        while left and time.monotonic() < until:
            left = [process for process in left if group_alive(process)]
            if left:
                time.sleep(_POLL)


def group_alive(process: OwnProcess) -> bool:
    """Whether a process of this group is alive; an id that was given to a process of somebody else does not count.

    The system does not reuse an id as long as a group of that id has members, so a group without its leader is still
    ours.
    """
    began = _began(process.pid)
    if began is not None and process.began and began != process.began:
        return False
    if _LINUX:
        return any(group == process.pid and state not in "ZX" for _, group, state in _table())
    with contextlib.suppress(PermissionError):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return False
    return True


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _began(pid: int) -> str | None:
    """When a process began, in a form that only it has on this machine; `None` when there is no such process."""
    if _LINUX:
        fields = _stat(Path(f"/proc/{pid}/stat"))
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return None if fields is None else f"{boot}:{fields[19]}"
    asked = subprocess.run(["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)  # noqa: S603
    return asked.stdout.strip() or None


def _table() -> Iterator[tuple[int, int, str]]:
    """Process id, group and state of every process."""
    for name in os.listdir("/proc"):  # noqa: PTH208 (names are all that is needed)
        if name.isdigit() and (fields := _stat(Path("/proc", name, "stat"))) is not None:
            yield int(name), int(fields[2]), fields[0]


def _stat(path: Path) -> list[str] | None:
    """The fields of a stat file from the third on: the second is the program's name, which may hold anything."""
    try:
        return path.read_text("utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
