"""The detectors in the order in which they are asked; the first one with something to say is heard.

To add one, write its class and put an instance here; to remove one, take it out.  Its name, its settings and its
place in reports follow from the class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.stuck.detectors.backstop import NoProgress
from harness.stuck.detectors.duplicates import ConsecutiveDuplicate, ExactDuplicate
from harness.stuck.detectors.failing import SameToolError
from harness.stuck.detectors.families import FamilyNoProgress
from harness.stuck.detectors.looking import SuccessAfterError, ToolModeSwitch
from harness.stuck.detectors.searching import SearchEscalation
from harness.stuck.detectors.thinking import EmptyThink

if TYPE_CHECKING:
    from harness.stuck.sighting import Detector

__all__ = ["DETECTORS", "WHEN_LOOKING_IS_NO_GOAL", "name_of"]

DETECTORS: Final[tuple[Detector, ...]] = (
    EmptyThink(),
    ToolModeSwitch(),
    SuccessAfterError(),
    ConsecutiveDuplicate(),
    ExactDuplicate(),
    SameToolError(),
    FamilyNoProgress(),
    SearchEscalation(),
    NoProgress(),
)

WHEN_LOOKING_IS_NO_GOAL: Final = frozenset({"ToolModeSwitch", "SuccessAfterError"})
"""Detectors that `visual_is_goal` switches off."""


def name_of(detector: Detector) -> str:
    """The name of a detector in data."""
    return type(detector).__name__
