"""Whether a JSON Schema is well formed, in the keywords that `validation` reads.

A keyword with a value of the wrong type would fail only when a call is checked: by then the call is durable, and
would fail again in every process that resumes the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

__all__ = ["malformed"]

_MAX_DEPTH: Final = 60  # as deep as `validation` goes


def malformed(schema: Any, path: str = "input_schema") -> Iterator[str]:
    """Every keyword whose value JSON Schema does not allow: one clause each, naming it by its path.

    Args:
        schema: A JSON Schema; `True` and `False` are schemas too.
        path: What the schema is called in the clauses.
    """
    yield from _walk(schema, path, 0)


def _walk(schema: Any, path: str, depth: int) -> Iterator[str]:
    if isinstance(schema, bool) or depth > _MAX_DEPTH:
        return
    if not isinstance(schema, Mapping):
        yield f"{path} must be a schema (a mapping), not {schema!r}"
        return
    for keyword, (fits, words) in _PLAIN.items():
        if keyword in schema and not fits(schema[keyword]):
            yield f"{path}.{keyword} must be {words}, not {schema[keyword]!r}"
    for keyword in ("properties", "patternProperties", "$defs", "definitions"):
        parts = schema.get(keyword, {})
        if not isinstance(parts, Mapping) or not all(isinstance(name, str) for name in parts):
            yield f"{path}.{keyword} must be a mapping of names to schemas, not {parts!r}"
            continue
        for name, part in parts.items():
            yield from _walk(part, f"{path}.{keyword}.{name}", depth + 1)
    for keyword in ("allOf", "anyOf", "oneOf", "prefixItems"):
        parts = schema.get(keyword, ())
        if not isinstance(parts, (list, tuple)):
            yield f"{path}.{keyword} must be a list of schemas, not {parts!r}"
            continue
        for index, part in enumerate(parts):
            yield from _walk(part, f"{path}.{keyword}[{index}]", depth + 1)
    for keyword in ("items", "additionalProperties"):
        if keyword in schema and not isinstance(schema[keyword], list):  # a list of items is of draft 7: not read
            yield from _walk(schema[keyword], f"{path}.{keyword}", depth + 1)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _count(value: Any) -> bool:
    if isinstance(value, float):
        return value >= 0 and value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _number(value: Any) -> bool:
    return isinstance(value, (int, float))  # a boolean is an exclusive bound of draft 4: not read


def _list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _texts(value: Any) -> bool:
    return _list(value) and all(isinstance(item, str) for item in value)


def _types(value: Any) -> bool:
    return _text(value) or (_texts(value) and bool(value))


_PLAIN: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "$ref": (_text, "a reference such as '#/$defs/Row'"),
    "type": (_types, "the name of a type, or a list of such names"),
    "enum": (_list, "a list of values"),
    "required": (_texts, "a list of field names"),
    "pattern": (_text, "a regular expression"),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems"), (_count, "a number of 0 or more without fraction")
    ),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), (_number, "a number")),
}
