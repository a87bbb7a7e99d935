"""Tools as contracts: what `@tool` reads from a function, and what it refuses before anything runs."""

from __future__ import annotations

import dataclasses
import datetime
import sys
from typing import Annotated, Any, Literal

import anthropic
import pytest
from pydantic import BaseModel, Field

from harness.agent import Tool, ToolError, ToolInputError, as_tool, as_toolset, tool


@tool(effect="read_only")
def read_file(path: str, limit: int = 100) -> str:
    """Read a text file.

    Long files are cut.

    Args:
        path: Relative to
            the workspace.
        limit: Lines at most.
    """
    return f"{path}:{limit}"


class Opaque:
    """A type that JSON knows nothing of."""


class Attachment(BaseModel):
    name: str
    note: str


@tool
def send_email(
    to: list[str], subject: str, body: str, idempotency_key: str, attachments: list[Attachment] | None = None
) -> dict[str, Any]:
    """Send one mail."""
    return {"to": to, "key": idempotency_key, "n": len(attachments or [])}


def contract(**changes: Any) -> Tool:
    """A small tool of which a test changes what it is about."""
    given: dict[str, Any] = {
        "name": "t",
        "description": "",
        "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        "function": lambda a: a,
    }
    return Tool(**{**given, **changes})


def problems(made: Tool, value: Any) -> tuple[str, ...]:
    """What `validate` finds wrong."""
    try:
        made.validate(value)
    except ToolInputError as error:
        return error.problems
    return ()


class TestDefinition:
    def test_everything_is_read_from_the_function(self) -> None:
        """Name, prose, types, defaults and parameter notes come from the function itself."""
        assert read_file.definition() == {
            "name": "read_file",
            "description": "Read a text file.\n\nLong files are cut.",
            "input_schema": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "path": {"type": "string", "description": "Relative to the workspace."},
                    "limit": {"type": "integer", "default": 100, "description": "Lines at most."},
                },
                "required": ["path"],
            },
        }

    def test_the_idempotency_key_is_no_part_of_the_schema(self) -> None:
        """The model never sees the key, and the loop fills it."""
        assert "idempotency_key" not in str(send_email.definition())
        given = {"to": ["a@b.c"], "subject": "s", "body": "b"}
        assert send_email.arguments(given, key="k-1") == {**given, "idempotency_key": "k-1"}

    def test_a_definition_is_a_copy(self) -> None:
        """What a caller does to a definition does not reach the contract."""
        read_file.definition()["input_schema"]["properties"].clear()
        assert read_file.definition()["input_schema"]["properties"].keys() == {"path", "limit"}

    def test_parameters_may_have_names_that_pydantic_keeps_for_itself(self) -> None:
        """`schema`, `copy` and `model_config` are names like any other."""

        @tool
        def odd(schema: str, copy: int, model_config: bool, _hidden: str = "x") -> None: ...

        properties = odd.input_schema["properties"]
        assert list(properties) == ["schema", "copy", "model_config", "_hidden"]
        assert odd.arguments({"schema": "s", "copy": 1, "model_config": False}) == {
            "schema": "s",
            "copy": 1,
            "model_config": False,
        }

    def test_a_note_in_the_type_hint_is_kept(self) -> None:
        """`Annotated[…, Field(description=…)]` reaches the model."""

        @tool
        def f(a: Annotated[int, Field(description="how many", ge=1)]) -> None: ...

        assert f.input_schema["properties"] == {"a": {"type": "integer", "description": "how many", "minimum": 1}}

    def test_a_given_schema_is_sent_as_it_stands(self) -> None:
        """A hand-written schema wins over the signature, which then needs no hints."""
        schema = {"type": "object", "properties": {"q": {"type": "string", "title": "Q"}}, "required": ["q"]}

        @tool(input_schema=schema, description="Find.", options={"cache_control": {"type": "ephemeral"}})
        def search(q): ...  # type: ignore[no-untyped-def]

        assert search.definition() == {
            "name": "search",
            "description": "Find.",
            "input_schema": schema,
            "cache_control": {"type": "ephemeral"},
        }

    def test_any_keyword_is_taken_when_the_function_takes_any(self) -> None:
        """`**extra` opens the schema, and what it lets in reaches the function."""

        @tool
        def f(a: int, **extra: Any) -> None: ...

        assert f.input_schema["additionalProperties"] is True
        assert f.arguments({"a": 1, "b": [2]}) == {"a": 1, "b": [2]}


