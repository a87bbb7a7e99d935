"""From what a dispatcher sees to the evidence of a call."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.stuck import Profile, Record, record_of
from harness.stuck.digests import arguments_digest, result_digest
from harness.stuck.evidence import error_class_of
from harness.stuck.reading import sources_of, topic_of, useful_of

unhurried = settings(deadline=None)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def reordered(value: object) -> object:
    """The same value with the keys of every object in the opposite order."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(list(value))}
    return [reordered(one) for one in value] if isinstance(value, list) else value


@unhurried
@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4))
def test_the_order_of_keys_means_nothing(arguments: dict[str, object]) -> None:
    """Permuting keys at any depth changes neither digest, in data nor in JSON text."""
    other = reordered(arguments)
    assert arguments_digest(arguments) == arguments_digest(other)
    assert result_digest(json.dumps(arguments)) == result_digest(json.dumps(other)) == result_digest(other)


@unhurried
@given(JSON, JSON)
def test_different_values_have_different_digests(one: object, other: object) -> None:
    """Only what is equal as JSON is equal; an integral float is the integer, True is not 1."""
    plain = json.dumps(_integral(one), sort_keys=True) == json.dumps(_integral(other), sort_keys=True)
    assert (arguments_digest({"v": one}) == arguments_digest({"v": other})) == plain


def _integral(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _integral(one) for key, one in value.items()}
    return [_integral(one) for one in value] if isinstance(value, list) else value


def test_arguments_are_taken_as_they_are() -> None:
    """Cursors, ids and times are what tells one page from the next; text is not trimmed; broken JSON stands apart."""
    assert arguments_digest({"cursor": "a"}) != arguments_digest({"cursor": "b"})
    assert arguments_digest({"q": "a"}) != arguments_digest({"q": "a "})
    assert arguments_digest({"n": 1}) == arguments_digest({"n": 1.0})
    assert arguments_digest({"n": 1e22}) == arguments_digest({"n": 10**22})
    assert arguments_digest({"n": 1}) != arguments_digest({"n": True})
    assert arguments_digest('{"n": 1}') != arguments_digest({"n": 1})
    assert len(arguments_digest({})) == 64


def test_volatile_arguments_are_those_that_the_tool_declares() -> None:
    """Only top-level names that are declared do not count."""
    renumbered = [{"name": "Save", "ref": 3}, {"name": "Save", "ref": 17}]
    assert len({arguments_digest(one) for one in renumbered}) == 2
    assert len({arguments_digest(one, {"ref"}) for one in renumbered}) == 1


def test_what_json_cannot_hold_is_digested_all_the_same() -> None:
    """Odd keys, sets, bytes, objects, NaN, lone surrogates, cycles and great depth: a digest, never an error."""

    @dataclass
    class Point:
        x: int

    cycle: list[object] = []
    cycle.append(cycle)
    deep: object = 0
    for _ in range(100_000):
        deep = [deep]
    odd = [
        {1: "a", "b": 2},
        {1, 2},
        b"\x00",
        Point(1),
        float("nan"),
        float("inf"),
        "\ud800",
        cycle,
        deep,
        10**5000,
        object,
    ]
    digests = [arguments_digest({"v": value}) for value in odd]
    assert len(set(digests)) == len(odd)
    assert arguments_digest({"v": {2, 1}}) == arguments_digest({"v": [1, 2]})
    assert arguments_digest({"v": Point(1)}) == arguments_digest({"v": {"x": 1}})


def test_a_result_is_compared_whole() -> None:
    """Two long texts that share a beginning are two results; None is no evidence; an empty text is one."""
    start = "x" * 100_000
    assert result_digest(f"{start}a") != result_digest(f"{start}b")
    assert result_digest(None) is None
    assert result_digest("") is not None
    assert result_digest("10") != result_digest(10)
    assert result_digest("{broken") == result_digest("{broken")


