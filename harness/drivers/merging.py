"""Merges two versions of a golden, or says why nobody can.

A golden is an observation: one run made it, whole.  git merges it line by line, and two branches that each added a
call then give a path that no run ever took.  So the path (calls, turns, stop_reasons, interventions) is only ever
taken whole, from the one side that changed it.

What the loop sent (the digests of prompt, system prompt and tools, the name of the model) is merged entry by entry:
each is a function of its own source, whose two versions git merges as well, and no scripted path depends on it.  Two
branches that reword the descriptions of two tools therefore do not conflict in every golden.  If that is ever wrong,
the next run says so: it compares its path with the merged golden, as exactly as the policy of the case asks.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from harness.changes.conflict import whole_sides
from harness.crash_golden import CRASH_SUFFIX, parse_crash
from harness.drift import compare
from harness.errors import GoldenError
from harness.golden import decode_trace, dump_trace
from harness.trace import Context

if TYPE_CHECKING:
    from harness.trace import Trace

__all__ = ["Merged", "merge_goldens"]

_CLASH: Final = object()
_UNSENT: Final = Context()


@dataclass(frozen=True, slots=True)
class Merged:
    """What came out of a merge.

    Args:
        data: what the file is to hold: one version, or both between conflict markers.
        clean: whether it is decided.
        lines: what to tell the user.
    """

    data: bytes
    clean: bool
    lines: tuple[str, ...] = ()


def merge_goldens(
    path: str, base: bytes, ours: bytes, theirs: bytes, names: tuple[str, str], size: int = 7
) -> Merged | None:
    """Merge the versions of one file; None when they are not goldens, and lines of text is all that is known of them.

    Args:
        path: of the file, as git names it.
        base: the version of the common ancestor; empty where both sides added the file.
        ours, theirs: the two versions.
        names: what to call the two sides.
        size: of conflict markers, in characters.
    """
    if ours == theirs or base in (ours, theirs):
        return Merged(theirs if base == ours else ours, clean=True)
    if path.endswith(CRASH_SUFFIX):
        return _merge_crashes(path, ours, theirs, names, size)
    try:
        our_trace, their_trace = decode_trace(ours, path), decode_trace(theirs, path)
    except GoldenError:
        return None
    base_trace = _trace(path, base)
    merged = _merge_traces(base_trace, our_trace, their_trace)
    if merged is None:
        lines = _conflict_lines(path, base_trace, our_trace, their_trace, names)
        return Merged(whole_sides(ours, theirs, *names, size), clean=False, lines=lines)
    data = dump_trace(merged).encode("utf-8")
    mixed = data not in (ours, theirs)
    note = f"{path}: merged what {names[0]} and {names[1]} send; run the case to see that it is so"
    return Merged(data, clean=True, lines=(note,) if mixed else ())


def _trace(path: str, data: bytes) -> Trace | None:
    try:
        return decode_trace(data, path)
    except GoldenError:
        return None


def _merge_traces(base: Trace | None, ours: Trace, theirs: Trace) -> Trace | None:
    """One trace, or None for a conflict."""
    if ours.digest_key != theirs.digest_key:
        return None  # digests of one key mean nothing beside those of another
    paths = [None if one is None else _path(one) for one in (base, ours, theirs)]
    path = _three_way(paths[0], paths[1], paths[2])
    if path is _CLASH:
        return None
    sent = [{} if one is None else _sent(one) for one in (base, ours, theirs)]
    entries: dict[str, str | None] = {}
    for name in dict.fromkeys((*sent[1], *sent[2])):
        value = _three_way(*(one.get(name, _UNSENT) for one in sent))
        if value is _CLASH:
            return None
        if value is not _UNSENT:
            entries[name] = value  # type: ignore[assignment]
    source = ours if path == paths[1] else theirs
    tools = {name.removeprefix("tool "): entries[name] for name in sorted(entries) if name.startswith("tool ")}
    context = Context(entries["prompt"], entries["system"], tools)  # type: ignore[arg-type]
    return replace(source, model=entries["model"], context=context)


def _three_way(base: object, ours: object, theirs: object) -> object:
    if ours in (theirs, base):
        return theirs
    return ours if theirs == base else _CLASH


def _path(trace: Trace) -> str:
    """All of a golden but what the loop sent."""
    return dump_trace(replace(trace, model=None, context=_UNSENT))


def _sent(trace: Trace) -> dict[str, str | None]:
    head = {"model": trace.model, "prompt": trace.context.prompt, "system": trace.context.system}
    return head | {f"tool {name}": digest for name, digest in trace.context.tools.items()}


def _conflict_lines(
    path: str, base: Trace | None, ours: Trace, theirs: Trace, names: tuple[str, str]
) -> tuple[str, ...]:
    width = max(map(len, names))
    return (
        f"{path}: {' and '.join(names)} accepted different goldens",
        *(f"  {name:<{width}}  {_told(base, one)}" for name, one in zip(names, (ours, theirs), strict=True)),
        "  No run of the merged code made either.  Finish merging the code, then:",
        f"    harness run {shlex.quote(ours.case)}",
        f"    harness accept {shlex.quote(ours.case)}   when what it shows is right",
        f"    git add {shlex.quote(path)}",
    )


def _told(base: Trace | None, trace: Trace) -> str:
    """What one side did to the golden."""
    if base is None:
        return f"added it: {len(trace.calls)} calls, {trace.turns} turns"
    drift = compare(base, trace)
    return drift.headline or "; ".join(drift.causes) or "the same path, written in another way"


def _merge_crashes(path: str, ours: bytes, theirs: bytes, names: tuple[str, str], size: int) -> Merged | None:
    """Outcomes depend on the whole path, so both sides having changed some is a conflict, whichever they are."""
    try:
        our_crash, their_crash = parse_crash(ours, path), parse_crash(theirs, path)
    except GoldenError:
        return None
    if our_crash == their_crash:
        return Merged(ours, clean=True)
    case = shlex.quote(our_crash[0])
    lines = (
        f"{path}: {' and '.join(names)} accepted different crash goldens",
        "  No sweep of the merged code made either.  Finish merging the code, then:",
        f"    harness crash {case}",
        f"    harness crash {case} --update-golden   when what it shows is right",
        f"    git add {shlex.quote(path)}",
    )
    return Merged(whole_sides(ours, theirs, *names, size), clean=False, lines=lines)
