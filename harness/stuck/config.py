"""How the guard is tuned: what stands under `stuck:` in a project or a case."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, cast

from harness.errors import StuckConfigError
from harness.stuck.limits import Limits
from harness.stuck.profiles import DECLARED, FAMILIES, MODALITIES, TRAITS, Declaration, Profile, profile_of
from harness.stuck.registry import DETECTORS, WHEN_LOOKING_IS_NO_GOAL, name_of

if TYPE_CHECKING:
    from harness.stuck.profiles import Family, Modality, Trait
    from harness.stuck.sighting import Detector

__all__ = ["Config"]

Path = tuple[str | int, ...]

_MAX_PROFILES: Final = 1024  # found ones are kept, but a model that invents names must not fill the memory

_KEYS: Final = ("detectors", "escalation", "tools", "visual_is_goal", "window")


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of the guard; all defaults are those of the specification.

    Args:
        window: the steps that are looked at.
        nudge_max: this many nudges within `nudge_window` steps are a stop.
        nudge_window: steps that hold them, the newest one included.
        visual_is_goal: the run is about what can be seen; looking at the screen needs no excuse.
        detectors: in the order in which they are asked.
        exclusions: by the name of a detector, the tools that it never judges (`*` and `?` as in a shell).
        tools: what is declared about tools; later declarations win.

    Raises:
        StuckConfigError: a limit can never be reached, which would make its branch dead code.
    """

    window: int = 20
    nudge_max: int = 3
    nudge_window: int = 10
    visual_is_goal: bool = False
    detectors: tuple[Detector, ...] = DETECTORS
    exclusions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    tools: tuple[Declaration, ...] = DECLARED
    asked: tuple[tuple[str, Detector, frozenset[str]], ...] = field(init=False, repr=False, compare=False)
    _profiles: dict[str, Profile] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in (
            ("window", self.window),
            ("nudge_max", self.nudge_max),
            ("nudge_window", self.nudge_window),
        ):
            if value < 1:
                raise StuckConfigError(f"{name!r} is a count, at least 1, not {value}", _setting(name))
        if self.nudge_max > self.nudge_window:
            raise StuckConfigError(
                f"{self.nudge_max} nudges never fall into {self.nudge_window} steps: a step is nudged at most once",
                _setting("nudge_max"),
            )
        for detector in self.detectors:
            for name, limits in _settings_of(detector).items():
                if isinstance(limits, Limits) and limits.highest > self.window:
                    raise StuckConfigError(
                        f"a limit of {limits.highest} steps is never reached in a window of {self.window}; "
                        "lower it, or widen the window",
                        ("detectors", name_of(detector), name),
                    )
        # The one derived field: who is asked, with its exclusions, without the work of finding out at each call.
        object.__setattr__(
            self,
            "asked",
            tuple(
                (name_of(one), one, self.exclusions.get(name_of(one), frozenset()))
                for one in self.detectors
                if not (self.visual_is_goal and name_of(one) in WHEN_LOOKING_IS_NO_GOAL)
            ),
        )

    def profile(self, tool: str) -> Profile:
        """What is declared about a tool."""
        known = self._profiles.get(tool)
        if known is None:
            if len(self._profiles) >= _MAX_PROFILES:
                self._profiles.clear()
            known = self._profiles[tool] = profile_of(tool, self.tools)
        return known

    @classmethod
    def parse(cls, settings: Mapping[str, Any] | None, base: Config | None = None) -> Config:
        """Read a `stuck:` mapping; what it does not name stays as it is in `base`.

        ::

            window: 20
            escalation: {nudges: 3, steps: 10}
            visual_is_goal: false
            detectors:
              ConsecutiveDuplicate: {strict: {nudge: 3, stop: 4}, exclude: [heartbeat]}
              FamilyNoProgress: {limits: {nudge: [5, 8], stop: 12}}
              ToolModeSwitch: false
            tools:
              get_build: {traits: [pollable], mask: ['took \\d+ ms']}
              "crm_*": {family: web, volatile_args: [element_id]}

        Args:
            settings: the mapping, or None for none.
            base: what it stands on: the project's settings below a case's; the defaults when not given.

        Raises:
            StuckConfigError: with the path of what is wrong.
        """
        base = base or cls()
        settings = _mapping(settings or {}, (), _KEYS)
        changes: dict[str, Any] = {}
        if "window" in settings:
            changes["window"] = _count(settings["window"], ("window",))
        escalation = _mapping(settings.get("escalation", {}), ("escalation",), ("nudges", "steps"))
        for name, attribute in (("nudges", "nudge_max"), ("steps", "nudge_window")):
            if name in escalation:
                changes[attribute] = _count(escalation[name], ("escalation", name))
        if "visual_is_goal" in settings:
            if not isinstance(settings["visual_is_goal"], bool):
                raise StuckConfigError(
                    f"'visual_is_goal' is true or false, not {settings['visual_is_goal']!r}", ("visual_is_goal",)
                )
            changes["visual_is_goal"] = settings["visual_is_goal"]
        if "detectors" in settings:
            changes |= _detectors(settings["detectors"], base)
        if "tools" in settings:
            named = _mapping(settings["tools"], ("tools",))
            changes["tools"] = (*base.tools, *(_declaration(pattern, named[pattern]) for pattern in named))
        return dataclasses.replace(base, **changes)


def excluded(tool: str, patterns: Iterable[str]) -> bool:
    """Whether a tool is among the excluded ones."""
    return any(pattern == tool or fnmatchcase(tool, pattern) for pattern in patterns)


