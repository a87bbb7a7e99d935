"""What is declared about tools beforehand: their family, modality and traits, by name."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable

__all__ = [
    "DECLARED",
    "FAMILIES",
    "MODALITIES",
    "TRAITS",
    "Declaration",
    "Family",
    "Modality",
    "Profile",
    "Trait",
    "profile_of",
]

Family: TypeAlias = Literal["web", "search", "browser", "gui"]
Modality: TypeAlias = Literal["visual", "structured_ui"]
Trait: TypeAlias = Literal[
    "pollable",  # asking again is its use: duplicates of reads get the patient budget, NoProgress the higher limit
    "progress_by_result",  # the same arguments with a new result are progress, also for a write: a "next" button
    "progress_by_args",  # new arguments, each with a new result, are progress: editing one file after another
    "batch_tolerant",  # mostly new arguments are progress: a request for each row
    "semi_repeatable",  # many different calls are its use: NoProgress has the higher limit
    "dup_exempt",  # repeating it is harmless: neither of the duplicate detectors looks at it
    "inert",  # no evidence: transparent to a streak of searches, never a novel write
    "no_progress_exempt",  # NoProgress does not look at it
]
FAMILIES: Final[tuple[str, ...]] = get_args(Family)
MODALITIES: Final[tuple[str, ...]] = get_args(Modality)
TRAITS: Final[tuple[str, ...]] = get_args(Trait)


@dataclass(frozen=True, slots=True)
class Profile:
    """Everything that is declared about one tool.

    Args:
        family: the kind of work in which calls are judged together.
        modality: what its results are to a model that looks at a screen.
        traits: see `Trait`; each is narrow on purpose, none switches everything off.
        volatile_args: top-level arguments that mean nothing (ids that each page numbers anew, mozilla/pilo#430).
        mask: what to leave out of results before they are compared (durations, clocks).
    """

    family: Family | None = None
    modality: Modality | None = None
    traits: frozenset[Trait] = frozenset()
    volatile_args: frozenset[str] = frozenset()
    mask: tuple[re.Pattern[str], ...] = ()


@dataclass(frozen=True, slots=True)
class Declaration:
    """What is declared about the tools whose name matches `pattern` (`*` and `?` as in a shell).

    A field that is None is not declared here; of several declarations for one tool the last one counts, field by field.
    An empty set or text takes away what an earlier one declared.
    """

    pattern: str
    family: Family | Literal[""] | None = None
    modality: Modality | Literal[""] | None = None
    traits: frozenset[Trait] | None = None
    volatile_args: frozenset[str] | None = None
    mask: tuple[re.Pattern[str], ...] | None = None

    def matches(self, tool: str) -> bool:
        """Whether it speaks of this tool."""
        return self.pattern == tool or (
            ("*" in self.pattern or "?" in self.pattern) and fnmatchcase(tool, self.pattern)
        )


def profile_of(tool: str, declarations: Iterable[Declaration]) -> Profile:
    """What the declarations say of one tool, taken together."""
    family: Family | Literal[""] | None = None
    modality: Modality | Literal[""] | None = None
    traits: frozenset[Trait] | None = None
    volatile: frozenset[str] | None = None
    mask: tuple[re.Pattern[str], ...] | None = None
    for one in declarations:
        if one.matches(tool):
            family = family if one.family is None else one.family
            modality = modality if one.modality is None else one.modality
            traits = traits if one.traits is None else one.traits
            volatile = volatile if one.volatile_args is None else one.volatile_args
            mask = mask if one.mask is None else one.mask
    return Profile(family or None, modality or None, traits or frozenset(), volatile or frozenset(), mask or ())


_SHELL: Final[frozenset[Trait]] = frozenset({"batch_tolerant", "semi_repeatable"})
_EDITOR: Final[frozenset[Trait]] = frozenset({"progress_by_args"})
_POLL: Final[frozenset[Trait]] = frozenset({"pollable"})

DECLARED: Final = (
    # Families and modalities are Kocoro's, by the names that tools of these kinds commonly have.
    Declaration("web_search", family="web"),
    Declaration("web_fetch", family="web"),
    Declaration("x_search", family="web"),
    Declaration("grep", family="search"),
    Declaration("glob", family="search"),
    Declaration("browser", family="browser", modality="structured_ui"),
    Declaration("browser_*", family="browser", modality="structured_ui"),
    Declaration("applescript", family="gui", modality="structured_ui"),
    Declaration("accessibility", family="gui", modality="visual"),
    Declaration("computer", family="gui", modality="visual"),
    Declaration("computer_use", family="gui", modality="visual"),
    Declaration("screenshot", family="gui", modality="visual"),
    # Traits of tools whose name says what they do; all others are for their owners to declare.
    Declaration("think", traits=frozenset({"inert"})),
    Declaration("load_skill", traits=frozenset({"dup_exempt"})),
    Declaration("bash", traits=_SHELL),
    Declaration("shell", traits=_SHELL),
    Declaration("http", traits=frozenset({"batch_tolerant"})),
    Declaration("edit_file", traits=_EDITOR),
    Declaration("write_file", traits=_EDITOR),
    Declaration("str_replace_based_edit_tool", traits=_EDITOR),
    Declaration("job_status", traits=_POLL),
    Declaration("read_output", traits=_POLL),
    Declaration("wait", traits=_POLL),
)
"""What holds unless a project or a case declares otherwise."""
