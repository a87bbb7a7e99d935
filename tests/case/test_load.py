"""A case file becomes a Case, or one error that holds everything that is wrong with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.case.load import Case, load_case
from harness.errors import CaseError, Problem
from harness.policy import Policy

MINIMAL = "agent: m:f\nprompt: Go.\nmodel: {name: claude, script: [{say: Done.}]}\n"


@pytest.fixture
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty case folder, below the working directory."""
    monkeypatch.chdir(tmp_path)
    Path("cases").mkdir()
    return Path("cases")


def load(cases: Path, text: str | bytes, name: str = "c.yaml") -> Case:
    path = cases / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_case(path, cases)


def said_of(cases: Path, text: str) -> list[str]:
    with pytest.raises(CaseError) as caught:
        load(cases, text)
    return [line.removeprefix("cases/c.yaml:") for line in str(caught.value).splitlines()]


def test_everything_that_a_case_says_is_in_it(cases: Path) -> None:
    """Each key of the format reaches the field of its name."""
    case = load(
        cases,
        """\
description: Summarise.
agent: harness.agent:run
prompt: Summarise the notes.
tools:
  search: {effect: read_only, input: {query: string}, returns: {hits: []}}
  flaky: {effect: read_only, sequence: [{raises: timeout}, {returns: null}]}
writes: [publish]
workspace:
  notes/mon.md: "Shipped."
  logo.png: {base64: "aGk="}
  state.json: {json: {open: true, é: [1]}}
model:
  name: claude-sonnet-5
  script:
    - call: {search: {query: x}}
    - say: Done.
limits: {turns: 24, calls: 60}
compare: {turns: {at_most: "+20%"}}
normalize: {keys: [session]}
detail: plain
faults: {crash: [turn1.model.after]}
marks: [slow]
tags: [billing, v2]
max_turns: 12
""",
        "notes/weekly.yaml",
    )
    assert case.id == "notes/weekly"
    assert case.path == Path("cases/notes/weekly.yaml")
    assert (case.agent, case.command, case.prompt) == ("harness.agent:run", None, "Summarise the notes.")
    assert case.description == "Summarise."
    assert isinstance(case.tools, dict)
    search, flaky = case.tools["search"], case.tools["flaky"]
    assert (search.effect, search.input, search.returns) == ("read_only", {"query": "string"}, {"hits": []})
    assert flaky.sequence is not None
    assert [answer.raises for answer in flaky.sequence] == ["timeout", None]
    assert case.writes == {"publish"}
    assert case.workspace == {
        "notes/mon.md": b"Shipped.",
        "logo.png": b"hi",
        "state.json": '{\n  "open": true,\n  "é": [\n    1\n  ]\n}\n'.encode(),
    }
    assert case.model.name == "claude-sonnet-5"
    assert case.script is not None
    assert [step.stop_reason for step in case.script.answers()] == ["tool_use", "end_turn"]
    assert (case.limits.turns, case.limits.calls) == (24, 60)
    assert case.policy() == Policy.parse({"turns": {"at_most": "+20%"}})
    assert case.policy(Policy.parse({"outcomes": "ignore"}))["outcomes"].mode == "ignore"
    assert case.normalize == {"keys": ["session"]}
    assert (case.detail, case.faults.crash, case.max_turns) == ("plain", ["turn1.model.after"], 12)
    assert (case.marks, case.tags) == (("slow",), ("billing", "v2"))
    assert case.position(("model", "script", 1, "say")) == (16, 7)


def test_what_is_left_out_has_its_default(cases: Path) -> None:
    """A loop, a prompt and a model are a case; nothing else is assumed about it."""
    case = load(cases, MINIMAL)
    fields = (case.description, case.tools, case.writes, case.workspace, case.compare, case.normalize, case.detail)
    assert fields == ("", None, None, None, None, None, None)
    assert (case.limits.turns, case.limits.calls, case.faults.crash, case.marks, case.tags) == (
        None,
        None,
        "none",
        (),
        (),
    )


def test_commands_cassettes_and_live_models_are_of_the_format(cases: Path) -> None:
    """What only later versions run is accepted by the format."""
    case = load(cases, "command: [node, agent.mjs]\nprompt: Go.\nmodel: {name: c, live: {trials: 5}}\n")
    assert (case.agent, case.command, case.model.live and case.model.live.trials) == (None, ("node", "agent.mjs"), 5)
    assert load(cases, MINIMAL.replace("script: [{say: Done.}]", "cassette: a.jsonl")).model.cassette == "a.jsonl"