def test_a_mask_leaves_out_what_is_noise() -> None:
    """Durations that the tool declares do not make a result new."""
    mask = (re.compile(r"in \d+\.\d+ s"),)
    assert result_digest("3 failed in 0.12 s", mask) == result_digest("3 failed in 9.99 s", mask)
    assert result_digest("3 failed in 0.12 s", mask) != result_digest("2 failed in 0.12 s", mask)
    assert result_digest({"log": "ok in 0.1 s"}, mask) == result_digest({"log": "ok in 0.2 s"}, mask)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[validation error] path is missing", "validation"),
        ("  [rate_limit error] later", "rate_limit"),
        ("[strange error] x", "other"),
        ("FileNotFoundError: [Errno 2] No such file", "not_found"),
        ("builtins.PermissionError: no", "permission"),
        ("TimeoutError", "timeout"),
        ("ValueError: [validation error] inside", "other"),
        ("the server said: please retry, TimeoutError", "other"),
        ({"error": "timeout"}, "other"),
        (None, "other"),
    ],
)
def test_the_class_of_an_error(text: object, expected: str) -> None:
    """A marker or an exception's name at the beginning says it; prose is not read."""
    assert error_class_of(text) == expected


def test_a_typed_error_class_wins() -> None:
    """What the tool says about its error is not overruled by its text."""
    record = record_of("api", {}, "[validation error] x", ok=False, error_class="conflict")
    assert record.error_class == "conflict"
    assert record_of("api", {}, "x", ok=True, error_class="conflict").error_class is None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"query": "Latest climate news today"}, "climate"),
        ({"query": "  CLIMATE, "}, "climate"),
        ({"query": "budget 2024 plan"}, "2024 budget plan"),
        ({"q": "c vs r"}, "c r vs"),
        ({"query": "latest news"}, ""),
        ({"url": "https://A.org/x?y=1#z"}, "https://A.org/x?y=1#z"),
        ({"queries": ["b a", "news c"]}, "a b\nc"),
        ({"query": "first", "url": "https://a.org"}, "first"),
        ({"query": ""}, None),
        ({"depth": 3}, None),
        ("broken", None),
    ],
)
def test_the_topic_of_a_web_call(arguments: object, expected: str | None) -> None:
    """An address as it is; else the words without fillers, sorted; numbers and years stay."""
    assert topic_of(arguments) == expected


def test_the_sources_of_a_web_search() -> None:
    """A sorted set of addresses without query and fragment; none of them is no evidence, nor is a page's own link."""
    found = {"hits": [{"url": "https://b.org/x?utm=1"}, {"url": "https://a.org/y#z"}, {"url": "https://a.org/y"}]}
    assert sources_of(found, "climate") == ("https://a.org/y", "https://b.org/x")
    assert sources_of("see https://a.org/y, or (https://b.org/x).", "climate") == ("https://a.org/y", "https://b.org/x")
    assert sources_of("nothing", "climate") is None
    assert sources_of(found, "https://b.org/") is None


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("", False), ("  \n", False), ("No matches found", False), ("no files found for x", False),
        ("0 matches", False),
        ("Found 0 files", False), ("(empty)", False), ("Binary file a.bin matches\nBinary file b.bin matches", False),
        ([], False), ({"matches": []}, False), ({"count": 0}, False), ({}, False),
        ([{"type": "text", "text": "No matches"}], False),
        ("a.py:1: no results here", True), ("notes/none.md", True), ("Binary file a.bin matches\na.py:1: x", True),
        (["a.py"], True), ({"total": 3}, True), ([{"type": "text", "text": "a.py:1: x"}], True),
        ({"took": 3}, None), (None, None), (7, None),
    ],
)  # fmt: skip
def test_whether_a_search_found_anything(result: object, expected: bool | None) -> None:
    """An empty list, a count of zero and the usual words say no; what does not say is not blamed."""
    assert useful_of(result) is expected


def test_a_record_holds_what_its_profile_declares_and_no_values() -> None:
    """The whole record of a web search, as it is kept."""
    profile = Profile(family="web", traits=frozenset({"batch_tolerant"}))
    record = record_of(
        "web_search", {"query": "secret plans"}, "https://a.org/", read_only=True, turn=3, call_id="t1", profile=profile
    )
    assert record == Record(
        tool="web_search",
        args_digest=arguments_digest({"query": "secret plans"}),
        result_digest=result_digest("https://a.org/"),
        read_only=True,
        family="web",
        topic_digest=record.topic_digest,
        sources_digest=record.sources_digest,
        traits=frozenset({"batch_tolerant"}),
        blank_thought=True,
        turn=3,
        call_id="t1",
    )
    assert record.topic_digest is not None
    assert record.sources_digest is not None
    assert "secret" not in repr(record)
