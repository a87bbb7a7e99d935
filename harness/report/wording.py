"""What a report says in words, whatever its format: did the path change, why, and how to accept it."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from harness.report.costs import cost_text, counted
from harness.report.entries import Counts
from harness.report.line import printable

if TYPE_CHECKING:
    from harness.changes import Change
    from harness.report.entries import Entry, Report

__all__ = ["NOT_COMPARED", "PENDING", "Advice", "advice", "fails", "headline", "is_shown", "reason", "tally", "title"]

PENDING: Final = "pending"
"""What the side is called that `harness accept` takes from."""

NOT_COMPARED: Final = "goldens are not compared with a base branch"
"""What keeps a report from being simply green: each golden may have been accepted anew."""


def headline(report: Report) -> str:
    """One sentence: did the path change."""
    total = counted(len(report.entries), "case")
    if not report.ran:
        differing = [entry for entry in report.entries if entry.change.differs]
        if not differing:
            return f"Nothing differs: {total}"
        writes = sum(entry.touches_writes for entry in differing)
        touching = f"; writes are touched in {writes}" if writes else ""
        return f"{len(differing):,} of {total} {'differ' if len(differing) > 1 else 'differs'}{touching}"
    failing = report.failing
    changed = sum(bool(entry.change.drift) and entry.change.kind != "conflict" for entry in failing)
    others = len(failing) - changed
    blessed = sum(entry.reblessed for entry in report.entries)
    if changed:
        said = f"The path changed in {changed:,} of {total}" + (f", {others:,} more did not pass" if others else "")
    elif others:
        said = f"{others:,} of {total} did not pass"
    elif not any(entry.passed for entry in report.entries):
        said = f"No case ran: {total}"
    else:
        said = "Every case passed" if blessed else "No path changed"
    left = 0 if said.startswith("No case ran") else len(report.left_out)
    said += f"; {counted(left, 'case')} did not run" if left else ""
    said += f"; {counted(blessed, 'golden')} changed in this branch" if blessed else ""
    writes = sum(entry.touches_writes for entry in report.entries if not entry.passed or entry.reblessed)
    said += f"; writes are touched in {writes:,}" if writes else ""
    said += f"; {counted(len(report.rules), 'rule')} changed" if report.rules else ""
    return said + (f"; {NOT_COMPARED}" if report.unbased else "")


def tally(report: Report) -> str:
    """How many cases there are of each kind, the most urgent first; goldens accepted anew are a kind of their own."""
    words: Counter[str] = Counter()
    for entry in report.entries:
        blessed = entry.passed and entry.reblessed and entry.branch is not None
        words[entry.branch_word(report.base).partition(" (was")[0] if blessed else entry.word()] += 1
    return ", ".join(f"{count:,} {word}" for word, count in words.items())


def is_shown(entry: Entry) -> bool:
    """Whether an entry is worth more than being counted: it does not pass, or its golden is not what it was."""
    return entry.reblessed or fails(entry)


def title(entry: Entry, report: Report) -> str:
    """What an entry is: the word for it, and what its branch did to its golden."""
    return entry.word() + (f", golden {entry.branch_word(report.base)}" if entry.reblessed else "")


def fails(entry: Entry) -> bool:
    """Whether a case does not let the build go on, or in a diff: whether it differs."""
    return not entry.passed and entry.status not in ("skipped", "not_run")


def reason(entry: Entry) -> str:
    """Why an entry is shown, in one line."""
    change, branch = entry.change, entry.branch
    if entry.status is not None and not fails(entry):
        return _difference(branch) if branch is not None and entry.reblessed else ""
    crashed = entry.crash_headline if entry.word().startswith("crash sweep") else ""
    return crashed or entry.headline or _difference(change)


def _difference(change: Change) -> str:
    parts: list[str] = []
    if change.kind == "conflict" and change.names:
        parts.append(f"{change.names[0]} against {change.names[1]}")
    if change.was:
        parts.append(f"was {change.was}")
    present = change.after or change.before
    if change.problem:
        parts.append(change.problem)
    elif change.drift:
        parts.append(change.drift.headline)
    elif change.drift is not None:
        parts += change.drift.causes
    elif change.kind in ("new", "deleted") and present is not None:
        parts.append(cost_text(None, Counts.of(present)))
    if change.crash:
        parts.append("crash points end otherwise")
    return "; ".join(parts)


class Advice(NamedTuple):
    """What to do: a word for it, how in prose, and the command that does it; either may be empty."""

    word: str
    text: str
    command: str = ""

    def __str__(self) -> str:
        return f"{self.text}{': ' if self.text and self.command else ''}{self.command}"


def advice(entry: Entry, report: Report) -> Advice | None:
    """What to do with an entry; None where there is nothing to do."""
    name = shlex.quote(printable(entry.case))
    if entry.change.kind == "conflict":
        # Neither branch's golden is what the merged code does.
        return Advice("mend", "run the case on the merged code, look, then", f"harness accept {name}")
    if not report.ran:
        pending = report.after == PENDING and entry.change.differs
        return Advice("accept", "", f"harness accept {name}") if pending else None
    if not fails(entry):
        if not report.base or not entry.golden_file or entry.branch is None or entry.branch.kind != "changed":
            return None
        file = shlex.quote(printable(entry.golden_file))
        return Advice("undo", "", f"git checkout {shlex.quote(report.base)} -- {file}")
    if entry.word().startswith("crash sweep"):
        if entry.crash_status == "failed":
            return Advice("mend", "a broken invariant cannot be accepted; see what breaks", f"harness crash {name}")
        return Advice("accept", "", f"harness crash {name} --update-golden")
    observed = entry.change.after
    if entry.status in ("drift", "missing") and observed is not None and observed.problems:
        return Advice("mend", observed.problems[0])
    if entry.status in ("drift", "missing") and observed is None:
        return Advice("mend", "what it did was not kept; run it again", f"harness run {name}")
    if entry.status in ("drift", "missing"):
        return Advice("accept", "", f"harness accept {name}")
    if entry.status == "unusable":
        return Advice("mend", "restore the golden from git, or accept what ran", f"harness accept {name}")
    return Advice("mend", "what failed cannot be accepted: mend the loop or the case, and run it again")
