"""A golden as text in which a change of the path is a change of few lines: what `git diff` compares for people.

The text says all that the file says: two files with other data have other texts, or a change could hide from a
reviewer.  A file of any other form is shown as it is, whether or not the harness would take it for a golden.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["readable"]

_SIMPLE: Final = re.compile(r"[A-Za-z0-9_.:/@+<>][A-Za-z0-9_.:/@+<>-]*")
_TRACE: Final = "harness.trace/1"
_CRASH: Final = "harness.crash/1"
_HEAD: Final = ("case", "owner", "model", "digest_key", "detail")
_PATH: Final = ("context", "turns", "stop_reasons", "calls", "interventions", "summary")


def readable(data: bytes) -> bytes:
    """The text of a golden or a crash golden, in UTF-8; the data itself when it is anything else.

    Turns and calls have no numbers, so that one more call is one more line.
    """
    try:
        content = json.loads(data.decode("utf-8"), object_pairs_hook=_once)
        lines = list(_trace_lines(content) if content["schema"] == _TRACE else _crash_lines(content))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return data
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


class _StrangeError(ValueError):
    """The file is of another form."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise _StrangeError
    return data


def _expect(condition: bool) -> None:
    if not condition:
        raise _StrangeError


def _trace_lines(data: Mapping[str, Any]) -> Iterator[str]:
    _expect(set(data) <= {"schema", "problems", *_HEAD, *_PATH})
    yield from (f"{name:<10} {_word(data[name])}" for name in _HEAD if name in data)
    context, summary = data["context"], data["summary"]
    _expect(set(context) == {"prompt", "system", "tools"} and set(summary) == {"calls", "duplicates", "writes"})
    yield from (f"{name:<10} {_word(context[name])}" for name in ("prompt", "system"))
    yield from (f"{'tool':<10} {_word(name)} {_word(digest)}" for name, digest in context["tools"].items())
    yield ""
    yield from _path_lines(data)
    yield ""
    yield f"{'calls':<10} {_number(summary['calls'])}"
    yield f"{'turns':<10} {_number(data['turns'])}"
    for what in ("duplicates", "writes"):
        yield from (f"{what:<10} {_word(tool)} {_number(count)}" for tool, count in summary[what].items())
    if "problems" in data:
        problems = _list(data["problems"])
        _expect(bool(problems))
        yield from (f"{'problem':<10} {_json(_text(problem))}" for problem in problems)


def _path_lines(data: Mapping[str, Any]) -> Iterator[str]:
    """Turn by turn: the stop_reason, the calls, what the stuck-loop guard did."""
    turns, reasons, calls = data["turns"], _list(data["stop_reasons"]), _list(data["calls"])
    _expect(_is_number(turns) and len(reasons) == turns)
    verdicts: dict[int, list[str]] = {}
    last = 0
    for one in _list(data["interventions"]):
        _expect(set(one) == {"turn", "verdict", "detector"} and last <= _number(one["turn"]) <= turns)
        last = one["turn"]
        verdicts.setdefault(last, []).append(f"    {_word(one['verdict'])} by {_word(one['detector'])}")
    plain, writes = data.get("detail") == "plain", data["summary"]["writes"]
    place = 0
    for turn in range(turns + 1):
        if turn:
            yield f"turn  {_word(reasons[turn - 1])}"
        # A call outside of any turn stands where it came.
        while place < len(calls) and _number(calls[place]["turn"]) in (0, turn):
            yield _call_line(calls[place], plain, writes, apart=turns > 0)
            place += 1
        yield from verdicts.get(turn, ())
    _expect(place == len(calls))


def _call_line(call: Mapping[str, Any], plain: bool, writes: Mapping[str, Any], *, apart: bool) -> str:
    """One call; one outside of any turn is marked as such where there are turns."""
    _expect(set(call) - {"args", "result"} == {"turn", "tool", "digest", "ok"} and isinstance(call["ok"], bool))
    line = f"    {_word(_text(call['tool']))}"
    if "args" in call:
        pairs = call["args"].items()
        line += f"({', '.join(f'{_word(name)}={_json(value) if plain else _word(value)}' for name, value in pairs)})"
    line += f"  {_word(_text(call['digest']))}"
    line += f"  result {_word(_text(call['result']))}" if "result" in call else ""
    line += "  outside of any turn" if apart and not call["turn"] else ""
    line += "  write" if call["tool"] in writes else ""
    return line if call["ok"] else f"{line}  failed"


def _crash_lines(data: Mapping[str, Any]) -> Iterator[str]:
    _expect(data["schema"] == _CRASH and set(data) == {"schema", "case", "points"})
    yield f"{'case':<10} {_word(data['case'])}"
    yield ""
    for row in _list(data["points"]):
        _expect(set(row) - {"unknown"} == {"point", "outcome", "executions", "turns"})
        line = f"{_word(_text(row['point']))}  {_word(_text(row['outcome']))}"
        line += "".join(f"  {_word(tool)} {_number(count)}" for tool, count in row["executions"].items())
        line += f"  unknown {_number(row['unknown'])}" if "unknown" in row else ""
        yield f"{line}  {_number(row['turns'])} turns"


def _word(value: object) -> str:
    """A name as it is where that is unmistakable, else in quotes; `-` for nothing."""
    if value is None:
        return "-"
    text = _text(value)
    return text if _SIMPLE.fullmatch(text) else _json(text)


def _json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _StrangeError
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise _StrangeError
    return value


def _is_number(value: object) -> bool:
    return type(value) is int and value >= 0


def _number(value: object) -> int:
    if type(value) is not int or value < 0:
        raise _StrangeError
    return value
