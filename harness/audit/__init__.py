"""The contract audit of tools: what a tool answers when a field that it requires is missing, empty or wrong.

The names below are the public interface.  They load on first use, as a command that only shows its help needs none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.audit.auditing import Plan, ToolAudit, audit_tools
    from harness.audit.report import exit_code, render
    from harness.audit.targets import Target, load_targets

_HOMES = {
    "Plan": "harness.audit.auditing",
    "Target": "harness.audit.targets",
    "ToolAudit": "harness.audit.auditing",
    "audit_tools": "harness.audit.auditing",
    "exit_code": "harness.audit.report",
    "load_targets": "harness.audit.targets",
    "render": "harness.audit.report",
}

__all__ = ["Plan", "Target", "ToolAudit", "audit_tools", "exit_code", "load_targets", "render"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
