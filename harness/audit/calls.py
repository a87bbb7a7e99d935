"""One call of a tool, in a fresh workspace and a process of its own, and what came of it."""

from __future__ import annotations

import copy
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from harness.agent.results import error_result, result_of
from harness.audit.scratch import Change, changes, snapshot
from harness.case.workspace import fresh_directory
from harness.errors import ToolInputError
from harness.forked import ask_forked

if TYPE_CHECKING:
    from pathlib import Path

    from harness.agent.results import ToolResult
    from harness.audit.scratch import Snapshot
    from harness.audit.targets import Target

__all__ = ["REFUSAL", "Answer", "Outcome", "call_apart", "refusal_by_contract"]

Outcome: TypeAlias = Literal["refused_by_contract", "refused_by_tool", "said_ok", "refused_too_late", "died", "hung"]
"""`refused_too_late`: it raised or said error, and yet something that was there is no longer as it was."""

REFUSAL: Final = r"\A\[validation error\]"
"""A text that is a refusal although the tool did not say error: the marker that loops and detectors know."""

_SHOWN: Final = 200
"""Characters of an answer that a report has; `max_result_chars` of what a model reads is another matter."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one call gave, and what it changed in its workspace."""

    outcome: Outcome
    text: str = ""
    changes: tuple[Change, ...] = ()


def refusal_by_contract(target: Target, sent: Mapping[str, Any]) -> Answer | None:
    """What the contract says before anything runs; None when the call would reach the function."""
    if target.contract is None:
        return None
    try:
        target.contract.validate(sent)
    except ToolInputError as error:
        return Answer("refused_by_contract", str(error))
    return None


def call_apart(
    target: Target, sent: Mapping[str, Any], template: Path, before: Snapshot, *, refusal: re.Pattern[str], limit: float
) -> Answer:
    """Call the tool once.

    Args:
        target: the tool.
        sent: the input.
        template: a folder that the call gets a copy of, as its working directory.
        before: what the template holds.
        refusal: finds a refusal in the text of an answer that does not say error.
        limit: seconds.
    """
    with fresh_directory("audit") as directory:
        workspace = directory / "workspace"
        shutil.copytree(template, workspace, symlinks=True)
        ending = ask_forked(partial(_work, target, sent, workspace), directory / "answer.json", limit=limit)
        changed = changes(before, snapshot(workspace))
    if ending.kind != "answered":
        return Answer(ending.kind, ending.why, changed)
    kind, text = ending.value
    if kind == "died":
        return Answer("died", text, changed)
    if kind == "ok" and not refusal.search(text):
        return Answer("said_ok", _cut(text), changed)
    if any(change.destroys for change in changed):
        return Answer("refused_too_late", _cut(text), changed)
    by_contract = kind == "contract" or re.search(REFUSAL, text)
    return Answer("refused_by_contract" if by_contract else "refused_by_tool", _cut(text), changed)


def _work(target: Target, sent: Mapping[str, Any], workspace: Path) -> tuple[str, str]:
    """In the child: what kind of answer, and its text."""
    os.chdir(workspace)
    try:
        value = target.call(copy.deepcopy(dict(sent)))
        result = result_of(value)
        says_error = result.is_error or _says_error(value)
    except ToolInputError as error:
        return "contract", str(error)
    except Exception as error:  # noqa: BLE001 (the tool may raise anything: that is its answer)
        return "error", _text(error_result(error))
    except BaseException as error:  # noqa: BLE001 (a loop that calls this tool would end here)
        return "died", f"raised {type(error).__name__}({error}), which would end the loop"
    return "error" if says_error else "ok", _text(result)


def _says_error(value: Any) -> bool:
    """Whether it is a tool_result block, or an object like one, that is marked as an error."""
    marked = value.get("is_error") if isinstance(value, Mapping) else getattr(value, "is_error", None)
    return marked is True


def _text(result: ToolResult) -> str:
    if isinstance(result.content, str):
        return result.content
    return " ".join(str(block["text"]) if block["type"] == "text" else f"[{block['type']}]" for block in result.content)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
