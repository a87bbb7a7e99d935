"""Searches that find nothing, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.stuck.limits import Limits
from harness.stuck.sighting import Sighting

if TYPE_CHECKING:
    from harness.stuck.evidence import Record
    from harness.stuck.window import Placed, View

__all__ = ["SearchEscalation"]


@dataclass(frozen=True, slots=True)
class SearchEscalation:
    """Search after search without a single hit.

    Rule: count the steps at the end whose calls are all of the family `search` and fruitless: they found nothing, or
    failed.

    Incident: none is public; the rule is Kocoro's.  An agent looks for a name that does not exist, in ever more
    spellings, instead of asking whether the name is right.

    Exempt: a search whose result does not say whether it found anything counts as useful; one hit, or any call of
    another kind, ends the streak; steps that only hold calls with the trait `inert` (a thought between two searches)
    are passed over.
    """

    limits: Limits = Limits(nudges=(7,), stop=12)

    def judge(self, view: View) -> Sighting:
        """Count the fruitless steps at the end."""
        fruitless: list[Placed] = []
        count = 0
        latest = view.latest.record
        if latest.family == "search" or "inert" in latest.traits:
            for _, calls in view.steps():
                searches = [one for one in calls if "inert" not in one.record.traits]
                if not all(_is_fruitless(one.record) for one in searches):
                    break
                counted = [one for one in searches if not one.free]
                fruitless += counted
                count += bool(counted)
        return Sighting(
            incident=(),
            steps=count,
            limits=self.limits,
            calls=fruitless,
            rule="in a row searched and found nothing",
            otherwise="a search with a hit, or a call of another kind",
        )

    def advice(self, sighting: Sighting) -> str:
        """Nothing found is a finding."""
        return (
            f"{sighting.steps} searches in a row found nothing. Take that as the answer: use what you have, look for "
            "something of another kind (list what exists, read a neighbour), or ask whether the name is right."
        )


def _is_fruitless(record: Record) -> bool:
    return record.family == "search" and (record.useful is False or not record.ok)
