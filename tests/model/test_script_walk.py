"""Walking a script: a loop that keeps the conversation is led to its end, one that does not is found out at once."""

from __future__ import annotations

import copy
import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.local import LocalModel
from harness.model.script import Script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOOLS = ["read_file", "send_email", "list_dir"]
Step = dict[str, Any]


# Scripts ------------------------------------------------------------------------------------------------------------


def numbered(steps: list[Step], numbers: Iterator[int]) -> list[Step]:
    """The steps with texts and inputs that occur once, so that no corruption can give a conversation that is right."""
    made = []
    for given_step in steps:
        step = dict(given_step)
        for key in ("say", "think"):
            if key in step:
                step[key] = f"{step[key]} {next(numbers)}"
        if "call" in step:
            step["call"] = [
                {tool: {"n": next(numbers), **value}} for call in step["call"] for tool, value in call.items()
            ]
        if "blocks" in step:
            step["blocks"] = [block | {"rays": next(numbers)} for block in step["blocks"]]
        for key in ("on_error", "on_unknown"):
            if key in step:
                step[key] = numbered(step[key], numbers)
        made.append(step)
    return made


values = st.sampled_from([1, 1.0, True, None, "x", "ü", [1, {"a": False}], {"deep": {"er": 0}}])
calls = st.lists(
    st.tuples(st.sampled_from(TOOLS), st.dictionaries(st.sampled_from("ab"), values, max_size=2)).map(
        lambda pair: {pair[0]: pair[1]}
    ),
    min_size=1,
    max_size=3,
)
texts = st.sampled_from(["Now", "Well,\n\nso", "Ünïcode 😀"])
talk = st.fixed_dictionaries(
    {"say": texts}, optional={"think": texts, "stop_reason": st.sampled_from(["end_turn", "pause_turn", "refusal"])}
)
odd = st.fixed_dictionaries({"blocks": st.just([{"type": "hologram"}])}, optional={"say": texts})
blank = st.just({"blocks": [{"type": "text", "text": " "}]})
failure = st.sampled_from(
    [{"fail": 529}, {"fail": 429, "times": 2}, {"fail": "disconnect"}, {"fail": "mid_stream"}, {"fail": "truncated"}]
)


def acting(branches: st.SearchStrategy[list[Step]]) -> st.SearchStrategy[Step]:
    return st.fixed_dictionaries(
        {"call": calls}, optional={"say": texts, "think": texts, "on_error": branches, "on_unknown": branches}
    )


shallow = st.lists(
    st.one_of(talk, acting(st.nothing() | st.lists(talk, min_size=1, max_size=2)), failure), min_size=1, max_size=3
)
scripts = (
    st.lists(st.one_of(talk, acting(shallow), acting(shallow), odd, failure, blank), min_size=1, max_size=5)
    .map(lambda steps: numbered(steps, itertools.count()))
    .map(lambda steps: [*steps, {"say": "The end."}])
)
outcomes = st.lists(st.sampled_from(["ok", "ok", "error", "unknown"]), min_size=1, max_size=6)


def expected(steps: list[Step], outcome: Callable[[int], str]) -> tuple[list[Step], int]:
    """The answers that a script plays and the attempts that fail, by the rules as they are written down."""
    played: list[Step] = []
    failed = 0
    count = itertools.count()

    def go(steps: list[Step]) -> None:
        nonlocal failed
        for step in steps:
            if "fail" in step:
                failed += step.get("times", 1)
                continue
            played.append(step)
            results = {outcome(next(count)) for _ in step.get("call", ())}
            if "unknown" in results and "on_unknown" in step:
                go(step["on_unknown"])
            elif "error" in results and "on_error" in step:
                go(step["on_error"])

    go(steps)
    return played, failed


