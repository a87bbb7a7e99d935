"""The tools of a run: stubs from the case, the user's own in whatever form, one dispatcher for all."""

from __future__ import annotations

import asyncio
import datetime
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agent.tools import tool
from harness.case.schema import Stub
from harness.case.tools import Toolset, load_tools, stub_tools
from harness.errors import ToolError, ToolInputError, UnknownToolError


def stubs(place: Callable[[str], int] | None = None, **given: dict[str, Any]) -> Toolset:
    return stub_tools({name: Stub.model_validate(stub) for name, stub in given.items()}, place)


def test_a_stub_is_a_contract() -> None:
    """The shorthand becomes a schema with all fields required; effect and description are in the contract."""
    toolset = stubs(
        search={"effect": "read_only", "input": {"query": "string", "limit": "integer"}, "returns": {"hits": []}},
        pay={"description": "Pays.", "input_schema": {"type": "object", "properties": {"n": {}}}, "returns": 1},
        ping={"returns": "pong"},
    )
    assert toolset.definitions() == [
        {
            "name": "search",
            "description": "",
            "input_schema": {
                "type": "object",
                "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
                "required": ["query", "limit"],
            },
        },
        {"name": "pay", "description": "Pays.", "input_schema": {"type": "object", "properties": {"n": {}}}},
        {"name": "ping", "description": "", "input_schema": {"type": "object", "properties": {}, "required": []}},
    ]
    assert [one.effect for one in toolset.tools] == ["read_only", "irreversible", "irreversible"]
    assert (toolset.names, toolset.writes()) == (("search", "pay", "ping"), {"pay", "ping"})


def test_a_stub_answers_as_the_case_says() -> None:
    """It returns the value each time anew, or raises the text."""
    toolset = stubs(search={"returns": {"hits": []}}, down={"raises": "timeout"}, nothing={"returns": None})
    first = toolset.dispatch("search", {})
    first["hits"].append("changed by the loop")
    assert (toolset.dispatch("search", {}), toolset.dispatch("nothing", {})) == ({"hits": []}, None)
    with pytest.raises(ToolError) as caught:
        toolset.dispatch("down", {})
    assert str(caught.value) == "timeout"


def test_a_stub_refuses_what_its_schema_refuses() -> None:
    """A call without a required field never reaches the stub, as with any contract."""
    asked: list[str] = []
    stub = stubs(lambda name: asked.append(name) or 1, search={"input": {"query": "string"}, "returns": 1})
    with pytest.raises(ToolInputError, match=r"^\[validation error\] search: `query` is required and missing"):
        stub.dispatch("search", {})
    assert asked == []


@given(st.lists(st.integers() | st.none(), min_size=1, max_size=5), st.integers(1, 9))
def test_a_sequence_goes_on_and_repeats_its_last_answer(answers: list[int | None], calls: int) -> None:
    """Call n gets answer n, and the last one from then on; None stands for an error here."""
    sequence = [{"raises": "down"} if answer is None else {"returns": answer} for answer in answers]
    toolset = stubs(flaky={"sequence": sequence})

    def ask() -> int | None:
        try:
            return int(toolset.dispatch("flaky", {}))
        except ToolError:
            return None

    assert [ask() for _ in range(calls)] == [answers[min(index, len(answers) - 1)] for index in range(calls)]


def test_the_state_of_a_sequence_belongs_to_the_run() -> None:
    """Every run begins a sequence anew, and a run that knows the place of a call in an earlier one goes on there."""
    flaky = {"sequence": [{"raises": "timeout"}, {"returns": "ok"}]}
    for _ in range(2):
        with pytest.raises(ToolError):
            stubs(flaky=flaky).dispatch("flaky", {})
    assert stubs({"flaky": 2}.__getitem__, flaky=flaky).dispatch("flaky", {}) == "ok"


def test_an_unknown_tool_is_an_error_of_the_call() -> None:
    """A loop that looks a tool up finds a KeyError with a message that it can hand to the model."""
    for toolset, there in (
        (stubs(a={"returns": 1}, b={"returns": 2}), "there are: a, b"),
        (stubs(), "this run has none"),
    ):
        with pytest.raises(KeyError) as caught:
            toolset.dispatch("c", {})
        assert isinstance(caught.value, UnknownToolError)
        assert str(caught.value) == f"unknown tool 'c'; {there}"


