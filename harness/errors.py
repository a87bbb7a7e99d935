"""Every error that the harness raises on purpose, in one tree.

    HarnessError
    ├── ConfigError          a setting of the project is wrong
    ├── CaseError            a case file is wrong; carries every problem with its position
    ├── PolicyError          a `compare:` policy is wrong
    ├── NormalizeError       a `normalize:` rule is wrong
    ├── GoldenError          a golden trace cannot be used; `kind` says why
    │   └── GoldenMissingError
    ├── TraceError           text that should hold a trace does not
    ├── LoopError            the loop under test could not be found or called
    ├── ModelError           the local model cannot go on
    │   ├── ScriptError          a script is wrong
    │   └── OffScriptError       the conversation left the script
    ├── NetworkBlockedError  something in a scripted run tried to leave the machine
    ├── NoAnswerError        the model gave no whole answer; the run can be resumed
    ├── StateError           the durable state of a run cannot be used or written; `kind` says why
    │   └── StateLockedError     another process is running on it
    ├── NoSuchPointError     a crash point was named that the run does not pass
    ├── StuckConfigError     a `stuck:` setting is wrong
    ├── LabelledError        a file of labelled call sequences is wrong; carries every problem with its position
    └── ToolError            a tool, or a list of tools, is wrong
        ├── ToolInputError       a call breaks the contract of its tool; refused before it ran
        └── UnknownToolError     a call names a tool that there is not

`StuckLoop` stands outside of the tree: it is a `BaseException`, since the loop that it ends is likely to turn every
`Exception` of a tool into a result.  `RunInterrupted` stands outside of it as well: it is a `SystemExit`, raised when a
signal ends a run in good order, and `except Exception` in a worker must not swallow it.  (`RunInterruptedByUser` is its
form for Ctrl-C, and also a `KeyboardInterrupt`.)

A message says what was wrong, where, and what to do next.  Command line and plugin print the message alone; a
traceback is for faults of the harness itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = [
    "CaseError",
    "ConfigError",
    "GoldenError",
    "GoldenMissingError",
    "HarnessError",
    "LabelledError",
    "LoopError",
    "ModelError",
    "NetworkBlockedError",
    "NoAnswerError",
    "NoSuchPointError",
    "NormalizeError",
    "OffScriptError",
    "PolicyError",
    "Problem",
    "RunInterrupted",
    "RunInterruptedByUser",
    "ScriptError",
    "StateError",
    "StateLockedError",
    "StuckConfigError",
    "StuckLoop",
    "ToolError",
    "ToolInputError",
    "TraceError",
    "UnknownToolError",
]


class HarnessError(Exception):
    """Base of everything that the harness raises on purpose."""


class ConfigError(HarnessError):
    """A setting of the project (`[tool.harness]`, a pytest option, an environment variable) is wrong."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in a file: where (1-based line and column, and the path of keys) and what."""

    message: str
    path: str = ""
    line: int | None = None
    column: int | None = None

    def render(self, file: str) -> str:
        """One line in the form compilers use, so that editors and CI logs can link to it."""
        position = "" if self.line is None else f":{self.line}:{self.column}"
        where = f" (at {self.path})" if self.path else ""
        return f"{file}{position}: {self.message}{where}"


class CaseError(HarnessError):
    """A case file is wrong.  `problems` holds all that was found, in the order of the file."""

    def __init__(self, file: str | Path, problems: Sequence[Problem]) -> None:
        self.file = str(file)
        self.problems = tuple(problems)
        super().__init__("\n".join(problem.render(self.file) for problem in self.problems))


class PolicyError(HarnessError):
    """A `compare:` policy is wrong.  `path` is where in the mapping, outermost key first."""

    def __init__(self, message: str, path: tuple[str | int, ...] = ()) -> None:
        self.path = path
        super().__init__(message)


class NormalizeError(HarnessError):
    """A `normalize:` rule is wrong.  `path` is where in the mapping, outermost key first."""

    def __init__(self, message: str, path: tuple[str | int, ...] = ()) -> None:
        self.path = path
        super().__init__(message)


class TraceError(HarnessError):
    """A text that should hold a trace does not.  `kind` as in `GoldenError`."""

    def __init__(self, message: str, kind: str = "invalid") -> None:
        self.kind = kind
        super().__init__(message)


class GoldenError(HarnessError):
    """A golden trace cannot be used.

    `kind` is one of `missing`, `unreadable`, `not_json`, `conflict`, `older`, `newer`, `edited`, `foreign`,
    `wrong_key`, `unkeyed`, `invalid`, `unwritable`, `collision`.
    """

    def __init__(self, message: str, kind: str) -> None:
        self.kind = kind
        super().__init__(message)


