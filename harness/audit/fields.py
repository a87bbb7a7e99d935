"""The required fields of a tool's schema, nested ones included, and how to take one out of an input or replace it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Field", "required_fields", "rooted", "settled", "types_of", "with_value", "without"]

Path: TypeAlias = tuple[str | int, ...]
"""Steps into an input: keys of objects, and 0 for the first item of a list."""

_MAX_DEPTH: Final = 8
"""Levels that are looked at; a schema that refers to itself ends here."""


@dataclass(frozen=True, slots=True)
class Field:
    """One required field.

    Args:
        path: where it stands in an input.
        schema: its own schema, with the definitions of the whole, so that it can be read alone.
    """

    path: Path
    schema: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The path as a contract's `allow_empty` writes it: `rows[].note`."""
        text = "".join("[]" if isinstance(step, int) else f".{step}" for step in self.path)
        return text.removeprefix(".")


def required_fields(schema: Mapping[str, Any]) -> tuple[Field, ...]:
    """Every field that any valid input has, in the order of the schema, outer ones first.

    What is required inside of an optional object is left out: the inputs that are tried do not have it.
    """
    return tuple(_required(schema, schema, ()))


def _required(schema: Any, root: Mapping[str, Any], path: Path) -> Iterator[Field]:
    here = settled(schema, root)
    if len(path) > _MAX_DEPTH:
        return
    if "array" in types_of(here) and path:
        yield from _required(here.get("items"), root, (*path, 0))
        return
    properties = here.get("properties", {})
    for name in here.get("required", ()):
        at = (*path, name)
        yield Field(at, rooted(properties.get(name, {}), root))
        yield from _required(properties.get(name, {}), root, at)


def settled(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema itself, behind references, and the first branch of alternatives that is not null."""
    for _ in range(_MAX_DEPTH):
        if not isinstance(schema, Mapping):
            return {}
        if isinstance(reference := schema.get("$ref"), str):
            schema = _resolve(reference, root)
            continue
        branches = [one for key in ("anyOf", "oneOf") for one in schema.get(key, ())]
        wanted = [one for one in branches if not (isinstance(one, Mapping) and one.get("type") == "null")]
        if not wanted or "type" in schema:
            return schema
        schema = {**{key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}, **wanted[0]}
    return {}


def types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The JSON types that a settled schema names; an object or a list may be told by its other keywords."""
    named = schema.get("type")
    if named is None:
        return ("object",) if "properties" in schema else ("array",) if "items" in schema else ()
    return (named,) if isinstance(named, str) else tuple(named)


def rooted(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part of a schema with the definitions of the whole, to which its references lead."""
    definitions = {key: root[key] for key in ("$defs", "definitions") if key in root}
    return {**schema, **definitions} if isinstance(schema, Mapping) else definitions


def without(value: Mapping[str, Any], path: Path) -> dict[str, Any] | None:
    """A copy that lacks the field, or None when it is not there."""
    own = copy.deepcopy(dict(value))
    holder = _holder(own, path)
    if holder is None or not isinstance(path[-1], str):
        return None
    del holder[path[-1]]
    return own


def with_value(value: Mapping[str, Any], path: Path, new: Any) -> dict[str, Any] | None:
    """A copy with another value in the field, or None when the field is not there."""
    own = copy.deepcopy(dict(value))
    holder = _holder(own, path)
    if holder is None:
        return None
    holder[path[-1]] = copy.deepcopy(new)
    return own


def _holder(value: Any, path: Path) -> Any:
    for index, step in enumerate(path):
        present = step in value if isinstance(value, dict) else isinstance(value, list) and step == 0 and bool(value)
        if not present:
            return None
        if index == len(path) - 1:
            return value
        value = value[step]
    return None


def _resolve(reference: str, root: Mapping[str, Any]) -> Any:
    found: Any = root
    if not reference.startswith("#"):
        return None  # another document, which nothing here can read
    for part in reference.removeprefix("#").strip("/").split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        found = (found.get(key) if isinstance(found, Mapping) else None) if key else found
    return found