def _setting(attribute: str) -> Path:
    """Where an attribute of `Config` stands in the mapping."""
    return {"nudge_max": ("escalation", "nudges"), "nudge_window": ("escalation", "steps")}.get(attribute, (attribute,))


def _settings_of(detector: Detector) -> dict[str, object]:
    fields = dataclasses.fields(cast("Any", detector))
    return {one.name: getattr(detector, one.name) for one in fields}


def _detectors(value: object, base: Config) -> dict[str, Any]:
    """The detectors as they are after the settings: tuned, switched off, or switched on again."""
    known = {name_of(one): one for one in (*DETECTORS, *base.detectors)}
    settings = _mapping(value, ("detectors",), tuple(known))
    active = {name_of(one) for one in base.detectors}
    exclusions = dict(base.exclusions)
    for name, one in settings.items():
        path: Path = ("detectors", name)
        if isinstance(one, bool):
            active = active | {name} if one else active - {name}
            continue
        tuning = dict(_mapping(one, path, (*_settings_of(known[name]), "exclude")))
        if "exclude" in tuning:
            exclusions[name] = frozenset(_names(tuning.pop("exclude"), (*path, "exclude")))
        known[name] = _tuned(known[name], tuning, path)
        active = active | {name}
    return {"detectors": tuple(one for name, one in known.items() if name in active), "exclusions": exclusions}


def _tuned(detector: Detector, tuning: Mapping[str, Any], path: Path) -> Detector:
    """A detector with other settings, each read by the type of the one that it replaces."""
    settings = _settings_of(detector)
    changes: dict[str, Any] = {}
    for name, value in tuning.items():
        place = (*path, name)
        if isinstance(settings[name], Limits):
            changes[name] = _limits(value, cast("Limits", settings[name]), place)
        elif isinstance(settings[name], int):
            changes[name] = _count(value, place, least=0)
        else:
            changes[name] = frozenset(_names(value, place))
    try:
        return cast("Detector", dataclasses.replace(cast("Any", detector), **changes))
    except StuckConfigError as error:
        raise StuckConfigError(str(error), (*path, *error.path)) from None


def _limits(value: object, base: Limits, path: Path) -> Limits:
    """Read `{nudge: 3, stop: 4}`; `nudge` may be a list of tiers, and either may be null for never."""
    settings = _mapping(value, path, ("nudge", "stop"))
    nudges, stop = base.nudges, base.stop
    if "nudge" in settings:
        nudge = settings["nudge"]
        tiers = [] if nudge is None else nudge if isinstance(nudge, list | tuple) else [nudge]
        nudges = tuple(_count(one, (*path, "nudge")) for one in tiers)
    if "stop" in settings:
        stop = None if settings["stop"] is None else _count(settings["stop"], (*path, "stop"))
    try:
        return Limits(nudges, stop)
    except StuckConfigError as error:
        raise StuckConfigError(str(error), path) from None


def _declaration(pattern: str, value: object) -> Declaration:
    path: Path = ("tools", pattern)
    settings = _mapping(value, path, ("family", "mask", "modality", "traits", "volatile_args"))
    choices: dict[str, Any] = {}
    for name, known in (("family", FAMILIES), ("modality", MODALITIES)):
        if name in settings:
            choices[name] = "" if settings[name] is None else _choice(settings[name], known, (*path, name))
    traits = None
    if "traits" in settings:
        names = _names(settings["traits"], (*path, "traits"))
        traits = frozenset(_choice(one, TRAITS, (*path, "traits", index)) for index, one in enumerate(names))
    volatile = None
    if "volatile_args" in settings:
        volatile = frozenset(_names(settings["volatile_args"], (*path, "volatile_args")))
    mask = None
    if "mask" in settings:
        place = (*path, "mask")
        mask = tuple(_pattern(one, (*place, index)) for index, one in enumerate(_names(settings["mask"], place)))
    return Declaration(
        pattern,
        family=cast("Family | None", choices.get("family")),
        modality=cast("Modality | None", choices.get("modality")),
        traits=cast("frozenset[Trait] | None", traits),
        volatile_args=volatile,
        mask=mask,
    )


def _pattern(text: str, path: Path) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise StuckConfigError(f"{text!r} is no regular expression: {error}", path) from None


def _mapping(value: object, path: Path, known: tuple[str, ...] | None = None) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        allowed = f" with {', '.join(known)}" if known else ""
        raise StuckConfigError(f"{path[-1] if path else 'stuck'!r} takes a mapping{allowed}, not {value!r}", path)
    for name in value:
        if known is not None:
            _choice(name, known, (*path, str(name)), what="key")
        elif not isinstance(name, str):
            raise StuckConfigError(f"{name!r} is no name", (*path, str(name)))
    return value


def _choice(value: object, known: tuple[str, ...], path: Path, what: str = "name") -> str:
    if isinstance(value, str) and value in known:
        return value
    near = get_close_matches(str(value), known, n=1)
    meant = f" (did you mean {near[0]!r}?)" if near else ""
    raise StuckConfigError(f"unknown {what} {value!r}{meant}; there are: {', '.join(known)}", path)


def _names(value: object, path: Path) -> list[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise StuckConfigError(f"{path[-1]!r} takes a list of texts, not {value!r}", path)
    return list(value)


def _count(value: object, path: Path, least: int = 1) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise StuckConfigError(f"{path[-1]!r} takes a whole number, at least {least}, not {value!r}", path)
    return value
