"""Valid inputs for a tool, made from its schema: what the other fields hold while one is wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.agent.validation import problems_of
from harness.audit.fields import rooted, settled, types_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Places", "named_paths", "valid_inputs"]

_PATH_WORDS: Final = frozenset({"dir", "directory", "file", "filename", "filepath", "folder", "path", "paths", "files"})
_FOLDER_WORDS: Final = frozenset({"dir", "directory", "folder"})

_FORMATS: Final = {
    "date": "2026-01-05",
    "date-time": "2026-01-05T09:00:00Z",
    "email": "someone@example.com",
    "time": "09:00:00Z",
    "uri": "https://example.com/",
    "uuid": "6f1c1c1e-3f0a-4b5e-9d43-0a1b2c3d4e5f",
}

_MAX_DEPTH: Final = 12


@dataclass(frozen=True, slots=True)
class Places:
    """Paths, relative to the workspace, that fields for paths are filled with: what is there, and what is not."""

    file: str
    folder: str
    new: str


def valid_inputs(
    schema: Mapping[str, Any], places: Places, drawn: Mapping[str, Sequence[Any]] | None = None
) -> list[dict[str, Any]]:
    """Inputs with the required fields only, most likely one first.

    A schema does not say whether a path should lead to a file, a folder or nowhere yet, so there is one input for each.

    Args:
        schema: of the tool's input.
        places: for the fields that are paths by their name.
        drawn: values by name of field that keep its schema, for where no plain guess does (a `pattern`).
    """
    inputs: list[dict[str, Any]] = []
    for place in (places.file, places.folder, places.new):
        made = _object(settled(schema, schema), _Making(schema, place, places.folder, drawn or {}), "", 0)
        if made not in inputs:
            inputs.append(made)
    return inputs


def named_paths(schema: Mapping[str, Any], value: Mapping[str, Any]) -> list[str]:
    """The relative paths that an input, or the examples and defaults of its schema, name; they should exist."""
    properties = settled(schema, schema).get("properties", {})
    found = []
    for name, part in properties.items():
        if _is_path(name):
            described = settled(part, schema)
            found += [value.get(name), described.get("default"), *_listed(described.get("examples"))]
    return [one for one in found if isinstance(one, str) and re.fullmatch(r"[\w.-]+(/[\w.-]+)*/?", one) and
            not set(one.split("/")) & {".", ".."}]  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Making:
    """What every step of making a value needs."""

    root: Mapping[str, Any]
    place: str
    folder: str
    drawn: Mapping[str, Sequence[Any]]


def _object(schema: Mapping[str, Any], making: _Making, path: str, depth: int) -> dict[str, Any]:
    properties = schema.get("properties", {})
    return {
        name: _value(properties.get(name, {}), making, name, f"{path}.{name}".removeprefix("."), depth + 1)
        for name in schema.get("required", ())
    }


def _value(part: Any, making: _Making, name: str, path: str, depth: int) -> Any:
    schema = settled(part, making.root)
    if depth > _MAX_DEPTH:
        return None
    types = [one for one in types_of(schema) if one != "null"]
    guesses = [
        *_listed(schema.get("examples")),
        schema.get("default"),
        schema.get("const"),
        *_listed(schema.get("enum")),
    ]
    guesses = [one for one in guesses if one not in (None, "", [], {})]
    if not guesses and types[:1] == ["object"]:
        return _object(schema, making, path, depth)
    if not guesses and types[:1] == ["array"]:
        return _items(schema, making, name, path, depth)
    guesses += [_plain(schema, types[0] if types else "string", making, name), *making.drawn.get(path, ())]
    fitting = [one for one in guesses if not problems_of(one, rooted(part, making.root))]
    return (fitting or guesses)[0]


def _items(schema: Mapping[str, Any], making: _Making, name: str, path: str, depth: int) -> list[Any]:
    prefix = _listed(schema.get("prefixItems"))
    first = _value(prefix[0] if prefix else schema.get("items", {}), making, name, f"{path}[]", depth + 1)
    rest = [_value(one, making, name, f"{path}[]", depth + 1) for one in prefix[1:]]
    return [first, *rest] + [first] * (int(schema.get("minItems", 1)) - 1 - len(rest))


def _plain(schema: Mapping[str, Any], kind: str, making: _Making, name: str) -> Any:
    if kind == "boolean":
        return True
    if kind in ("integer", "number"):
        return _number(schema)
    if kind != "string":
        return None
    if _is_path(name):
        return making.folder if _words(name) & _FOLDER_WORDS else making.place
    text = _FORMATS.get(schema.get("format", ""), "text")
    least, most = int(schema.get("minLength", 0)), schema.get("maxLength")
    return (text * (least // len(text) + 1) if len(text) < least else text)[:most]


def _number(schema: Mapping[str, Any]) -> float:
    step = schema.get("multipleOf", 1)
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    if low is None and isinstance(above, int | float):
        low = above + step
    if low is None:
        top = high if high is not None else below - step if isinstance(below, int | float) else step
        return min(step, top)  # type: ignore[no-any-return]  # whatever number the schema holds
    return low if low > 0 or (high is not None and high <= 0) else min(step, high if high is not None else step)  # type: ignore[no-any-return]


def _is_path(name: str) -> bool:
    return bool(_words(name) & _PATH_WORDS)


def _words(name: str) -> frozenset[str]:
    return frozenset(re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().replace("-", "_").split("_"))


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
