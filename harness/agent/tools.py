"""How a function becomes a tool: the `@tool` decorator and adapters for tools made elsewhere."""

from __future__ import annotations

import copy
import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast, overload

from harness.agent.contract import IDEMPOTENCY_KEY, MAX_RESULT_CHARS, Effect, Tool
from harness.agent.signature import Signature, read_description, read_signature
from harness.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["FunctionTool", "as_tool", "as_toolset", "tool"]

P = ParamSpec("P")
R = TypeVar("R")


class FunctionTool(Tool, Generic[P, R]):
    """A `Tool` that type checkers still know by the signature of its function."""

    __slots__ = ()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function as if it had never become a tool: nothing is validated, nothing recorded."""
        return cast("R", self.function(*args, **kwargs))


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    effect: Effect = ...,
    name: str | None = ...,
    description: str | None = ...,
    input_schema: Mapping[str, Any] | None = ...,
    verify: Callable[..., Any] | None = ...,
    timeout: float | None = ...,
    allow_empty: Iterable[str] = ...,
    concurrent: bool = ...,
    max_result_chars: int = ...,
    options: Mapping[str, Any] | None = ...,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    effect: Effect = "irreversible",
    name: str | None = None,
    description: str | None = None,
    input_schema: Mapping[str, Any] | None = None,
    verify: Callable[..., Any] | None = None,
    timeout: float | None = None,
    allow_empty: Iterable[str] = (),
    concurrent: bool = False,
    max_result_chars: int = MAX_RESULT_CHARS,
    options: Mapping[str, Any] | None = None,
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a tool of a function; it can still be called as before.

        @tool(effect="read_only")
        def read_file(path: str) -> str:
            \"\"\"Read a text file.

            Args:
                path: Relative to the workspace.
            \"\"\"

    Name, schema and descriptions come from the function's name, type hints and docstring unless they are
    given.  A parameter named `idempotency_key` is filled by the loop and is no part of the schema.  For a
    method, decorate nothing and hand `as_tool(obj.method)` to the loop.  The arguments are those of `Tool`.

    Raises:
        ToolError: The function cannot be a tool as it stands; the text says what to change.
    """

    def make(target: Callable[P, R]) -> FunctionTool[P, R]:
        called = name or str(getattr(target, "__name__", type(target).__name__))
        signature = read_signature(target, called) if input_schema is None else Signature(dict(input_schema), None)
        return FunctionTool(
            name=called,
            description=read_description(target) if description is None else description,
            input_schema=signature.input_schema,
            function=target,
            effect=effect,
            verify=verify,
            timeout=timeout,
            allow_empty=allow_empty,
            concurrent=concurrent,
            max_result_chars=max_result_chars,
            options=options or {},
            coerce=signature.coerce,
        )

    return make if function is None else make(function)


def as_tool(source: Any, **contract: Any) -> Tool:
    """Take a tool as it comes: a `Tool`, a plain function, or a function tool of the SDK.

    The SDK's `@beta_tool`, `@beta_async_tool` and its built-in tools (memory, …) are known by their `to_dict`
    and `call`; their definition is sent as they give it, and what they do not say is said here.

    Args:
        source: The tool.
        contract: What its author left open, or what to change: `effect="read_only"` and the other arguments
            of `tool`.

    Raises:
        ToolError: It is none of these, or the contract is wrong.
    """
    if isinstance(source, Tool):
        return replace(source, **contract) if contract else source
    if callable(getattr(source, "to_dict", None)) and callable(getattr(source, "call", None)):
        return _from_sdk(source, contract)
    if callable(source):
        return tool(**contract)(source)
    raise ToolError(f"{source!r} is no tool; give a function, a `Tool`, or a function made with @tool or @beta_tool")


def as_toolset(sources: Iterable[Any]) -> dict[str, Tool]:
    """The tools of one loop by name, in the order in which they were given.

    Raises:
        ToolError: Something is no tool, or two tools have one name, which the API refuses.
    """
    toolset: dict[str, Tool] = {}
    for source in sources:
        made = as_tool(source)
        if made.name in toolset:
            raise ToolError(f"two tools are named {made.name!r}; the API wants one of each name")
        toolset[made.name] = made
    return toolset


def _from_sdk(source: Any, contract: Mapping[str, Any]) -> Tool:
    definition = dict(source.to_dict())
    schema = copy.deepcopy(definition.pop("input_schema", {"type": "object"}))
    takes_key = IDEMPOTENCY_KEY in schema.get("properties", {})
    if takes_key:
        del schema["properties"][IDEMPOTENCY_KEY]
        schema["required"] = [name for name in schema.get("required", ()) if name != IDEMPOTENCY_KEY]
    given = {
        "name": definition.pop("name", None) or source.name,
        "description": definition.pop("description", ""),
        "input_schema": schema,
        "options": definition,
        "takes_key": takes_key,
    }
    return Tool(function=_call_of(source), **{**given, **contract})


def _call_of(source: Any) -> Callable[..., Any]:
    """`source.call`, which wants one mapping, as a function of keyword arguments, of the same colour."""
    if inspect.iscoroutinefunction(source.call):

        async def call_async(**arguments: Any) -> Any:
            return await source.call(arguments)

        return call_async

    def call(**arguments: Any) -> Any:
        return source.call(arguments)

    return call