BAD = {
    "nothing but an unknown key": (
        "promt: Go.\n",
        [
            "1:1: one of 'agent' or 'command' is missing",
            "1:1: the key 'prompt' is missing",
            "1:1: the key 'model' is missing",
            "1:1: unknown key 'promt'; did you mean 'prompt'? (at promt)",
        ],
    ),
    "an unknown key like no other": (
        MINIMAL + "zzz: 1\n",
        [
            "4:1: unknown key 'zzz'; there are: description, agent, command, resume, prompt, tools, writes, workspace, "
            "model, limits, compare, normalize, stuck, detail, faults, marks, tags, max_turns (at zzz)"
        ],
    ),
    "unknown keys inside": (
        "agent: m:f\nprompt: Go.\nmodel: {name: c, script: [{say: x}], streaming: true}\n"
        "limits: {turn: 1}\nfaults: {crsh: none}\ntools: {a: {returns: 1, efect: read_only}}\n",
        [
            "3:38: unknown key 'streaming'; there are: name, script, cassette, live (at model.streaming)",
            "4:10: unknown key 'turn'; did you mean 'turns'? (at limits.turn)",
            "5:10: unknown key 'crsh'; did you mean 'crash'? (at faults.crsh)",
            "6:25: unknown key 'efect'; did you mean 'effect'? (at tools.a.efect)",
        ],
    ),
    "both loops": (
        MINIMAL + "command: [node]\n",
        ["4:1: 'agent' and 'command' exclude each other; give exactly one of 'agent' or 'command' (at command)"],
    ),
    "no way to answer": (
        "agent: m:f\nprompt: Go.\nmodel: {name: c}\n",
        ["3:1: one of 'script', 'cassette' or 'live' is missing (at model)"],
    ),
    "two ways to answer": (
        "agent: m:f\nprompt: Go.\nmodel: {name: c, script: [{say: x}], live: {trials: 1}}\n",
        [
            "3:38: 'script' and 'live' exclude each other; give exactly one of 'script', 'cassette' or 'live' "
            "(at model.live)"
        ],
    ),
    "keys without a value": (
        "agent:\nprompt:\nmodel: {name: , script: }\nlimits:\ncompare:\nmax_turns: ~\n",
        [
            "1:1: 'agent' has no value; give one, or remove the key (at agent)",
            "2:1: 'prompt' has no value; give one, or remove the key (at prompt)",
            "3:9: 'name' has no value; give one, or remove the key (at model.name)",
            "3:17: 'script' has no value; give one, or remove the key (at model.script)",
            "4:1: 'limits' has no value; give one, or remove the key (at limits)",
            "5:1: 'compare' has no value; give one, or remove the key (at compare)",
            "6:1: 'max_turns' has no value; give one, or remove the key (at max_turns)",
        ],
    ),
    "text that YAML does not read as text": (
        "agent: m:f\nprompt: 2024\nmodel: {name: 1.5, script: [{say: x}]}\ndescription: true\nmarks: [1]\n"
        "tools: {a: {raises: 404}}\nworkspace: {a: 5, b: [x]}\n",
        [
            "2:1: 'prompt' must be text, not the number 2024; quote it: \"2024\" (at prompt)",
            "3:9: 'name' must be text, not the number 1.5; quote it: \"1.5\" (at model.name)",
            "4:1: 'description' must be text, not the boolean true; quote it: \"true\" (at description)",
            "5:9: item 1 of 'marks' must be text, not the number 1; quote it: \"1\" (at marks[0])",
            "6:13: 'raises' must be text, not the number 404; quote it: \"404\" (at tools.a.raises)",
            "7:13: 'a' must be text or a mapping, not the number 5; quote it: \"5\" (at workspace.a)",
            "7:19: 'b' must be text or a mapping, not a list (at workspace.b)",
        ],
    ),
    "numbers that are none": (
        MINIMAL + 'limits: {turns: "24", calls: 1.5}\nmax_turns: true\n',
        [
            "4:10: 'turns' must be a whole number, not the text '24' (at limits.turns)",
            "4:23: 'calls' must be a whole number, not the number 1.5 (at limits.calls)",
            "5:1: 'max_turns' must be a whole number, not the boolean true (at max_turns)",
        ],
    ),
    "numbers out of range": (
        MINIMAL + "limits: {turns: 0, calls: -1}\nmax_turns: 0\n",
        [
            "4:10: 'turns' must be at least 1, not 0 (at limits.turns)",
            "4:20: 'calls' must be at least 1, not -1 (at limits.calls)",
            "5:1: 'max_turns' must be at least 1, not 0 (at max_turns)",
        ],
    ),
    "choices that are none": (
        MINIMAL
        + "detail: Plain\nfaults: {crash: everypoint}\n"
        + "tools: {a: {effect: readonly, input: {q: str}, returns: 1}}\n",
        [
            "4:1: 'detail' must be 'args', 'digest' or 'plain', not the text 'Plain'; did you mean 'plain'? "
            "(at detail)",
            "5:10: 'crash' must be 'none' or 'every_point', not the text 'everypoint'; did you mean 'every_point'? "
            "(at faults.crash)",
            "6:13: 'effect' must be 'read_only', 'idempotent' or 'irreversible', not the text 'readonly'; "
            "did you mean 'read_only'? (at tools.a.effect)",
            "6:39: 'q' must be 'array', 'boolean', 'integer', 'null', 'number', 'object' or 'string', not the text "
            "'str'; did you mean 'string'? (at tools.a.input.q)",
        ],
    ),
    "wrong shapes": (
        MINIMAL + "limits: 5\nfaults: {crash: 3}\nmarks: slow\ntools: [a]\nworkspace: here\nwrites: {a: 1}\n",
        [
            "4:1: 'limits' must be a mapping of keys to values, not the number 5 (at limits)",
            "5:10: 'crash' must be none, every_point or a list of crash points, not the number 3 (at faults.crash)",
            "6:1: 'marks' must be a list, not the text 'slow' (at marks)",
            "7:1: 'tools' must be module:attribute or a mapping of stub tools, not a list (at tools)",
            "8:1: 'workspace' must be a mapping of keys to values, not the text 'here' (at workspace)",
            "9:1: 'writes' must be a list, not a mapping (at writes)",
        ],
    ),
    "texts of the wrong form": (
        "agent: my_agent.run\nprompt: '  '\nmodel: {name: '', script: [{say: x}]}\ntools: my tools\n"
        "marks: [a-b]\ntags: [a b]\nwrites: ['']\n",
        [
            "1:1: 'agent' must be 'module:name', such as my_agent.loop:run, not the text 'my_agent.run' (at agent)",
            "2:1: 'prompt' must not be blank; it is what the loop is asked to do (at prompt)",
            "3:9: 'name' must not be empty (at model.name)",
            "4:1: 'tools' must be 'module:name', such as my_agent.tools:TOOLS, not the text 'my tools' (at tools)",
            "5:9: item 1 of 'marks' must be the name of a pytest mark (letters, digits, '_'), not the text 'a-b' "
            "(at marks[0])",
            "6:8: item 1 of 'tags' must be one word, not the text 'a b' (at tags[0])",
            "7:10: item 1 of 'writes' must not be empty (at writes[0])",
        ],
    ),
    "empty lists that say nothing": (
        "command: []\nprompt: Go.\nmodel: {name: c, script: []}\ntools: {a: {sequence: []}}\n",
        [
            "1:1: 'command' must not be empty (at command)",
            "3:18: there is no step: write at least one, for example `- say: Done.` (at model.script)",
            "4:13: 'sequence' must not be empty (at tools.a.sequence)",
        ],
    ),
    "stubs": (
        MINIMAL + "tools:\n  a: {}\n  b: {returns: 1, raises: x}\n  c: {sequence: [{}, {returns: 1, raises: x}, 5]}\n"
        "  d: {returns: 1, input: {}, input_schema: {type: object}}\n  e: {returns: 1, input_schema: {type: string}}\n"
        "  'f g': {returns: 1}\n  h: 5\n",
        [
            "5:3: one of 'returns', 'raises' or 'sequence' is missing (at tools.a)",
            "6:19: 'returns' and 'raises' exclude each other; give exactly one of 'returns', 'raises' or 'sequence' "
            "(at tools.b.raises)",
            "7:18: one of 'returns' or 'raises' is missing (at tools.c.sequence[0])",
            "7:35: 'returns' and 'raises' exclude each other; give exactly one of 'returns' or 'raises' "
            "(at tools.c.sequence[1].raises)",
            "7:47: item 3 of 'sequence' must be a mapping of keys to values, not the number 5 (at tools.c.sequence[2])",
            "8:30: 'input' and 'input_schema' exclude each other; keep one (at tools.d.input_schema)",
            "9:3: tool 'e': input_schema must be a JSON Schema with `type: object` at its top level (at tools.e)",
            "10:3: a tool is named 'f g'; the API takes 1 to 128 letters, digits, '_' or '-' (at tools[\"f g\"])",
            "11:3: 'h' must be a mapping of keys to values, not the number 5 (at tools.h)",
        ],
    ),
    "a workspace": (
        MINIMAL + "workspace:\n  ../up: x\n  a: {base64: '%'}\n  b: {json: 1, base64: eA==}\n  c: {text: x}\n  ok: x\n",
        [
            "5:3: '../up' holds '..'; write the path from the workspace down (at workspace[\"../up\"])",
            "6:3: 'base64' does not hold base64: Only base64 data is allowed (at workspace.a)",
            "7:16: 'json' and 'base64' exclude each other; give exactly one of 'base64' or 'json' "
            "(at workspace.b.base64)",
            "8:3: one of 'base64' or 'json' is missing (at workspace.c)",
            "8:7: unknown key 'text'; there are: base64, json (at workspace.c.text)",
        ],
    ),
    "faults of YAML and of the format together": (
        MINIMAL + "prompt: Again.\nlimits: {turns: no}\n",
        [
            "4:1: the key 'prompt' stands here a second time; it was first given at line 2, column 1",
            "5:10: 'turns' must be a whole number, not the text 'no' (at limits.turns)",
        ],
    ),
}


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD.keys())
def test_a_bad_case_is_described_with_positions(text: str, said: list[str], cases: Path) -> None:
    """All problems of a case are reported at once, in the order of the file, each with its place and remedy."""
    assert said_of(cases, text) == said


