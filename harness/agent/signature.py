"""A function's signature and docstring, read as the schema of a tool."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_type_hints

from harness.agent.contract import IDEMPOTENCY_KEY
from harness.errors import ToolError, ToolInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Signature", "read_description", "read_signature"]


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes: a JSON Schema, and how a JSON object that keeps it becomes keyword arguments."""

    input_schema: dict[str, Any]
    coerce: Callable[[Mapping[str, Any]], dict[str, Any]] | None


def read_description(function: Callable[..., Any]) -> str:
    """What the docstring says before it comes to the parameters (Google, NumPy, reST or epydoc style)."""
    import docstring_parser

    prose = docstring_parser.parse(inspect.getdoc(function) or "")
    return "\n\n".join(part for part in (prose.short_description, prose.long_description) if part)


def read_signature(function: Callable[..., Any], name: str) -> Signature:
    """Derive a tool's schema from type hints; the docstring describes the parameters.

    Args:
        function: Plain or coroutine function, or a bound method.
        name: The tool's name, for messages.

    Raises:
        ToolError: A parameter has no type hint, a hint has no JSON Schema, or the parameters cannot be given
            by name.
    """
    import docstring_parser

    prose = docstring_parser.parse(inspect.getdoc(function) or "")
    about = {param.arg_name: " ".join((param.description or "").split()) for param in prose.params}
    model, aliases = _arguments_model(function, name, about)

    def coerce(input: Mapping[str, Any]) -> dict[str, Any]:  # noqa: A002 (the word of the API)
        from pydantic import ValidationError

        try:
            filled = model.model_validate(dict(input))
        except ValidationError as error:
            raise ToolInputError(name, [_in_words(problem) for problem in error.errors()]) from None
        given = {aliases[field]: getattr(filled, field) for field in aliases if field in filled.model_fields_set}
        return {**given, **(filled.model_extra or {})}

    return Signature(_schema_of(model, name), coerce)


def _arguments_model(function: Callable[..., Any], name: str, about: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
    """A pydantic model of the keyword arguments.

    Its fields are called `p0`, `p1`, … and carry the real names as aliases, since a parameter may well be
    named `schema` or `copy`, which pydantic keeps for itself.
    """
    from pydantic import ConfigDict, Field, create_model
    from pydantic.errors import PydanticUserError

    try:
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters
    except (NameError, TypeError, ValueError) as error:
        raise ToolError(f"tool {name!r}: its signature cannot be read ({error}); give input_schema=") from error
    fields: dict[str, Any] = {}
    aliases: dict[str, str] = {}
    open_ended = False
    for parameter in parameters.values():
        if parameter.name == IDEMPOTENCY_KEY:
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            open_ended = True
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise ToolError(f"tool {name!r}: parameter {parameter.name!r} has no name that a model could give it by")
        if parameter.name not in hints:
            raise ToolError(
                f"tool {name!r}: parameter {parameter.name!r} has no type hint; add one or give input_schema="
            )
        default = ... if parameter.default is parameter.empty else parameter.default
        field = f"p{len(fields)}"
        aliases[field] = parameter.name
        # Given only where there is one: a None would hide what an `Annotated[…, Field(description=…)]` says.
        described: dict[str, Any] = {"description": about[parameter.name]} if about.get(parameter.name) else {}
        fields[field] = (hints[parameter.name], Field(default, alias=parameter.name, **described))
    config = ConfigDict(extra="allow" if open_ended else "forbid", protected_namespaces=())
    try:
        return create_model(name, __config__=config, **fields), aliases
    except PydanticUserError as error:
        raise ToolError(
            f"tool {name!r}: a type hint has no JSON Schema ({error.message}); give input_schema="
        ) from error


def _schema_of(model: Any, name: str) -> dict[str, Any]:
    from pydantic.errors import PydanticUserError
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        """Without the titles that pydantic makes of the names: tokens that tell the model nothing."""

        def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 (pydantic's signature)
            return False

    try:
        schema: dict[str, Any] = model.model_json_schema(by_alias=True, schema_generator=Untitled)
    except PydanticUserError as error:
        raise ToolError(
            f"tool {name!r}: a type hint has no JSON Schema ({error.message}); give input_schema="
        ) from error
    schema.pop("title", None)
    schema.setdefault("properties", {})
    return schema


def _in_words(problem: Mapping[str, Any]) -> str:
    at = ".".join(str(part) for part in problem["loc"])
    return f"`{at}`: {problem['msg']}" if at else str(problem["msg"])