def spoken(answer: dict[str, Any]) -> Step:
    """An answer in the terms of a step."""
    step: Step = {}
    for block in answer["content"]:
        match block["type"]:
            case "thinking":
                step["think"] = block["thinking"]
            case "text" if block["text"] != " ":
                step["say"] = block["text"]
            case "tool_use":
                step.setdefault("call", []).append({block["name"]: block["input"]})
            case _:
                step.setdefault("blocks", []).append(block)
    return step


def written(step: Step) -> str:
    """To compare by: JSON tells true from 1, and 1 from 1.0, as `==` does not."""
    kept = ("blocks", "call", "say", "think")
    return json.dumps({key: step[key] for key in kept if key in step}, sort_keys=True)


# The laws -----------------------------------------------------------------------------------------------------------


@given(scripts, outcomes)
@settings(max_examples=100, deadline=None)
def test_a_correct_loop_follows_any_script_to_its_end(loop: Any, steps: list[Step], results: list[str]) -> None:
    """Streaming or not, the loop hears what the script says, branch by branch, and nothing is held against it."""

    def outcome(number: int) -> str:
        return results[number % len(results)]

    script = Script.parse(steps)
    model, streaming = LocalModel(script), LocalModel(script)
    run, streamed = loop(model, TOOLS, outcome), loop(streaming, TOOLS, outcome, stream=True)
    played, failed = expected(steps, outcome)
    assert [written(spoken(answer)) for answer in run.answers] == [written(step) for step in played]
    assert json.dumps(run.answers) == json.dumps(streamed.answers)
    assert run.messages == streamed.messages
    assert [fault.kind for fault in model.faults] == ["exhausted"]
    assert run.failed == streamed.failed == failed


