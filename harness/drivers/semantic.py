"""What a change of one golden file means, as styled lines: what `git diff` shows instead of changed JSON."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from harness.crash_golden import CRASH_SUFFIX, parse_crash
from harness.drift import compare
from harness.drivers.readable import readable
from harness.errors import GoldenError
from harness.golden import decode_trace
from harness.report.line import Line
from harness.report.lines import SHOWN, drift_lines, trace_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.crash_golden import Row
    from harness.trace import Trace

__all__ = ["conflict_lines", "golden_diff"]


def golden_diff(path: str, before: bytes | None, after: bytes | None, was: str = "") -> list[Line] | None:
    """What changed between two versions of a golden; None when one of them is neither a trace nor a crash golden.

    Args:
        path: of the file, as git names it.
        before, after: the versions; None where there is none.
        was: the path that it had before, where it was renamed.
    """
    title = f"{'crash golden' if path.endswith(CRASH_SUFFIX) else 'golden'} {path}"
    title += f", was {was}" if was and was != path else ""
    try:
        if path.endswith(CRASH_SUFFIX):
            return _crash_diff(title, _rows(was or path, before), _rows(path, after), before, after)
        return _trace_diff(title, _trace(path, before), _trace(path, after), before, after)
    except GoldenError:
        return None


def conflict_lines(path: str, data: bytes) -> list[Line] | None:
    """What each branch made of a golden that is in conflict; None when the file does not hold both versions."""
    from harness.changes.conflict import find_conflict

    conflict = find_conflict(data, path)
    if conflict is None:
        return None
    names = f"{conflict.ours_name} → {conflict.theirs_name}"
    lines = [Line(f"merge conflict in golden {path}: {names}", "title")]
    drift = compare(conflict.ours, conflict.theirs)
    return lines + (drift_lines(drift) if drift else [Line(f"cause   {cause}", "changed") for cause in drift.causes])


def _trace(path: str, data: bytes | None) -> Trace | None:
    return None if data is None else decode_trace(data, path)


def _rows(path: str, data: bytes | None) -> list[Row] | None:
    return None if data is None else parse_crash(data, path)[1]


def _trace_diff(
    title: str, old: Trace | None, new: Trace | None, before: bytes | None, after: bytes | None
) -> list[Line]:
    if old is None or new is None:
        return _whole(title, new or old, came=old is None)
    if old.digest_key != new.digest_key:
        why = "the digests of the two versions were made with different keys (HARNESS_DIGEST_KEY)"
        return [Line(f"{title}: {why}", "title"), *_line_diff(before, after)]
    drift = compare(old, new)
    if drift:
        return [Line(title, "title"), *drift_lines(drift)]
    return [Line(f"{title}: the path is the same", "title"), *_line_diff(before, after)]


def _whole(title: str, trace: Trace | None, *, came: bool) -> list[Line]:
    if trace is None:
        return []
    lines = trace_lines(trace, SHOWN)
    if came:
        return [Line(f"new {title}", "title"), *lines]
    return [Line(f"deleted {title}", "title"), Line(lines[-1].text, "removed")]


def _crash_diff(
    title: str, old: Sequence[Row] | None, new: Sequence[Row] | None, before: bytes | None, after: bytes | None
) -> list[Line]:
    if old is None or new is None:
        word = "new" if old is None else "deleted"
        rows = new if old is None else old
        return [Line(f"{word} {title}: {len(rows or ())} crash points", "title")]
    came, went = ({row.point for row in one} for one in (new, old))
    counts = [
        f"{len(points)} point{'s' * (len(points) != 1)} {word}"
        for points, word in ((came - went, "more"), (went - came, "fewer"))
        if points
    ]
    outcomes = {row.point: row.outcome for row in old}
    changed = [row for row in new if row.point in outcomes and outcomes[row.point] != row.outcome]
    counts += [f"{len(changed)} other outcome{'s' * (len(changed) != 1)}"] if changed else []
    return [Line(f"{title}: {', '.join(counts) or 'the outcomes are the same'}", "title"), *_line_diff(before, after)]


def _line_diff(before: bytes | None, after: bytes | None) -> Iterator[Line]:
    """What differs in the readable text, for what is no drift."""
    old, new = (readable(data or b"").decode("utf-8", "replace").splitlines() for data in (before, after))
    for text in list(difflib.unified_diff(old, new, lineterm="", n=1))[2:]:
        if not text.startswith("@@"):
            yield Line(text, {"+": "added", "-": "removed"}.get(text[0], "plain"))  # type: ignore[arg-type]