@tool(effect="read_only")
def read(path: str) -> str:
    """Read a file."""
    return f"content of {path}"


@tool
async def send(to: str) -> str:
    """Send a mail."""
    await asyncio.sleep(0)
    return f"sent to {to}"


def bare(text: str, when: datetime.date | None = None) -> str:
    """A bare function."""
    return f"{text} {type(when).__name__}"


def untyped(a, b=2):  # type: ignore[no-untyped-def]
    """Without type hints."""
    return (a, b)


class SdkTool:
    """What a tool of the SDK looks like from outside."""

    name = "remote"

    def to_dict(self) -> dict[str, Any]:
        return {"name": "remote", "description": "Far.", "input_schema": {"type": "object", "properties": {"x": {}}}}

    def call(self, input: dict[str, Any]) -> str:
        return f"called with {input}"


@pytest.fixture
def acme(request: pytest.FixtureRequest) -> Iterator[Callable[[Any], str]]:
    """Puts an object into a module and returns its reference."""

    def put(value: Any) -> str:
        module = ModuleType("acme_tools")
        module.TOOLS = value  # type: ignore[attr-defined]
        sys.modules["acme_tools"] = module
        return "acme_tools:TOOLS"

    yield put
    sys.modules.pop("acme_tools", None)


FORMS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "a list": ([read, send], ("read", "send")),
    "a tuple": ((read, bare), ("read", "bare")),
    "a mapping": ({"lookup": bare, "fetch": read}, ("lookup", "fetch")),
    "one contract": (read, ("read",)),
    "one tool of the SDK": (SdkTool(), ("remote",)),
    "a tool of the SDK in a list": ([SdkTool(), read], ("remote", "read")),
    "a tool of the SDK under another name": ({"near": SdkTool()}, ("near",)),
    "a function that returns a list": (lambda: [read, bare], ("read", "bare")),
    "a function that returns a mapping": (lambda: {"x": untyped}, ("x",)),
    "no tools": ([], ()),
}


@pytest.mark.parametrize(("value", "names"), FORMS.values(), ids=FORMS.keys())
def test_tools_are_taken_in_every_form(value: Any, names: tuple[str, ...], acme: Callable[[Any], str]) -> None:
    """Lists, mappings, single tools and functions that make them are understood."""
    toolset = load_tools(acme(value))
    assert toolset.names == names
    assert [definition["name"] for definition in toolset.definitions()] == list(names)


def test_tools_of_the_real_sdk_are_taken(acme: Callable[[Any], str]) -> None:
    """`@beta_tool` functions are called as the SDK's own runner calls them."""
    from anthropic import beta_tool

    @beta_tool
    def add(a: int, b: int) -> str:
        """Add two numbers.

        Args:
            a: One.
            b: Two.
        """
        return str(a + b)

    toolset = load_tools(acme([add]))
    assert toolset.definitions() == [add.to_dict()]
    assert toolset.dispatch("add", {"a": 1, "b": 2}) == "3"


def test_every_form_is_dispatched(acme: Callable[[Any], str]) -> None:
    """The dispatcher executes contracts, bare functions, coroutines and tools of the SDK, sync and async."""
    toolset = load_tools(acme([read, send, bare, untyped, SdkTool()]))
    calls = {
        "read": ({"path": "a"}, "content of a"),
        "send": ({"to": "me"}, "sent to me"),
        "bare": ({"text": "", "when": "2024-01-01"}, " str"),
        "untyped": ({"a": 1}, (1, 2)),
        "remote": ({"x": 1}, "called with {'x': 1}"),
    }
    assert {name: toolset.dispatch(name, given) for name, (given, _) in calls.items()} == {
        name: result for name, (_, result) in calls.items()
    }

    async def all_of_them() -> tuple[dict[str, Any], Any]:
        awaited = {name: await toolset.async_dispatch(name, given) for name, (given, _) in calls.items()}
        return awaited, toolset.dispatch("send", {"to": "sync in async"})

    assert asyncio.run(all_of_them()) == (
        {name: result for name, (_, result) in calls.items()},
        "sent to sync in async",
    )


