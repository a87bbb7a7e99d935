"""Reads the steps of a script as they come from YAML, and says what is wrong with them."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from harness.errors import ScriptError
from harness.model.protocol import ERROR_TYPES
from harness.model.steps import Answer, Fail, identifier

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.model.steps import Block, Path, Step

__all__ = ["FAILURES", "STOP_REASONS", "Reader", "kind_of", "require_json"]

STOP_REASONS: Final = (
    "compaction",
    "end_turn",
    "max_tokens",
    "model_context_window_exceeded",
    "pause_turn",
    "refusal",
    "stop_sequence",
    "tool_use",
)  # SDK 2.14: StopReason and BetaStopReason
FAILURES: Final = ("disconnect", "mid_stream", "timeout", "truncated")

_ANSWER_KEYS: Final = (
    "blocks",
    "call",
    "on_error",
    "on_unknown",
    "say",
    "stop_details",
    "stop_reason",
    "stop_sequence",
    "think",
    "usage",
)
_FAIL_KEYS: Final = ("fail", "message", "retry_after", "times")
_SPEAKING_KEYS: Final = ("blocks", "call", "say", "stop_reason", "think")

_TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")


class Reader:
    """Reads the steps of one script.  All ids are made from its digest, so that they are the same in every run."""

    def __init__(self, digest: str) -> None:
        self._digest = digest

    def steps(self, steps: object, path: Path) -> tuple[Step, ...]:
        """The steps of a list as YAML gives it.

        Args:
            steps: what stands in the file.
            path: where it stands.

        Raises:
            ScriptError: with the path of the first step that is none.
        """
        if not isinstance(steps, list | tuple):
            raise ScriptError(f"expected a list of steps, not {kind_of(steps)}", path)
        if not steps:
            raise ScriptError("there is no step: write at least one, for example `- say: Done.`", path)
        return tuple(self._step(step, (*path, index)) for index, step in enumerate(steps))

    def _step(self, step: object, path: Path) -> Step:
        if not isinstance(step, dict):
            raise ScriptError(
                f"a step is a mapping such as `call: {{read_file: {{path: a}}}}` or `say: Done.`, not {kind_of(step)}",
                path,
            )
        if "fail" in step:
            return self._fail(step, path)
        _require_keys(step, (*_ANSWER_KEYS, *_FAIL_KEYS), path)
        if stray := [key for key in step if key in _FAIL_KEYS]:
            raise ScriptError(f"`{stray[0]}` belongs to a step with `fail`", (*path, stray[0]))
        return self._answer(step, path)

    def _fail(self, step: Mapping[str, Any], path: Path) -> Fail:
        _require_keys(step, (*_FAIL_KEYS, *_ANSWER_KEYS), path)
        if stray := [key for key in step if key in _ANSWER_KEYS]:
            raise ScriptError(
                f"a step either fails or answers: put `{stray[0]}` into the next step, which is played when the"
                " failures are over",
                (*path, stray[0]),
            )
        what, times = step["fail"], step.get("times", 1)
        if isinstance(times, bool) or not isinstance(times, int) or times < 1:
            raise ScriptError(f"`times` is how many attempts fail, at least 1, not {times!r}", (*path, "times"))
        message = _optional(step, "message", str, "text", path)
        if isinstance(what, int) and what in ERROR_TYPES:
            seconds = _optional(step, "retry_after", int | float, "a number of seconds", path)
            if seconds is not None and seconds < 0:
                raise ScriptError(f"`retry_after` cannot be negative: {seconds!r}", (*path, "retry_after"))
            return Fail(path, "status", what, times, seconds, message)
        if not isinstance(what, str) or what not in FAILURES:
            allowed = [*FAILURES, *map(str, ERROR_TYPES)]
            raise ScriptError(
                f"cannot fail with {what!r}{_nearest(str(what), allowed)}; possible are {', '.join(allowed)}",
                (*path, "fail"),
            )
        if "retry_after" in step:
            raise ScriptError("`retry_after` goes with a status, such as `fail: 429`", (*path, "retry_after"))
        if message is not None and what != "mid_stream":
            raise ScriptError(f"`fail: {what}` has no message: the connection just ends", (*path, "message"))
        return Fail(path, what, 0, times, None, message)

    def _answer(self, step: Mapping[str, Any], path: Path) -> Answer:
        if not any(key in step for key in _SPEAKING_KEYS):
            raise ScriptError("the step says nothing: it needs `call`, `say`, `think`, `blocks` or `fail`", path)
        content: list[Block] = []
        if (thought := _optional(step, "think", str, "text", path)) is not None:
            content.append({"type": "thinking", "thinking": thought, "signature": self._signature(path, thought)})
        if (text := _optional(step, "say", str, "text", path)) is not None:
            content.append({"type": "text", "text": text})
        content += self._blocks(step.get("blocks", []), len(content), (*path, "blocks"))
        if "call" in step:
            content += self._calls(step["call"], len(content), (*path, "call"))
        calls = any(block["type"] == "tool_use" for block in content)
        branches: dict[str, tuple[Step, ...]] = {}
        for branch in ("on_unknown", "on_error"):
            if branch in step:
                if not calls:
                    raise ScriptError(f"`{branch}` tells what follows a call, and this step has none", (*path, branch))
                branches[branch] = self.steps(step[branch], (*path, branch))
        sequence = _optional(step, "stop_sequence", str, "text", path)
        details = _optional(step, "stop_details", dict, "a mapping", path)
        usual = "tool_use" if calls else "stop_sequence" if sequence else "refusal" if details else "end_turn"
        reason = step.get("stop_reason", usual)
        if reason not in STOP_REASONS:
            allowed = ", ".join(STOP_REASONS)
            raise ScriptError(
                f"{reason!r} is no stop_reason{_nearest(str(reason), STOP_REASONS)}; there are {allowed}",
                (*path, "stop_reason"),
            )
        return Answer(
            path,
            identifier("msg_", self._digest, path),
            tuple(content),
            reason,
            sequence,
            {"type": "refusal", **details} if details is not None else None,
            _optional(step, "usage", dict, "a mapping of token counts", path) or {},
            **branches,
        )

    def _blocks(self, blocks: object, first: int, path: Path) -> list[Block]:
        if not isinstance(blocks, list):
            raise ScriptError(f"`blocks` is a list of content blocks, not {kind_of(blocks)}", path)
        read: list[Block] = []
        server_call = ""
        for index, block in enumerate(blocks):
            if not isinstance(block, dict) or not isinstance(block.get("type"), str):
                raise ScriptError("a content block is a mapping with a `type`", (*path, index))
            # An author need not make up ids: calls get theirs, and a server result that of the call before it.
            given: Block = {}
            match block["type"]:
                case "tool_use":
                    _require_tool(block.get("name"), (*path, index))
                    given = {"id": self._id("toolu_", path, first + index), "input": {}}
                case "server_tool_use":
                    given = {"id": self._id("srvtoolu_", path, first + index), "input": {}}
                    server_call = str(block.get("id", given["id"]))
                case "thinking":
                    given = {"signature": self._signature((*path, index), str(block.get("thinking")))}
                case kind if kind.endswith("_tool_result") and server_call:
                    given = {"tool_use_id": server_call}
            read.append(given | block)
        return read

    def _calls(self, calls: object, first: int, path: Path) -> list[Block]:
        if isinstance(calls, list):
            if not calls:
                raise ScriptError("`call` is an empty list: name at least one tool", path)
            pairs = [self._call(call, (*path, index)) for index, call in enumerate(calls)]
        else:
            pairs = [self._call(calls, path)]
        return [
            {"type": "tool_use", "id": self._id("toolu_", path, first + index), "name": name, "input": value}
            for index, (name, value) in enumerate(pairs)
        ]

    def _call(self, call: object, path: Path) -> tuple[str, dict[str, Any]]:
        if isinstance(call, str):
            raise ScriptError(f"a call is a mapping of a tool to its input: write `{call}: {{}}`", path)
        if not isinstance(call, dict) or not call:
            raise ScriptError(f"a call is a mapping of one tool to its input, not {kind_of(call)}", path)
        if len(call) > 1:
            listed = ", ".join(f"`- {name}: …`" for name in call)
            raise ScriptError(
                f"one mapping names {len(call)} tools; for parallel calls in one response write a list: {listed}", path
            )
        [(name, value)] = call.items()
        _require_tool(name, path)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise ScriptError(
                f"the input of `{name}` is a mapping of its arguments, not {kind_of(value)}", (*path, name)
            )
        return name, value

    def _id(self, prefix: str, path: Path, block: int) -> str:
        return identifier(prefix, self._digest, path[:-1], block)

    def _signature(self, path: Path, thought: str) -> str:
        seed = repr((self._digest, path, thought)).encode()
        return base64.b64encode(b"\x12\x48" + hashlib.sha512(seed).digest() + hashlib.sha256(seed).digest()).decode()


def _require_keys(step: Mapping[str, Any], allowed: Sequence[str], path: Path) -> None:
    for key in step:
        if key not in allowed:
            raise ScriptError(
                f"unknown key `{key}`{_nearest(key, allowed)}; a step may have {', '.join(sorted(allowed))}",
                (*path, key),
            )


def _require_tool(name: object, path: Path) -> None:
    if not isinstance(name, str) or not _TOOL_NAME.match(name):
        raise ScriptError(f"{name!r} cannot be the name of a tool: 1 to 128 letters, digits, `_` and `-`", path)


def _optional(step: Mapping[str, Any], key: str, kind: Any, described: str, path: Path) -> Any:
    value = step.get(key)
    if value is None and key not in step:
        return None
    if not isinstance(value, kind) or isinstance(value, bool):
        quote = f": put {value!r} in quotes" if described == "text" and value is not None else ""
        raise ScriptError(f"`{key}` is {described}, not {kind_of(value)}{quote}", (*path, key))
    return value


def require_json(value: object, path: Path) -> None:
    """What is not JSON could not be sent; YAML makes dates, NaN and keys that are no text from innocent words."""
    match value:
        case None | bool() | int() | str():
            return
        case float():
            if not math.isfinite(value):
                raise ScriptError(f"{value!r} cannot be written as JSON", path)
        case dict():
            for key, inner in value.items():
                if not isinstance(key, str):
                    raise ScriptError(f"the key {key!r} is {kind_of(key)}: put it in quotes", path)
                require_json(inner, (*path, key))
        case list() | tuple():
            for index, inner in enumerate(value):
                require_json(inner, (*path, index))
        case _:
            raise ScriptError(f"{value!r} is {kind_of(value)}, which JSON does not have: put it in quotes", path)


def _nearest(word: str, allowed: Sequence[str]) -> str:
    close = get_close_matches(word, allowed, 1)
    return f", did you mean `{close[0]}`?" if close else ""


def kind_of(value: object) -> str:
    names: dict[type, str] = {
        type(None): "nothing",
        bool: "true or false",
        dict: "a mapping",
        float: "a number",
        int: "a number",
        list: "a list",
        str: "text",
        tuple: "a list",
    }
    return names.get(type(value), f"a {type(value).__name__}")
