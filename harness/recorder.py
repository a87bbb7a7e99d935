"""Listens to a run, at the dispatcher and at the model client, and yields its trace.

Recording never changes what the loop sees.  Arguments are digested before the tool can change them; results and
exceptions pass through untouched; a fault of the recorder itself is kept for `trace()` and never raised into the loop.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from harness.normalize import Normalizer, digest_key
from harness.observing import observe
from harness.tape import Tape

if TYPE_CHECKING:
    from harness.middleware import ListeningMiddleware
    from harness.tape import Observed, Turn
    from harness.trace import Trace
    from harness.wire import MessageReader

__all__ = ["Recorder"]

F = TypeVar("F", bound=Callable[..., Any])


class Recorder:
    """Records one run.

        recorder = Recorder(case="nightly", writes={"publish"})
        dispatch = recorder.instrument(dispatch)
        client = anthropic.Anthropic(middleware=[recorder.middleware])

    Args:
        case: the id that the trace carries.
        writes: the tools that change the world; None counts every tool as one, so that nothing is overlooked.
        normalizer: what varies by run; by default the default rules under `HARNESS_DIGEST_KEY`.
        detail: what the trace holds of arguments: `args` (a digest each), `digest` (none), `plain` (values).
        model: the name of the model; by default what the requests say.
        calls_from: `dispatch` takes the calls from instrumented callables; `wire` takes them from the tool_results that
            the loop sends back, for loops whose tools nobody can wrap.  By default `dispatch` as soon as anything was
            instrumented, else `wire`.
    """

    def __init__(
        self,
        case: str = "",
        *,
        writes: Iterable[str] | None = None,
        normalizer: Normalizer | None = None,
        detail: str = "args",
        model: str | None = None,
        calls_from: Literal["dispatch", "wire"] | None = None,
    ) -> None:
        self.case = case
        self._writes = None if writes is None else frozenset(writes)
        self._calls_from = calls_from
        self._tape = Tape(normalizer or Normalizer(key=digest_key()), detail, model)

    def instrument(self, dispatch: F) -> F:
        """The dispatcher, observed; sync or async, its signature kept.

        It is called as `(name, input)`, by position or by keyword, or with one `tool_use` block.
        """
        self._calls_from = self._calls_from or "dispatch"
        return observe(dispatch, _Dispatches(self._tape, _parameter_names(dispatch)))

    def instrument_tool(self, name: str, function: F) -> F:
        """The function of one tool, observed; its input is what it is called with, by keyword."""
        self._calls_from = self._calls_from or "dispatch"
        return observe(function, _ToolCalls(self._tape, name, _parameter_names(function)))

    @cached_property
    def middleware(self) -> ListeningMiddleware:
        """For `anthropic.Anthropic(middleware=[…])` and `AsyncAnthropic`: turns, stop_reasons, what was asked."""
        from harness.middleware import ListeningMiddleware

        return ListeningMiddleware(_Wire(self._tape, self._takes_results))

    def exchange(self, request: Mapping[str, Any], message: Mapping[str, Any] | None) -> None:
        """Record one request and its whole answer, seen by somebody else: a server, a proxy, a recording."""
        wire = _Wire(self._tape, self._takes_results)
        wire.asked(request)
        if message is not None:
            self._tape.guarded(self._tape.take_turn, None, message)

    def intervened(self, verdict: str, detector: str) -> None:
        """Record a verdict of the stuck-loop guard that the loop acted on, after the current turn."""
        self._tape.intervene(verdict, detector)

    def trace(self, problems: Iterable[str] = ()) -> Trace:
        """The trace of what was recorded so far.

        Args:
            problems: why the run must not become a golden, for what is shown of it.
        """
        return self._tape.trace(self.case, self._writes, problems)

    def _takes_results(self) -> bool:
        return self._calls_from in (None, "wire")


class _Dispatches:
    """Hears a dispatcher: which tool, with which input."""

    def __init__(self, tape: Tape, names: list[str]) -> None:
        self._tape = tape
        self._names = names

    def began(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Observed | None:
        return self._tape.guarded(self._began, args, kwargs)

    def _began(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Observed:
        given = [*args, *(kwargs[name] for name in self._names[len(args) :] if name in kwargs)]
        given += [value for name, value in kwargs.items() if name not in self._names]
        first: Any = given[0] if given else None
        if isinstance(first, Mapping) and "name" in first:
            return self._tape.begin(str(first["name"]), first.get("input", {}))
        if not isinstance(first, str) and hasattr(first, "name") and hasattr(first, "input"):
            return self._tape.begin(str(first.name), first.input)
        return self._tape.begin(str(first), given[1] if len(given) > 1 else {})

    def ended(self, token: Observed | None, ok: bool, result: Any) -> None:
        if token is not None:
            self._tape.guarded(self._tape.end, token, ok, result)


class _ToolCalls:
    """Hears the function of one tool."""

    def __init__(self, tape: Tape, tool: str, names: list[str]) -> None:
        self._tape = tape
        self._tool = tool
        self._names = names

    def began(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Observed | None:
        given = dict(zip(self._names, args, strict=False)) | dict(kwargs)
        given.pop("idempotency_key", None)  # made by the loop, not by the model
        return self._tape.guarded(self._tape.begin, self._tool, given)

    def ended(self, token: Observed | None, ok: bool, result: Any) -> None:
        if token is not None:
            self._tape.guarded(self._tape.end, token, ok, result)


class _Wire:
    """Hears a model client."""

    def __init__(self, tape: Tape, takes_results: Callable[[], bool]) -> None:
        self._tape = tape
        self._takes_results = takes_results

    def asked(self, request: Mapping[str, Any]) -> None:
        self._tape.guarded(self._tape.take_request, request, with_results=self._takes_results())

    def answering(self, reader: MessageReader) -> Turn | None:
        return self._tape.guarded(self._tape.take_turn, reader, {})

    def answered(self, token: Turn | None) -> None:
        if token is not None:
            self._tape.guarded(self._tape.close_turn, token)

    def unreadable(self, content_type: str) -> None:
        self._tape.miss(f"an answer of the model came as {content_type!r}, which cannot be read: its turn is missing")


def _parameter_names(function: Callable[..., Any]) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some callables of C extensions have no signature
        return []
