"""Values that break a field's schema, and values that keep it, drawn by Hypothesis.

Drawing happens in a process of its own: Hypothesis keeps state for the whole process (its folder, the seed of
`random`), and a project whose tests use it must not find that changed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from harness.audit.fields import settled, types_of
from harness.errors import HarnessError
from harness.forked import ask_forked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from harness.audit.fields import Field

__all__ = ["Draws", "draw", "require_extra"]

_LIMIT_A_TOOL: Final = 30.0
"""Seconds; usually a tenth of a second a field."""

_TRIES: Final = 6
"""Draws for one value that is wanted: many are equal to earlier ones, or too large to be read."""

_READABLE: Final = 60
"""Characters of JSON that a drawn value may have; larger ones find nothing that small ones do not."""

_ANY_ARRAY: Final = {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": ["string", "integer", "boolean"]}}

_OF_TYPE: Final[dict[str, dict[str, Any]]] = {
    **{kind: {"type": kind} for kind in ("string", "integer", "number", "boolean")},
    "array": _ANY_ARRAY,
}


@dataclass(frozen=True, slots=True)
class Draws:
    """Values by name of field, and a sentence for each field for which none could be drawn."""

    invalid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    valid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def require_extra() -> None:
    """Check that what draws is installed.

    Raises:
        HarnessError: it is not; names the extra.
    """
    missing = [name for name in ("hypothesis", "hypothesis_jsonschema") if find_spec(name) is None]
    if missing:
        name = missing[0].replace("_", "-")
        raise HarnessError(
            f"drawing invalid values needs {name}, which is not installed; "
            "pip install 'trajectory-harness[audit]', or leave them out with --draws 0"
        )


def draw(tools: Sequence[Sequence[Field]], *, examples: int, seed: int, directory: Path) -> list[Draws]:
    """Draw for the required fields of some tools; the same seed gives the same values.

    Hypothesis mixes in constants of the code that is loaded, so that changed code may give others.

    Args:
        tools: the fields of each.
        examples: invalid values a field, at most; with 0 nothing is drawn.
        seed: any number.
        directory: exists, for what Hypothesis and this function leave behind.

    Returns:
        One a tool.

    Raises:
        HarnessError: the extra is not installed.
    """
    if not examples or not any(tools):
        return [Draws() for _ in tools]
    require_extra()
    work = partial(_draw_all, tools, examples, seed, str(directory / "hypothesis"))
    ending = ask_forked(work, directory / "draws.json", limit=_LIMIT_A_TOOL * len(tools))
    if ending.kind != "answered":
        return [Draws(notes=(f"no invalid values were drawn: {ending.why}",)) for _ in tools]
    return [Draws(one["invalid"], one["valid"], tuple(one["notes"])) for one in ending.value]


def _draw_all(tools: Sequence[Sequence[Field]], examples: int, seed: int, home: str) -> list[dict[str, Any]]:
    import warnings

    from hypothesis.configuration import set_hypothesis_home_dir

    set_hypothesis_home_dir(home)
    warnings.simplefilter("ignore")  # about schemas that are slow or lax: nobody sees this process's stderr
    return [_draw_one(fields, examples, seed) for fields in tools]


def _draw_one(fields: Sequence[Field], examples: int, seed: int) -> dict[str, Any]:
    drawn: dict[str, Any] = {"invalid": {}, "valid": {}, "notes": []}
    for one in fields:
        try:
            drawn["invalid"][one.name] = _invalid(one.schema, examples, seed)
            drawn["valid"][one.name] = _valid(one.schema, seed)
        except Exception as error:  # noqa: BLE001 (whatever a schema that is none, or too clever, makes of the libraries)
            text = " ".join(str(error).split())
            drawn["notes"].append(f"`{one.name}`: no invalid values drawn, {type(error).__name__}: {text[:160]}")
    return drawn


def _invalid(schema: Mapping[str, Any], examples: int, seed: int) -> list[Any]:
    """Near misses of the right type first, as far as there are, then values of other types, by turns."""
    from jsonschema.validators import Draft202012Validator, validator_for

    validator = validator_for(schema, default=Draft202012Validator)(schema)

    def keep(value: Any) -> bool:
        integral = isinstance(value, float) and value.is_integer()  # the same JSON number as the integer
        return (
            value not in (None, "", [], {}) and not integral and _is_harmless(value) and not validator.is_valid(value)
        )

    kinds = types_of(settled(schema, schema))
    if not kinds and validator.is_valid("text") and validator.is_valid(1) and validator.is_valid([1]):
        return []  # everything is valid
    near = [_draw_some(one, examples, seed, keep) for one in _near_misses(schema)]
    others = [_draw_some(one, 2, seed, keep) for kind, one in _OF_TYPE.items() if kind not in kinds]
    objects = [] if "object" in kinds else [_draw_some(None, 2, seed, keep)]
    return _by_turns([*near, *others, *objects])[:examples]


def _valid(schema: Mapping[str, Any], seed: int) -> list[Any]:
    """Values of a plain field: objects are put together from their fields, and need not be drawn."""
    if set(types_of(settled(schema, schema))) & {"object", "array"}:
        return []
    return _draw_some(schema, 2, seed, lambda value: value not in (None, "") and _is_harmless(value)) or _draw_some(
        schema, 2, seed, lambda value: value not in (None, "")
    )


def _near_misses(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Schemas of values that have the right type and may break one rule; what keeps them all is sorted out later."""
    here = settled(schema, schema)
    for kind in types_of(here):
        if kind == "string":
            if least := here.get("minLength"):
                yield {"type": "string", "maxLength": least - 1}
            if (most := here.get("maxLength")) is not None and most < _READABLE - 4:
                yield {"type": "string", "minLength": most + 1, "maxLength": most + 2}
            if {"enum", "const", "pattern"} & here.keys():
                yield {"type": "string"}
        elif kind in ("integer", "number"):
            for bound, beyond in (("minimum", "exclusiveMaximum"), ("maximum", "exclusiveMinimum"),
                                  ("exclusiveMinimum", "maximum"), ("exclusiveMaximum", "minimum")):  # fmt: skip
                if isinstance(here.get(bound), int | float):
                    yield {"type": kind, beyond: here[bound]}
            if {"enum", "const", "multipleOf"} & here.keys():
                yield {"type": kind}
        elif kind == "array":
            yield _ANY_ARRAY  # of anything, which is wrong where items have a schema


