"""Where a conversation stands in a script, found by walking its messages: no request is ever counted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.errors import OffScriptError
from harness.model.conversation import is_blank, text_of
from harness.model.steps import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.model.conversation import Placed, Turn
    from harness.model.script import Script
    from harness.model.steps import Block, Path, Step

__all__ = ["Place", "locate", "place_name", "same_json"]

_UNKNOWN: Final = "execution status unknown"

# What must come back of a block.  Loops may add `cache_control`, drop citations and write out nulls.
_KEPT: Final[Mapping[str, tuple[str, ...]]] = {
    "redacted_thinking": ("data",),
    "server_tool_use": ("id", "name", "input"),
    "text": ("text",),
    "thinking": ("thinking", "signature"),
    "tool_use": ("id", "name", "input"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """How far a conversation has come.

    Args:
        ahead: the steps that come next, in order, as pairs of a list of steps and an index, innermost branch last.
        answered: how many answers the conversation holds.
        last: the last of them.
        paused: whether the conversation ends with an answer that paused.
        thinking: the thinking blocks that the model gave in the latest assistant turn; None when it cannot be told.
        problem: how it left the script, when it did.
    """

    ahead: tuple[tuple[tuple[Step, ...], int], ...]
    answered: int
    last: Answer | None
    paused: bool
    thinking: tuple[Block, ...] | None
    problem: OffScriptError | None

    def steps(self) -> Iterator[Step]:
        """The steps that come next: the rest of the branch that is played, then what follows it."""
        for steps, index in reversed(self.ahead):
            yield from steps[index:]


def locate(script: Script, turns: Sequence[Turn]) -> Place:
    """Walks a conversation whose messages are well formed."""
    walk = _Walk(script)
    for number, turn in enumerate(turns):
        if turn.role == "user":
            walk.hear(turn)
            continue
        try:
            walk.follow(turn)
        except OffScriptError as problem:
            latest = all(later.role == "user" for later in turns[number + 1 :])
            return Place((), walk.answered, walk.last, False, walk.thinking if latest else None, problem)
    answered_last = bool(turns) and turns[-1].role == "assistant"
    paused = answered_last and walk.last is not None and walk.last.stop_reason == "pause_turn"
    return Place(tuple(walk.frames), walk.answered, walk.last, paused, walk.thinking, None)


class _Walk:
    """The position while the turns go by."""

    def __init__(self, script: Script) -> None:
        self.frames: list[tuple[tuple[Step, ...], int]] = [(script.steps, 0)]
        self.answered = 0
        self.last: Answer | None = None
        self.thinking: tuple[Block, ...] | None = None

    def follow(self, turn: Turn) -> None:
        """Takes an assistant turn: one answer, or several where one paused and the next went on."""
        self.thinking = None
        sent = [placed for placed in turn.placed if not is_blank(placed.block)]
        at = 0
        while at < len(sent):
            answer = self._next_shown()
            if answer is None:
                where = sent[at]
                raise _left(where.message, f"it goes on with {_described(where.block)}, where the script has ended")
            self.thinking = (*(self.thinking or ()), *answer.thoughts)
            self.last = self._as_sent(answer, sent[at:], turn)
            self.answered += 1
            at += len(self.last.shown)
            if at < len(sent) and self.last.stop_reason != "pause_turn":
                raise _left(
                    sent[at].message,
                    f"{_described(sent[at].block)} follows what {place_name(answer.path)} answered, and is not of it",
                )

    def hear(self, turn: Turn) -> None:
        """Takes a user turn: the results of the last answer's calls decide whether a branch is played."""
        if self.last is None or not self.last.calls:
            return
        ids = {call["id"] for call in self.last.calls}
        failed = [
            placed.block
            for placed in turn.results
            if placed.block["tool_use_id"] in ids and placed.block.get("is_error")
        ]
        unknown = [result for result in failed if _UNKNOWN in text_of(result.get("content"))]
        if unknown and self.last.on_unknown:
            self.frames.append((self.last.on_unknown, 0))
        elif len(failed) > len(unknown) and self.last.on_error:
            self.frames.append((self.last.on_error, 0))

    def _next_shown(self) -> Answer | None:
        """The next answer that leaves a mark in the conversation; failures and blank answers do not."""
        while self.frames:
            steps, index = self.frames.pop()
            if index < len(steps):
                self.frames.append((steps, index + 1))
                step = steps[index]
                if isinstance(step, Answer) and step.shown:
                    return step
        return None

    def _as_sent(self, answer: Answer, sent: Sequence[Placed], turn: Turn) -> Answer:
        """The answer, or its version without calls, whichever the conversation holds."""
        shown = answer.shown
        at = _agreement(shown, sent)
        if at == len(shown):
            return answer
        if answer.calls and _agreement((silenced := answer.silenced()).shown, sent) == len(silenced.shown):
            return silenced
        name = place_name(answer.path)
        if at == len(sent):
            raise _left(turn.last, f"{_described(shown[at])}, which {name} answered, is missing at its end")
        where = sent[at]
        raise _left(
            where.message,
            f"block {where.position} should be what {name} answered: {_difference(shown[at], where.block)}",
        )


