"""Scripts as they come from YAML: what the steps become, and what is said about those that are wrong."""

from __future__ import annotations

import datetime
import re
from typing import Any

import pytest

from harness.errors import ScriptError
from harness.model.script import Script
from harness.model.steps import Answer, Fail


def answer(step: dict[str, Any]) -> Answer:
    [only] = Script.parse([step]).steps
    assert isinstance(only, Answer)
    return only


def test_a_call_becomes_one_tool_use_block() -> None:
    """`call` with a mapping is one tool_use, with an id that looks like the API's, and stops for it."""
    read = answer({"call": {"read_file": {"path": "a"}}})
    [block] = read.content
    assert re.fullmatch(r"toolu_01[0-9A-Za-z]{22}", block["id"])
    assert re.fullmatch(r"msg_01[0-9A-Za-z]{22}", read.message_id)
    assert block == {"type": "tool_use", "id": block["id"], "name": "read_file", "input": {"path": "a"}}
    assert (read.stop_reason, read.stop_sequence, read.stop_details, read.usage) == ("tool_use", None, None, {})


def test_a_list_of_calls_is_one_response() -> None:
    """`call` with a list holds parallel blocks; a tool without arguments may be left empty, as YAML does."""
    content = answer({"call": [{"read_file": {"path": "a"}}, {"list_dir": None}, {"list_dir": {}}]}).content
    assert [(block["name"], block["input"]) for block in content] == [
        ("read_file", {"path": "a"}),
        ("list_dir", {}),
        ("list_dir", {}),
    ]
    assert len({block["id"] for block in content}) == 3


def test_blocks_stand_in_the_order_of_the_api() -> None:
    """However the keys of a step are ordered: thinking, text, raw blocks, calls."""
    step = {"call": {"a": {}}, "blocks": [{"type": "mystery"}], "say": "Now.", "think": "Hm."}
    assert [block["type"] for block in answer(step).content] == ["thinking", "text", "mystery", "tool_use"]


def test_thinking_is_signed() -> None:
    """A thinking block carries base64 that is the same in every run and another for another thought."""
    one, again, other = (answer({"think": thought}).content[0]["signature"] for thought in ("Hm.", "Hm.", "Oh."))
    assert one == again != other
    assert re.fullmatch(r"[A-Za-z0-9+/]{120,}=*", one)


def test_raw_blocks_are_kept_and_given_ids() -> None:
    """Blocks of any type pass as they are; server calls get an id, which the result after them is given."""
    blocks: list[dict[str, Any]] = [
        {"type": "server_tool_use", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "content": []},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
        {"type": "tool_use", "name": "read_file", "id": "toolu_mine"},
        {"type": "hologram", "rays": [1, 2]},
    ]
    read = answer({"blocks": blocks})
    identifier = read.content[0]["id"]
    assert re.fullmatch(r"srvtoolu_01[0-9A-Za-z]{22}", identifier)
    assert list(read.content) == [
        blocks[0] | {"id": identifier},
        blocks[1] | {"tool_use_id": identifier},
        blocks[2],
        blocks[3] | {"input": {}},
        blocks[4],
    ]
    assert read.stop_reason == "tool_use"


@pytest.mark.parametrize(
    ("step", "stop"),
    [
        ({"say": "Done."}, ("end_turn", None, None)),
        ({"call": {"a": {}}, "stop_reason": "max_tokens"}, ("max_tokens", None, None)),
        ({"say": "a", "stop_sequence": "END"}, ("stop_sequence", "END", None)),
        (
            {"say": "No.", "stop_details": {"category": "bio"}},
            ("refusal", None, {"type": "refusal", "category": "bio"}),
        ),
        ({"stop_reason": "refusal"}, ("refusal", None, None)),
        ({"say": "a", "stop_reason": "pause_turn"}, ("pause_turn", None, None)),
    ],
)
def test_how_an_answer_stops(step: dict[str, Any], stop: tuple[Any, ...]) -> None:
    """The stop_reason follows from the step, and a step can say another."""
    read = answer(step)
    assert (read.stop_reason, read.stop_sequence, read.stop_details) == stop


