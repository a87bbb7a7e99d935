"""How strict the comparison of each facet is: what stands under `compare:`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from harness.errors import PolicyError

__all__ = ["FACETS", "AtMost", "FacetPolicy", "Policy"]

FACETS: Final = (
    "writes",
    "order",
    "arguments",
    "outcomes",
    "duplicates",
    "turns",
    "stop_reasons",
    "interventions",
    "results",
)
"""The facets in the order in which a report names them: what costs most comes first."""

_MODES: Final[Mapping[str, tuple[str, ...]]] = {
    "writes": ("exact",),
    "order": ("exact", "unordered", "subsequence", "ignore"),
    "arguments": ("exact", "ignore"),
    "outcomes": ("exact", "ignore"),
    "duplicates": ("exact", "ignore"),
    "turns": ("exact", "ignore"),
    "stop_reasons": ("exact", "unordered", "subsequence", "ignore"),
    "interventions": ("exact", "unordered", "subsequence", "ignore"),
    "results": ("exact", "ignore"),
}
_COUNTED: Final = ("order", "duplicates", "turns", "interventions")
_BY_TOOL: Final = ("order", "arguments", "outcomes", "duplicates", "results")


@dataclass(frozen=True, slots=True)
class AtMost:
    """An upper bound for a count: absolute (`12`), or above the golden's (`+2`, `+20%`)."""

    amount: float
    relative: bool = False
    percent: bool = False

    def bound(self, golden: int) -> int:
        """The largest count that passes when the golden has `golden`."""
        if not self.relative:
            return int(self.amount)
        # 1e-9: 10 * 1.2 is 12, not 11.999…
        return golden + int(golden * self.amount / 100 + 1e-9 if self.percent else self.amount)

    def __str__(self) -> str:
        return f"{'+' if self.relative else ''}{self.amount:g}{'%' if self.percent else ''}"

    @classmethod
    def parse(cls, value: object, path: tuple[str | int, ...]) -> AtMost:
        """Read `12`, `"+2"` or `"+20%"`.

        Raises:
            PolicyError: it is none of these.
        """
        match = re.fullmatch(r"(\+?)(\d+(?:\.\d+)?)(%?)", str(value)) if not isinstance(value, bool) else None
        if match is None or bool(match[1]) < bool(match[3]) or ("." in match[2] and not match[3]):
            raise PolicyError(f"'at_most' takes a count (12), '+2' or '+20%', not {value!r}", path)
        return cls(float(match[2]), relative=bool(match[1]), percent=bool(match[3]))


@dataclass(frozen=True, slots=True)
class FacetPolicy:
    """How one facet is compared.

    `ignored` names tools (`search`) or arguments (`search.query`) that are left out; `at_most` bounds the count;
    `parallel_ordered` makes the order inside a parallel group count.
    """

    mode: str = "exact"
    at_most: AtMost | None = None
    ignored: frozenset[str] = frozenset()
    parallel_ordered: bool = False

    def __str__(self) -> str:
        parts = [self.mode] if self.mode != "exact" or self == FacetPolicy() else []
        parts += [f"at most {self.at_most}"] if self.at_most else []
        parts += [f"without {', '.join(sorted(self.ignored))}"] if self.ignored else []
        parts += ["parallel calls in order"] if self.parallel_ordered else []
        return ", ".join(parts)


_EXACT: Final = FacetPolicy()
_OFF: Final = FacetPolicy("ignore")


