"""Trajectory regression tests for tool-using agents.

The names below are the public Python interface.  They load on first use: importing `harness` costs next to nothing
in a project that has it installed and no cases.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.drift import Drift, compare
    from harness.errors import HarnessError
    from harness.golden import load_golden
    from harness.policy import Policy
    from harness.recorder import Recorder
    from harness.trace import Call, Trace

__version__ = "0.1.0"

_HOMES = {
    "Call": "harness.trace",
    "Drift": "harness.drift",
    "HarnessError": "harness.errors",
    "Policy": "harness.policy",
    "Recorder": "harness.recorder",
    "Trace": "harness.trace",
    "compare": "harness.drift",
    "load_golden": "harness.golden",
}

__all__ = ["Call", "Drift", "HarnessError", "Policy", "Recorder", "Trace", "__version__", "compare", "load_golden"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
