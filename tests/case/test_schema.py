"""The JSON Schema that editors get says what the loader accepts, and explains every key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.case.complaints import validate
from harness.case.schema import MODELS, json_schema
from harness.case.source import parse_source
from harness.errors import HarnessError
from harness.model import reading
from harness.model.protocol import ERROR_TYPES
from harness.model.script import Script
from harness.normalize import Normalizer
from harness.policy import FACETS, Policy


@pytest.fixture(scope="module")
def accepts() -> Any:
    """Whether the emitted schema, or one of its definitions, accepts a value."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed; it is no dependency of ours")
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)

    def accepts(value: Any, definition: str | None = None) -> bool:
        part = {"$ref": f"#/$defs/{definition}", "$defs": schema["$defs"]} if definition else schema
        return bool(jsonschema.Draft202012Validator(part).is_valid(value))

    return accepts


def objects(schema: Any, path: str = "$") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every part of a schema that describes an object by its properties."""
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
            yield path, schema
        for key, value in schema.items():
            if key not in ("examples", "enum", "const"):
                yield from objects(value, f"{path}.{key}")
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            yield from objects(value, f"{path}[{index}]")


def test_every_key_is_described_and_no_other_allowed() -> None:
    """An editor can explain each key, and marks what is none."""
    schema = json_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    found = dict(objects(schema))
    assert len(found) >= 14
    undescribed = [
        f"{path}.{name}"
        for path, part in found.items()
        for name, value in part["properties"].items()
        if not value.get("description", "").strip()
    ]
    assert undescribed == []
    assert [path for path, part in found.items() if part.get("additionalProperties") is not False] == []
    assert [path for path, part in found.items() if not part.get("description", "").strip()] == []


def test_no_key_takes_null() -> None:
    """A key without a value is refused by the loader, so editors must not offer null for it."""
    texts = [str(part["properties"]) for _, part in objects(json_schema()) if "raises" not in part["properties"]]
    assert [text for text in texts if "'null'" in text] == []


def test_the_step_keys_are_those_of_the_script() -> None:
    """Editors complete the steps of a script with the keys, stop_reasons and failures that its parser knows."""
    step = json_schema()["$defs"]["Step"]["properties"]
    assert list(step) == [
        "call", "say", "think", "blocks", "stop_reason", "stop_sequence", "stop_details", "usage", "on_unknown",
        "on_error", "fail", "retry_after", "message", "times",
    ]  # fmt: skip
    assert step["stop_reason"]["enum"] == list(reading.STOP_REASONS)
    assert step["fail"]["enum"] == [*reading.FAILURES, *ERROR_TYPES]


def test_the_facets_are_those_of_the_policy() -> None:
    """Editors complete the facets that policies know, each with the modes that it takes."""
    facets = json_schema()["$defs"]["Compare"]["properties"]
    assert set(facets) == set(FACETS)
    for facet, part in facets.items():
        modes = part["oneOf"][0]["enum"]
        taken = [mode for mode in ("exact", "unordered", "subsequence", "ignore") if is_policy({facet: mode})]
        assert modes == taken


def is_policy(rules: Any) -> bool:
    try:
        Policy.parse(rules)
    except HarnessError:
        return False
    return True


def is_script(steps: Any) -> bool:
    try:
        Script.parse(steps)
    except HarnessError:
        return False
    return True


def is_normalization(rules: Any) -> bool:
    try:
        Normalizer.parse(rules)
    except HarnessError:
        return False
    return True


HEAD = "agent: m:f\nprompt: Go.\nmodel: {name: c, script: [{say: x}]}\n"
GOOD = {
    "minimal": HEAD,
    "command": "command: [node, a.mjs]\nprompt: Go.\nmodel: {name: c, live: {trials: 5}}\n",
    "cassette": "agent: m:f\nprompt: Go.\nmodel: {name: c, cassette: a.jsonl}\n",
    "tools by name": HEAD + "tools: examples.notes.tools:TOOLS\n",
    "stubs": HEAD
    + "tools:\n  a: {effect: read_only, input: {q: string}, returns: {hits: []}}\n  b: {raises: down}\n"
    + "  c: {input_schema: {type: object}, sequence: [{raises: x}, {returns: null}]}\n  d: {returns: null}\n",
    "everything else": HEAD
    + "description: x\nwrites: [a]\nworkspace: {a: x, b: {base64: eA==}, c: {json: null}}\nlimits: {turns: 1}\n"
    + "compare: {turns: {at_most: '+20%'}, arguments: {ignore: [a.b]}, order: {parallel: ordered}, results: exact}\n"
    + "normalize: {keys: [session], patterns: {build: 'b-\\d+'}, keep: [cursor]}\ndetail: plain\n"
    + "faults: {crash: [turn1.model.after]}\nmarks: [slow]\ntags: [x-1]\nmax_turns: 3\n",
    "faults by word": HEAD + "faults: {crash: every_point}\n",
    "a long script": """\
agent: m:f
prompt: Go.
model:
  name: c
  script:
    - call: {a: {path: x}}
      think: Hm.
      say: Looking.
      on_unknown: [{call: {b: {}}}]
      on_error: [{say: Sorry.}]
    - call: [{a: {}}, {b: {}}]
      stop_reason: max_tokens
      usage: {output_tokens: 3}
    - {fail: 429, retry_after: 1, message: Slow down, times: 2}
    - {fail: disconnect}
    - say: x
      stop_sequence: END
    - blocks: [{type: text, text: x}]
    - say: No.
      stop_reason: refusal
      stop_details: {category: cyber}
