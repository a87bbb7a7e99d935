"""The hook for a stuck detector: what it is given after each turn and what it may answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.agent.state import Call

__all__ = ["Detector", "Verdict"]


@runtime_checkable
class Verdict(Protocol):
    """A detector's opinion.  An optional attribute `detector` names who has it.

    `continue`: go on.  `nudge`: `message` follows the results of this turn.  `force_stop`: `message` follows the
    results, the model is asked once more with tool use switched off, and the run ends.
    """

    @property
    def kind(self) -> Literal["continue", "nudge", "force_stop"]: ...

    @property
    def message(self) -> str: ...


class Detector(Protocol):
    """Asked after the calls of a turn are settled and before their results go back.

    It must be a pure function of the calls: after a crash it is asked again with the same ones, and its verdict becomes
    durable only with save point B.
    """

    def __call__(self, calls: Sequence[Call], /) -> Verdict | None:
        """Judge all calls of the run so far, oldest first; those refused before they ran are among them."""
        ...
