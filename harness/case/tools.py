"""The tools of one run: inline stubs or the user's own, as contracts and as a dispatcher."""

from __future__ import annotations

import copy
import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from harness.agent.contract import Tool
from harness.agent.tools import as_tool
from harness.case.loops import in_own_loop
from harness.case.references import load_object
from harness.errors import ToolError, UnknownToolError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from harness.case.schema import Answer, Stub

__all__ = ["Entry", "Toolset", "load_tools", "stub_tools"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One tool, and whether its author wrote the contract.

    A bare function has none: it is called with what the model sent, as any loop would call it, and whether it changes
    the world is for the case to say.  A declared contract validates its input and knows its effect.
    """

    tool: Tool
    declared: bool

    def arguments(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments for one call."""
        return self.tool.arguments(sent) if self.declared else copy.deepcopy(dict(sent))


class Toolset:
    """The tools of one run, by name, in the order in which they were given.

    Args:
        entries: the tools.

    Raises:
        ToolError: two tools have one name.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries: dict[str, Entry] = {}
        for entry in entries:
            if entry.tool.name in self._entries:
                raise ToolError(f"two tools are named {entry.tool.name!r}; the API wants one of each name")
            self._entries[entry.tool.name] = entry

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The contracts."""
        return tuple(entry.tool for entry in self._entries.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools."""
        return tuple(self._entries)

    def definitions(self) -> list[dict[str, Any]]:
        """The tools as the API's `tools` parameter, fresh copies."""
        return [tool.definition() for tool in self.tools]

    def writes(self, named: Iterable[str] | None = None) -> frozenset[str]:
        """The tools that change the world.

        Args:
            named: what the case lists under `writes`; it decides for tools without a declared contract, which count
                as writes when it is None.
        """
        silent = {name for name, entry in self._entries.items() if not entry.declared}
        declared = {name for name, entry in self._entries.items() if entry.declared and entry.tool.writes}
        return frozenset(declared | (silent if named is None else set(named)))

    def instrumented(self, wrap: Callable[[str, Callable[..., Any]], Callable[..., Any]]) -> Toolset:
        """The same tools with their functions wrapped: `wrap(name, function)`."""
        return self.changed(lambda tool: replace(tool, function=wrap(tool.name, tool.function)))

    def changed(self, change: Callable[[Tool], Tool]) -> Toolset:
        """The same tools, each as `change` returns it."""
        return Toolset(replace(entry, tool=change(entry.tool)) for entry in self._entries.values())

    def dispatch(self, name: str, input: Mapping[str, Any]) -> Any:  # noqa: A002 - the API's own word
        """Execute one tool.  A coroutine function runs in an event loop of its own.

        Raises:
            UnknownToolError: there is no such tool.
            ToolInputError: the input breaks the tool's declared contract.
        """
        result = self._execute(name, input)
        return in_own_loop(partial(_awaited, result)) if inspect.isawaitable(result) else result

    async def async_dispatch(self, name: str, input: Mapping[str, Any]) -> Any:  # noqa: A002 - the API's own word
        """Execute one tool in the running event loop.  Raises as `dispatch`."""
        result = self._execute(name, input)
        return await result if inspect.isawaitable(result) else result

    def _execute(self, name: str, sent: Mapping[str, Any]) -> Any:
        entry = self._entries.get(name)
        if entry is None:
            raise UnknownToolError(name, self.names)
        return entry.tool.function(**entry.arguments(sent))


def stub_tools(stubs: Mapping[str, Stub], place: Callable[[str], int] | None = None) -> Toolset:
    """The inline stubs of a case, for one run.

    Args:
        stubs: as in the case file.
        place: asked while a stub runs, by its name: the how-manyth of its calls this is, from 1, which is the place in
            its `sequence`.  Without it they are counted here, as long as the toolset lives.

    Raises:
        ToolError: a stub breaks a rule of the API, such as the one for names.
    """
    return Toolset(Entry(_stub(name, stub, place or _counter()), declared=True) for name, stub in stubs.items())


def _counter() -> Callable[[str], int]:
    counts: Counter[str] = Counter()

    def count(name: str) -> int:
        counts[name] += 1
        return counts[name]

    return count


def load_tools(reference: str, root: Path | None = None) -> Toolset:
    """The user's own tools.

    Args:
        reference: `module:name` of a list or tuple of tools, of a mapping of names to tools, of one `Tool`, or of a
            function without parameters that returns one of these.  A tool is a `Tool`, a function (with `@tool` or
            bare), or a function tool of the SDK.
        root: the project's folder, for `sys.path`.

    Raises:
        ToolError: there is no such object, or it is none of these.
    """
    found = load_object(reference, root, ToolError)
    if not _is_contract(found) and callable(found) and not isinstance(found, type):
        if _required(found):
            remedy = f"give a list of tools, as in [{_bare(found)}]"
            raise ToolError(f"{reference!r} is a function that takes arguments; {remedy}")
        try:
            found = found()
        except Exception as error:  # the user's code may raise anything
            raise ToolError(f"{reference!r} raised {type(error).__name__}: {error}") from error
    if _is_contract(found):
        found = [found]
    if isinstance(found, Mapping):
        return Toolset(_entry(one, f"{reference}[{name!r}]", name) for name, one in found.items())
    if isinstance(found, list | tuple):
        return Toolset(_entry(one, f"{reference}[{index}]") for index, one in enumerate(found))
    kind = type(found).__name__
    raise ToolError(f"{reference!r} is of type {kind}; give a list of tools, or a mapping of names to tools")


def _entry(source: Any, where: str, name: Any = None) -> Entry:
    contract = {} if name is None else {"name": name}
    if isinstance(source, Mapping):
        raise ToolError(f"{where}: an API definition alone cannot be executed; give the function or a Tool")
    if not _is_contract(source) and not callable(source):
        raise ToolError(f"{where}: an object of type {type(source).__name__} is no tool")
    try:
        if _is_contract(source):
            return Entry(as_tool(source, **contract), declared=isinstance(source, Tool))
        return Entry(_bare_tool(source, contract), declared=False)
    except ToolError as error:
        raise ToolError(f"{where}: {error}") from None


def _is_contract(source: Any) -> bool:
    """A tool that carries its own definition: ours, or the SDK's, known by what it has and never imported."""
    sdk = callable(getattr(source, "to_dict", None)) and callable(getattr(source, "call", None))
    return isinstance(source, Tool) or (sdk and not isinstance(source, type))


def _bare_tool(function: Callable[..., Any], contract: Mapping[str, Any]) -> Tool:
    """A bare function; without type hints its parameters are known by name, and anything may be in them."""
    try:
        return as_tool(function, **contract)
    except ToolError:
        name = contract.get("name") or _bare(function)
    try:
        parameters = [one for one in inspect.signature(function).parameters.values() if one.kind != one.VAR_KEYWORD]
    except (TypeError, ValueError):
        parameters = []
    if any(one.kind in (one.VAR_POSITIONAL, one.POSITIONAL_ONLY) for one in parameters):
        raise ToolError(f"{name!r} has parameters that cannot be given by name; a model names all it gives")
    schema = {
        "type": "object",
        "properties": {one.name: {} for one in parameters},
        "required": [one.name for one in parameters if one.default is one.empty],
    }
    return Tool(name=name, description=inspect.getdoc(function) or "", input_schema=schema, function=function)


def _required(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in parameters)


def _bare(function: Any) -> str:
    return getattr(function, "__name__", None) or type(function).__name__


def _stub(name: str, stub: Stub, place: Callable[[str], int]) -> Tool:
    fields = stub.input or {}
    shorthand = {
        "type": "object",
        "properties": {field: {"type": kind} for field, kind in fields.items()},
        "required": list(fields),
    }
    answers: list[Answer | Stub] = [*stub.sequence] if stub.sequence else [stub]

    def answer(**_: Any) -> Any:
        chosen = answers[min(place(name), len(answers)) - 1]
        if chosen.raises is not None:
            raise ToolError(chosen.raises)
        return copy.deepcopy(chosen.returns)

    return Tool(
        name=name,
        description=stub.description,
        input_schema=shorthand if stub.input_schema is None else stub.input_schema,
        function=answer,
        effect=stub.effect,
    )


async def _awaited(value: Any) -> Any:
    return await value
