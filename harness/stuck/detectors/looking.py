"""Looking at a picture to confirm what a result has already said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.stuck.limits import Limits
from harness.stuck.sighting import Sighting

if TYPE_CHECKING:
    from harness.stuck.evidence import Record
    from harness.stuck.window import Placed, View

__all__ = ["SuccessAfterError", "ToolModeSwitch"]

_ONCE = Limits(nudges=(1,))


@dataclass(frozen=True, slots=True)
class ToolModeSwitch:
    """A user interface that answers with data has answered, and the model takes a screenshot.

    Rule: the newest call is visual, and the latest call of an earlier step that is not visual is a successful one of
    modality `structured_ui`.  Each such success is worth one advice at most.

    Incident: none is public; the rule is Kocoro's.  An agent that drives an application by script is told "created",
    and then goes looking for the thing on the screen, which it reads far worse than the script's answer.

    Exempt: purely visual work; a look after anything but a structured user interface (shell, files); a failed call, for
    looking is the right thing then; runs whose goal is the picture (`visual_is_goal`).  The cooldown keeps an
    act/look/act/look rhythm from adding up to a stop: advice must not end a run.
    """

    cooldown: int = 10

    def judge(self, view: View) -> Sighting | None:
        """Find the success that a look at the screen follows."""
        latest = view.latest
        if latest.record.modality != "visual":
            return None
        acted = next(
            (one for one in reversed(view.window) if one.step < latest.step and one.record.modality != "visual"), None
        )
        if acted is None or not acted.record.ok or acted.record.modality != "structured_ui":
            return None
        return Sighting(
            incident=(str(acted.seq),),
            steps=1,
            limits=_ONCE,
            calls=(latest, acted),
            rule="took a picture after a user interface had confirmed success with data",
            otherwise="a failed or another kind of call before the picture, or the option visual_is_goal",
            cooldown=self.cooldown,
        )

    def advice(self, sighting: Sighting) -> str:
        """The result is the confirmation."""
        return (
            f"{_named(sighting.calls[-1])} reported success with data. That is the confirmation; a picture adds "
            "nothing. Go on with the next step, or finish."
        )


@dataclass(frozen=True, slots=True)
class SuccessAfterError:
    """A tool failed, worked with corrected arguments, and the model takes a screenshot to be sure.

    Rule: the newest call is visual, and some tool's latest success came right after its own failure with other
    arguments.  The recovery is forgotten when that tool fails again, when another tool (not visual) succeeds, and once
    it has been spoken of.

    Incident: none is public; the rule is Kocoro's.  An agent that got an import to work with other options mistrusts
    its own success and begins to check it by looking.

    Exempt: a retry with the same arguments (nothing was corrected); whatever `ToolModeSwitch` has already advised on at
    this call; the cooldown and `visual_is_goal` as there.
    """

    cooldown: int = 10

    def judge(self, view: View) -> Sighting | None:
        """Find the recovery that a look at the screen follows."""
        latest = view.latest
        if latest.record.modality != "visual":
            return None
        recovered = _recovery(view)
        if recovered is None:
            return None
        return Sighting(
            incident=(str(recovered.seq),),
            steps=1,
            limits=_ONCE,
            calls=(latest, recovered),
            rule="took a picture after a corrected call had succeeded",
            otherwise="another success between the correction and the picture, or the option visual_is_goal",
            cooldown=self.cooldown,
        )

    def advice(self, sighting: Sighting) -> str:
        """The success is the confirmation."""
        return (
            f"{_named(sighting.calls[-1])} failed before and has now succeeded. Its result confirms that; a picture "
            "adds nothing. Go on with the next step, or finish."
        )


def _recovery(view: View) -> Placed | None:
    """The success that made up for an error and still stands, going through the window from its beginning."""
    recovered: Placed | None = None
    previous: dict[str, Record] = {}
    for one in view.window:
        record = one.record
        before = previous.get(record.tool)
        previous[record.tool] = record
        if record.modality == "visual":
            continue
        if not record.ok:
            if recovered is not None and recovered.record.tool == record.tool:
                recovered = None
        elif before is not None and not before.ok and before.args_digest != record.args_digest:
            recovered = one
        elif recovered is not None and recovered.record.tool != record.tool:
            recovered = None
    return recovered


def _named(one: Placed) -> str:
    return f"`{one.record.tool[:80]}`"
