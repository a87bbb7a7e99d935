"""One YAML file becomes a `Case`, or one error with everything that is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.case.ids import case_id, find_cases, find_collisions, is_case_file, shown_path
from harness.errors import CaseError, NormalizeError, PolicyError, Problem, ScriptError, StuckConfigError, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from harness.case.schema import Faults, Limits, ModelChoice, Stub
    from harness.case.source import KeyPath, Source
    from harness.model.script import Script
    from harness.policy import Policy

__all__ = ["Case", "case_id", "find_cases", "find_collisions", "is_case_file", "load_case"]


@dataclass(frozen=True, eq=False)
class Case:
    """One case, checked.

    Args:
        id: its path below the case folder, without suffix.
        path: its file.
        prompt: the task that the loop is given.
        model: who answers; `script` below is its script, parsed.
        agent: the loop as `module:callable`, or None when there is a `command`.
        command: the loop as a command, for other languages.
        resume: what goes on with the run after a crash; None calls the loop again.
        description: what the case guards.
        tools: `module:attribute`, or stubs by name, or None when the loop brings its own.
        writes: the tools that the case says change the world, or None when it does not say.
        workspace: bytes of the files that exist before the run, by path; None when the run needs no directory.
        limits: hard bounds; a value of None means the default.
        compare: the `compare:` mapping; `policy` reads it.
        normalize: the `normalize:` mapping.
        stuck: the settings of the stuck-loop guard; None when the case has none.
        detail: `args`, `digest` or `plain`; None leaves it to the project.
        faults: what is done to the process.
        marks: pytest marks.
        tags: words for `-k`.
        max_turns: what a loop that takes `max_turns` is given; None leaves it to the loop.
        script: the parsed script of a scripted model.
        source: the file as it was read.
    """

    id: str
    path: Path
    prompt: str
    model: ModelChoice
    agent: str | None
    command: tuple[str, ...] | None
    resume: str | None
    description: str
    tools: str | Mapping[str, Stub] | None
    writes: frozenset[str] | None
    workspace: Mapping[str, bytes] | None
    limits: Limits
    compare: Mapping[str, Any] | None
    normalize: Mapping[str, Any] | None
    stuck: Mapping[str, Any] | None
    detail: str | None
    faults: Faults
    marks: tuple[str, ...]
    tags: tuple[str, ...]
    max_turns: int | None
    script: Script | None
    source: Source = field(repr=False)

    def position(self, path: KeyPath = ()) -> tuple[int, int]:
        """Line and column, from 1, of the key at `path`, or of its nearest ancestor in the file."""
        return self.source.position(path)

    def error(self, message: str, path: KeyPath = ()) -> CaseError:
        """An error about what stands at `path` of this case."""
        return CaseError(self.source.file, [self.source.problem(message, path)])

    def policy(self, base: Policy | None = None) -> Policy:
        """How strictly this case is compared, on top of the project's policy."""
        from harness.policy import Policy

        return Policy.parse(self.compare, base)


def load_case(path: Path, root: Path) -> Case:
    """Reads and checks one case.

    Args:
        path: the case file.
        root: the folder of the cases.

    Raises:
        CaseError: with every problem that was found, in the order of the file.
    """
    # Here, since a project without cases must not pay for pydantic and the YAML parser.
    from harness.case.complaints import validate
    from harness.case.source import read_source
    from harness.case.workspace import checked_files

    shown = shown_path(path)
    problems: list[Problem] = []
    name = ""
    try:
        name = case_id(path, root)
    except CaseError as error:
        problems += error.problems
    try:
        source = read_source(path, shown)
    except CaseError as error:
        raise CaseError(shown, [*problems, *error.problems]) from None
    checked, complaints = validate(source.data)
    files, faults = checked_files(_contents(source.data.get("workspace")))
    script, language = _languages(source.data)
    complaints += [(("workspace", file), fault) for file, fault in faults.items()]
    complaints += [*language, *_stub_faults(source.data.get("tools"))]
    found = [source.problem(message, where) for where, message in complaints]
    problems += sorted([*source.problems, *found], key=lambda one: (one.line or 0, one.column or 0))
    if problems or checked is None:
        raise CaseError(shown, problems)
    return Case(
        id=name,
        path=path,
        prompt=checked.prompt,
        model=checked.model,
        agent=checked.agent,
        command=None if checked.command is None else tuple(checked.command),
        resume=checked.resume,
        description=checked.description,
        tools=checked.tools,
        writes=None if checked.writes is None else frozenset(checked.writes),
        workspace=None if checked.workspace is None else files,
        limits=checked.limits,
        compare=checked.compare,
        normalize=checked.normalize,
        stuck=checked.stuck,
        detail=checked.detail,
        faults=checked.faults,
        marks=tuple(checked.marks),
        tags=tuple(checked.tags),
        max_turns=checked.max_turns,
        script=script,
        source=source,
    )


def _languages(data: Mapping[str, Any]) -> tuple[Script | None, list[tuple[KeyPath, str]]]:
    """What the parsers of script, policy and normalization rules say; their paths begin at their own root."""
    from harness.model.script import Script
    from harness.normalize import Normalizer
    from harness.policy import Policy
    from harness.stuck.config import Config

    complaints: list[tuple[KeyPath, str]] = []
    script = None
    model = data.get("model")
    if isinstance(model, dict) and model.get("script") is not None:
        try:
            script = Script.parse(model["script"])
        except ScriptError as error:
            complaints.append((("model", "script", *error.path), str(error)))
    for key, parse in (("compare", Policy.parse), ("normalize", Normalizer.parse), ("stuck", Config.parse)):
        try:
            parse(data.get(key))
        except (PolicyError, NormalizeError, StuckConfigError) as error:
            complaints.append(((key, *error.path), str(error)))
    return script, complaints


def _contents(workspace: Any) -> dict[str, Any]:
    """The entries of a workspace that have the right shape; the others are reported for it already."""
    entries = workspace.items() if isinstance(workspace, dict) else ()
    return {name: content for name, content in entries if _is_content(content)}


def _is_content(content: Any) -> bool:
    if isinstance(content, dict):
        return content.keys() == {"json"} or (content.keys() == {"base64"} and isinstance(content["base64"], str))
    return isinstance(content, str)


def _stub_faults(tools: Any) -> Iterator[tuple[KeyPath, str]]:
    """What the contracts say about the stubs that have the right shape."""
    from pydantic import ValidationError

    from harness.case.schema import Stub
    from harness.case.tools import stub_tools

    for name, stub in tools.items() if isinstance(tools, dict) else ():
        try:
            stub_tools({name: Stub.model_validate(stub)})
        except ToolError as error:
            yield ("tools", name), str(error)
        except ValidationError:
            continue