def test_ids_depend_on_the_script_and_on_the_place() -> None:
    """Equal scripts give equal ids, another word in a script gives others, and no id comes twice in a script."""
    steps = [
        {
            "blocks": [{"type": "tool_use", "name": "a"}],
            "call": [{"a": {}}, {"a": {}}],
            "on_error": [{"call": {"a": {}}}, {"say": "x"}],
            "on_unknown": [{"call": {"a": {}}}],
        },
        {"call": {"a": {}}},
        {"say": "x"},
    ]

    def ids(script: Script) -> list[str]:
        answers = list(script.answers())
        return [one.message_id for one in answers] + [call["id"] for one in answers for call in one.calls]

    one, again, other = ids(Script.parse(steps)), ids(Script.parse(steps)), ids(Script.parse([*steps, {"say": "y"}]))
    assert one == again
    assert len(set(one)) == len(one) == 6 + 6
    assert not set(one) & set(other)


def test_failures() -> None:
    """Statuses and kinds of broken connections, how often, after how long, with which words."""
    assert Script.parse(
        [
            {"fail": 529},
            {"fail": 429, "retry_after": 1.5, "times": 3},
            {"fail": 400, "message": "prompt is too long"},
            {"fail": "disconnect"},
            {"fail": "mid_stream", "message": "Busy"},
            {"fail": "truncated", "times": 2},
            {"fail": "timeout"},
        ]
    ).steps == (
        Fail((0,), "status", 529),
        Fail((1,), "status", 429, 3, 1.5),
        Fail((2,), "status", 400, message="prompt is too long"),
        Fail((3,), "disconnect"),
        Fail((4,), "mid_stream", message="Busy"),
        Fail((5,), "truncated", times=2),
        Fail((6,), "timeout"),
    )


def test_branches_are_scripts_of_their_own() -> None:
    """`on_unknown` and `on_error` hold steps, to any depth, failures included."""
    inner = {"call": {"b": {}}, "on_error": [{"fail": 529}, {"say": "b failed"}]}
    read = answer({"call": {"a": {}}, "on_unknown": [inner, {"say": "checked"}]})
    assert read.on_error is None
    assert read.on_unknown is not None
    first, second = read.on_unknown
    assert isinstance(first, Answer)
    assert first.on_error is not None
    assert [step.path for step in (first, second, *first.on_error)] == [
        (0, "on_unknown", 0),
        (0, "on_unknown", 1),
        (0, "on_unknown", 0, "on_error", 0),
        (0, "on_unknown", 0, "on_error", 1),
    ]