class TestCallable:
    def test_a_tool_is_still_the_function(self) -> None:
        """Decorating changes nothing for those who call the function themselves, positions and errors included."""
        assert read_file("a", 3) == "a:3"
        with pytest.raises(TypeError, match="path"):
            read_file()  # type: ignore[call-arg]

    def test_rich_types_arrive_as_they_were_declared(self) -> None:
        """JSON becomes dates and models before the function sees it."""

        @tool(effect="read_only")
        def f(day: datetime.date, files: list[Attachment], mode: Literal["a", "b"] = "a") -> None: ...

        given = {"day": "2026-03-01", "files": [{"name": "n", "note": "x"}]}
        assert f.arguments(given) == {
            "day": datetime.date(2026, 3, 1),
            "files": [Attachment(name="n", note="x")],
        }

    def test_a_value_that_its_type_refuses_is_a_validation_error(self) -> None:
        """What only the Python type can see is refused with the same marker."""

        @tool
        def f(day: datetime.date) -> None: ...

        with pytest.raises(ToolInputError, match=r"^\[validation error\] f: `day`: ") as caught:
            f.arguments({"day": "tomorrow"})
        assert str(caught.value).endswith("The tool was not executed.")

    def test_arguments_are_the_tools_own(self) -> None:
        """A tool that changes its arguments changes nothing that was recorded."""
        given = {"a": "x", "rows": [1]}
        loose = contract(input_schema={"type": "object"})
        loose.arguments(given)["rows"].append(2)
        assert given == {"a": "x", "rows": [1]}

    def test_async_functions_are_known(self) -> None:
        """The loop must know what to await before it calls."""

        @tool
        async def later(a: int) -> int:
            return a

        class Later:
            async def __call__(self, a: int) -> int:
                return a

        assert (later.is_async, read_file.is_async) == (True, False)
        assert contract(function=Later()).is_async

    def test_instrumenting_keeps_the_contract(self) -> None:
        """`dataclasses.replace` swaps the function and nothing else, the idempotency key included."""
        calls: list[dict[str, Any]] = []

        def spy(**arguments: Any) -> None:
            calls.append(arguments)

        spied = dataclasses.replace(send_email, function=spy)
        spied.function(**spied.arguments({"to": ["a"], "subject": "s", "body": "b"}, key="k"))
        assert calls == [{"to": ["a"], "subject": "s", "body": "b", "idempotency_key": "k"}]
        assert spied.definition() == send_email.definition()