class GoldenMissingError(GoldenError):
    """No golden has been accepted for this case yet."""

    def __init__(self, message: str) -> None:
        super().__init__(message, kind="missing")


class LoopError(HarnessError):
    """The loop under test could not be found, or could not be called with what the harness provides."""


class ModelError(HarnessError):
    """The local model cannot go on."""


class ScriptError(ModelError):
    """A script is wrong.  `path` is where in the list of steps."""

    def __init__(self, message: str, path: tuple[str | int, ...] = ()) -> None:
        self.path = path
        super().__init__(message)


class OffScriptError(ModelError):
    """The conversation that the loop sent does not follow the script."""


class NetworkBlockedError(HarnessError):
    """Something in a scripted or recorded run tried to reach a host other than this one."""


class StuckLoop(BaseException):
    """A guarded run is stuck and was asked to end.  `verdict` says why, with the calls that prove it."""

    def __init__(self, message: str, verdict: object) -> None:
        self.verdict = verdict
        super().__init__(message)


class NoSuchPointError(HarnessError):
    """A crash point was named, by a case or by whoever sweeps it, that the run does not pass."""


class StuckConfigError(HarnessError):
    """A `stuck:` setting is wrong.  `path` is where in the mapping, outermost key first."""

    def __init__(self, message: str, path: tuple[str | int, ...] = ()) -> None:
        self.path = path
        super().__init__(message)


class LabelledError(HarnessError):
    """A file of labelled call sequences is wrong.  `problems` holds all that was found, in the order of the file."""

    def __init__(self, file: str | Path, problems: Sequence[Problem]) -> None:
        self.file = str(file)
        self.problems = tuple(problems)
        super().__init__("\n".join(problem.render(self.file) for problem in self.problems))


class ToolError(HarnessError):
    """A tool, or what a case names as its tools, is wrong."""


class ToolInputError(ToolError):
    """A call breaks the contract of its tool, and was refused before anything ran.

    The text begins with `[validation error]`: the stuck detector and the model know such a refusal by it.
    `tool` is the tool's name, `problems` all that was found, in the order of the schema.
    """

    def __init__(self, tool: str, problems: Sequence[str]) -> None:
        self.tool = tool
        self.problems = tuple(problems)
        super().__init__(f"[validation error] {tool}: {'; '.join(self.problems)}. The tool was not executed.")


class NoAnswerError(HarnessError):
    """The model gave no whole answer.  The state is as it was before the request, and the run can be resumed.

    `attempts` counts the requests of this turn, those of earlier processes included; `status` is the HTTP status of the
    last one, where there was one.
    """

    def __init__(self, message: str, *, attempts: int, status: int | None = None) -> None:
        self.attempts = attempts
        self.status = status
        super().__init__(message)


class StateError(HarnessError):
    """The durable state of a run cannot be used or written; nothing was changed by the attempt.

    `kind` is one of `unreadable`, `damaged`, `foreign`, `version`, `other_task`, `other_store`, `full`, `io`,
    `read_only`, `locked`, `fenced`, `conflict`.
    """

    def __init__(self, message: str, kind: str) -> None:
        self.kind = kind
        super().__init__(message)


class StateLockedError(StateError):
    """Another process is running on this state.  `pid` is its process id, where it could be read."""

    def __init__(self, message: str, pid: int | None) -> None:
        self.pid = pid
        super().__init__(message, kind="locked")


class RunInterrupted(SystemExit):
    """A signal ended the run; the state is saved and the run can be resumed.

    `code` is 128 plus the number of the signal, as shells have it.  `message` says what was finished and what was not.
    """

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(128 + signal_number)
        self.message = message
        self.signal_number = signal_number

    def __str__(self) -> str:
        return self.message


class RunInterruptedByUser(RunInterrupted, KeyboardInterrupt):
    """Ctrl-C ended the run: also a `KeyboardInterrupt`, so that whoever handles those (pytest, a REPL) handles it."""


class UnknownToolError(ToolError, KeyError):
    """A call names a tool that there is not.  Also a KeyError, which is what a loop with a table of tools expects."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        there = f"there are: {', '.join(known)}" if known else "this run has none"
        super().__init__(f"unknown tool {name!r}; {there}")

    def __str__(self) -> str:  # KeyError shows the repr of its argument
        return str(self.args[0])
