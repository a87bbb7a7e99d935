"""How the guard is tuned, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from harness.errors import StuckConfigError
from harness.stuck import DETECTORS, Config, Limits
from harness.stuck.registry import name_of
from harness.stuck.sighting import Sighting
from harness.stuck.window import View
from tests.stuck.calls import call, fail, read, verdicts


def refused(settings: object, base: Config | None = None) -> tuple[str, tuple[str | int, ...]]:
    with pytest.raises(StuckConfigError) as caught:
        Config.parse(settings, base)
    return str(caught.value), caught.value.path


def test_nothing_said_is_the_specification() -> None:
    """The defaults are those of the specification, in its order."""
    assert Config.parse(None) == Config.parse({}) == Config()
    assert [name_of(one) for one in Config().detectors] == [
        "EmptyThink", "ToolModeSwitch", "SuccessAfterError", "ConsecutiveDuplicate", "ExactDuplicate", "SameToolError",
        "FamilyNoProgress", "SearchEscalation", "NoProgress",
    ]  # fmt: skip


def test_a_detector_is_tuned_by_its_fields() -> None:
    """What is named changes, the rest stays; a tier may be a list."""
    config = Config.parse({"detectors": {"ConsecutiveDuplicate": {"strict": {"nudge": [2, 3], "stop": 5}}}})
    assert verdicts(*[read("a")] * 5, config=config) == [
        (2, "nudge", "ConsecutiveDuplicate"),
        (3, "nudge", "ConsecutiveDuplicate"),
        (5, "force_stop", "ConsecutiveDuplicate"),
    ]
    only_stop = Config.parse({"detectors": {"ConsecutiveDuplicate": {"strict": {"nudge": None}}}})
    assert verdicts(*[read("a")] * 4, config=only_stop) == [(4, "force_stop", "ConsecutiveDuplicate")]


def test_a_detector_is_switched_off_and_on_again() -> None:
    """A case may bring back, in its old place, what the project had switched off."""
    project = Config.parse({"detectors": {"ConsecutiveDuplicate": False}})
    assert verdicts(*[read("a")] * 5, config=project) == [(5, "nudge", "ExactDuplicate")]
    assert Config.parse({"detectors": {"ConsecutiveDuplicate": True}}, project) == Config()


def test_an_exclusion_is_of_one_detector() -> None:
    """A tool that one detector leaves alone is still judged by the others."""
    config = Config.parse({"detectors": {"ConsecutiveDuplicate": {"exclude": ["heart*"]}}})
    beats = [call("heartbeat", {}, "ok")] * 5
    assert verdicts(*beats, config=config) == [(5, "nudge", "ExactDuplicate")]
    assert verdicts(*[read("a")] * 3, config=config) == [(3, "nudge", "ConsecutiveDuplicate")]


def test_tools_are_declared_by_name_or_pattern() -> None:
    """Later declarations win field by field; null and an empty list take away."""
    config = Config.parse(
        {
            "tools": {
                "get_*": {"traits": ["pollable"], "mask": [r"\d+ ms"], "volatile_args": ["ref"]},
                "get_page": {"family": "web", "traits": []},
                "browser_*": {"family": None},
            }
        }
    )
    build, page = config.profile("get_build"), config.profile("get_page")
    assert (build.family, build.traits, build.volatile_args) == (None, frozenset({"pollable"}), frozenset({"ref"}))
    assert build.mask[0].sub("", "took 12 ms") == "took "
    assert (page.family, page.traits, page.volatile_args) == ("web", frozenset(), frozenset({"ref"}))
    assert (config.profile("browser_click").family, config.profile("browser_click").modality) == (None, "structured_ui")
    assert config.profile("unheard_of") == Config().profile("other")


def test_escalation_and_window_are_settings() -> None:
    """Two nudges may be enough; a wider window sees further."""
    strict = Config.parse({"escalation": {"nudges": 2, "steps": 4}})
    assert verdicts(*[read("a")] * 3, *[read("b")] * 3, config=strict)[-1] == (6, "force_stop", "ConsecutiveDuplicate")
    wide = Config.parse({"window": 40})
    spaced = [read("todo") if number % 5 == 0 else fail(f"t{number}", {}) for number in range(21)]
    assert verdicts(*spaced) == []
    assert verdicts(*spaced, config=wide) == [(21, "nudge", "ExactDuplicate")]


@pytest.mark.parametrize(
    ("settings", "path", "said"),
    [
        ({"windw": 3}, ("windw",), "did you mean 'window'?"),
        ({"window": 0}, ("window",), "at least 1, not 0"),
        ({"window": True}, ("window",), "not True"),
        ([], (), None),
        ("off", (), "'stuck' takes a mapping"),
        ({"escalation": {"nudges": 11}}, ("escalation", "nudges"), "11 nudges never fall into 10 steps"),
        ({"visual_is_goal": "yes"}, ("visual_is_goal",), "true or false"),
        ({"detectors": {"NoProgres": False}}, ("detectors", "NoProgres"), "did you mean 'NoProgress'?"),
        ({"detectors": {"NoProgress": {"limit": {}}}}, ("detectors", "NoProgress", "limit"), "did you mean 'limits'?"),
        ({"detectors": {"NoProgress": {"limits": 3}}}, ("detectors", "NoProgress", "limits"), "takes a mapping"),
        (
            {"detectors": {"NoProgress": {"limits": {"stop": 24}}}},
            ("detectors", "NoProgress", "limits"),
            "24 steps is never reached in a window of 20",
        ),
        ({"window": 19}, ("detectors", "ExactDuplicate", "patient"), "never reached in a window of 19"),
        (
            {"detectors": {"SameToolError": {"limits": {"nudge": 12}}}},
            ("detectors", "SameToolError", "limits"),
            "limits must ascend, nudges before the stop, or one of them is dead: 12, 12",
        ),
        (
            {"detectors": {"ConsecutiveDuplicate": {"validation": {"stop": 8}}}},
            ("detectors", "ConsecutiveDuplicate", "validation"),
            "errors are stopped at 7",
        ),
        (
            {"detectors": {"FamilyNoProgress": {"limits": {"nudge": [5, 0]}}}},
            ("detectors", "FamilyNoProgress", "limits", "nudge"),
            "at least 1, not 0",
        ),
        (
            {"detectors": {"ToolModeSwitch": {"cooldown": -1}}},
            ("detectors", "ToolModeSwitch", "cooldown"),
            "at least 0",
        ),
        ({"detectors": {"NoProgress": {"exclude": "x"}}}, ("detectors", "NoProgress", "exclude"), "a list of texts"),
        ({"tools": {"x": {"traits": ["polable"]}}}, ("tools", "x", "traits", 0), "did you mean 'pollable'?"),
        ({"tools": {"x": {"family": "net"}}}, ("tools", "x", "family"), "there are: web, search, browser, gui"),
        ({"tools": {"x": {"mask": ["("]}}}, ("tools", "x", "mask", 0), "is no regular expression"),
        ({"tools": {3: {}}}, ("tools", "3"), "3 is no name"),
    ],
)
def test_a_wrong_setting_is_refused_where_it_stands(
    settings: object, path: tuple[object, ...], said: str | None
) -> None:
    """One message with what is wrong and what was meant, and the path to it; limits that are dead are wrong."""
    if said is None:  # an empty list is as empty as nothing
        assert Config.parse(settings) == Config()
        return
    message, where = refused(settings)
    assert (where, said in message) == (path, True), message


def test_a_limit_that_falls_on_the_window_is_alive() -> None:
    """The window of twenty reaches the stop at twenty."""
    assert max(getattr(one, "busy", Limits()).highest for one in DETECTORS) == Config().window == 20


def test_a_detector_of_ones_own_is_one_class() -> None:
    """A class with `judge` and `advice`, put in the list, is asked, named, tuned and explained like the others."""

    @dataclass(frozen=True, slots=True)
    class Sleeper:
        """Too many naps."""

        limits: Limits = Limits(nudges=(2,), stop=3)  # noqa: RUF009

        def judge(self, view: View) -> Sighting | None:
            naps = [one for one in view.same_tool if one.record.tool == "sleep"]
            return Sighting((), len(naps), self.limits, naps, "slept", "work") if naps else None

        def advice(self, sighting: Sighting) -> str:
            return f"{sighting.steps} naps."

    config = Config(detectors=(*DETECTORS, Sleeper()))
    naps = [call("sleep", {"s": number}, number) for number in range(3)]
    assert verdicts(*naps, config=config) == [(2, "nudge", "Sleeper"), (3, "force_stop", "Sleeper")]
    tuned = Config.parse({"detectors": {"Sleeper": {"limits": {"nudge": 1}}}}, config)
    assert verdicts(naps[0], config=tuned) == [(1, "nudge", "Sleeper")]