class TestValidation:
    @pytest.mark.parametrize("empty", ["", [], None])
    def test_a_required_field_must_hold_something(self, empty: Any) -> None:
        """The write without content: refused as a typed error, not executed as a zero-byte success."""
        made = contract(input_schema={"type": "object", "properties": {"a": {}}, "required": ["a"]})
        shown = {"": '""', "[]": "[]", "None": "null"}[str(empty)]
        with pytest.raises(ToolInputError) as caught:
            made.validate({"a": empty})
        assert str(caught.value) == (
            f"[validation error] t: `a` is required and must not be {shown}. The tool was not executed."
        )

    @pytest.mark.parametrize("value", [False, 0, 0.0, {}, " ", "0", [None]], ids=repr)
    def test_false_zero_and_empty_objects_are_values(self, value: Any) -> None:
        """Only empty strings, empty lists and null hold nothing."""
        made = contract(input_schema={"type": "object", "properties": {"a": {}}, "required": ["a"]})
        assert problems(made, {"a": value}) == ()

    def test_the_contract_may_allow_an_empty_field(self) -> None:
        """`allow_empty` names what may be empty, inside lists as well, and nothing else."""

        @tool(allow_empty=["content", "files[].note"])
        def write(path: str, content: str, files: list[Attachment]) -> None: ...

        file = {"name": "n", "note": ""}
        assert problems(write, {"path": "p", "content": "", "files": [file]}) == ()
        assert problems(write, {"path": "", "content": "", "files": [file, {"name": "", "note": ""}]}) == (
            '`path` is required and must not be ""',
            '`files[1].name` is required and must not be ""',
        )

    def test_a_schema_may_name_the_empty_value_itself(self) -> None:
        """A nullable type and an enum with an empty string are explicit permissions."""

        @tool
        def f(a: str | None, b: Literal["", "x"]) -> None: ...

        assert problems(f, {"a": None, "b": ""}) == ()
        assert problems(f, {"a": "", "b": "y"}) == (
            '`a` is required and must not be ""',
            '`b` must be one of "", "x", not "y"',
        )

    def test_an_optional_field_may_be_empty(self) -> None:
        """Only required fields must hold something."""
        assert problems(read_file, {"path": "p", "limit": 0}) == ()

    def test_every_problem_is_told_at_once(self) -> None:
        """The model can repair a call in one go."""
        assert problems(read_file, {"pth": "x", "limit": "3"}) == (
            "`path` is required and missing (`pth` was sent)",
            "`pth` is not a field of this tool; did you mean `path`?",
            '`limit` must be an integer, not "3"',
        )

    @pytest.mark.parametrize("value", [None, "text", [1], 3])
    def test_an_input_that_is_no_object_is_refused(self, value: Any) -> None:
        """Half-parsed inputs come in every shape."""
        assert len(problems(contract(), value)) == 1
        assert problems(contract(), value)[0].startswith("the input must be an object, not ")

    @pytest.mark.parametrize(
        ("schema", "value", "said"),
        [
            ({"type": "boolean"}, 1, ["`a` must be a boolean, not 1"]),
            ({"type": "integer"}, True, ["`a` must be an integer, not true"]),
            ({"type": "integer"}, 2.0, []),
            ({"type": "number"}, 2, []),
            ({"enum": [1]}, True, ["`a` must be one of 1, not true"]),
            ({"const": "x"}, "y", ['`a` must be "x", not "y"']),
            ({"type": ["string", "integer"]}, 1.5, ["`a` must be a string or an integer, not 1.5"]),
            ({"minimum": 1, "exclusiveMaximum": 3}, 3, ["`a` must be less than 3, not 3"]),
            ({"minLength": 2, "pattern": "^x"}, "y", [
                "`a` must have at least 2 characters, not 1", '`a` must match the pattern ^x, which "y" does not',
            ]),
            ({"items": {"type": "string"}, "maxItems": 1}, ["x", 2], [
                "`a` must hold at most 1 items, not 2", "`a[1]` must be a string, not 2",
            ]),
            ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", ['`a` must be an integer, not "x"']),
            ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, 1, [
                "`a` fits 2 of the alternatives, and must fit exactly one",
            ]),
            ({"allOf": [{"minimum": 5}, {"maximum": 1}]}, 3, [
                "`a` must be at least 5, not 3", "`a` must be at most 1, not 3",
            ]),
            ({"$ref": "#/$defs/N"}, 0, ["`a` must be at least 1, not 0"]),
            ({"additionalProperties": {"type": "string"}}, {"k": 1}, ["`a.k` must be a string, not 1"]),
            ({"uniqueItems": True}, [1, 1], ["`a` must not hold the same item twice"]),
            ({"prefixItems": [{"type": "string"}]}, [1], ["`a[0]` must be a string, not 1"]),
            ({"format": "date", "pattern": "(?<year>bad"}, "whatever", []),
        ],
    )  # fmt: skip
    def test_a_schema_is_kept(self, schema: dict[str, Any], value: Any, said: list[str]) -> None:
        """The keywords that tool schemas are made of are checked; others are left to the tool."""
        made = contract(
            input_schema={
                "type": "object",
                "properties": {"a": schema},
                "required": ["a"],
                "$defs": {"N": {"type": "integer", "minimum": 1}},
            }
        )
        assert list(problems(made, {"a": value})) == said

    def test_a_schema_that_contains_itself_ends(self) -> None:
        """Recursive schemas are walked as deep as the value goes, and endless references stop."""
        tree = {
            "type": "object",
            "properties": {"name": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#"}}},
            "required": ["name"],
        }
        made = contract(input_schema=tree)
        assert problems(made, {"name": "a", "kids": [{"name": "b", "kids": [{"name": ""}]}]}) == (
            '`kids[0].kids[0].name` is required and must not be ""',
        )
        endless = {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"$ref": "#/$defs/x"}}}
        assert problems(contract(input_schema=endless), {"a": 1}) == ()


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"name": "a b"}, "a tool is named 'a b'; the API takes 1 to 128 letters, digits, '_' or '-'"),
            ({"effect": "safe"}, "tool 't': effect is 'safe'; use one of read_only, idempotent, irreversible"),
            ({"function": 3}, "tool 't': function is 3, which cannot be called"),
            ({"verify": "v"}, "tool 't': verify is 'v', which cannot be called"),
            ({"timeout": 0}, "tool 't': timeout is 0; give seconds greater than 0, or None"),
            ({"max_result_chars": 0}, "tool 't': max_result_chars is 0; give at least 1"),
            ({"allow_empty": "a"}, "tool 't': allow_empty is 'a'; give a list of field names"),
            ({"allow_empty": ["b"]}, "tool 't': allow_empty names 'b'; input_schema has ['a']"),
            ({"input_schema": {}}, "tool 't': input_schema must be a JSON Schema with `type: object` at its top level"),
            (
                {"input_schema": {"type": "object", "anyOf": []}},
                "tool 't': the API refuses an input_schema with 'anyOf' at its top level",
            ),
            (
                {"input_schema": {"type": "object", "required": ["b"]}},
                "tool 't': input_schema requires 'b', which `properties` does not describe",
            ),
            (
                {"input_schema": {"type": "object", "properties": {"idempotency_key": {}}}},
                "tool 't': 'idempotency_key' is filled by the loop; take it out of input_schema",
            ),
        ],
    )
    def test_a_contract_that_cannot_hold_is_refused(self, changes: dict[str, Any], said: str) -> None:
        """A wrong contract fails when it is made, not in the night when it is first used."""
        with pytest.raises(ToolError) as caught:
            contract(**changes)
        assert str(caught.value) == said

    def test_a_signature_that_a_model_cannot_fill_is_refused(self) -> None:
        """Parameters without hints or names are found when the module is loaded."""
        with pytest.raises(ToolError, match=r"tool 'f': parameter 'a' has no type hint; add one or give input_schema="):

            @tool
            def f(a): ...  # type: ignore[no-untyped-def]

        with pytest.raises(ToolError, match="parameter 'rest' has no name that a model could give it by"):

            @tool
            def g(*rest: str) -> None: ...

        with pytest.raises(ToolError, match="tool 'h': a type hint has no JSON Schema"):

            @tool
            def h(a: Opaque) -> None: ...

    def test_two_tools_of_one_name_are_refused(self) -> None:
        """The API refuses such a request; we say so before it is sent."""
        assert list(as_toolset([read_file, send_email])) == ["read_file", "send_email"]
        with pytest.raises(ToolError, match="two tools are named 'read_file'"):
            as_toolset([read_file, read_file])
        with pytest.raises(ToolError, match="3 is no tool"):
            as_toolset([3])


