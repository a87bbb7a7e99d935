"""Why a case did not pass: the verdict first, the aligned calls, and the loop's own traceback if it raised."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.report.lines import Line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from traceback import FrameSummary, StackSummary

    from harness.gate import Verdict

__all__ = ["failure_lines", "user_traceback"]

# Around a loop and its fault stands what carried it: pytest, the harness, the event loop, the client.
_CARRIERS: Final = ("_pytest", "anthropic", "asyncio", "harness", "httpx2", "pluggy")


_TOLD: Final = 5
"""Failed calls that are shown."""


def failure_lines(
    verdict: Verdict, cause: BaseException | None = None, failures: Mapping[int, str] | None = None
) -> list[Line]:
    """The lines of a failure report.

    Args:
        verdict: of a case that did not pass.
        cause: what the loop raised, if it did.
        failures: how the calls that failed did so, by index into the calls of the trace.
    """
    first = f"drift: {verdict.headline}" if verdict.status == "drift" else verdict.headline
    lines = [Line(first, "removed", hang=2), *_said(verdict, failures or {})]
    if verdict.lines:
        lines += [Line(""), *verdict.lines]
    if cause is not None and verdict.status == "failed":
        lines += [Line(""), *map(Line, user_traceback(cause))]
    return lines


def _said(verdict: Verdict, failures: Mapping[int, str]) -> list[Line]:
    """Why calls failed that do not fail in the golden."""
    expected: set[int | None] = set()
    if verdict.drift is not None:
        golden = verdict.drift.golden.calls
        expected = {edit.b for edit in verdict.drift.edits if edit.a is not None and not golden[edit.a].ok}
    calls = verdict.trace.calls if verdict.trace is not None else ()
    told = [index for index in failures if index not in expected and failures[index] and index < len(calls)]
    lines = [
        Line(f"call {index + 1}, `{calls[index].tool}`, failed: {failures[index]}", "removed", hang=2)
        for index in told[:_TOLD]
    ]
    return [*lines, Line(f"… and {len(told) - _TOLD} more failed calls", "removed")] if len(told) > _TOLD else lines


def user_traceback(error: BaseException) -> list[str]:
    """The traceback of an error, its causes included, without the frames that only carried the loop."""
    shown = traceback.TracebackException.from_exception(error)
    carriers = tuple(folder for name in _CARRIERS if (folder := _folder(name)))
    pending, seen = [shown], {id(shown)}
    while pending:
        one = pending.pop()
        one.stack = _without(carriers, one.stack)
        if one.__context__ is not None and not _users(carriers, one.__context__.stack):
            one.__context__ = None  # what was being handled around the loop, not in it
        for other in (one.__cause__, one.__context__, *(one.exceptions or ())):
            if other is not None and id(other) not in seen:
                seen.add(id(other))
                pending.append(other)
    return [text for chunk in shown.format() for text in chunk.removesuffix("\n").split("\n")]


def _users(carriers: tuple[str, ...], stack: StackSummary) -> list[FrameSummary]:
    return [frame for frame in stack if not frame.filename.startswith(carriers)]


def _without(carriers: tuple[str, ...], stack: StackSummary) -> StackSummary:
    # An error of the shipped loop has no frames of the user; then the last one says where it was.
    return traceback.StackSummary.from_list(_users(carriers, stack) or list(stack)[-1:])


def _folder(package: str) -> str | None:
    """Where a package is, if it was imported; with the separator, or `harness_demo/` would pass for `harness/`."""
    file = getattr(sys.modules.get(package), "__file__", None)
    return str(Path(file).parent) + os.sep if file else None
