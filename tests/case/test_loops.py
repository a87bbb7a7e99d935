"""A loop is called with what it names, and run to its end, whatever kind of callable it is."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from harness.case.loops import bind, call, in_own_loop
from harness.errors import LoopError

OFFER: dict[str, Callable[[], Any]] = {"prompt": lambda: "Go.", "client": lambda: "C", "model": lambda: "m"}


def bound(loop: Callable[..., Any], **fallbacks: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    binding = bind(loop, OFFER, {name: lambda value=value: value for name, value in fallbacks.items()})
    assert binding.names <= {*OFFER, *fallbacks}
    return binding.args, dict(binding.kwargs)


class Loop:
    """A loop as an object, a class, and a bound method."""

    def __init__(self, prompt: str = "?") -> None:
        self.prompt = prompt

    def run(self, prompt: str, *, client: str) -> tuple[str, str]:
        return (prompt, client)

    def __call__(self, model: str) -> str:
        return model

    @classmethod
    def start(cls, prompt: str) -> str:
        return prompt

    @staticmethod
    def go(client: str) -> str:
        return client


def positional(prompt: str, depth: int = 3, client: str = "", /, *, model: str) -> None: ...
def greedy(prompt: str, *args: Any, **kwargs: Any) -> None: ...
def defaulted(prompt: str = "own", client: None = None, other: int = 5) -> None: ...
def limited(max_turns: int) -> None: ...
def unlimited(max_turns: int = 50) -> None: ...


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return inner


BINDINGS: dict[str, tuple[Callable[..., Any], tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "nothing": (lambda: None, ((), {})),
    "function": (lambda prompt, client: None, ((), {"prompt": "Go.", "client": "C"})),
    "positional-only": (positional, (("Go.", 3, "C"), {"model": "m"})),
    "*args and **kwargs": (greedy, ((), {"prompt": "Go."})),
    "defaults": (defaulted, ((), {"prompt": "Go.", "client": "C"})),
    "bound method": (Loop().run, ((), {"prompt": "Go.", "client": "C"})),
    "class method": (Loop.start, ((), {"prompt": "Go."})),
    "static method": (Loop.go, ((), {"client": "C"})),
    "callable object": (Loop(), ((), {"model": "m"})),
    "class": (Loop, ((), {"prompt": "Go."})),
    "partial by keyword": (functools.partial(Loop().run, client="own"), ((), {"prompt": "Go."})),
    "partial by position": (functools.partial(defaulted, "own"), ((), {"client": "C"})),
    "partial of a partial": (
        functools.partial(functools.partial(defaulted, client=None), prompt="x"),
        ((), {}),
    ),
    "decorated": (wrapped(defaulted), ((), {"prompt": "Go.", "client": "C"})),
    "fallback for a required one": (limited, ((), {"max_turns": 24})),
    "no fallback over a default": (unlimited, ((), {})),
}


@pytest.mark.parametrize(("loop", "expected"), BINDINGS.values(), ids=BINDINGS.keys())
def test_a_loop_is_called_with_what_it_names(loop: Callable[..., Any], expected: Any) -> None:
    """Parameters are filled by name, those with defaults too; what a partial has settled stays."""
    assert bound(loop, max_turns=24) == expected


def test_only_what_is_named_is_built() -> None:
    """A client costs time, so it is made only for a loop that takes one."""
    made: list[str] = []
    offer = {name: lambda name=name: made.append(name) for name in ("prompt", "client", "async_client")}
    bind(lambda prompt, async_client: None, offer)
    assert made == ["prompt", "async_client"]


UNFILLED: dict[str, tuple[Callable[..., Any], str]] = {
    "unknown": (
        lambda promt: None,
        "requires 'promt', which the harness does not provide; there are: prompt, client, model",
    ),
    "two": (
        lambda a, prompt, b: None,
        "requires 'a' and 'b', which the harness does not provide; there are: prompt, client, model",
    ),
    "no tools in the case": (
        lambda dispatch: None,
        "requires 'dispatch', which the harness does not provide; there are: prompt, client, model; tools, toolset, "
        "dispatch and async_dispatch come with the case's 'tools'",
    ),
}


@pytest.mark.parametrize(("loop", "said"), UNFILLED.values(), ids=UNFILLED.keys())
def test_a_required_parameter_that_nothing_fills_is_an_error(loop: Callable[..., Any], said: str) -> None:
    """The error names the loop and the parameter, and lists what there is."""
    with pytest.raises(LoopError) as caught:
        bound(loop)
    assert str(caught.value) == f"the loop {__name__}.<lambda> {said}"


def test_nothing_is_built_for_a_loop_that_cannot_be_called() -> None:
    """A missing argument is found before any factory runs."""
    with pytest.raises(LoopError, match="requires 'nothing'"):
        bind(lambda client, nothing: None, {"client": lambda: pytest.fail("built")})


def test_a_method_without_its_object_is_explained() -> None:
    """`module:Class.method` cannot be called, and the reason is said in those words."""
    with pytest.raises(LoopError) as caught:
        bound(Loop.run)
    said = "is a method without its object; name a method of an instance, or a function"
    assert str(caught.value) == f"the loop {__name__}.Loop.run {said}"


def test_a_callable_without_a_signature_is_refused() -> None:
    """A callable that does not tell its parameters cannot be filled."""
    with pytest.raises(LoopError, match=r"the parameters of builtins\.dict cannot be read: .*; wrap it in a function"):
        bound(dict)


async def coroutine(prompt: str) -> str:
    await asyncio.sleep(0)
    return prompt


def generator(prompt: str) -> Iterator[str]:
    yield prompt
    yield "more"


async def async_generator(prompt: str) -> AsyncIterator[str]:
    yield prompt
    await asyncio.sleep(0)
    yield "more"


class AsyncLoop:
    async def __call__(self, prompt: str) -> str:
        return prompt


async def coroutine_of_a_generator(prompt: str) -> AsyncIterator[str]:
    return async_generator(prompt)


LOOPS: dict[str, tuple[Callable[..., Any], Any]] = {
    "function": (lambda prompt: prompt, "Go."),
    "coroutine function": (coroutine, "Go."),
    "function that returns a coroutine": (lambda prompt, model: coroutine(prompt), "Go."),
    "function that runs its own event loop": (lambda prompt: asyncio.run(coroutine(prompt)), "Go."),
    "async callable object": (AsyncLoop(), "Go."),
    "partial of a coroutine function": (functools.partial(coroutine), "Go."),
    "generator": (generator, ["Go.", "more"]),
    "async generator": (async_generator, ["Go.", "more"]),
    "coroutine of an async generator": (coroutine_of_a_generator, ["Go.", "more"]),
}


@pytest.mark.parametrize(("loop", "value"), LOOPS.values(), ids=LOOPS.keys())
def test_a_loop_runs_to_its_end(loop: Callable[..., Any], value: Any) -> None:
    """Sync or async, a loop has run when `call` returns, and a generator has been read."""
    assert call(loop, bind(loop, OFFER)) == value


@pytest.mark.parametrize(("loop", "value"), LOOPS.values(), ids=LOOPS.keys())
def test_a_loop_runs_inside_a_running_event_loop(loop: Callable[..., Any], value: Any) -> None:
    """In an async test the same loops run, in a thread of their own, and may themselves use `asyncio.run`."""

    async def test() -> Any:
        return call(loop, bind(loop, OFFER))

    assert asyncio.run(test()) == value


def test_the_thread_sees_the_callers_context() -> None:
    """Context variables of an async test reach the loop."""
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")

    async def test() -> tuple[str, bool]:
        variable.set("set")
        here = threading.current_thread()
        return call(lambda: (variable.get(), threading.current_thread() is here), bind(lambda: None, {}))

    assert asyncio.run(test()) == ("set", False)


class LeaveError(BaseException):
    """As KeyboardInterrupt and the outcomes of pytest are."""


@pytest.mark.parametrize("inside", [False, True])
def test_what_a_loop_raises_passes_through(inside: bool) -> None:
    """Exceptions reach the caller as they are, `BaseException` too, from the thread as well."""
    error = LeaveError("now")

    def loop() -> None:
        raise error

    async def async_loop() -> None:
        raise error

    async def test(function: Callable[..., Any]) -> None:
        call(function, bind(function, {}))

    for function in (loop, async_loop):
        with pytest.raises(LeaveError) as caught:
            asyncio.run(test(function)) if inside else call(function, bind(function, {}))
        assert caught.value is error


def test_a_coroutine_can_be_finished_from_anywhere() -> None:
    """Synchronous code gets the result of a coroutine, also where an event loop is running."""

    async def test() -> str:
        return str(in_own_loop(lambda: coroutine("inner")))

    assert (in_own_loop(lambda: coroutine("outer")), asyncio.run(test())) == ("outer", "inner")