class TestAdapters:
    def test_a_plain_function_is_irreversible_until_somebody_says_otherwise(self) -> None:
        """The careful default holds for adapted functions as well."""

        def pay(amount: int) -> None:
            """Pay."""

        assert as_tool(pay).effect == "irreversible"
        assert as_tool(pay, effect="idempotent", timeout=3.0).timeout == 3.0
        assert as_tool(as_tool(pay), effect="read_only").effect == "read_only"

    def test_a_bound_method_is_a_tool(self) -> None:
        """A method keeps its object and loses `self`."""

        class Shelf:
            books = 3

            def count(self, at_least: int) -> bool:
                """Count books."""
                return self.books >= at_least

        made = as_tool(Shelf().count, effect="read_only")
        assert made.definition()["input_schema"]["required"] == ["at_least"]
        assert made.function(**made.arguments({"at_least": 2})) is True

    def test_the_sdks_function_tools_are_taken_as_they_are(self) -> None:
        """A `@beta_tool` keeps its own definition and its own conversion of arguments."""

        @anthropic.beta_tool(cache_control={"type": "ephemeral"})
        def weather(city: str, day: datetime.date) -> str:
            """The weather.

            Args:
                city: Where.
            """
            return f"{city} on {day:%A}"

        made = as_tool(weather, effect="read_only")
        assert made.definition() == weather.to_dict()
        assert made.function(**made.arguments({"city": "Bern", "day": "2026-03-01"})) == "Bern on Sunday"
        assert problems(made, {"city": "", "day": "2026-03-01"}) == ('`city` is required and must not be ""',)

    def test_the_sdks_async_function_tools_are_async(self) -> None:
        """`@beta_async_tool` is awaited, and its idempotency key is ours to fill."""

        @anthropic.beta_async_tool
        async def pay(amount: int, idempotency_key: str) -> str:
            """Pay."""
            return f"{amount} {idempotency_key}"

        made = as_tool(pay)
        assert made.is_async
        assert made.input_schema["required"] == ["amount"]
        assert made.arguments({"amount": 1}, key="k") == {"amount": 1, "idempotency_key": "k"}

    def test_a_tool_of_a_type_that_the_api_defines_is_sent_without_a_schema(self) -> None:
        """The SDK's built-in tools have no schema of their own, and must not get one."""

        class Memory:
            name = "memory"

            def to_dict(self) -> dict[str, str]:
                return {"type": "memory_20250818", "name": "memory"}

            def call(self, input: object) -> str:
                return f"{input}"

        made = as_tool(Memory())
        assert made.definition() == {"type": "memory_20250818", "name": "memory"}
        assert made.function(**made.arguments({"command": "view"})) == "{'command': 'view'}"


