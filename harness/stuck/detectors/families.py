"""Work of one kind that goes round in circles under changing arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.stuck.limits import Limits
from harness.stuck.sighting import Sighting
from harness.stuck.window import steps_of

if TYPE_CHECKING:
    from harness.stuck.window import View

__all__ = ["FamilyNoProgress"]


@dataclass(frozen=True, slots=True)
class FamilyNoProgress:
    """One question in ever new words, or a page that does not move whatever is clicked.

    Rule for the family `web`, over all its tools: how many rewordings this topic had (different arguments in different
    steps), or how many steps found these same sources; the larger number counts.  For `browser` and `gui`: how many
    steps of this tool succeeded and left the very same state behind.  Two nudges, the second one firmer.

    Incident: nineteen rewordings of one web search, none of whose results was read (Lexus2016/hermes-agent-evolution
    #1206).

    Exempt: repeats with the same arguments are no rewordings (the duplicate detectors own them), so polling one address
    whose content moves is free; a form of many fields, whose state moves with each.
    """

    limits: Limits = Limits(nudges=(5, 8), stop=12)

    def judge(self, view: View) -> Sighting | None:
        """Count what stayed the same under changing arguments."""
        family = view.latest.record.family
        if family == "web":
            return self._web(view)
        if family in ("browser", "gui"):
            return self._interface(view)
        return None

    def advice(self, sighting: Sighting) -> str:
        """Use what is there; then another kind of question; then ask."""
        firm = "This is the second reminder. " if sighting.limits.tier(sighting.steps) > 1 else ""
        newest = sighting.calls[0].record
        if newest.family == "web":
            return (
                f"{firm}{sighting.steps} searches went round one question. Read and use what they found; if it does "
                "not suffice, ask a question of another kind, or say what is missing."
            )
        return (
            f"{firm}{sighting.steps} actions with `{newest.tool[:80]}` left the same state behind. Look at what is "
            "there, then act in another way, or say what stands in the way."
        )

    def _web(self, view: View) -> Sighting:
        latest = view.latest.record
        web = [one for one in reversed(view.window) if one.record.family == "web" and not one.free]
        about = [one for one in web if latest.topic_digest and one.record.topic_digest == latest.topic_digest]
        found = [one for one in web if latest.sources_digest and one.record.sources_digest == latest.sources_digest]
        rewordings = min(len({one.record.args_digest for one in about}), steps_of(about))
        repeats = steps_of(found)
        if rewordings >= repeats:
            return Sighting(
                incident=("topic", latest.topic_digest or ""),
                steps=rewordings,
                limits=self.limits,
                calls=about,
                rule="asked the web for one topic in other words",
                otherwise="a query about something else",
            )
        return Sighting(
            incident=("sources", latest.sources_digest or ""),
            steps=repeats,
            limits=self.limits,
            calls=found,
            rule="found the very same sources on the web",
            otherwise="a query that finds other sources",
        )

    def _interface(self, view: View) -> Sighting | None:
        latest = view.latest.record
        if not latest.ok or latest.result_digest is None:
            return None
        unmoved = [one for one in view.same_tool if one.record.ok and one.record.result_digest == latest.result_digest]
        return Sighting(
            incident=(latest.tool, latest.result_digest),
            steps=steps_of(unmoved),
            limits=self.limits,
            calls=unmoved,
            rule="acted with this tool and left the same state behind",
            otherwise="an action after which the interface shows something else",
        )
