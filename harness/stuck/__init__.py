"""Whether a run is stuck: nine detectors over its calls, three verdicts, and the evidence for each.

::

    from harness.stuck import Guard

    guard = Guard()
    verdict = guard.call("read_file", {"path": "a"}, text, read_only=True)

It runs in production: it needs neither a model, nor an agent, nor tests, and its memory is that of a window of steps.
"""

from __future__ import annotations

from harness.stuck.config import Config
from harness.stuck.evidence import Event, Record, record_of
from harness.stuck.fold import State, fold, step
from harness.stuck.guard import Guard
from harness.stuck.limits import Limits
from harness.stuck.profiles import Declaration, Profile
from harness.stuck.registry import DETECTORS
from harness.stuck.turn_detector import TurnDetector
from harness.stuck.verdict import FALLBACK_TEXT, STOPPED_STUCK, Evidence, Verdict

__all__ = [
    "DETECTORS",
    "FALLBACK_TEXT",
    "STOPPED_STUCK",
    "Config",
    "Declaration",
    "Event",
    "Evidence",
    "Guard",
    "Limits",
    "Profile",
    "Record",
    "State",
    "TurnDetector",
    "Verdict",
    "fold",
    "record_of",
    "step",
]