def corruptions(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The block with one thing in it changed."""
    match block["type"]:
        case "text":
            yield block | {"text": block["text"] + "."}
            yield block | {"type": "thinking", "thinking": block["text"], "signature": "c2ln"}
        case "thinking":
            yield block | {"thinking": block["thinking"] + "."}
            yield block | {"signature": "c2ln"}
        case "tool_use":
            yield block | {"name": next(tool for tool in TOOLS if tool != block["name"])}
            yield block | {"id": block["id"][:-1] + ("0" if block["id"][-1] != "0" else "1")}
            yield block | {"input": {**block["input"], "n": block["input"]["n"] + 1}}
            yield block | {"input": {**block["input"], "n": True}}
            yield block | {"input": {**block["input"], "more": None}}
            yield block | {"input": {key: value for key, value in block["input"].items() if key != "n"}}
        case _:
            yield block | {"rays": None}


@given(scripts, outcomes, st.data())
@settings(max_examples=250, deadline=None)
def test_one_corrupted_block_is_found(
    loop: Any, post: Any, asking: Any, steps: list[Step], results: list[str], data: Any
) -> None:
    """Any one block of the model's that is lost, repeated, moved or altered is refused and remembered."""
    script = Script.parse(steps)
    run = loop(LocalModel(script), TOOLS, lambda number: results[number % len(results)])
    places = [
        (index, at)
        for index, message in enumerate(run.messages)
        if message["role"] == "assistant"
        for at in range(len(message["content"]))
    ]
    index, at = data.draw(st.sampled_from(places))
    messages = copy.deepcopy(run.messages)
    content = messages[index]["content"]
    changed = data.draw(
        st.sampled_from(
            [
                content[:at] + content[at + 1 :],
                [*content[: at + 1], *content[at:]],
                *([*content[:at], one, *content[at + 1 :]] for one in corruptions(content[at])),
                *(
                    [*content[:at], content[at + 1], content[at], *content[at + 2 :]]
                    for _ in range(1)
                    if at + 1 < len(content)
                ),
            ]
        )
    )
    messages[index]["content"] = changed
    model = LocalModel(script)
    reply = post(model, asking(messages, *TOOLS))
    assert reply.status == 400
    assert [fault.kind in {"off_script", "protocol"} for fault in model.faults] == [True]


# What it says -------------------------------------------------------------------------------------------------------

STEPS: list[Step] = [
    {"think": "Where?", "say": "Looking.", "call": {"list_dir": {"path": "notes"}}},
    {"call": [{"read_file": {"path": "notes/monday.md", "deep": {"x": 1}}}, {"read_file": {"path": "b"}}]},
    {"say": "Done."},
]


@pytest.fixture
def told(loop: Any) -> list[dict[str, Any]]:
    """The conversation after the whole of STEPS."""
    messages: list[dict[str, Any]] = loop(LocalModel(Script.parse(STEPS)), TOOLS).messages
    return messages


def edit(messages: list[dict[str, Any]], index: int, at: int, **fields: Any) -> None:
    messages[index]["content"][at] |= fields


OFF: list[tuple[str, Callable[[list[dict[str, Any]]], Any], str]] = [
    (
        "text altered",
        lambda told: edit(told, 1, 1, text="Looking…"),
        'message 1: block 1 should be what script[0] answered: `text` of a text block was "Looking.", and came back as'
        ' "Looking…"',
    ),
    (
        "input altered deep inside",
        lambda told: edit(told, 3, 0, input={"path": "notes/monday.md", "deep": {"x": True}}),
        "message 3: block 0 should be what script[1] answered: `input` of tool_use `read_file` came back with other"
        " `deep`",
    ),
    (
        "calls swapped",
        lambda told: told[3]["content"].reverse(),
        "message 3: block 0 should be what script[1] answered: `id` of tool_use `read_file` was",
    ),
    (
        "text lost",
        lambda told: told[1]["content"].pop(1),
        'message 1: block 1 should be what script[0] answered: expected a text block "Looking.", found tool_use'
        " `list_dir`",
    ),
    (
        "a call lost, with its result",
        lambda told: (told[3]["content"].pop(), told[4]["content"].pop()),
        "message 3: tool_use `read_file`, which script[1] answered, is missing at its end",
    ),
    (
        "a message repeated",
        lambda told: told.insert(6, told[5]),
        'message 6: a text block "Done." follows what script[2] answered, and is not of it',
    ),
    (
        "a turn too many",
        lambda told: told.extend([{"role": "assistant", "content": "Bye."}, {"role": "user", "content": "?"}]),
        'message 7: it goes on with a text block "Bye.", where the script has ended',
    ),
    (
        "a turn lost, with its results",
        lambda told: told.__delitem__(slice(1, 3)),
        'message 1: block 0 should be what script[0] answered: expected a thinking block "Where?", found tool_use'
        " `read_file`",
    ),
]


@pytest.mark.parametrize(("spoil", "problem"), [one[1:] for one in OFF], ids=[one[0] for one in OFF])
def test_leaving_the_script_is_explained(
    told: Any, post: Any, asking: Any, reading: Any, spoil: Any, problem: str
) -> None:
    """The refusal names the message, the block, what the script answered there and what came back."""
    spoil(told)
    model = LocalModel(Script.parse(STEPS))
    reply = post(model, asking(told, *TOOLS))
    [fault] = model.faults
    assert (reply.status, fault.kind) == (400, "off_script")
    assert fault.message.startswith(f"the conversation left the script at {problem}")
    assert reading(reply).error == {"type": "invalid_request_error", "message": fault.message}


def test_thinking_that_was_changed_is_a_matter_of_the_protocol(told: Any, post: Any, asking: Any) -> None:
    """Changed thinking in the latest assistant message is refused as the API refuses it."""
    del told[3:]
    edit(told, 1, 0, thinking="There.")
    model = LocalModel(Script.parse(STEPS))
    post(model, asking(told, *TOOLS))
    assert [(fault.kind, fault.message[:69]) for fault in model.faults] == [
        ("protocol", "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the")
    ]


def test_the_first_difference_is_the_one_that_is_told(loop: Any, post: Any, asking: Any) -> None:
    """What changed in an earlier turn is not mistaken for thinking that changed in the latest one."""
    steps = [{"think": f"Step {n}.", "say": f"Now {n}.", "call": {"list_dir": {"n": n}}} for n in range(3)]
    messages = loop(LocalModel(Script.parse(steps)), TOOLS).messages
    edit(messages, 1, 1, text="Then 0.")
    model = LocalModel(Script.parse(steps))
    post(model, asking(messages, *TOOLS))
    assert [(fault.kind, fault.message[:50]) for fault in model.faults] == [
        ("off_script", "the conversation left the script at message 1: blo")
    ]


LEGAL: list[tuple[str, Callable[[list[dict[str, Any]]], Any]]] = [
    ("nulls written out", lambda told: edit(told, 1, 1, citations=None)),
    ("caching", lambda told: edit(told, 3, 1, cache_control={"type": "ephemeral"})),
    (
        "numbers as another language writes them",
        lambda told: edit(told, 3, 0, input={"deep": {"x": 1.0}, "path": "notes/monday.md"}),
    ),
    ("text after the results", lambda told: told[4]["content"].append({"type": "text", "text": "Hurry."})),
    ("results in two messages", lambda told: told.insert(5, {"role": "user", "content": [told[4]["content"].pop()]})),
    (
        "an answer in two messages",
        lambda told: told.insert(2, {"role": "assistant", "content": [told[1]["content"].pop()]}),
    ),
    ("text as a string", lambda told: told[5].update(content="Done.")),
    ("system messages", lambda told: told.insert(3, {"role": "system", "content": "Note."})),
]


@pytest.mark.parametrize("change", [one[1] for one in LEGAL], ids=[one[0] for one in LEGAL])
def test_what_a_loop_may_do(told: Any, post: Any, asking: Any, change: Any) -> None:
    """Another writing of the same conversation, and text after the results, are not held against the loop."""
    change(told)
    model = LocalModel(Script.parse([*STEPS, {"say": "Still here."}]))
    # The ids belong to the script, so the conversation is told again in those of the longer one.
    ids = dict(zip(ids_of(Script.parse(STEPS)), ids_of(Script.parse([*STEPS, {"say": "Still here."}])), strict=False))
    text = json.dumps(told)
    for old, new in ids.items():
        text = text.replace(json.dumps(old)[1:-1], json.dumps(new)[1:-1])
    reply = post(model, asking(json.loads(text), *TOOLS))
    assert (reply.status, model.faults) == (200, [])


def ids_of(script: Script) -> list[str]:
    blocks = [block for answer in script.answers() for block in answer.content]
    return [block[key] for block in blocks for key in ("id", "signature") if key in block]


def test_asking_for_more_than_the_script_holds(loop: Any) -> None:
    """The loop that goes on after the end is told how much was scripted."""
    run = loop(LocalModel(Script.parse(STEPS)), TOOLS)
    assert run.refusal == (
        "the script has no step left: the conversation of 7 messages holds 3 answers, all that was scripted, and the"
        " loop asks for one more"
    )


def test_a_tool_that_the_request_does_not_define(loop: Any) -> None:
    """A script that calls a tool which the loop does not offer names those that it does offer."""
    model = LocalModel(Script.parse(STEPS))
    assert loop(model, ["read_file", "grep"]).refusal == (
        "script[0] calls `list_dir`, a tool that the request does not define: it defines `read_file`, `grep`. Add the"
        " tool to the case, or correct its name in the script"
    )
    assert [fault.kind for fault in model.faults] == ["off_script"]
    assert "it defines no tools" in loop(LocalModel(Script.parse(STEPS)), []).refusal


def test_a_paused_answer_is_continued_in_either_form(post: Any, asking: Any, reading: Any) -> None:
    """After `pause_turn` the conversation goes back as it is; what follows may be a message or the rest of the last."""
    script = Script.parse([{"say": "Searching", "stop_reason": "pause_turn"}, {"say": "Found."}, {"say": "Bye."}])
    model = LocalModel(script)
    begin = [{"role": "user", "content": "Begin."}]
    first = {"role": "assistant", "content": [{"type": "text", "text": "Searching"}]}
    second = {"role": "assistant", "content": [{"type": "text", "text": "Found."}]}
    joined = {"role": "assistant", "content": [*first["content"], *second["content"]]}
    go_on = {"role": "user", "content": "Go on."}

    def said(*messages: Any) -> Any:
        message = reading(post(model, asking([*begin, *messages]))).message
        return message and message["content"][0]["text"]

    assert said() == "Searching"
    assert said(first) == "Found."
    assert said(first, go_on) == "Found."
    assert said(first, second, go_on) == "Bye."
    assert said(joined, go_on) == "Bye."
    assert model.faults == []
    assert said(first, second) is None
    assert [fault.kind for fault in model.faults] == ["protocol"]


def test_where_tool_use_is_switched_off_the_model_speaks_instead(post: Any, asking: Any, reading: Any) -> None:
    """With `tool_choice: none` a scripted call becomes a sentence, and the conversation may go on from there."""
    script = Script.parse([{"say": "Well.", "call": {"read_file": {}}}, {"say": "Next."}])
    model = LocalModel(script)
    begin = [{"role": "user", "content": "Begin."}]
    message = reading(post(model, asking(begin, *TOOLS, tool_choice={"type": "none"}))).message
    assert (message["stop_reason"], message["content"]) == (
        "end_turn",
        [
            {"type": "text", "text": "Well."},
            {"type": "text", "text": "Tool use is switched off, so this is where I stop."},
        ],
    )
    later = [*begin, {"role": "assistant", "content": message["content"]}, {"role": "user", "content": "And?"}]
    assert reading(post(model, asking(later, *TOOLS))).message["content"] == [{"type": "text", "text": "Next."}]
    assert model.faults == []


def test_unknown_goes_before_error_and_neither_needs_a_branch(loop: Any) -> None:
    """Of parallel calls, one unknown is enough for `on_unknown`; without a branch the script just goes on."""
    both: Step = {
        "call": [{"read_file": {}}, {"list_dir": {}}],
        "on_unknown": [{"say": "unknown"}],
        "on_error": [{"say": "error"}],
    }
    only_error: Step = {key: value for key, value in both.items() if key != "on_unknown"}

    def said(step: Step, *results: str) -> list[str]:
        run = loop(LocalModel(Script.parse([step, {"say": "end"}])), TOOLS, lambda number: results[number])
        return [answer["content"][0].get("text") for answer in run.answers[1:]]

    assert said(both, "ok", "ok") == ["end"]
    assert said(both, "error", "unknown") == ["unknown", "end"]
    assert said(both, "ok", "error") == ["error", "end"]
    assert said(only_error, "unknown", "unknown") == ["end"]
    assert said(only_error, "unknown", "error") == ["error", "end"]
    assert said({"call": both["call"]}, "error", "unknown") == ["end"]


def test_an_answer_that_leaves_no_mark_is_given_once(loop: Any) -> None:
    """An empty answer cannot be sent back, so it is counted; as the last one it is given whenever it is asked for."""
    run = loop(LocalModel(Script.parse([{"say": ""}, {"blocks": [], "stop_reason": "end_turn"}, {"say": "Hi."}])), [])
    assert [answer["content"] for answer in run.answers] == [
        [{"type": "text", "text": ""}],
        [],
        [{"type": "text", "text": "Hi."}],
    ]


def test_an_empty_last_answer_is_always_given(post: Any, asking: Any, reading: Any) -> None:
    """A process that is killed before it has kept an empty last answer gets it again."""
    model = LocalModel(Script.parse([{"stop_reason": "end_turn", "say": ""}]))
    for _ in range(3):
        assert reading(post(model, asking([{"role": "user", "content": "Hi"}]))).message["stop_reason"] == "end_turn"
