"""The format of a case file, as pydantic models: the one place that says which keys there are and what they mean.

The descriptions and examples are what editors show (`json_schema`).  Keys whose value is a language of its own are left
to its parser: `model.script` (harness.model), `compare` (harness.policy), `normalize` (harness.normalize), `stuck`
(harness.stuck).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag
from pydantic.json_schema import GenerateJsonSchema

from harness.case.editor import with_languages

__all__ = ["MODELS", "Answer", "CaseFile", "Faults", "Limits", "Live", "ModelChoice", "Stub", "json_schema"]

FieldType = Literal["array", "boolean", "integer", "null", "number", "object", "string"]
Effect = Literal["read_only", "idempotent", "irreversible"]


def _shape(value: Any) -> str | None:
    """Which branch of a union a value means, by its shape alone, so that its faults are reported once."""
    shapes: dict[type, str] = {str: "<text>", list: "<list>", dict: "<mapping>"}
    return shapes.get(type(value))


def _either(*kinds: str) -> Discriminator:
    message = f"{', '.join(kinds[:-1])} or {kinds[-1]}"
    return Discriminator(_shape, custom_error_type="shape", custom_error_message=message)


def _one_of(*keys: str) -> dict[str, Any]:
    return {"oneOf": [{"required": [key]} for key in keys]}


Name = Annotated[str, Field(min_length=1)]
Reference = Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$")]


class Part(BaseModel):
    """Common to all parts of a case: nothing is converted, nothing unknown is let through, nothing changes later."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


class Answer(Part):
    """One answer of a stub tool: what it returns, or the error it raises."""

    model_config = ConfigDict(json_schema_extra=_one_of("returns", "raises"))

    returns: Any = Field(default=None, examples=["ok", {"hits": []}])
    """The result: text as it is, anything else as JSON."""
    raises: str | None = Field(default=None, examples=["timeout"])
    """The text of the error."""


