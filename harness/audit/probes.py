"""The calls of an audit: each is a valid input in which one required field breaks the schema."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from harness.agent.validation import problems_of
from harness.audit.fields import settled, types_of, with_value, without

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.audit.fields import Field

__all__ = ["FLAWS", "Flaw", "Probe", "probes_of"]

Flaw: TypeAlias = Literal["missing", "null", "empty", "zero", "invalid"]
FLAWS: Final[tuple[Flaw, ...]] = ("missing", "null", "empty", "zero", "invalid")

_EMPTY: Final[dict[str, Any]] = {"string": "", "array": [], "object": {}}
_ZERO: Final[dict[str, Any]] = {"integer": 0, "number": 0, "boolean": False}


@dataclass(frozen=True, slots=True)
class Probe:
    """One input that should be refused, and what is wrong with it."""

    field: str
    flaw: Flaw
    input: Mapping[str, Any]


def probes_of(
    schema: Mapping[str, Any],
    fields: Sequence[Field],
    valid: Mapping[str, Any],
    invalid: Mapping[str, Sequence[Any]],
    allow_empty: frozenset[str],
    *,
    zeros: bool = False,
) -> list[Probe]:
    """What to try on one tool, field by field: missing, null, empty, zero if asked, then the drawn values.

    What the schema or `allow_empty` welcomes is not tried: null where the type says so, `""` where it is in the `enum`.
    `{}` is tried although a contract takes it for a value: no keyword that it checks refuses it, and a tool that
    replaces something by nothing does so with `{}` as well.

    Args:
        schema: of the tool's input.
        fields: its required fields.
        valid: an input that keeps the schema.
        invalid: drawn values by name of field.
        allow_empty: names of fields that may be empty or zero.
        zeros: try 0 and False, too, which a contract takes for values.
    """
    probes: dict[str, Probe] = {}
    for field in fields:
        for flaw, made in _flawed(field, schema, valid, invalid.get(field.name, ()), zeros=zeros):
            if made is None or (flaw in ("empty", "zero") and field.name in allow_empty):
                continue
            welcome = flaw in ("missing", "null", "empty") and not problems_of(made, schema, allow_empty)
            if welcome and not (flaw == "empty" and "object" in types_of(settled(field.schema, schema))):
                continue
            probes.setdefault(json.dumps(made, sort_keys=True, default=repr), Probe(field.name, flaw, made))
    return list(probes.values())


def _flawed(
    field: Field, schema: Mapping[str, Any], valid: Mapping[str, Any], invalid: Sequence[Any], *, zeros: bool
) -> Iterator[tuple[Flaw, dict[str, Any] | None]]:
    kinds = types_of(settled(field.schema, schema)) or ("string",)
    yield "missing", without(valid, field.path)
    yield "null", with_value(valid, field.path, None)
    for kind in kinds:
        if kind in _EMPTY:
            yield "empty", with_value(valid, field.path, _EMPTY[kind])
    for kind in kinds if zeros else ():
        if kind in _ZERO:
            yield "zero", with_value(valid, field.path, _ZERO[kind])
    for value in invalid:
        yield "invalid", with_value(valid, field.path, value)
