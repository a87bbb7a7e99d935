"""What a tool promises: its name, its schema, what it does to the world, and how to call it."""

from __future__ import annotations

import copy
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from harness.agent.keywords import malformed
from harness.agent.validation import problems_of
from harness.errors import ToolError, ToolInputError

__all__ = ["IDEMPOTENCY_KEY", "MAX_RESULT_CHARS", "Confirmed", "Effect", "Tool"]

Effect = Literal["read_only", "idempotent", "irreversible"]
"""What a call does to the world.

`read_only`: nothing; it may run as often as it likes.  `idempotent`: running it again with the same
idempotency key changes nothing more.  `irreversible`: a second execution is a second effect (a mail, a
payment).
"""

IDEMPOTENCY_KEY = "idempotency_key"
"""The parameter that the loop fills itself: the same value for the same call, across restarts."""

MAX_RESULT_CHARS = 100_000
"""Default limit of one result: about 25,000 tokens, an eighth of a 200,000-token window."""

# The API's own rule for names (see PROTOCOL.md, "tool name").
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What a `verify` returns when the call did take effect and its result could be found again."""

    result: Any


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """A contract between a tool, the model that asks for it, and the loop that executes it.

    Args:
        name: What the model calls it by: 1 to 128 letters, digits, `_` or `-`.
        description: What the model reads.
        input_schema: JSON Schema of the input; its top level has `type: object`.
        function: Called with the input as keyword arguments; may be a coroutine function.
        effect: What a call does to the world.  The default is the careful one.
        verify: Called as `function` would be, after a crash that left a call undecided.  Answers `True` (it
            took effect), `Confirmed(result)` (it did, and this was its result), `False` (it did not) or
            `None` (cannot say).
        timeout: Seconds after which the loop stops waiting for a call; `None` waits for ever.
        allow_empty: Paths of required fields that may be empty, such as `content` or `items[].note`.
        concurrent: A write that may run beside other calls of the same response.  Reads always may.
        max_result_chars: Characters of text that one result may hold; the rest is cut out and the model is
            told.
        options: Further fields of the API's tool parameter (`cache_control`, `strict`, …).  With a `type`
            that the API defines itself, neither description nor schema is sent.
        takes_key: The function has a parameter `idempotency_key`.  Found out by looking; only a wrapper that
            hides the signature needs to say it.
        coerce: Turns a valid JSON input into Python arguments (dates, models).  `None` passes the input as it
            is.

    Raises:
        ToolError: The contract contradicts itself or a rule of the API.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    function: Callable[..., Any]
    effect: Effect = "irreversible"
    verify: Callable[..., Any] | None = None
    timeout: float | None = None
    allow_empty: Iterable[str] = frozenset()
    concurrent: bool = False
    max_result_chars: int = MAX_RESULT_CHARS
    options: Mapping[str, Any] = field(default_factory=dict)
    takes_key: bool = False
    coerce: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        where = f"tool {self.name!r}"
        if self.effect not in get_args(Effect):
            raise ToolError(f"{where}: effect is {self.effect!r}; use one of {', '.join(get_args(Effect))}")
        if not callable(self.function):
            raise ToolError(f"{where}: function is {self.function!r}, which cannot be called")
        if self.verify is not None and not callable(self.verify):
            raise ToolError(f"{where}: verify is {self.verify!r}, which cannot be called")
        if self.timeout is not None and not 0 < self.timeout < math.inf:
            raise ToolError(f"{where}: timeout is {self.timeout!r}; give seconds greater than 0, or None")
        if self.max_result_chars < 1:
            raise ToolError(f"{where}: max_result_chars is {self.max_result_chars!r}; give at least 1")
        if isinstance(self.allow_empty, str):
            raise ToolError(f"{where}: allow_empty is {self.allow_empty!r}; give a list of field names")
        allowed = frozenset(self.allow_empty)
        _check_schema(self.input_schema, allowed, where)
        object.__setattr__(self, "allow_empty", allowed)
        object.__setattr__(self, "takes_key", self.takes_key or names_key(self.function))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function as if it had never become a tool: nothing is validated, nothing recorded."""
        return self.function(*args, **kwargs)

    @property
    def writes(self) -> bool:
        """Whether a call may change the world."""
        return self.effect != "read_only"

    @property
    def is_async(self) -> bool:
        """Whether calling the function gives a coroutine."""
        call = self.function if inspect.isroutine(self.function) else type(self.function).__call__
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(call)

    def definition(self) -> dict[str, Any]:
        """The tool as a parameter of an API request, a fresh copy each time."""
        options = copy.deepcopy(dict(self.options))
        if options.get("type", "custom") != "custom":
            return {"name": self.name, **options}
        schema = copy.deepcopy(dict(self.input_schema))
        return {"name": self.name, "description": self.description, "input_schema": schema, **options}

    def validate(self, input: Any) -> None:  # noqa: A002 (the word of the API)
        """Refuse an input that breaks the contract, before anything has been executed.

        A required field must be there and not be zero-valued: an empty string, an empty list and null are
        refused unless `allow_empty` names the field or the schema itself names the value (`type: [string,
        "null"]`, an `enum` with `""`).  `False`, `0` and `{}` are values like any other, and so is a blank
        string.

        Raises:
            ToolInputError: The text begins with `[validation error]` and lists every problem.
        """
        problems = problems_of(input, self.input_schema, frozenset(self.allow_empty))
        if problems:
            raise ToolInputError(self.name, problems)

    def arguments(self, input: Mapping[str, Any], key: str | None = None) -> dict[str, Any]:  # noqa: A002 (the word of the API)
        """The keyword arguments for one call: validated, coerced, with the idempotency key where it is
        wanted.

        Args:
            input: What the model sent.  It is copied: a tool that changes its arguments changes nothing else.
            key: The idempotency key of this call.

        Raises:
            ToolInputError: The input breaks the contract.
        """
        self.validate(input)
        own = copy.deepcopy(dict(input))
        arguments = own if self.coerce is None else self.coerce(own)
        return {**arguments, IDEMPOTENCY_KEY: key} if self.takes_key else arguments


def names_key(function: Callable[..., Any]) -> bool:
    """Whether `function` has a parameter for the idempotency key."""
    try:
        return IDEMPOTENCY_KEY in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some callables of C extensions have no signature
        return False


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ToolError(f"a tool is named {name!r}; the API takes 1 to 128 letters, digits, '_' or '-'")


def _check_schema(schema: object, allowed: frozenset[str], where: str) -> None:
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise ToolError(f"{where}: input_schema must be a JSON Schema with `type: object` at its top level")
    for keyword in ("oneOf", "allOf", "anyOf"):
        if keyword in schema:
            raise ToolError(f"{where}: the API refuses an input_schema with {keyword!r} at its top level")
    properties = schema.get("properties", {})
    for problem in malformed(schema):
        raise ToolError(f"{where}: {problem}")
    if IDEMPOTENCY_KEY in properties:
        raise ToolError(f"{where}: {IDEMPOTENCY_KEY!r} is filled by the loop; take it out of input_schema")
    missing = [name for name in schema.get("required", ()) if name not in properties]
    if missing:
        raise ToolError(f"{where}: input_schema requires {missing[0]!r}, which `properties` does not describe")
    for path in sorted(allowed):
        head = re.split(r"[.\[]", path, maxsplit=1)[0]
        if head not in properties:
            raise ToolError(f"{where}: allow_empty names {path!r}; input_schema has {sorted(properties)}")
