"""Listens to a run, at the dispatcher and at the model client, and yields its trace.

Recording never changes what the loop sees.  Arguments are digested before the tool can change them; results and
exceptions pass through untouched; a fault of the recorder itself is kept for `trace()` and never raised into the loop.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar

from harness.errors import StuckLoop
from harness.normalize import Normalizer, digest_key
from harness.observing import observe
from harness.tape import Tape

if TYPE_CHECKING:
    from harness.middleware import ListeningMiddleware
    from harness.tape import Observed, Turn
    from harness.trace import Trace
    from harness.wire import MessageReader

__all__ = ["Recorder", "StuckGuard"]

F = TypeVar("F", bound=Callable[..., Any])

# What dispatchers call the name and the input of a call.
_NAMES: Final = ("name", "tool", "tool_name", "function_name")
_INPUTS: Final = ("input", "tool_input", "args", "arguments", "tool_args", "params", "parameters")


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
        self._guarding: _Guarding | None = None

    def instrument(self, dispatch: F) -> F:
        """The dispatcher, observed; sync or async, its signature kept.

        It is called as `(name, input)`, by position or by keyword, or with one `tool_use` block.
        """
        self._calls_from = self._calls_from or "dispatch"
        return observe(dispatch, _Dispatches(self, self._tape, _parameter_names(dispatch)))

    def instrument_tool(self, name: str, function: F) -> F:
        """The function of one tool, observed; its input is what it is called with, by keyword."""
        self._calls_from = self._calls_from or "dispatch"
        return observe(function, _ToolCalls(self, self._tape, name, _parameter_names(function)))

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

    def intervened(self, verdict: str, detector: str, turn: int | None = None) -> None:
        """Record a verdict of the stuck-loop guard that the loop acted on, after `turn` or the current one."""
        self._tape.intervene(verdict, detector, turn)

    def guard(
        self, guard: StuckGuard, on_verdict: Callable[[Any], object] | None = None, *, raising: bool = False
    ) -> None:
        """Let a stuck-loop guard judge each call that an instrumented callable executes from now on.

        The loop is not changed.  Verdicts other than `continue` are recorded as interventions and given to the
        callback; that is where a loop of one's own can pick up the message of a nudge.

        Args:
            guard: a `harness.stuck.Guard`.
            on_verdict: called with each verdict that is not `continue`.
            raising: on `force_stop`, raise `StuckLoop` out of the call into the loop.  It is a `BaseException`, so that
                a loop which turns a tool's exceptions into results ends all the same.
        """
        self._guarding = _Guarding(guard, on_verdict, raising=raising)
        self._tape.keeps_arguments = True

    def trace(self, problems: Iterable[str] = ()) -> Trace:
        """The trace of what was recorded so far.

        Args:
            problems: why the run must not become a golden, for what is shown of it.
        """
        return self._tape.trace(self.case, self._writes, problems)

    def failures(self) -> dict[int, str]:
        """How the calls that failed did so, by index into `trace().calls`, for the reader of a report.

        The kind of the exception.  Its message, or the text of a result that says `is_error`, may hold what the run was
        about: it is there with `detail="plain"` only, and never in the trace.
        """
        return self._tape.failures()

    def judge(self, observed: Observed, ok: bool, result: object) -> BaseException | None:
        """What the guard, if there is one, makes of a call that is over: an exception for the loop, or None."""
        if self._guarding is None:
            return None
        reads = self._writes is not None and observed.tool not in self._writes
        verdict = self._tape.guarded(self._guarding.verdict, observed, ok, result, self._tape.turn_of(observed), reads)
        if verdict is None or verdict.kind == "continue":
            return None
        self._tape.intervene(verdict.kind, str(verdict.detector))
        return self._guarding.act(verdict)

    def _takes_results(self) -> bool:
        return self._calls_from in (None, "wire")


class StuckGuard(Protocol):
    """What `harness.stuck.Guard` offers to a recorder."""

    def call(
        self, tool: str, arguments: object, result: object = None, *, ok: bool, read_only: bool, turn: int | None
    ) -> Any:
        """Take one executed call into account and say what is to be done."""


class _Guarding:
    """A guard, and what is done with its verdicts."""

    def __init__(self, guard: StuckGuard, on_verdict: Callable[[Any], object] | None, *, raising: bool) -> None:
        self._guard = guard
        self._on_verdict = on_verdict
        self._raising = raising

    def verdict(self, observed: Observed, ok: bool, result: object, turn: int | None, read_only: bool) -> Any:
        shown = str(result) if isinstance(result, BaseException) else result
        return self._guard.call(observed.tool, observed.given, shown, ok=ok, read_only=read_only, turn=turn)

    def act(self, verdict: Any) -> BaseException | None:
        if self._on_verdict is not None:
            self._on_verdict(verdict)
        if not self._raising or verdict.kind != "force_stop":
            return None
        return StuckLoop(f"the run is stuck: {verdict.detector} at call {verdict.at_call}", verdict)


class _Dispatches:
    """Hears a dispatcher: which tool, with which input."""

    def __init__(self, recorder: Recorder, tape: Tape, names: list[str]) -> None:
        self._recorder = recorder
        self._tape = tape
        self._names = names

    def began(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Observed | None:
        return self._tape.guarded(self._began, args, kwargs)

    def _began(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Observed:
        named = dict(zip(self._names, args, strict=False)) | dict(kwargs)
        given = [*args, *(kwargs[name] for name in self._names[len(args) :] if name in kwargs)]
        given += [value for name, value in kwargs.items() if name not in self._names]
        first: Any = given[0] if given else None
        if isinstance(first, Mapping) and "name" in first:
            return self._tape.begin(str(first["name"]), first.get("input", {}))
        if not isinstance(first, str) and hasattr(first, "name") and hasattr(first, "input"):
            return self._tape.begin(str(first.name), first.input)
        # Parameters that say what they are decide; else the first one is the name, and the second one the input.
        tool = next((named[name] for name in _NAMES if isinstance(named.get(name), str)), first)
        rest = [value for value in given if value is not tool]
        sent = next((named[name] for name in _INPUTS if name in named), rest[0] if rest else {})
        if not isinstance(tool, str):
            # What is no name may be anything, and a trace holds names in clear.
            self._tape.miss("a dispatcher was called in a way that does not tell which tool it is to run")
            tool = "unknown"
        return self._tape.begin(tool, sent)

    def ended(self, token: Observed | None, ok: bool, result: Any) -> BaseException | None:
        if token is None:
            return None
        self._tape.guarded(self._tape.end, token, ok, result)
        return self._recorder.judge(token, ok, result)


class _ToolCalls:
    """Hears the function of one tool."""

    def __init__(self, recorder: Recorder, tape: Tape, tool: str, names: list[str]) -> None:
        self._recorder = recorder
        self._tape = tape
        self._tool = tool
        self._names = names

    def began(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Observed | None:
        given = dict(zip(self._names, args, strict=False)) | dict(kwargs)
        given.pop("idempotency_key", None)  # made by the loop, not by the model
        return self._tape.guarded(self._tape.begin, self._tool, given)

    def ended(self, token: Observed | None, ok: bool, result: Any) -> BaseException | None:
        if token is None:
            return None
        self._tape.guarded(self._tape.end, token, ok, result)
        return self._recorder.judge(token, ok, result)


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