LANGUAGES = {
    "script": (
        "agent: m:f\nprompt: Go.\nmodel:\n  name: c\n  script:\n"
        "    - call:\n        - read: {path: a}\n        - read\n",
        (8, 11, "model.script[0].call[1]"),
    ),
    "policy": (MINIMAL + "compare:\n  turns: {at_most: lots}\n", (5, 11, "compare.turns.at_most")),
    "rules": (MINIMAL + "normalize:\n  keep: [cursor, curser]\n", (5, 18, "normalize.keep[1]")),
}


@pytest.mark.parametrize(("text", "where"), LANGUAGES.values(), ids=LANGUAGES.keys())
def test_other_parsers_errors_are_placed(text: str, where: tuple[int, int, str], cases: Path) -> None:
    """What the parsers of script, policy and normalization rules refuse is shown with its place in the file."""
    with pytest.raises(CaseError) as caught:
        load(cases, text)
    assert [(one.line, one.column, one.path) for one in caught.value.problems] == [where]


def test_the_name_is_checked_beside_the_content(cases: Path) -> None:
    """A bad file name and a bad file are reported together."""
    with pytest.raises(CaseError) as caught:
        load(cases, "promt: x\n", "a b.yaml")
    assert len(caught.value.problems) == 5
    assert caught.value.problems[0].message.startswith("'a b' cannot be part of a case id")


