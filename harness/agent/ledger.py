"""What to do about a call that has no result yet: the decision table of the design, and the words of its verdicts.

The same table serves a call that was planned a moment ago and one that a killed process left behind.  There is no other
path on which a tool comes to run.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from harness.agent.results import ToolResult

if TYPE_CHECKING:
    from harness.agent.contract import Effect
    from harness.agent.state import Call, CallState

__all__ = ["TABLE", "Decision", "decide", "lost_result", "stricter", "timed_out_result", "unknown_result"]


class Decision(Enum):
    """What reconciling does with one call."""

    RUN = auto()
    """It provably never started."""
    RUN_AGAIN = auto()
    """It may have run; running it again, with the same idempotency key, changes nothing more."""
    VERIFY = auto()
    """Ask the tool whether it took effect: then done, or run, or unknown."""
    UNKNOWN = auto()
    """Nobody can say: `is_error`, "execution status unknown", and never executed again."""
    RECORDED = auto()
    """The ledger holds its result."""


# Read it as the table in the design: a row for what the ledger says, a column for what the tool does to the world.
# `started, irreversible` is VERIFY only where the tool has a `verify`; see `decide`.
TABLE: Final[dict[tuple[CallState, Effect], Decision]] = {
    ("planned", "read_only"): Decision.RUN,
    ("planned", "idempotent"): Decision.RUN,
    ("planned", "irreversible"): Decision.RUN,
    ("started", "read_only"): Decision.RUN_AGAIN,
    ("started", "idempotent"): Decision.RUN_AGAIN,
    ("started", "irreversible"): Decision.VERIFY,
    ("done", "read_only"): Decision.RECORDED,
    ("done", "idempotent"): Decision.RECORDED,
    ("done", "irreversible"): Decision.RECORDED,
    ("failed", "read_only"): Decision.RECORDED,
    ("failed", "idempotent"): Decision.RECORDED,
    ("failed", "irreversible"): Decision.RECORDED,
    # The verdict is durable before it is used, and final: it is what the ledger holds, whatever the tool.
    ("unknown", "read_only"): Decision.RECORDED,
    ("unknown", "idempotent"): Decision.RECORDED,
    ("unknown", "irreversible"): Decision.RECORDED,
    # No ledger (JsonStore).
    ("unrecorded", "read_only"): Decision.RUN_AGAIN,
    ("unrecorded", "idempotent"): Decision.RUN_AGAIN,
    ("unrecorded", "irreversible"): Decision.UNKNOWN,
}


def decide(state: CallState, effect: Effect, *, can_verify: bool) -> Decision:
    """The table's answer for one call.

    Args:
        state: What the ledger says.
        effect: What the tool does to the world.
        can_verify: The tool has a `verify`.
    """
    decision = TABLE[state, effect]
    return Decision.UNKNOWN if decision is Decision.VERIFY and not can_verify else decision


_CAREFUL: Final[tuple[Effect, ...]] = ("read_only", "idempotent", "irreversible")


def stricter(left: Effect, right: Effect) -> Effect:
    """The more careful of two effects: a contract that was loosened since must not loosen what was started before."""
    return max(left, right, key=_CAREFUL.index)


def unknown_result(call: Call) -> ToolResult:
    """The verdict on a call that was interrupted; it asks the model to look before it repeats.

    A model that is told nothing more than "unknown" issues the same call again under a new id, and no ledger can see
    that the world then has two effects.
    """
    return ToolResult(
        f"[execution status unknown] The process was interrupted while `{call.tool}` was running. It may or may not "
        "have taken effect, and it was not run again. Find out whether it did before you call it again.",
        is_error=True,
    )


def timed_out_result(call: Call, seconds: float) -> ToolResult:
    """What the model is told of a call for which the loop stopped waiting."""
    if call.effect == "read_only":
        return ToolResult(f"`{call.tool}` gave no result within {seconds:g} s.", is_error=True)
    return ToolResult(
        f"[execution status unknown] `{call.tool}` gave no result within {seconds:g} s. It may have taken effect, or "
        "may still do so. Find out whether it did before you call it again.",
        is_error=True,
    )


def lost_result(call: Call) -> ToolResult:
    """What stands for the result of a call that did take effect, when the process was killed before it was recorded."""
    return ToolResult(f"`{call.tool}` took effect. Its result was lost when the process was interrupted.")