""",
}


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD.keys())
def test_good_cases_are_accepted_by_both(text: str, accepts: Any) -> None:
    """What the loader takes, the schema takes."""
    data = parse_source(text, "c.yaml").data
    assert validate(data)[1] == []
    assert is_script(data["model"].get("script", [{"say": "x"}]))
    assert accepts(data)


BAD = {
    "unknown key": HEAD + "promt: x\n",
    "no loop": "prompt: Go.\nmodel: {name: c, script: [{say: x}]}\n",
    "both loops": HEAD + "command: [a]\n",
    "no model": "agent: m:f\nprompt: Go.\n",
    "no answers": "agent: m:f\nprompt: Go.\nmodel: {name: c}\n",
    "blank prompt": HEAD.replace("Go.", "' '"),
    "wrong reference": HEAD.replace("m:f", "m.f"),
    "nothing": HEAD + "limits:\n",
    "number as text": HEAD + "description: 5\n",
    "text as number": HEAD + "limits: {turns: '5'}\n",
    "zero": HEAD + "limits: {turns: 0}\n",
    "unknown effect": HEAD + "tools: {a: {effect: none, returns: 1}}\n",
    "stub without an answer": HEAD + "tools: {a: {}}\n",
    "stub with two": HEAD + "tools: {a: {returns: 1, raises: x}}\n",
    "stub with two schemas": HEAD + "tools: {a: {returns: 1, input: {}, input_schema: {}}}\n",
    "file without content": HEAD + "workspace: {a: {}}\n",
    "mark": HEAD + "marks: [a-b]\n",
    "crash point": HEAD + "faults: {crash: some}\n",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_bad_cases_are_refused_by_both(text: str, accepts: Any) -> None:
    """What the loader refuses of the format, the editor marks."""
    data = parse_source(text, "c.yaml").data
    assert validate(data)[1]
    assert not accepts(data)


STEPS: list[Any] = [
    {"say": "x"}, {"call": {"a": {}}}, {"call": {"a": None}}, {"call": [{"a": {}}]}, {"fail": 529}, {"fail": "timeout"},
    {"fail": 418}, {"fail": "never"}, {"call": {}}, {"call": []}, {"call": {"a": 5}}, {"call": {"a": {}, "b": {}}},
    {"call": "a"}, {"says": "x"}, {"say": 5}, {"say": "x", "stop_reason": "done"}, {"fail": 529, "times": 0},
    {"fail": 529, "retry_after": -1}, {"call": {"a": {}}, "on_error": [{"fail": "x"}]}, {"blocks": ["x"]}, 5, None,
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS, ids=map(str, STEPS))
def test_the_fragment_for_steps_agrees_with_the_parser(step: Any, accepts: Any) -> None:
    """Editors mark the steps that the parser refuses, as far as a schema can."""
    assert accepts(step, "Step") == is_script([step])


RULES: list[Any] = [
    {"turns": {"at_most": "+20%"}}, {"turns": {"at_most": 12}}, {"turns": "ignore"}, {"turns": "subsequence"},
    {"order": {"policy": "unordered", "ignore": ["a"]}}, {"order": {"paralel": "ordered"}},
    {"order": {"parallel": "some"}}, {"writes": "ignore"}, {"writes": "exact"}, {"arguments": {"ignore": "a.b"}},
    {"arguments": {"at_most": 1}}, {"turnz": "exact"}, {"results": "exact"}, {"outcomes": {"ignore": ["a"]}},
    {"stop_reasons": {"policy": "exact"}}, {"interventions": {"at_most": 2}}, {"duplicates": {"at_most": "+1"}}, 5,
]  # fmt: skip


@pytest.mark.parametrize("rules", RULES, ids=map(str, RULES))
def test_the_fragment_for_policies_agrees_with_the_parser(rules: Any, accepts: Any) -> None:
    """Editors mark the policies that the parser refuses."""
    assert accepts(rules, "Compare") == is_policy(rules)


@pytest.mark.parametrize(
    "rules", [{}, {"keys": ["a"]}, {"keys": "a"}, {"patterns": {"a": "b"}}, {"patterns": [1]}, {"kep": []}]
)
def test_the_fragment_for_normalization_agrees_with_the_parser(rules: Any, accepts: Any) -> None:
    """Editors mark the rules that the parser refuses."""
    assert accepts(rules, "Normalize") == is_normalization(rules)


def test_every_example_is_accepted(accepts: Any) -> None:
    """What an editor offers as an example is valid."""
    schema = json_schema()
    for path, part in objects(schema):
        for name, value in part["properties"].items():
            for example in value.get("examples", []):
                definition = {**value, "$defs": schema["$defs"]}
                import jsonschema

                assert jsonschema.Draft202012Validator(definition).is_valid(example), (path, name, example)


def test_the_table_of_models_is_complete() -> None:
    """Every model of the format stands in the table by which unknown keys find their neighbours."""
    import harness.case.schema as module

    models = {one for one in vars(module).values() if isinstance(one, type) and issubclass(one, module.Part)}
    assert models - {module.Part} == {model for _, model in MODELS}
