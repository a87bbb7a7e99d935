"""Whether a value keeps a JSON Schema, and whether its required fields hold anything.

The keywords that tool schemas are made of are checked: `type enum const required properties
additionalProperties items prefixItems anyOf oneOf allOf $ref` and the bounds of strings, numbers and lists.
Any other keyword (`format`, `if`, …) is left to the tool itself: refusing a call for a rule that we half
understand would be worse than letting it through.
"""

from __future__ import annotations

import difflib
import json
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

__all__ = ["problems_of"]

_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": (list, tuple),
    "object": Mapping,
    "null": type(None),
}

_MAX_DEPTH = 60  # a schema that refers to itself ends here, long before the interpreter's own limit


def problems_of(value: Any, schema: Mapping[str, Any], allow_empty: frozenset[str] = frozenset()) -> list[str]:
    """Everything that is wrong with a tool input, in the order of the schema; empty when it is fine.

    Args:
        value: The input as the model sent it.
        schema: The JSON Schema of the tool.
        allow_empty: Paths of required fields that may be zero-valued, `[]` standing for any position:
            `rows[].note`.

    Returns:
        One sentence a problem, each naming the field by its path (`rows[2].note`).
    """
    return list(_Checker(schema, allow_empty).check(value, schema, "", 0))


class _Checker:
    """Holds what every step of the walk needs: the root for `$ref`, and what may be empty."""

    def __init__(self, root: Mapping[str, Any], allow_empty: frozenset[str]) -> None:
        self.root = root
        self.allow_empty = allow_empty

    def check(self, value: Any, schema: Any, path: str, depth: int) -> Iterator[str]:
        """One sentence for each way in which a value at `path` breaks a schema, the outermost first."""
        if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
            if schema is False:
                yield f"{_name(path)} is not allowed"
            return
        if "$ref" in schema:
            yield from self.check(value, self._resolve(schema["$ref"]), path, depth + 1)
        types = schema.get("type")
        if types is not None and not _has_type(value, types):
            yield f"{_name(path)} must be {_type_words(types)}, not {_shown(value)}"
            return
        if "enum" in schema and not any(_same(value, item) for item in schema["enum"]):
            choices = ", ".join(_shown(item) for item in schema["enum"])
            yield f"{_name(path)} must be one of {choices}, not {_shown(value)}"
        if "const" in schema and not _same(value, schema["const"]):
            yield f"{_name(path)} must be {_shown(schema['const'])}, not {_shown(value)}"
        yield from self._combined(value, schema, path, depth)
        if isinstance(value, str):
            yield from _string_bounds(value, schema, path)
        elif isinstance(value, Mapping):
            yield from self._object(value, schema, path, depth)
        elif isinstance(value, (list, tuple)):
            yield from self._array(value, schema, path, depth)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield from _number_bounds(value, schema, path)

    def _combined(self, value: Any, schema: Mapping[str, Any], path: str, depth: int) -> Iterator[str]:
        for part in schema.get("allOf", ()):
            yield from self.check(value, part, path, depth + 1)
        for keyword in ("anyOf", "oneOf"):
            if keyword not in schema:
                continue
            answers = [list(self.check(value, part, path, depth + 1)) for part in schema[keyword]]
            fitting = sum(not answer for answer in answers)
            if not fitting:
                # The branch with the fewest problems is most likely the one that was meant.
                yield from min(answers, key=len, default=[])
            elif keyword == "oneOf" and fitting > 1:
                yield f"{_name(path)} fits {fitting} of the alternatives, and must fit exactly one"

    def _object(self, value: Mapping[str, Any], schema: Mapping[str, Any], path: str, depth: int) -> Iterator[str]:
        properties: Mapping[str, Any] = schema.get("properties", {})
        for key in schema.get("required", ()):
            at = f"{path}.{key}" if path else key
            if key not in value:
                yield f"{_name(at)} is required and missing{_meant(key, value, properties)}"
            elif _is_zero(value[key]) and not self._may_be_empty(value[key], properties.get(key), at):
                yield f"{_name(at)} is required and must not be {_shown(value[key])}"
        patterns: Mapping[str, Any] = schema.get("patternProperties", {})
        for key, item in value.items():
            at = f"{path}.{key}" if path else str(key)
            # A pattern that Python cannot read may mean this key: it is neither refused nor checked.
            matching = [
                part if _reads(pattern) else True for pattern, part in patterns.items() if _matches(pattern, key)
            ]
            if key in properties:
                required = key in schema.get("required", ())
                if not (required and _is_zero(item)):  # said above, or allowed
                    yield from self.check(item, properties[key], at, depth + 1)
            elif not matching and schema.get("additionalProperties") is False:
                yield f"{_name(at)} is not a field of this tool{_nearest(key, properties)}"
            elif not matching:
                yield from self.check(item, schema.get("additionalProperties"), at, depth + 1)
            for part in matching:
                yield from self.check(item, part, at, depth + 1)

    def _array(self, value: Sequence[Any], schema: Mapping[str, Any], path: str, depth: int) -> Iterator[str]:
        least, most = schema.get("minItems"), schema.get("maxItems")
        if least is not None and len(value) < least:
            yield f"{_name(path)} must hold at least {least} items, not {len(value)}"
        if most is not None and len(value) > most:
            yield f"{_name(path)} must hold at most {most} items, not {len(value)}"
        if schema.get("uniqueItems"):
            seen = [json.dumps(item, sort_keys=True, default=repr) for item in value]
            if len(set(seen)) < len(seen):
                yield f"{_name(path)} must not hold the same item twice"
        prefix = schema.get("prefixItems", ())
        for index, item in enumerate(value):
            part = prefix[index] if index < len(prefix) else schema.get("items")
            yield from self.check(item, part, f"{path}[{index}]", depth + 1)

    def _may_be_empty(self, value: Any, schema: Any, path: str) -> bool:
        return re.sub(r"\[\d+\]", "[]", path) in self.allow_empty or self._names_value(value, schema, 0)

    def _names_value(self, value: Any, schema: Any, depth: int) -> bool:
        """Whether the schema itself says that this very value is welcome."""
        if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
            return False
        if "$ref" in schema and self._names_value(value, self._resolve(schema["$ref"]), depth + 1):
            return True
        named = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else [])]
        if any(_same(value, item) for item in named):
            return True
        types = schema.get("type")
        if value is None and (types == "null" or (isinstance(types, list) and "null" in types)):
            return True
        parts = (*schema.get("anyOf", ()), *schema.get("oneOf", ()))
        return any(self._names_value(value, part, depth + 1) for part in parts)

    def _resolve(self, reference: str) -> Any:
        target: Any = self.root
        if not reference.startswith("#"):
            return None  # another document: left to the tool
        for part in reference.lstrip("#/").split("/") if reference not in ("#", "#/") else ():
            key = part.replace("~1", "/").replace("~0", "~")
            target = target.get(key) if isinstance(target, Mapping) else None
        return target