KEYS = "blocks, call, fail, message, on_error, on_unknown, retry_after, say, stop_details, stop_reason, stop_sequence"
WRONG: list[tuple[Any, tuple[str | int, ...], str]] = [
    ({"say": "x"}, (), "a script is a list of steps, not a mapping"),
    ([], (), "there is no step: write at least one, for example `- say: Done.`"),
    (
        ["say Done."],
        (0,),
        "a step is a mapping such as `call: {read_file: {path: a}}` or `say: Done.`, not text",
    ),
    ([{"say": "x"}, {}], (1,), "the step says nothing: it needs `call`, `say`, `think`, `blocks` or `fail`"),
    (
        [{"cal": {"a": {}}}],
        (0, "cal"),
        f"unknown key `cal`, did you mean `call`?; a step may have {KEYS}, think, times, usage",
    ),
    ([{"say": "x", "times": 2}], (0, "times"), "`times` belongs to a step with `fail`"),
    (
        [{"fail": 529, "say": "x"}],
        (0, "say"),
        "a step either fails or answers: put `say` into the next step, which is played when the failures are over",
    ),
    (
        [{"call": {"a": {}, "b": {}}}],
        (0, "call"),
        "one mapping names 2 tools; for parallel calls in one response write a list: `- a: …`, `- b: …`",
    ),
    ([{"call": "list_dir"}], (0, "call"), "a call is a mapping of a tool to its input: write `list_dir: {}`"),
    ([{"call": []}], (0, "call"), "`call` is an empty list: name at least one tool"),
    ([{"call": None}], (0, "call"), "a call is a mapping of one tool to its input, not nothing"),
    (
        [{"call": [{"a": "path"}]}],
        (0, "call", 0, "a"),
        "the input of `a` is a mapping of its arguments, not text",
    ),
    (
        [{"call": {"read file": {}}}],
        (0, "call"),
        "'read file' cannot be the name of a tool: 1 to 128 letters, digits, `_` and `-`",
    ),
    ([{"say": 5}], (0, "say"), "`say` is text, not a number: put 5 in quotes"),
    ([{"say": None}], (0, "say"), "`say` is text, not nothing"),
    ([{"think": True}], (0, "think"), "`think` is text, not true or false: put True in quotes"),
    ([{"blocks": {"type": "x"}}], (0, "blocks"), "`blocks` is a list of content blocks, not a mapping"),
    ([{"blocks": [{"kind": "x"}]}], (0, "blocks", 0), "a content block is a mapping with a `type`"),
    (
        [{"blocks": [{"type": "tool_use"}]}],
        (0, "blocks", 0),
        "None cannot be the name of a tool: 1 to 128 letters, digits, `_` and `-`",
    ),
    (
        [{"say": "x", "stop_reason": "end_trun"}],
        (0, "stop_reason"),
        "'end_trun' is no stop_reason, did you mean `end_turn`?; there are compaction, end_turn, max_tokens,"
        " model_context_window_exceeded, pause_turn, refusal, stop_sequence, tool_use",
    ),
    ([{"say": "x", "usage": 5}], (0, "usage"), "`usage` is a mapping of token counts, not a number"),
    (
        [{"say": "x", "on_error": [{"say": "y"}]}],
        (0, "on_error"),
        "`on_error` tells what follows a call, and this step has none",
    ),
    (
        [{"call": {"a": {}}, "on_unknown": {"say": "y"}}],
        (0, "on_unknown"),
        "expected a list of steps, not a mapping",
    ),
    (
        [{"call": {"a": {}}, "on_unknown": [{"call": {"b": {}}, "on_error": [{"sai": "z"}]}]}],
        (0, "on_unknown", 0, "on_error", 0, "sai"),
        f"unknown key `sai`, did you mean `say`?; a step may have {KEYS}, think, times, usage",
    ),
    (
        [{"fail": 592}],
        (0, "fail"),
        "cannot fail with 592, did you mean `529`?; possible are disconnect, mid_stream, timeout, truncated, 400, 401,"
        " 402, 403, 404, 409, 413, 429, 500, 504, 529",
    ),
    (
        [{"fail": "midstream"}],
        (0, "fail"),
        "cannot fail with 'midstream', did you mean `mid_stream`?; possible are disconnect, mid_stream, timeout,"
        " truncated, 400, 401, 402, 403, 404, 409, 413, 429, 500, 504, 529",
    ),
    ([{"fail": 529, "times": 0}], (0, "times"), "`times` is how many attempts fail, at least 1, not 0"),
    ([{"fail": 429, "retry_after": -1}], (0, "retry_after"), "`retry_after` cannot be negative: -1"),
    (
        [{"fail": "timeout", "retry_after": 1}],
        (0, "retry_after"),
        "`retry_after` goes with a status, such as `fail: 429`",
    ),
    (
        [{"fail": "disconnect", "message": "x"}],
        (0, "message"),
        "`fail: disconnect` has no message: the connection just ends",
    ),
    (
        [{"call": {"a": {"day": datetime.date(2026, 1, 2)}}}],
        (0, "call", "a", "day"),
        "datetime.date(2026, 1, 2) is a date, which JSON does not have: put it in quotes",
    ),
    ([{"call": {"a": {"x": float("nan")}}}], (0, "call", "a", "x"), "nan cannot be written as JSON"),
    ([{"call": {"a": {True: 1}}}], (0, "call", "a"), "the key True is true or false: put it in quotes"),
]


@pytest.mark.parametrize(("steps", "path", "message"), WRONG, ids=[message[:50] for _, _, message in WRONG])
def test_a_wrong_script_says_what_is_wrong_and_where(steps: Any, path: tuple[str | int, ...], message: str) -> None:
    """Each mistake has one message that names it, and a path that leads to it."""
    with pytest.raises(ScriptError) as caught:
        Script.parse(steps)
    assert (str(caught.value), caught.value.path) == (message, path)