def test_an_error_can_be_placed_later(cases: Path) -> None:
    """What turns out to be wrong during a run still names the line of the case."""
    error = load(cases, MINIMAL).error("there is no such module", ("agent",))
    assert str(error) == "cases/c.yaml:1:1: there is no such module (at agent)"


fragments = st.sampled_from(
    ["agent", "command", "prompt", "tools", "workspace", "model", "name", "script", "limits", "compare", "normalize",
     "faults", "returns", "sequence", "base64", "call", "x", "say", "turns", "crash", "marks"]
)  # fmt: skip
values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | fragments | st.just("m:f") | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fragments, inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=250, deadline=None)
@given(data=st.dictionaries(fragments, values, max_size=8) | values)
def test_loading_raises_nothing_but_case_errors(data: object, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever a YAML file holds, loading it gives a Case, or a CaseError whose problems have positions."""
    import yaml

    root = tmp_path_factory.getbasetemp()
    path = root / "c.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    problems: tuple[Problem, ...] | None = None
    try:
        load_case(path, root)
    except CaseError as error:
        problems = error.problems
    assert problems is None or problems
    assert all(problem.line and problem.column for problem in problems or ())


@settings(max_examples=150, deadline=None)
@given(content=st.binary(max_size=100))
def test_loading_bytes_raises_nothing_but_case_errors(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever the bytes of a file, loading it gives a Case or a CaseError."""
    root = tmp_path_factory.getbasetemp()
    path = root / "b.yaml"
    path.write_bytes(content)
    with pytest.raises(CaseError):
        load_case(path, root)


def test_finding_cases_costs_no_heavy_import() -> None:
    """A project without cases never pays for pydantic, the YAML parser or the SDK."""
    code = (
        "import sys; from pathlib import Path; from harness.case.load import Case, case_id, find_cases; "
        "find_cases(Path('nowhere')); print(sorted({'pydantic', 'yaml', 'anthropic', 'httpx2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_loading_a_case_does_not_import_the_sdk(cases: Path) -> None:
    """Reading and checking cases takes milliseconds, so it cannot import the SDK, which takes a second."""
    (cases / "c.yaml").write_text(MINIMAL)
    code = (
        "import sys; from pathlib import Path; from harness.case.load import load_case; "
        "load_case(Path('cases/c.yaml'), Path('cases')); print(sorted({'anthropic', 'httpx2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
