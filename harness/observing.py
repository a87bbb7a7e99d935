"""Wraps a callable so that its calls are seen, and nothing that its caller sees is changed."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol, TypeVar, cast

__all__ = ["Listener", "observe", "reported_error"]

F = TypeVar("F", bound=Callable[..., Any])


class Listener(Protocol):
    """Hears of each call.  Neither method may raise."""

    def began(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """A call is about to start; what is returned comes back with its end.  None: it is not to be followed."""

    def ended(self, token: Any, ok: bool, result: Any) -> BaseException | None:
        """The call that `token` stands for is over; `result` is what it returned or raised.

        Returns:
            An exception to raise in the loop, or None.
        """


def observe(function: F, listener: Listener) -> F:
    """The same callable, observed.

    Sync functions stay sync, coroutine functions stay coroutine functions, the signature stays.  Results, generators
    included, and exceptions (`BaseException` too) pass through untouched.  A coroutine or a future that a plain
    function returns is followed to its end.
    """
    if _is_coroutine_function(function):

        @functools.wraps(function)
        async def observed_coroutine(*args: Any, **kwargs: Any) -> Any:
            token = listener.began(args, kwargs)
            return await _followed(function(*args, **kwargs), token, listener)

        return cast("F", observed_coroutine)

    @functools.wraps(function)
    def observed(*args: Any, **kwargs: Any) -> Any:
        token = listener.began(args, kwargs)
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            _end(listener.ended(token, False, error))
            raise
        if inspect.iscoroutine(result):
            return _followed(result, token, listener)
        if isinstance(result, asyncio.Future):
            result.add_done_callback(lambda future: _settle(future, token, listener))
            return result
        _end(listener.ended(token, not reported_error(result), result))
        return result

    return cast("F", observed)


def reported_error(result: object) -> bool:
    """Whether a tool's result says by itself that it is an error: `is_error` as key or attribute."""
    if isinstance(result, Mapping):
        return result.get("is_error") is True
    try:
        return getattr(result, "is_error", False) is True
    except Exception:  # noqa: BLE001 (a property of a hostile result must not break the run that is observed)
        return False


async def _followed(coroutine: Coroutine[Any, Any, Any], token: Any, listener: Listener) -> Any:
    try:
        result = await coroutine
    except BaseException as error:
        _end(listener.ended(token, False, error))
        raise
    _end(listener.ended(token, not reported_error(result), result))
    return result


def _end(order: BaseException | None) -> None:
    if order is not None:
        raise order


def _settle(future: asyncio.Future[Any], token: Any, listener: Listener) -> None:
    if future.cancelled():
        listener.ended(token, False, asyncio.CancelledError())
    elif error := future.exception():
        listener.ended(token, False, error)
    else:
        listener.ended(token, not reported_error(future.result()), future.result())


def _is_coroutine_function(function: Callable[..., Any]) -> bool:
    call = getattr(type(function), "__call__", None)  # noqa: B004 (an object whose __call__ is async is awaited as well)
    return inspect.iscoroutinefunction(function) or (
        not inspect.isroutine(function) and inspect.iscoroutinefunction(call)
    )
