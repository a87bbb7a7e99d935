"""What was heard of one run so far: its model responses and its calls."""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from harness.normalize import key_fingerprint
from harness.trace import Call, Context, Intervention, Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harness.normalize import Normalizer
    from harness.wire import MessageReader

__all__ = ["Observed", "Tape", "Turn"]

T = TypeVar("T")

_SAID: Final = 300
"""Characters of what a failed call said that are kept."""

_RECENT: Final = 16  # responses that may still wait for their calls, where agents share a recorder
_NO_PLACE: Final = 1 << 30  # after all blocks of its response


@dataclass(slots=True)
class Turn:
    """One model response, as far as it has arrived.

    `known` counts the messages of the request that it answers; `claimed` holds the places of the blocks that were
    executed.
    """

    reader: MessageReader | None
    message: Mapping[str, Any]
    known: int
    claimed: set[int] = field(default_factory=set)
    complete: bool = True

    def _whole(self) -> Mapping[str, Any]:
        return (self.message if self.reader is None else self.reader.message) or {}

    def content(self) -> list[Mapping[str, Any]]:
        """The blocks of the response."""
        blocks = self._whole().get("content")
        return [one for one in blocks if isinstance(one, Mapping)] if isinstance(blocks, list) else []

    def stop_reason(self) -> str | None:
        """Why the model stopped; None when the answer broke off."""
        reason = self._whole().get("stop_reason")
        return reason if isinstance(reason, str) else None


@dataclass(slots=True)
class Observed:
    """One call.

    `ok`, `result` and what a failure said are known when it is over; `given` is a copy of its arguments, for a guard.
    """

    turn: Turn | None
    place: int
    tool: str
    digest: str
    args: Mapping[str, Any] | None
    ok: bool = False
    result: str | None = None
    given: object = None
    failure: str = ""

    @property
    def asked(self) -> bool:
        """Whether a block of its response asked for it."""
        return self.place != _NO_PLACE


