"""The tools of an agent as contracts, and the loop that runs them.

The names below are the public interface.  They load on first use: a worker that only declares tools does not
pay for the loop, and nothing here imports the SDK before it is called.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.agent.contract import Confirmed, Effect, Tool
    from harness.agent.json_store import JsonStore
    from harness.agent.loop import Result, arun, run
    from harness.agent.processes import run_process, start_process
    from harness.agent.progress import Progress
    from harness.agent.results import ToolResult
    from harness.agent.sqlite_store import SqliteStore
    from harness.agent.state import Call
    from harness.agent.store import Store
    from harness.agent.tools import as_tool, as_toolset, tool
    from harness.agent.verdicts import Detector, Verdict
    from harness.errors import NoAnswerError, RunInterrupted, StateError, StateLockedError, ToolError, ToolInputError

_HOMES = {
    "Call": "harness.agent.state",
    "Confirmed": "harness.agent.contract",
    "Detector": "harness.agent.verdicts",
    "Effect": "harness.agent.contract",
    "JsonStore": "harness.agent.json_store",
    "NoAnswerError": "harness.errors",
    "Progress": "harness.agent.progress",
    "Result": "harness.agent.loop",
    "RunInterrupted": "harness.errors",
    "SqliteStore": "harness.agent.sqlite_store",
    "StateError": "harness.errors",
    "StateLockedError": "harness.errors",
    "Store": "harness.agent.store",
    "Tool": "harness.agent.contract",
    "ToolError": "harness.errors",
    "ToolInputError": "harness.errors",
    "ToolResult": "harness.agent.results",
    "Verdict": "harness.agent.verdicts",
    "arun": "harness.agent.loop",
    "as_tool": "harness.agent.tools",
    "as_toolset": "harness.agent.tools",
    "run": "harness.agent.loop",
    "run_process": "harness.agent.processes",
    "start_process": "harness.agent.processes",
    "tool": "harness.agent.tools",
}

__all__ = [
    "Call",
    "Confirmed",
    "Detector",
    "Effect",
    "JsonStore",
    "NoAnswerError",
    "Progress",
    "Result",
    "RunInterrupted",
    "SqliteStore",
    "StateError",
    "StateLockedError",
    "Store",
    "Tool",
    "ToolError",
    "ToolInputError",
    "ToolResult",
    "Verdict",
    "arun",
    "as_tool",
    "as_toolset",
    "run",
    "run_process",
    "start_process",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