def test_a_bare_function_is_called_as_any_loop_would(acme: Callable[[Any], str]) -> None:
    """What the author has not declared is not enforced: an empty text passes, a missing one is Python's own error."""
    toolset = load_tools(acme([bare]))
    assert toolset.dispatch("bare", {"text": ""}) == " NoneType"
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'text'"):
        toolset.dispatch("bare", {})


def test_a_tool_cannot_change_what_the_model_sent(acme: Callable[[Any], str]) -> None:
    """The input is copied for bare functions as well."""

    def change(items: list[int]) -> int:
        items.append(9)
        return len(items)

    sent = {"items": [1]}
    assert (load_tools(acme([change])).dispatch("change", sent), sent) == (2, {"items": [1]})


def test_who_decides_what_writes(acme: Callable[[Any], str]) -> None:
    """A contract knows its effect; of others the case says it, and without a word they count as writes."""
    toolset = load_tools(acme([read, send, bare, untyped]))
    assert toolset.writes() == {"send", "bare", "untyped"}
    assert toolset.writes(["bare"]) == {"send", "bare"}
    assert toolset.writes([]) == {"send"}


def test_untyped_functions_have_an_open_schema(acme: Callable[[Any], str]) -> None:
    """Without type hints the parameters are still known by name."""
    assert load_tools(acme([untyped])).definitions() == [
        {
            "name": "untyped",
            "description": "Without type hints.",
            "input_schema": {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]},
        }
    ]


def test_instrumented_tools_are_wrapped(acme: Callable[[Any], str]) -> None:
    """The functions are wrapped by name; the contracts stay."""
    seen: list[tuple[str, dict[str, Any]]] = []

    def wrap(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(**arguments: Any) -> Any:
            seen.append((name, arguments))
            return function(**arguments)

        return wrapped

    toolset = load_tools(acme([read, bare]))
    wrapped = toolset.instrumented(wrap)
    assert wrapped.dispatch("read", {"path": "a"}) == "content of a"
    assert seen == [("read", {"path": "a"})]
    assert (wrapped.definitions(), wrapped.writes()) == (toolset.definitions(), toolset.writes())


WRONG: dict[str, tuple[Any, str]] = {
    "definitions": (
        [{"name": "a", "input_schema": {}}],
        "acme_tools:TOOLS[0]: an API definition alone cannot be executed; give the function or a Tool",
    ),
    "a text in the list": ([read, "send"], "acme_tools:TOOLS[1]: an object of type str is no tool"),
    "a text": ("read", "'acme_tools:TOOLS' is of type str; give a list of tools, or a mapping of names to tools"),
    "a set": ({read.name}, "'acme_tools:TOOLS' is of type set; give a list of tools, or a mapping of names to tools"),
    "a function with arguments": (
        bare,
        "'acme_tools:TOOLS' is a function that takes arguments; give a list of tools, as in [bare]",
    ),
    "a name that the API refuses": (
        {"my tool": bare},
        "acme_tools:TOOLS['my tool']: a tool is named 'my tool'; the API takes 1 to 128 letters, digits, '_' or '-'",
    ),
    "a name that is no text": (
        {5: read},
        "acme_tools:TOOLS[5]: a tool is named 5; the API takes 1 to 128 letters, digits, '_' or '-'",
    ),
    "two of one name": ([read, read], "two tools are named 'read'; the API wants one of each name"),
    "positional parameters": (
        [len],
        "acme_tools:TOOLS[0]: 'len' has parameters that cannot be given by name; a model names all it gives",
    ),
}


@pytest.mark.parametrize(("value", "said"), WRONG.values(), ids=WRONG.keys())
def test_what_is_no_tool_is_named(value: Any, said: str, acme: Callable[[Any], str]) -> None:
    """The error names the place in the user's object and what is wrong with it."""
    with pytest.raises(ToolError) as caught:
        load_tools(acme(value))
    assert str(caught.value) == said


def test_a_function_that_fails_to_make_the_tools_is_named(acme: Callable[[Any], str]) -> None:
    """What the user's own factory raises is said as an error of the tools."""

    def make() -> list[Any]:
        raise ValueError("no settings")

    with pytest.raises(ToolError) as caught:
        load_tools(acme(make))
    assert str(caught.value) == "'acme_tools:TOOLS' raised ValueError: no settings"