class Tape:
    """Collects what listeners hear, in any order and from any thread, and puts it in the order of the responses.

    Args:
        normalizer: what varies by run.
        detail: what the trace holds of arguments: `args`, `digest` or `plain`.
        model: the name of the model; None takes it from the first request.

    Attributes:
        keeps_arguments: whether calls keep a copy of their arguments until they are over.
    """

    def __init__(self, normalizer: Normalizer, detail: str, model: str | None) -> None:
        self.model = model
        self.keeps_arguments = False
        self._normalizer = normalizer
        self._detail = detail
        self._lock = threading.Lock()
        self._turns: list[Turn] = []
        self._calls: list[Observed] = []
        self._wired: set[str] = set()
        self._interventions: list[Intervention] = []
        self._context: Context | None = None
        self._asked = 0
        self._faults: list[str] = []

    def begin(self, tool: str, arguments: object) -> Observed:
        """A call starts.  Its arguments are digested here, before the tool can change them."""
        digest, args = self._digests(arguments)
        given = copy.deepcopy(arguments) if self.keeps_arguments else None
        with self._lock:
            turn, place = self._claimed(tool, arguments)
            observed = Observed(turn, place, tool, digest, args, given=given)
            self._calls.append(observed)
        return observed

    def _claimed(self, tool: str, arguments: object) -> tuple[Turn | None, int]:
        """The response that a call executes a block of, and the place of the block in it.

        The newest response that asks for this very call and has not got it; agents that share a recorder answer theirs
        in any order.  A call that no response asks for, or asks for otherwise, belongs to the last one.
        """
        for turn in self._turns[: -_RECENT - 1 : -1]:
            place = _claim(turn, tool, arguments, exactly=True)
            if place != _NO_PLACE:
                return turn, place
        if not self._turns:
            return None, _NO_PLACE
        return self._turns[-1], _claim(self._turns[-1], tool, arguments, exactly=False)

    def turn_of(self, observed: Observed) -> int | None:
        """The number of the response that a call belongs to; None outside any."""
        with self._lock:
            numbers = range(len(self._turns), 0, -1)
            return next((number for number in numbers if self._turns[number - 1] is observed.turn), None)

    def end(self, observed: Observed, ok: bool, result: object) -> None:
        """A call is over."""
        observed.ok = ok
        observed.result = self._normalizer.digest(result)
        if not ok:
            observed.failure = _failure(result, whole=self._detail == "plain")

    def _digests(self, arguments: object) -> tuple[str, Mapping[str, Any] | None]:
        digest, args = self._normalizer.digest_call(arguments)
        if self._detail == "digest":
            return digest, None
        if self._detail == "plain":
            value = self._normalizer.normalize(arguments)
            return digest, value if isinstance(value, dict) else {"input": value}
        return digest, args

    def take_request(self, request: Mapping[str, Any], *, with_results: bool) -> None:
        """A request is sent; with `with_results`, the tool_results in it stand for calls."""
        messages = request.get("messages")
        messages = messages if isinstance(messages, list) else []
        with self._lock:
            if self._context is None:
                self._context = self._context_of(request, messages)
            if self.model is None and isinstance(request.get("model"), str):
                self.model = request["model"]
            last = self._turns[-1] if self._turns else None
            if last and not last.complete and last.known == len(messages) and not last.claimed:
                self._turns.pop()  # the loop discarded what came and asked again
            self._asked = len(messages)
        if with_results:
            self._take_results(messages)

    def _context_of(self, request: Mapping[str, Any], messages: list[Any]) -> Context:
        short = self._normalizer.digest
        tools = request.get("tools")
        named = [one for one in tools if isinstance(one, Mapping)] if isinstance(tools, list) else []
        first = messages[0] if messages and isinstance(messages[0], Mapping) else None
        return Context(
            prompt=short(first.get("content"))[:8] if first else None,
            system=short(request["system"])[:8] if request.get("system") else None,
            tools={str(one.get("name")): short(one)[:8] for one in sorted(named, key=lambda one: str(one.get("name")))},
        )

    def take_turn(self, reader: MessageReader | None, message: Mapping[str, Any]) -> Turn:
        """An answer begins: as it arrives in `reader`, or whole in `message`."""
        with self._lock:
            turn = Turn(reader, message, self._asked, complete=reader is None)
            self._turns.append(turn)
        return turn

    def close_turn(self, turn: Turn) -> None:
        """An answer is over, whole or not."""
        reader = turn.reader
        with self._lock:
            turn.complete = reader is None or reader.complete
            empty = reader is not None and (reader.message is None or reader.error is not None)
            if empty and not turn.claimed and turn in self._turns:
                self._turns.remove(turn)  # an error, or nothing, came where an answer should have come

    def _take_results(self, messages: list[Any]) -> None:
        """The calls that the loop reports since the last answer, where no dispatcher is observed."""
        results: dict[str, Mapping[str, Any]] = {}
        with self._lock:
            turns = list(self._turns)
        asked = {block.get("id") for turn in turns[-1:] for block in turn.content() if block.get("type") == "tool_use"}
        # Loops put more than results behind an answer: a system message, or calls that they made up themselves.
        for message in reversed(messages):
            content = message.get("content") if isinstance(message, Mapping) else None
            blocks = [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []
            if any(block.get("type") == "tool_use" and block.get("id") in asked for block in blocks):
                break
            for block in blocks:
                if block.get("type") == "tool_result":
                    results.setdefault(str(block.get("tool_use_id")), block)
        for turn in reversed(turns):
            for place, block in enumerate(turn.content()):
                name = str(block.get("id"))
                if block.get("type") == "tool_use" and name in results and name not in self._wired:
                    result = results[name]
                    digest, args = self._digests(block.get("input"))
                    observed = Observed(turn, place, str(block.get("name")), digest, args)
                    self.end(observed, result.get("is_error") is not True, result.get("content"))
                    with self._lock:
                        self._wired.add(name)
                        turn.claimed.add(place)
                        self._calls.append(observed)
            if results.keys() <= self._wired:
                break

    def guarded(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T | None:
        """Call a method of this object for a listener: a fault is kept, never raised into the run."""
        try:
            return function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 (recording must not break the run that is observed)
            with self._lock:
                self._faults.append(f"the recorder failed: {type(error).__name__}: {error}")
            return None

    def miss(self, what: str) -> None:
        """Something happened that the trace cannot show; it must not look complete."""
        with self._lock:
            self._faults.append(what)

    def intervene(self, verdict: str, detector: str, turn: int | None = None) -> None:
        """The loop acted on a verdict, after `turn` or the current one."""
        with self._lock:
            self._interventions.append(Intervention(len(self._turns) if turn is None else turn, verdict, detector))

    def failures(self) -> dict[int, str]:
        """How the calls that failed did so, by index into the calls of the trace."""
        return {index: one.failure for index, (_, one) in enumerate(self._ordered()) if not one.ok}

    def _ordered(self) -> list[tuple[int, Observed]]:
        """The calls with the numbers of their responses, in the order of the blocks, however they ended.

        One that no block asked for stands behind the call that had begun before it.
        """
        with self._lock:
            turns = list(self._turns)
            observed = list(self._calls)
        numbers = {id(turn): number for number, turn in enumerate(turns, 1)}
        last: dict[int, int] = {}
        order: list[tuple[int, int, int]] = []
        for index, one in enumerate(observed):
            turn = numbers.get(id(one.turn), 0)
            if one.asked:
                last[turn] = one.place
            order.append((turn, last.get(turn, -1), index))
        return [(turn, observed[index]) for turn, _, index in sorted(order)]

    def trace(self, case: str, writes: frozenset[str] | None, problems: Iterable[str]) -> Trace:
        """All of it as a trace."""
        with self._lock:
            turns = list(self._turns)
            interventions = tuple(self._interventions)
            faults = list(self._faults)
        calls = tuple(
            Call(turn, one.tool, one.digest, one.ok, one.args, one.result, one.asked or not turn)
            for turn, one in self._ordered()
        )
        called = frozenset(call.tool for call in calls)
        return Trace(
            case=case,
            calls=calls,
            turns=len(turns),
            stop_reasons=tuple(turn.stop_reason() for turn in turns),
            interventions=interventions,
            writes=called if writes is None else called & writes,
            model=self.model,
            context=self._context or Context(),
            detail=self._detail,
            digest_key=key_fingerprint(self._normalizer.key),
            problems=(*problems, *faults),
        )


def _failure(result: object, *, whole: bool) -> str:
    """How a call failed: the kind of an exception; its message, or a result's text, only where values may be seen."""
    kind = type(result).__name__ if isinstance(result, BaseException) else ""
    if not whole:
        return kind
    try:
        if kind:
            return _short(f"{kind}: {result}")
        content = result.get("content", result) if isinstance(result, Mapping) else getattr(result, "content", result)
        if isinstance(content, list):
            texts = [block["text"] for block in content if isinstance(block, Mapping) and "text" in block]
            content = " ".join(map(str, texts))
        return _short(str(content))
    except Exception:  # noqa: BLE001 (a hostile result must not break the run that is observed)
        return kind


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SAID else f"{line[: _SAID - 1]}…"


def _claim(turn: Turn, tool: str, arguments: object, *, exactly: bool) -> int:
    """The place in a response of the `tool_use` block that a call executes: concurrent calls end in any order."""
    open_blocks = [
        (place, block)
        for place, block in enumerate(turn.content())
        if place not in turn.claimed and block.get("type") == "tool_use" and block.get("name") == tool
    ]
    same = [place for place, block in open_blocks if _same(block.get("input"), arguments)]
    found = same or ([] if exactly else [place for place, _ in open_blocks])
    if not found:
        return _NO_PLACE
    turn.claimed.add(found[0])
    return found[0]


def _same(one: object, other: object) -> bool:
    try:
        return bool(one == other)
    except Exception:  # noqa: BLE001 (a hostile argument's __eq__ must not break the run that is observed)
        return False