def test_declaring_the_api_costs_nothing() -> None:
    """Importing the package loads neither the SDK nor pydantic."""
    import subprocess

    code = (
        "import sys, harness.agent.tools, harness.agent.results\n"
        "print([name for name in ('anthropic', 'pydantic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


class TestMalformedSchemas:
    @pytest.mark.parametrize(
        ("schema", "problem"),
        [
            ({"required": None}, "input_schema.required must be a list of field names, not None"),
            ({"properties": []}, "input_schema.properties must be a mapping of names to schemas, not []"),
            (
                {"properties": {"a": {"enum": 5}}},
                "input_schema.properties.a.enum must be a list of values, not 5",
            ),
            (
                {"properties": {"a": {"minLength": "3"}}},
                "input_schema.properties.a.minLength must be a number of 0 or more without fraction, not '3'",
            ),
            (
                {"properties": {"a": {"maxItems": float("inf")}}},
                "input_schema.properties.a.maxItems must be a number of 0 or more without fraction, not inf",
            ),
            (
                {"properties": {"a": {"$ref": 5}}},
                "input_schema.properties.a.$ref must be a reference such as '#/$defs/Row', not 5",
            ),
            (
                {"properties": {"a": {"type": 5}}},
                "input_schema.properties.a.type must be the name of a type, or a list of such names, not 5",
            ),
            (
                {"properties": {"a": {"items": {"pattern": 5}}}},
                "input_schema.properties.a.items.pattern must be a regular expression, not 5",
            ),
            (
                {"properties": {"a": {"anyOf": [{"required": True}]}}},
                "input_schema.properties.a.anyOf[0].required must be a list of field names, not True",
            ),
            ({"$defs": {"Row": 5}}, "input_schema.$defs.Row must be a schema (a mapping), not 5"),
            ({"properties": {"a": {"oneOf": {}}}}, "input_schema.properties.a.oneOf must be a list of schemas, not {}"),
        ],
    )
    def test_a_malformed_keyword_is_refused_at_definition(self, schema: dict[str, Any], problem: str) -> None:
        """A schema that would break every check of a call is named where it is written, before any run."""
        with pytest.raises(ToolError) as caught:
            Tool("t", "", {"type": "object", **schema}, print)
        assert str(caught.value) == f"tool 't': {problem}"

    def test_fields_may_have_the_names_of_keywords(self) -> None:
        """What stands under `properties` are names, and what stands in `enum` and `const` are values."""
        properties = {
            "required": {"type": "boolean"},
            "enum": {"const": {"required": None}},
            "$ref": {"enum": [{"type": 5}]},
            "items": {"type": ["array", "null"], "items": True, "minItems": 1.0},
        }
        made = Tool("t", "", {"type": "object", "properties": properties, "required": ["enum"]}, print)
        assert made.definition()["input_schema"]["properties"] == properties

    def test_a_pattern_that_only_ecma_knows_is_left_to_the_tool(self) -> None:
        """A key that such a pattern may mean is neither refused nor checked, and other patterns still count."""
        schema = {
            "type": "object",
            "properties": {},
            "patternProperties": {r"^\p{Lu}": {"type": "integer"}, "^n_": {"type": "integer"}, "a{99999999999}": {}},
            "additionalProperties": False,
        }
        contract = Tool("t", "", schema, print)
        contract.validate({"X": "x", "n_1": 1})
        with pytest.raises(ToolInputError, match="`n_1` must be an integer"):
            contract.validate({"n_1": "x"})
