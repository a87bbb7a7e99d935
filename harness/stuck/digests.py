"""Digests that say whether two calls had the same arguments, and whether they brought the same result.

They are not those of traces.  A trace leaves out what varies by run (`cursor`, timestamps, ids), so that two runs can
be compared; within one run these are the very evidence that something moved: the next page, a status with a new time.
So strings stay as they are, and nothing is truncated (two logs that share their first kilobyte are two results).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from harness.plain import described, float_text, integer_text, name_text, opened

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

__all__ = ["arguments_digest", "digest_of", "result_digest"]

MAX_DEPTH: Final = 100
"""Deeper than any real argument, and far from the end of the interpreter's stack, wherever the caller stands on it."""

_encode: Final = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode
# What the C encoder writes otherwise than canonical JSON has it: integral floats, and numbers that JSON lacks.
_WRITTEN_OTHERWISE: Final = re.compile(r"\.0(?:[,}\]:\"]|$)|e\+|NaN|Infinity").search


def arguments_digest(arguments: object, volatile: Collection[str] = ()) -> str:
    """64 hex digits over a tool's input: canonical JSON with sorted keys and integral floats as integers.

    Args:
        arguments: the input; text means that the model's JSON could not be parsed, and is digested apart.
        volatile: names of top-level arguments that the tool declares meaningless (ids that are renumbered).
    """
    if isinstance(arguments, str):
        return digest_of("unparsed", arguments)
    if volatile and isinstance(arguments, Mapping):
        arguments = {name: value for name, value in arguments.items() if name not in volatile}
    return digest_of("json", canonical(arguments))


def result_digest(result: object, mask: Iterable[re.Pattern[str]] = ()) -> str | None:
    """64 hex digits over a whole result; None when there is none, which is no evidence.

    Text that holds a JSON object or array counts as that value, whatever the order of its keys.

    Args:
        result: what the tool gave, or the text of its error.
        mask: what to leave out of it: durations, temporary paths, fresh ids.
    """
    if result is None:
        return None
    if isinstance(result, str):
        kind, text = "text", result
        if result.lstrip()[:1] in ("{", "["):
            with suppress(ValueError, RecursionError):  # it only looked like JSON
                kind, text = "json", canonical(json.loads(result))
    else:
        kind, text = "json", canonical(result)
    for pattern in mask:
        text = pattern.sub("", text)
    return digest_of(kind, text)


def digest_of(kind: str, text: str) -> str:
    """64 hex digits over a text; equal texts of different kinds differ."""
    return hashlib.sha256(f"{kind}:{text}".encode("utf-8", "surrogatepass")).hexdigest()


def canonical(value: object) -> str:
    """The one JSON text of a value.  Never raises: what JSON cannot hold is described by type and repr."""
    try:
        text = _encode(value)
    except (TypeError, ValueError, RecursionError):
        return _encode(_plain(value, ()))
    return _encode(_plain(value, ())) if _WRITTEN_OTHERWISE(text) else text


def _plain(value: object, above: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    value = opened(value)
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        text = integer_text(value)
        return text if text.startswith("<") else int(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() else (value if abs(value) < float("inf") else float_text(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<bytes {hashlib.sha256(bytes(value)).hexdigest()}>"
    if not isinstance(value, Mapping | list | tuple | AbstractSet):
        return described(value)
    if id(value) in above:
        return "<recursion>"
    if len(above) >= MAX_DEPTH:
        try:
            return _encode(value)
        except (TypeError, ValueError, RecursionError):
            return "<deep>"
    inside = (*above, id(value))
    if isinstance(value, Mapping):
        return {name_text(key): _plain(one, inside) for key, one in value.items()}
    items = [_plain(one, inside) for one in value]
    return sorted(items, key=_encode) if isinstance(value, AbstractSet) else items