def _is_zero(value: Any) -> bool:
    return value is None or (isinstance(value, (str, list, tuple)) and not value)


def _has_type(value: Any, types: Any) -> bool:
    return any(_is(value, name) for name in ([types] if isinstance(types, str) else types))


def _is(value: Any, name: str) -> bool:
    if name not in _TYPES:
        return True
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return math.isfinite(value) and value.is_integer()  # JSON Schema 2020-12: 1.0 is an integer
    return isinstance(value, _TYPES[name])


def _same(left: Any, right: Any) -> bool:
    """Equality of JSON values: `True` is not `1`."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def _string_bounds(value: str, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    least, most, pattern = schema.get("minLength"), schema.get("maxLength"), schema.get("pattern")
    if least is not None and len(value) < least:
        yield f"{_name(path)} must have at least {least} characters, not {len(value)}"
    if most is not None and len(value) > most:
        yield f"{_name(path)} must have at most {most} characters, not {len(value)}"
    if pattern is not None and not _matches(pattern, value):
        yield f"{_name(path)} must match the pattern {pattern}, which {_shown(value)} does not"


def _matches(pattern: str, value: str) -> bool:
    return not _reads(pattern) or re.search(pattern, value) is not None


def _reads(pattern: str) -> bool:
    """Whether Python can read a pattern, which is ECMA 262; one that it cannot is left to the tool."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _number_bounds(value: float, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    tests: tuple[tuple[str, Callable[[float, float], bool], str], ...] = (
        ("minimum", operator.ge, "at least"),
        ("maximum", operator.le, "at most"),
        ("exclusiveMinimum", operator.gt, "greater than"),
        ("exclusiveMaximum", operator.lt, "less than"),
    )
    for keyword, holds, words in tests:
        bound = schema.get(keyword)
        if isinstance(bound, (int, float)) and not isinstance(bound, bool) and not holds(value, bound):
            yield f"{_name(path)} must be {words} {bound}, not {value}"


def _name(path: str) -> str:
    return f"`{path}`" if path else "the input"


def _shown(value: Any) -> str:
    """A value in a message: as JSON, cut where it would fill the screen."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _type_words(types: Any) -> str:
    names = [types] if isinstance(types, str) else list(types)
    articles = {"integer": "an integer", "array": "a list", "object": "an object", "null": "null"}
    return " or ".join(articles.get(name, f"a {name}") for name in names)


def _meant(key: str, value: Mapping[str, Any], properties: Mapping[str, Any]) -> str:
    """A hint when a field nearly of that name was sent instead."""
    unknown = [name for name in value if isinstance(name, str) and name not in properties]
    close = difflib.get_close_matches(key, unknown, n=1)
    return f" (`{close[0]}` was sent)" if close else ""


def _nearest(key: str, properties: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(key, list(properties), n=1)
    return f"; did you mean `{close[0]}`?" if close else ""
