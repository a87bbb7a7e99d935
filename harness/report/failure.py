"""Why a case did not pass: the verdict first, the aligned calls, and the loop's own traceback if it raised."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Final

import harness
from harness.report.lines import Line

if TYPE_CHECKING:
    from harness.gate import Verdict

__all__ = ["failure_lines", "user_traceback"]

_OWN: Final = str(Path(harness.__file__).parent)


def failure_lines(verdict: Verdict, cause: BaseException | None = None) -> list[Line]:
    """The lines of a failure report.

    Args:
        verdict: of a case that did not pass.
        cause: what the loop raised, if it did.
    """
    first = f"drift: {verdict.headline}" if verdict.status == "drift" else verdict.headline
    lines = [Line(first, "removed"), Line(""), *verdict.lines]
    if cause is not None and verdict.status == "failed":
        lines += [Line(""), *(Line(text) for text in user_traceback(cause))]
    return lines


def user_traceback(error: BaseException) -> list[str]:
    """The traceback of an error without the frames of the harness: they are not where the fault is."""
    shown = traceback.TracebackException.from_exception(error)
    frames = [frame for frame in shown.stack if not frame.filename.startswith(_OWN)]
    shown.stack = traceback.StackSummary.from_list(frames)
    return [text for chunk in shown.format() for text in chunk.rstrip("\n").split("\n")]
