"""What pydantic says about a case, said for people: which key, what it needs, what stands there, what to write."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from harness.case.schema import MODELS, CaseFile
from harness.case.words import named, spelled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails

    from harness.case.schema import Part
    from harness.case.source import KeyPath

__all__ = ["complaint", "unknown_key", "validate"]


def complaint(error: ErrorDetails) -> tuple[KeyPath, str]:
    """Where in the file an error is, and what is wrong there.

    Args:
        error: one entry of `ValidationError.errors()` of `CaseFile`.
    """
    # Tags of unions stand in the path as `<text>`; no key of the file is meant by them.
    path = tuple(part for part in error["loc"] if not (isinstance(part, str) and part.startswith("<")))
    found, context = error["input"], error.get("ctx", {})
    key = _subject(path)
    match error["type"]:
        case "missing":
            return path[:-1], f"the key {path[-1]!r} is missing"
        case "extra_forbidden":
            return path, unknown_key(str(path[-1]), _keys_at(path[:-1]))
        case "string_type":
            return path, f"{key} must be text, not {named(found)}{_quoted(found)}"
        case "int_type" | "int_from_float":
            return path, f"{key} must be a whole number, not {named(found)}"
        case "list_type":
            return path, f"{key} must be a list, not {named(found)}"
        case "dict_type" | "model_type":
            return path, f"{key} must be a mapping of keys to values, not {named(found)}"
        case "shape":
            remedy = _quoted(found) if "text" in error["msg"] else ""
            return path, f"{key} must be {error['msg']}, not {named(found)}{remedy}"
        case "literal_error":
            return (
                path,
                f"{key} must be {context['expected']}, not {named(found)}{_nearest(found, context['expected'])}",
            )
        case "greater_than_equal":
            return path, f"{key} must be at least {context['ge']}, not {found}"
        case "string_too_short" | "too_short":
            return path, f"{key} must not be empty"
        case "string_pattern_mismatch":
            return path, f"{key} {_pattern(path, found)}"
        case _:
            return path, f"{key}: {error['msg']}"


def validate(data: Mapping[str, Any]) -> tuple[CaseFile | None, list[tuple[KeyPath, str]]]:
    """A case file as its model, or all that is wrong with it.

    Args:
        data: the case file as plain data.

    Returns:
        The model (None when there are complaints), and each complaint with the path of what it is about.
    """
    empty = _empty(data)
    complaints = [(path, f"{path[-1]!r} has no value; give one, or remove the key") for path in empty]
    complaints += _exclusive(data)
    try:
        checked = CaseFile.model_validate(data)
    except ValidationError as error:
        found = [complaint(one) for one in error.errors(include_url=False)]
        complaints += [(path, message) for path, message in found if path not in empty]
        return None, complaints
    return (None if complaints else checked), complaints


def _exclusive(data: Mapping[str, Any]) -> list[tuple[KeyPath, str]]:
    """Keys of which exactly one must be there.  A model's own validator would look only where all else is right."""
    found = _exactly_one(data, (), ("agent", "command"))
    model, tools, workspace = data.get("model"), data.get("tools"), data.get("workspace")
    if isinstance(model, dict):
        found += _exactly_one(model, ("model",), ("script", "cassette", "live"))
    for name, stub in tools.items() if isinstance(tools, dict) else ():
        if not isinstance(stub, dict):
            continue
        found += _exactly_one(stub, ("tools", name), ("returns", "raises", "sequence"))
        if "input" in stub and "input_schema" in stub:
            found.append((("tools", name, "input_schema"), "'input' and 'input_schema' exclude each other; keep one"))
        answers = stub.get("sequence")
        for index, answer in enumerate(answers if isinstance(answers, list) else ()):
            if isinstance(answer, dict):
                found += _exactly_one(answer, ("tools", name, "sequence", index), ("returns", "raises"))
    for name, content in workspace.items() if isinstance(workspace, dict) else ():
        if isinstance(content, dict):
            found += _exactly_one(content, ("workspace", name), ("base64", "json"))
    return found


def unknown_key(key: str, valid: list[str]) -> str:
    """The message for a key that is not of the format, with the nearest one that is."""
    near = difflib.get_close_matches(key.lower(), valid, n=1)
    remedy = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(valid)}"
    return f"unknown key {key!r}; {remedy}"


def _empty(data: Mapping[str, Any]) -> list[KeyPath]:
    """Known keys that were written without a value.  An empty `agent:` is a slip, not a choice."""
    empty: list[KeyPath] = []
    for pattern, model in MODELS:
        keys = set(_keys_of(model)) - {"returns", "json"}  # which may well be null
        for path, part in _places(data, pattern):
            if isinstance(part, dict):
                empty += [(*path, key) for key, value in part.items() if value is None and key in keys]
    return empty


def _places(data: Any, pattern: tuple[str, ...]) -> list[tuple[KeyPath, Any]]:
    """The parts of the data that stand where a pattern points to."""
    places: list[tuple[KeyPath, Any]] = [((), data)]
    for want in pattern:
        places = [
            ((*path, key), value)
            for path, part in places
            for key, value in (
                part.items() if isinstance(part, dict) else enumerate(part if isinstance(part, list) else ())
            )
            if want in ("*", key)
        ]
    return places


def _exactly_one(data: Mapping[str, Any], path: KeyPath, keys: tuple[str, ...]) -> list[tuple[KeyPath, str]]:
    given = [key for key in data if key in keys]  # in the order of the file: the second one is the one too many
    if len(given) == 1:
        return []
    choice = f"{', '.join(map(repr, keys[:-1]))} or {keys[-1]!r}"
    if not given:
        return [(path, f"one of {choice} is missing")]
    both = " and ".join(map(repr, given))
    return [((*path, given[1]), f"{both} exclude each other; give exactly one of {choice}")]


def _keys_at(path: KeyPath) -> list[str]:
    """The keys of the model that stands at a path of the file."""
    for pattern, model in MODELS:
        if len(pattern) == len(path) and all(want in ("*", part) for want, part in zip(pattern, path, strict=True)):
            return _keys_of(model)
    return []


def _keys_of(model: type[Part]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _subject(path: KeyPath) -> str:
    if path and isinstance(path[-1], int):
        keys = [part for part in path if isinstance(part, str)]
        return f"item {path[-1] + 1} of {keys[-1]!r}"
    return repr(path[-1]) if path else "a case"


def _quoted(value: Any) -> str:
    if isinstance(value, bool | int | float):
        return f"; quote it: {json.dumps(spelled(value))}"
    return ""


def _nearest(value: Any, expected: str) -> str:
    allowed = [choice.strip("'") for choice in expected.replace(" or ", ", ").split(", ")]
    near = difflib.get_close_matches(str(value).lower(), allowed, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _pattern(path: KeyPath, found: str) -> str:
    match path:
        case ("prompt",):
            return "must not be blank; it is what the loop is asked to do"
        case ("agent",) | ("tools",):
            example = "my_agent.loop:run" if path == ("agent",) else "my_agent.tools:TOOLS"
            return f"must be 'module:name', such as {example}, not {named(found)}"
        case ("marks", _):
            return f"must be the name of a pytest mark (letters, digits, '_'), not {named(found)}"
        case _:
            return f"must be one word, not {named(found)}"
