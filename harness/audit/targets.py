"""The tools to audit: contracts and functions that are called themselves, or definitions with their dispatcher."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.agent.contract import Effect, Tool
from harness.agent.tools import as_tool
from harness.case.loops import in_own_loop
from harness.case.references import load_object
from harness.case.tools import load_tools
from harness.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Target", "load_targets"]


@dataclass(frozen=True, slots=True)
class Target:
    """One tool to audit.

    Args:
        name: what the model calls it by.
        schema: of its input; None when the tool has none, as tools that the API defines.
        call: executes it with one input, as the loop would.
        effect: what its author declares; None when nobody has.
        contract: what stands before it; None when a call reaches the function as the model sent it.
        allow_empty: names of required fields that may be empty.
        source: file (relative to the project) and line of the function, where that is known.
    """

    name: str
    schema: Mapping[str, Any] | None
    call: Callable[[Mapping[str, Any]], Any]
    effect: Effect | None = None
    contract: Tool | None = None
    allow_empty: frozenset[str] = frozenset()
    source: tuple[str, int] | None = None


def load_targets(reference: str, dispatch: str | None = None, root: Path | None = None) -> tuple[Target, ...]:
    """The tools that a command names.

    Args:
        reference: `module:name` of tools as a case names them; with `dispatch`, of their definitions: the `tools` of an
            API request, or tools whose definitions are taken.
        dispatch: `module:name` of the function `(name, input) -> result`, sync or async, that executes them.
        root: the project's folder, for `sys.path`.

    Raises:
        ToolError: there is no such object, or it is none of these.
    """
    if dispatch is not None:
        return _dispatched(reference, dispatch, root)
    if any(isinstance(one, Mapping) for one in _members(load_object(reference, root, ToolError))):
        raise ToolError(
            f"{reference!r} holds definitions; name the function that executes them: --dispatch module:name"
        )
    toolset = load_tools(reference, root)
    undeclared = toolset.writes() - toolset.writes(())
    return tuple(
        Target(
            name=tool.name,
            schema=tool.input_schema,
            call=partial(toolset.dispatch, tool.name),
            effect=None if tool.name in undeclared else tool.effect,
            contract=None if tool.name in undeclared else tool,
            allow_empty=frozenset(tool.allow_empty),
            source=_source(tool.function, root),
        )
        for tool in toolset.tools
    )


def _dispatched(reference: str, dispatch: str, root: Path | None) -> tuple[Target, ...]:
    execute = load_object(dispatch, root, ToolError)
    if not callable(execute):
        raise ToolError(f"{dispatch!r} is of type {type(execute).__name__}; name a function (name, input) -> result")
    found = load_object(reference, root, ToolError)
    if inspect.isfunction(found):
        found = _made(found, reference)
    members = _members(found)
    if not members:
        raise ToolError(f"{reference!r} holds no tools; with --dispatch it names a list of definitions")
    targets = [_defined(one, f"{reference}[{index}]", execute, root) for index, one in enumerate(members)]
    names = [one.name for one in targets]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ToolError(f"{reference!r}: two tools are named {twice[0]!r}; the API wants one of each name")
    return tuple(targets)


def _made(function: Callable[[], Any], reference: str) -> Any:
    try:
        return function()
    except Exception as error:  # the user's code may raise anything
        raise ToolError(f"{reference!r} raised {type(error).__name__}: {error}") from error


def _members(found: Any) -> list[Any]:
    return (
        list(found) if isinstance(found, list | tuple) else list(found.values()) if isinstance(found, Mapping) else []
    )


def _defined(source: Any, where: str, execute: Callable[..., Any], root: Path | None) -> Target:
    definition = source if isinstance(source, Mapping) else as_tool(source).definition()
    name, schema = definition.get("name"), definition.get("input_schema")
    if not isinstance(name, str) or not name:
        raise ToolError(f"{where}: a definition needs a 'name'; this one has {sorted(map(str, definition))}")
    if schema is not None and not isinstance(schema, Mapping):
        raise ToolError(f"{where}: input_schema of {name!r} is of type {type(schema).__name__}; give a JSON Schema")
    tool = source if isinstance(source, Tool) else None
    return Target(
        name=name,
        schema=schema,
        call=partial(_execute, execute, name),
        effect=tool.effect if tool else None,
        allow_empty=frozenset(tool.allow_empty) if tool else frozenset(),
        source=_source(execute, root),
    )


def _execute(execute: Callable[..., Any], name: str, sent: Mapping[str, Any]) -> Any:
    result = execute(name, sent)
    return in_own_loop(partial(_awaited, result)) if inspect.isawaitable(result) else result


async def _awaited(value: Any) -> Any:
    return await value


def _source(function: Any, root: Path | None) -> tuple[str, int] | None:
    try:
        code = inspect.unwrap(function).__code__
        path = Path(code.co_filename).relative_to(root or Path.cwd())
    except (AttributeError, ValueError):
        return None
    return path.as_posix(), code.co_firstlineno