def _draw_some(schema: Mapping[str, Any] | None, wanted: int, seed: int, keep: Callable[[Any], bool]) -> list[Any]:
    """Up to `wanted` different values, short ones first as they come; None stands for any object."""
    import hypothesis
    from hypothesis import strategies
    from hypothesis.errors import Unsatisfiable

    found: dict[str, Any] = {}

    def collect(value: Any) -> None:
        text = json.dumps(value, sort_keys=True)
        if len(text) <= _READABLE and keep(value) and len(found) < wanted:
            found.setdefault(text, value)

    if schema is None:
        # Objects by Hypothesis alone: hypothesis-jsonschema 0.23 draws them by an internal that newer ones lack.
        letters = strategies.text("abcxyz", min_size=1, max_size=3)
        strategy: Any = strategies.dictionaries(letters, strategies.integers() | letters, min_size=1, max_size=2)
    else:
        from hypothesis_jsonschema import from_schema

        # Without a codec: finding out what one can encode takes Hypothesis a second; see `_is_harmless`.
        strategy = from_schema(dict(schema), codec=None, allow_x00=False)
    options = hypothesis.settings(
        database=None,
        deadline=None,
        max_examples=wanted * _TRIES,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    given: Any = hypothesis.given(strategy)
    run = hypothesis.seed(seed)(options(given(collect)))
    try:
        run()
    except Unsatisfiable:
        return []
    return list(found.values())


def _is_harmless(value: Any) -> bool:
    """Whether it is ASCII in which nothing leads a tool out of its workspace or is more than text to a shell."""
    return not set(json.dumps(value)) & set("/\\~$`;&|<>*?")


def _by_turns(groups: Sequence[Sequence[Any]]) -> list[Any]:
    """The first of each group, then the second of each, …; without what was there before."""
    longest = max(map(len, groups), default=0)
    merged: dict[str, Any] = {}
    for index in range(longest):
        for group in groups:
            if index < len(group):
                merged.setdefault(json.dumps(group[index], sort_keys=True), group[index])
    return list(merged.values())
