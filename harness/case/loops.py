"""The loop under test: found by its name, called with the arguments that it names, run to its end."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import threading
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.errors import LoopError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

__all__ = ["Binding", "bind", "call", "in_own_loop", "parameters"]


@dataclass(frozen=True, slots=True)
class Binding:
    """What a loop is called with, and which of the offered names it took."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    names: frozenset[str]


def parameters(loop: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a loop that the harness may fill, by name.

    `*args` and `**kwargs` name nothing, and what a `functools.partial` has given by name is settled.

    Raises:
        LoopError: the callable does not tell its parameters.
    """
    try:
        signature = inspect.signature(loop)
    except (TypeError, ValueError) as error:
        raise LoopError(f"the parameters of {_name(loop)} cannot be read: {error}; wrap it in a function") from error
    settled: set[str] = set()
    inner: Any = loop
    while isinstance(inner, functools.partial):
        settled |= inner.keywords.keys()
        inner = inner.func
    return {
        name: parameter
        for name, parameter in signature.parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) and name not in settled
    }


def bind(
    loop: Callable[..., Any],
    available: Mapping[str, Callable[[], Any]],
    fallbacks: Mapping[str, Callable[[], Any]] | None = None,
) -> Binding:
    """Fill the parameters of a loop by their names, as pytest fills those of a test.

    Args:
        loop: a function, method, class, partial or callable object.
        available: factories by name.  Only those whose name the loop takes are called, so that nothing is built for
            nothing.  A parameter with a default is filled as well: `client=None` asks for a client.
        fallbacks: the same for parameters that have no default.

    Raises:
        LoopError: a parameter without default is nothing that exists; lists what does.
    """
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    names: set[str] = set()
    found = parameters(loop)
    missing = [
        name
        for name, parameter in found.items()
        if parameter.default is parameter.empty and name not in available and name not in (fallbacks or {})
    ]
    if missing:
        raise LoopError(_unfilled(loop, missing, [*available, *(fallbacks or {})]))
    for name, parameter in found.items():
        factory = available.get(name)
        if factory is None and parameter.default is parameter.empty:
            factory = (fallbacks or {})[name]
        if factory is not None:
            value = factory()
            names.add(name)
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            value = parameter.default  # it has to be passed, or those after it would move up
        else:
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            args.append(value)
        else:
            kwargs[name] = value
    return Binding(tuple(args), kwargs, frozenset(names))


def call(
    loop: Callable[..., Any], binding: Binding, within: Callable[[], AbstractContextManager[Any]] = nullcontext
) -> Any:
    """Run a loop to its end, whatever its colour.

    A coroutine is awaited in an event loop of its own, a generator (sync or async) is read to its end.  Inside a
    running event loop everything happens in a thread, with the caller's context variables: the loop finds the same
    surroundings in an async test as in any other, and may itself use `asyncio.run`.

    Args:
        loop: the loop.
        binding: what it is called with.
        within: makes a context that is entered in the thread of the loop, around all of it.

    Returns:
        What the loop returned; for a generator the list of what it yielded.
    """
    return _apart(functools.partial(_run, loop, binding, within))


def in_own_loop(make: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a coroutine to its end from synchronous code, also where an event loop is running already."""
    return _apart(lambda: asyncio.run(make()))


def _apart(work: Callable[[], Any]) -> Any:
    """Do `work` where no event loop is running: here, or else in a thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    return _in_thread(work)


def _run(loop: Callable[..., Any], binding: Binding, within: Callable[[], AbstractContextManager[Any]]) -> Any:
    with within():
        result = loop(*binding.args, **binding.kwargs)
        if inspect.isawaitable(result) or inspect.isasyncgen(result):
            return asyncio.run(_finish(result))
        return list(result) if inspect.isgenerator(result) else result


async def _finish(result: Any) -> Any:
    value = await result if inspect.isawaitable(result) else result
    return [item async for item in value] if inspect.isasyncgen(value) else value


def _in_thread(work: Callable[[], Any]) -> Any:
    outcome: list[Any] = []
    failure: list[BaseException] = []

    def target() -> None:
        try:
            outcome.append(context.run(work))
        except BaseException as error:  # noqa: BLE001 - it is raised again in the thread that asked
            failure.append(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=target, name="harness-loop")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


def _unfilled(loop: Callable[..., Any], missing: list[str], offered: list[str]) -> str:
    if missing[0] in ("self", "cls"):
        return f"the loop {_name(loop)} is a method without its object; name a method of an instance, or a function"
    needs = " and ".join(map(repr, missing))
    text = (
        f"the loop {_name(loop)} requires {needs}, which the harness does not provide; there are: {', '.join(offered)}"
    )
    if {"tools", "toolset", "dispatch", "async_dispatch"} & (set(missing) - set(offered)):
        text += "; tools, toolset, dispatch and async_dispatch come with the case's 'tools'"
    return text


def _name(loop: Any) -> str:
    while isinstance(loop, functools.partial):
        loop = loop.func
    name = getattr(loop, "__qualname__", None) or type(loop).__qualname__
    return f"{getattr(loop, '__module__', None) or type(loop).__module__}.{name}"
