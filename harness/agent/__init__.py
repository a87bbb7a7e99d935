"""The tools of an agent as contracts, and the loop that runs them.

The names below are the public interface.  They load on first use: a worker that only declares tools does not
pay for the loop, and nothing here imports the SDK before it is called.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.agent.contract import Confirmed, Effect, Tool
    from harness.agent.results import ToolResult
    from harness.agent.tools import as_tool, as_toolset, tool
    from harness.errors import ToolError, ToolInputError

_HOMES = {
    "Confirmed": "harness.agent.contract",
    "Effect": "harness.agent.contract",
    "Tool": "harness.agent.contract",
    "ToolError": "harness.errors",
    "ToolInputError": "harness.errors",
    "ToolResult": "harness.agent.results",
    "as_tool": "harness.agent.tools",
    "as_toolset": "harness.agent.tools",
    "tool": "harness.agent.tools",
}

__all__ = [
    "Confirmed",
    "Effect",
    "Tool",
    "ToolError",
    "ToolInputError",
    "ToolResult",
    "as_tool",
    "as_toolset",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
