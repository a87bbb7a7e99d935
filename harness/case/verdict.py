"""Why a run must not become a golden, whatever its trace: one line each, the cause before its consequences."""

from __future__ import annotations

import traceback
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.case.bounds import DEFAULT_CALLS, DEFAULT_TURNS
from harness.model.conversation import turns_of
from harness.model.steps import Answer
from harness.model.walk import locate, place_name

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from harness.case.load import Case
    from harness.case.schema import Limits
    from harness.model.local import ModelFault
    from harness.model.script import Script
    from harness.trace import Trace

__all__ = ["error_line", "fault_lines", "limit_lines", "unfinished", "unknown_tools"]

MOST_FAULTS: Final = 5
MOST_CHARACTERS: Final = 400


def error_line(error: BaseException, root: Path) -> str:
    """What the loop raised, and where in the project.

    Not its text: that may hold what the run was about, and a trace holds nothing secret.  The traceback shows it.
    """
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_own(Path(frame.filename), root)]
    where = f" at {Path(own[-1].filename).relative_to(root).as_posix()}:{own[-1].lineno}" if own else ""
    return f"the loop raised {type(error).__name__}{where}"


def _is_own(file: Path, root: Path) -> bool:
    """Whether a file is the user's: a virtual environment often lies in the project, and so may this package."""
    inside = file.is_relative_to(root) and "site-packages" not in file.parts
    return inside and not file.is_relative_to(Path(__file__).parents[1])


def fault_lines(faults: Sequence[ModelFault]) -> list[str]:
    """What the model refused, each once: a loop that asks again gets the same answer again."""
    said = (
        f"the API would refuse what the loop sent: {fault.message}" if fault.kind == "protocol" else fault.message
        for fault in faults
    )
    lines = list(dict.fromkeys(map(_one_line, said)))
    more = len(lines) - MOST_FAULTS
    return lines[:MOST_FAULTS] + ([f"and {more} more refusals of the model"] if more > 0 else [])


def limit_lines(trace: Trace, limits: Limits) -> list[str]:
    """The limits that the run broke: `25 turns, limit 24`."""
    counts = (
        ("turns", trace.turns, limits.turns, DEFAULT_TURNS),
        ("calls", len(trace.calls), limits.calls, DEFAULT_CALLS),
    )
    return [
        f"{count} {name}, limit {default if limit is None else limit}{' (the default)' if limit is None else ''}"
        for name, count, limit, default in counts
        if count > (default if limit is None else limit)
    ]


def unfinished(script: Script, request: Mapping[str, Any], message: Mapping[str, Any]) -> str | None:
    """That the loop stopped while the script had more.

    Args:
        script: what the model would have said.
        request: the last request that was answered whole.
        message: the answer.
    """
    conversation = [*request["messages"], {"role": "assistant", "content": message["content"]}]
    place = locate(script, turns_of(conversation))
    # A blank answer leaves no mark in a conversation, so nobody can say whether it was given.
    left = next((step for step in place.steps() if isinstance(step, Answer) and step.shown), None)
    if left is None or place.problem is not None:
        return None
    calls = ", ".join(call["name"] for call in left.calls)
    what = f"calls {calls}" if calls else "says more"
    return f"the loop stopped while the script had more: {place_name(left.path)}, which {what}, was never asked for"


def unknown_tools(case: Case, known: Collection[str]) -> list[str]:
    """Tools that the case names and its run never knew: a typo relaxes nothing, or counts a write as a read."""
    named = [("writes", name) for name in sorted(case.writes or ())]
    for facet, policy in sorted(case.policy().facets.items()):
        named += [(f"compare: {facet}", name.partition(".")[0]) for name in sorted(policy.ignored)]
    lines = []
    for where, name in dict.fromkeys(named):
        if known and name not in known:
            near = get_close_matches(name, sorted(known), 1)
            hint = f"did you mean `{near[0]}`?" if near else f"there are: {', '.join(sorted(known))}"
            lines.append(f"`{where}` names the tool `{name}`, which this run was not offered; {hint}")
    return lines


def _one_line(text: str) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= MOST_CHARACTERS else f"{joined[: MOST_CHARACTERS - 3]}..."