@dataclass(frozen=True)
class Policy:
    """How strict a comparison is, facet by facet; a facet without an entry is exact, `results` is off.

    Calls of write tools are compared exactly whatever stands here.
    """

    facets: Mapping[str, FacetPolicy] = field(default_factory=dict)

    def __getitem__(self, facet: str) -> FacetPolicy:
        return self.facets.get(facet, _OFF if facet == "results" else _EXACT)

    @cached_property
    def is_exact(self) -> bool:
        """Whether nothing differs from the default, so that equal signatures decide."""
        return all(self[facet] == (_OFF if facet == "results" else _EXACT) for facet in self.facets)

    @property
    def wants_results(self) -> bool:
        """Whether goldens carry the digests of results."""
        return self["results"].mode != "ignore"

    @classmethod
    def parse(cls, rules: Mapping[str, Any] | None, base: Policy | None = None) -> Policy:
        """Read a `compare:` mapping; facets that it does not name are taken from `base`.

        Raises:
            PolicyError: with the path of what is wrong.
        """
        if rules is not None and not isinstance(rules, Mapping):
            raise PolicyError(f"'compare' takes a mapping of facets to policies, not {rules!r}")
        facets = dict(base.facets) if base else {}
        for facet, value in (rules or {}).items():
            if facet not in FACETS:
                raise PolicyError(f"unknown facet {facet!r}; there are: {', '.join(FACETS)}", (str(facet),))
            facets[facet] = _facet(facet, value)
        return cls(facets)

    def check_detail(self, detail: str) -> None:
        """Refuse a policy that needs to tell arguments apart when traces do not hold them.

        Raises:
            PolicyError: with the path of the entry.
        """
        named = sorted(name for name in self["arguments"].ignored if "." in name)
        if named and detail == "digest":
            raise PolicyError(
                f"{named[0]!r} cannot be left out with 'detail: digest', which keeps no digest of single arguments",
                ("arguments", "ignore"),
            )

    def check_writes(self, writes: frozenset[str]) -> None:
        """Refuse a policy that names a write tool: it would read as if it could relax one.

        Raises:
            PolicyError: with the path of the entry.
        """
        for facet, policy in self.facets.items():
            for name in sorted(policy.ignored):
                tool = name.partition(".")[0]
                if tool in writes:
                    raise PolicyError(
                        f"{tool!r} is a write tool, and calls of write tools are always compared exactly; "
                        "if a value varies from run to run, mask it with 'normalize'",
                        (facet, "ignore"),
                    )


def _facet(facet: str, value: object) -> FacetPolicy:
    path: tuple[str | int, ...] = (facet,)
    modes = _MODES[facet]
    if isinstance(value, str):
        return FacetPolicy(_mode(facet, value, path))
    if not isinstance(value, Mapping):
        raise PolicyError(f"{facet!r} takes {_choices(modes)}, or a mapping, not {value!r}", path)
    keys = ["policy"]
    keys += ["at_most"] if facet in _COUNTED else []
    keys += ["ignore"] if facet in _BY_TOOL else []
    keys += ["parallel"] if facet == "order" else []
    for key in value:
        if key not in keys:
            raise PolicyError(f"{facet!r} knows no {key!r}; there are: {', '.join(keys)}", (*path, str(key)))
    at_most = AtMost.parse(value["at_most"], (*path, "at_most")) if "at_most" in value else None
    # "At most +2 calls" says that more calls may come, so what is bounded is a subsequence.
    default = "subsequence" if at_most and facet in ("order", "interventions") else "exact"
    mode = _mode(facet, value.get("policy", default), (*path, "policy"))
    if at_most and mode == "exact" and facet in ("order", "interventions"):
        raise PolicyError(f"'at_most' has no meaning when {facet!r} is exact", (*path, "at_most"))
    parallel = value.get("parallel", "unordered")
    if parallel not in ("ordered", "unordered"):
        raise PolicyError(f"'parallel' takes 'ordered' or 'unordered', not {parallel!r}", (*path, "parallel"))
    return FacetPolicy(mode, at_most, _ignored(facet, value.get("ignore", []), path), parallel == "ordered")


def _mode(facet: str, value: object, path: tuple[str | int, ...]) -> str:
    if value not in _MODES[facet]:
        why = " (calls of write tools are always compared exactly)" if facet == "writes" else ""
        raise PolicyError(f"{facet!r} takes {_choices(_MODES[facet])}, not {value!r}{why}", path)
    return str(value)


def _ignored(facet: str, value: object, path: tuple[str | int, ...]) -> frozenset[str]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name for name in names):
        raise PolicyError(f"'ignore' takes a list of tools, not {value!r}", (*path, "ignore"))
    if facet != "arguments":
        for index, name in enumerate(names):
            if "." in name:
                raise PolicyError(
                    f"{facet!r} is compared by tool; {name!r} names an argument", (*path, "ignore", index)
                )
    return frozenset(names)


def _choices(modes: tuple[str, ...]) -> str:
    return " or ".join(repr(mode) for mode in modes)
