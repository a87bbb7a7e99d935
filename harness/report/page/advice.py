"""What to do about a case: in one sentence, and as a command to copy."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from harness.report.lines import printable

if TYPE_CHECKING:
    from harness.report.entries import Entry, Report

__all__ = ["Advice", "accept_all", "accept_one", "acceptable"]

Advice = tuple[str, str]
"""A sentence, and a command; the command may be empty."""

_NAMED: Final = 6  # more ids than this do not fit a line that anybody reads


def acceptable(entry: Entry) -> bool:
    """Whether `harness accept` would take what ran last: it came to its end and kept its limits."""
    return entry.status in ("drift", "missing") and entry.change.kind != "conflict"


def accept_one(entry: Entry, base: str) -> list[Advice]:
    """What to do about one case; empty when there is nothing to do.

    Args:
        entry: the case.
        base: what the goldens are compared with as well.
    """
    case, file = _quoted(entry.case), _quoted(entry.golden_file)
    said: list[Advice] = []
    if entry.change.kind == "conflict":
        said.append(("Run the case on the merged code, look, and accept what it does now.", f"harness accept {case}"))
    elif acceptable(entry):
        first = "It touches writes: look at them first. Then accept it" if entry.touches_writes else "Accept it"
        said.append((f"{first} as it is now, without running again.", f"harness accept {case}"))
    elif entry.status == "unusable":
        said.append(("Restore the golden, or accept a run that was looked at.", f"harness accept {case}"))
    elif entry.status == "failed":
        said.append(("This run cannot be accepted. Mend the cause, and run it again.", _run_again(entry)))
    elif entry.status == "broken":
        said.append(("Mend the case file, and run it again.", _run_again(entry)))
    elif entry.status in ("skipped", "not_run"):
        said.append(_left_out(entry))
    if entry.crash_status in ("drift", "missing"):
        said.append(("Accept what becomes of its crash points now.", f"harness crash {case} --update-golden"))
    elif entry.crash_status in ("failed", "unusable", "broken"):
        said.append(("A broken rule cannot be accepted. Mend it, and sweep again.", f"harness crash {case}"))
    if not said and entry.reblessed:
        said.append(_reblessed(entry, base, file))
    return said


def _left_out(entry: Entry) -> Advice:
    command = _run_again(entry)
    if command or entry.status == "skipped":
        return ("It did not run, so nothing new is known of it.", command)
    if entry.change.before is not None:
        return ("No case file owns this golden; remove it.", "harness prune")
    return ("Its case file is gone, and so is its golden.", "")


def _run_again(entry: Entry) -> str:
    """The command that runs a case; a golden of a Python test says which test file it belongs to."""
    known = entry.change.after or entry.change.before
    if known is not None and known.owner is not None:
        return f"pytest {_quoted(known.owner)}"
    return f"harness run {_quoted(entry.case)}" if entry.case_file else ""


def _reblessed(entry: Entry, base: str, file: str) -> Advice:
    if entry.branch is not None and entry.branch.kind == "new":
        return ("Its golden is new in this branch: who approves the branch approves this path.", "")
    sentence = "Its golden changed in this branch: who approves the branch approves this. To take it back:"
    return (sentence, f"git checkout {_quoted(base)} -- {file}" if base and file else "")


def accept_all(report: Report) -> tuple[Advice, ...]:
    """How to accept what the whole run did: one by one, or at once."""
    waiting = [entry for entry in report.entries if acceptable(entry)]
    refused = sum(not acceptable(entry) for entry in report.failing)
    if not waiting:
        failed = "Nothing of this can be accepted: what failed has to be mended." if refused else ""
        return ((failed or "There is nothing to accept.", ""),)
    quiet = [entry for entry in waiting if not entry.touches_writes]
    said = f"One by one{', what touches writes first' if len(quiet) < len(waiting) else ''}:"
    ways: list[Advice] = [(said, "harness review")]
    if quiet:
        few = len(quiet) <= _NAMED
        command = "harness accept " + (" ".join(_quoted(entry.case) for entry in quiet) if few else "'*'")
        which = "All" if len(quiet) == len(waiting) else "Without those that touch writes,"
        ways.append((f"{which} {len(quiet)} at once:" if len(quiet) > 1 else "Or by name:", command))
    if refused:
        ways.append((f"{refused} more cannot be accepted: they failed, or their golden is unusable.", ""))
    return tuple(ways)


def _quoted(text: str) -> str:
    return printable(shlex.quote(text))
