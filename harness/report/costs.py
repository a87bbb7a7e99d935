"""What a path costs in words: calls, turns, writes, and what became of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.report.entries import Counts

__all__ = ["change_text", "cost_text", "counted", "write_text"]


def counted(number: int, noun: str) -> str:
    """A number and what it counts: `1 call`, `1,204 calls`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def change_text(before: int | None, now: int | None) -> str:
    """A count and what it was: `6`, `6 → 10 (+67%)`; a dash for a side that is not there."""
    if before == now or before is None or now is None:
        left, right = ("–" if one is None else f"{one:,}" for one in (before, now))
        return left if before == now else f"{left} → {right}"
    percent = f" ({(now - before) * 100 / before:+.0f}%)" if before else ""
    return f"{before:,} → {now:,}{percent}"


def write_text(before: Counts | None, now: Counts | None) -> str:
    """The writes in all, and the tools of which the number changed: ``2 → 3: `send_email` 1 → 2``."""
    totals = (None if side is None else sum(side.writes.values()) for side in (before, now))
    old, new = totals
    if before is None or now is None:
        return change_text(old, new)
    tools = [
        f"`{tool}` {before.writes.get(tool, 0)} → {now.writes.get(tool, 0)}"
        for tool in sorted({*before.writes, *now.writes})
        if before.writes.get(tool, 0) != now.writes.get(tool, 0)
    ]
    return change_text(old, new) + (f": {', '.join(tools)}" if tools else "")


def cost_text(before: Counts | None, now: Counts | None) -> str:
    """Calls, turns and writes in one line, each with what it was."""
    before, now = before or now, now or before  # a side that is not there costs nothing to compare with
    if before is None or now is None:
        return ""
    calls, turns = change_text(before.calls, now.calls), change_text(before.turns, now.turns)
    return f"calls {calls}, turns {turns}, writes {write_text(before, now)}"