class Stub(Part):
    """A tool that exists only in this case."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                _one_of("returns", "raises", "sequence"),
                {"not": {"required": ["input", "input_schema"]}},
            ]
        }
    )

    effect: Effect = "irreversible"
    """What a call does to the world; calls of tools that are not read_only are always compared exactly."""
    description: str = ""
    """What the model would read about the tool."""
    input: dict[str, FieldType] | None = Field(default=None, examples=[{"query": "string", "limit": "integer"}])
    """Shorthand: the fields of the input with their JSON types, all of them required."""
    input_schema: dict[str, Any] | None = Field(default=None, examples=[{"type": "object", "properties": {}}])
    """The whole JSON Schema of the input, where `input` is not enough."""
    returns: Any = Field(default=None, examples=["ok", {"hits": []}])
    """What every call returns: text as it is, anything else as JSON."""
    raises: str | None = Field(default=None, examples=["timeout"])
    """The text of the error that every call answers with."""
    sequence: Annotated[list[Answer], Field(min_length=1)] | None = Field(
        default=None, examples=[[{"raises": "timeout"}, {"returns": "ok"}]]
    )
    """Answers call by call; the last one is repeated."""


class Live(Part):
    """A real model behind the real API."""

    trials: int = Field(ge=1, examples=[5])
    """How often the case is run: real models vary, so one run says little."""


class ModelChoice(Part):
    """Who answers the loop: exactly one of script, cassette and live."""

    model_config = ConfigDict(json_schema_extra=_one_of("script", "cassette", "live"))

    name: Name = Field(examples=["claude-sonnet-5"])
    """The model name that the loop is given and the trace is filed under."""
    script: Any = None
    """What the model answers, step by step."""
    cassette: Name | None = Field(default=None, examples=["cassettes/weekly_summary.jsonl"])
    """A recording to answer from: a path relative to the case file."""
    live: Live | None = None
    """The real API answers."""


class Limits(Part):
    """Hard bounds: a golden can never bless a run that breaks them."""

    turns: int | None = Field(default=None, ge=1, examples=[24])
    """The most model responses that one run may take; 200 when not given."""
    calls: int | None = Field(default=None, ge=1, examples=[60])
    """The most tool calls that one run may make; 2000 when not given."""


class Faults(Part):
    """What is done to the process while the case runs."""

    crash: Annotated[
        Annotated[Literal["none", "every_point"], Tag("<text>")] | Annotated[list[Name], Tag("<list>")],
        _either("none", "every_point", "a list of crash points"),
    ] = Field(default="none", examples=["every_point", ["turn2.call1.send_email.after"]])
    """Where the process is killed and resumed: nowhere, everywhere, or at the named crash points."""


class Bytes(Part):
    """A file given as base64, or as a value that is written as JSON."""

    model_config = ConfigDict(json_schema_extra=_one_of("base64", "json"))

    base64: str | None = Field(default=None, examples=["iVBORw0KGgo="])
    """The bytes of the file in base64."""
    value: Any = Field(default=None, alias="json", examples=[{"open": True}])
    """A value that is written as JSON, indented by two, with a final newline."""


Content = Annotated[Annotated[str, Tag("<text>")] | Annotated[Bytes, Tag("<mapping>")], _either("text", "a mapping")]
Tools = Annotated[
    Annotated[Reference, Tag("<text>")] | Annotated[dict[str, Stub], Tag("<mapping>")],
    _either("module:attribute", "a mapping of stub tools"),
]


class CaseFile(Part):
    """One case: a prompt, the loop that works on it, the tools it may use and the model that answers."""

    model_config = ConfigDict(json_schema_extra=_one_of("agent", "command"))

    description: str = Field(default="", examples=["Summarise this week's notes, mail the conclusion once."])
    """What this case guards, in a sentence for the reviewer."""
    agent: Reference | None = Field(default=None, examples=["harness.agent:run", "my_agent.loop:run"])
    """The real loop as module:callable; it is called with the arguments it names."""
    command: Annotated[list[Name], Field(min_length=1)] | None = Field(default=None, examples=[["node", "agent.mjs"]])
    """The real loop as a command, for loops in other languages."""
    resume: Reference | None = Field(default=None, examples=["my_agent.loop:resume"])
    """What goes on with the run after a crash, as module:callable; the loop itself, called again, when not given."""
    prompt: str = Field(pattern=r"\S", examples=["Summarise this week's meeting notes and mail the conclusion."])
    """The task that the loop is given."""
    tools: Tools | None = Field(default=None, examples=["examples.notes.tools:TOOLS"])
    """The tools: module:attribute, or stubs by name.  Left out when the loop brings its own."""
    writes: list[Name] | None = Field(default=None, examples=[["send_email"]])
    """Which tools change the world, where no contract says it; without this key every such tool counts as one."""
    workspace: dict[str, Content] | None = Field(default=None, examples=[{"notes/mon.md": "Shipped the parser."}])
    """Files that exist before the run, by path in a fresh directory that the run starts in."""
    model: ModelChoice
    """Who answers the loop."""
    limits: Limits = Field(default_factory=Limits)
    """Hard bounds of a run."""
    compare: Any = None
    """How strictly each facet is compared with the golden; exactly when not given."""
    normalize: Any = None
    """What varies from run to run in this case, on top of the defaults."""
    stuck: Any = None
    """Guards the run against being stuck: settings of the nine detectors, or an empty mapping for the defaults."""
    detail: Literal["args", "digest", "plain"] | None = None
    """What the golden tells of arguments: a digest each (args), one for all (digest), or their values (plain)."""
    faults: Faults = Field(default_factory=Faults)
    """Faults that are injected while the case runs."""
    marks: list[Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")]] = Field(default=[], examples=[["slow"]])
    """pytest marks, for `-m`."""
    tags: list[Annotated[str, Field(pattern=r"^\S+$")]] = Field(default=[], examples=[["billing"]])
    """Words of your own, for `-k`."""
    max_turns: int | None = Field(default=None, ge=1, examples=[12])
    """Handed to a loop that takes `max_turns`."""


MODELS: tuple[tuple[tuple[str, ...], type[Part]], ...] = (
    ((), CaseFile),
    (("model",), ModelChoice),
    (("model", "live"), Live),
    (("limits",), Limits),
    (("faults",), Faults),
    (("tools", "*"), Stub),
    (("tools", "*", "sequence", "*"), Answer),
    (("workspace", "*"), Bytes),
)
"""Which model stands at which path, `*` for any key or index: from here the valid keys of a place are known."""


class _ForEditors(GenerateJsonSchema):
    """Without titles made of names, which editors show in place of the keys, and without null, which no key takes."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False

    def nullable_schema(self, schema: Any) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> dict[str, Any]:
        generated = super().default_schema(schema)
        return {key: value for key, value in generated.items() if (key, value) != ("default", None)}


def json_schema() -> dict[str, Any]:
    """The format as JSON Schema (Draft 2020-12), for editors."""
    schema = CaseFile.model_json_schema(by_alias=True, schema_generator=_ForEditors)
    for definition in schema["$defs"].values():
        definition.pop("title", None)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return head | with_languages(schema) | {"title": "A case of the trajectory harness"}