def place_name(path: Path) -> str:
    """A place in a script for people: `script[2].on_unknown[0]`."""
    return "script" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def same_json(one: object, other: object) -> bool:
    """Whether two JSON values are the same: 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, str):
        return one == other
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and one.keys() == other.keys()
            and all(same_json(value, other[key]) for key, value in one.items())
        )
    if isinstance(one, list | tuple):
        return (
            isinstance(other, list | tuple)
            and len(one) == len(other)
            and all(same_json(value, found) for value, found in zip(one, other, strict=True))
        )
    return one == other


def _left(message: int, problem: str) -> OffScriptError:
    return OffScriptError(f"the conversation left the script at message {message}: {problem}")


def _agreement(shown: Sequence[Block], sent: Sequence[Placed]) -> int:
    """How many blocks, from the first on, came back as they were given."""
    for index, (block, placed) in enumerate(zip(shown, sent, strict=False)):
        if block["type"] != placed.block.get("type") or _changed_field(block, placed.block):
            return index
    return min(len(shown), len(sent))


def _changed_field(given: Block, sent: Mapping[str, Any]) -> str | None:
    kept = _KEPT.get(given["type"])
    if kept is None:
        return next((key for key in given if not same_json(_bare(given[key]), _bare(sent.get(key)))), None)
    for key in kept:
        if not same_json(given.get(key), sent.get(key)):
            return key
    return None


def _bare(value: object) -> object:
    """The value without nulls inside: the SDK writes out optional fields of the types that it knows."""
    if isinstance(value, dict):
        return {key: _bare(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_bare(inner) for inner in value]
    return value


def _difference(given: Block, sent: Mapping[str, Any]) -> str:
    if given["type"] != sent.get("type"):
        return f"expected {_described(given)}, found {_described(sent)}"
    field = _changed_field(given, sent) or "type"
    what = f"`{field}` of {_described(given, with_text=False)}"
    if field == "input":
        return f"{what} came back with {_other_arguments(given['input'], sent.get('input'))}"
    expected, found = _window(given.get(field), sent.get(field))
    return f"{what} was {expected}, and came back as {found}"


def _described(block: Mapping[str, Any], *, with_text: bool = True) -> str:
    """A block for people.  The arguments of a call are not told: what is said here ends in traces and reports."""
    kind = block.get("type")
    if kind in {"tool_use", "server_tool_use"}:
        return f"{kind} `{block.get('name')}`"
    text = block.get("text") if kind == "text" else block.get("thinking") if kind == "thinking" else None
    value = f" {_shortened(_written(text))}" if with_text and text is not None else ""
    return f"a {kind} block{value}"


def _other_arguments(given: object, sent: object) -> str:
    """The names of the arguments that are not what they were."""
    if not isinstance(given, dict) or not isinstance(sent, dict):
        return "something else"
    missing = object()
    names = [name for name in {**given, **sent} if not same_json(given.get(name, missing), sent.get(name, missing))]
    return "other " + ", ".join(f"`{name}`" for name in names)


def _window(expected: object, found: object) -> tuple[str, str]:
    """Both values as JSON, cut to where they part."""
    one, other = _written(expected), _written(found)
    parting = next((index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    start = max(0, parting - 30)
    cut = "…" if start else ""
    return cut + _shortened(one[start:]), cut + _shortened(other[start:])


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _shortened(text: str) -> str:
    return text if len(text) <= 100 else text[:99] + "…"
