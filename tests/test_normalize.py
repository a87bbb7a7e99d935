"""What varies by run vanishes, everything else stays visible, and the two writers agree."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import string
import tempfile
import unicodedata
import uuid
from collections import OrderedDict, deque
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from harness.errors import NormalizeError
from harness.normalize import Normalizer, digest_key, key_fingerprint

DEFAULT = Normalizer()

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["2026-11-30T04:00:58.123+02:00", "toolu_01AbC", "a 6B7D21FA-0000-4000-8000-00000000ABCD", "é"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
KEYS = st.text(max_size=5) | st.integers() | st.booleans() | st.none() | st.floats() | st.uuids()
ANYTHING = st.recursive(
    JSON | st.binary(max_size=8) | st.uuids() | st.datetimes() | st.decimals(allow_nan=False) | st.just(object()),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(
            st.text(max_size=5) | st.integers() | st.booleans() | st.none() | st.floats(), inner, max_size=4
        )
        | st.frozensets(st.integers() | st.text(max_size=3), max_size=4)
    ),
    max_leaves=12,
)


@given(ANYTHING)
@example({"<uuid>": 1, uuid.UUID(int=1): 2})
@example("x20260101T100000Z")
def test_normalizing_twice_changes_nothing(value: object) -> None:
    """The normalized form is a fixed point, whatever the value."""
    once = DEFAULT.canonical(value)
    assert DEFAULT.canonical(json.loads(once)) == once


@given(ANYTHING, st.sampled_from([r"build-\d+", r"[a-z]+\d", r"x<?", r"\d{2}$", r"^a", r"ts", r"[<>]"]))
def test_normalizing_twice_changes_nothing_under_a_projects_own_pattern(value: object, pattern: str) -> None:
    """A pattern that would match its own placeholder, or uses anchors, does not break the fixed point."""
    normalizer = Normalizer(patterns={"mine": pattern})
    once = normalizer.canonical(value)
    assert normalizer.canonical(json.loads(once)) == once


@given(ANYTHING)
def test_the_quick_writer_and_the_exact_writer_agree(value: object) -> None:
    """Whether the C encoder or the exact writer was used cannot be seen in the text, nor in any digest."""
    assert DEFAULT.canonical(value) == DEFAULT._write(value)


@given(st.dictionaries(st.text(max_size=8), ANYTHING, max_size=6))
def test_a_call_has_the_same_digests_on_the_quick_and_the_exact_way(arguments: dict[str, object]) -> None:
    """Per-argument digests and the whole digest do not depend on which writer ran."""
    assert DEFAULT.digest_call(arguments) == DEFAULT._digest_members(arguments)
    assert DEFAULT.digest_call(arguments)[0] == DEFAULT.digest(arguments)


@given(JSON)
def test_key_order_is_invisible(value: object) -> None:
    """Two objects that differ in the order of their keys have one canonical text."""

    def reversed_keys(item: object) -> object:
        if isinstance(item, dict):
            return {key: reversed_keys(item[key]) for key in reversed(list(item))}
        return [reversed_keys(one) for one in item] if isinstance(item, list) else item

    assert DEFAULT.canonical(reversed_keys(value)) == DEFAULT.canonical(value)


zones = st.sampled_from(["", "Z", "z", "+02:00", "-0530", " +0000", "+01", " UTC", " GMT"])
fractions = st.sampled_from(["", ".1", ".123456", ",5", ".123456789"])


@given(st.datetimes(min_value=datetime.datetime(1000, 1, 1)), st.sampled_from("T t_"), fractions, zones)  # noqa: DTZ001
def test_a_timestamp_vanishes_whole(moment: datetime.datetime, separator: str, fraction: str, zone: str) -> None:
    """Seconds, fraction and zone of a date-time leave no trace, in the middle of any text."""
    for written in (
        moment.strftime(f"%Y-%m-%d{separator}%H:%M:%S") + fraction + zone,
        moment.strftime(f"%Y-%m-%d{separator}%H:%M") + (zone if zone != "+01" else ""),
        moment.strftime("%Y%m%dT%H%M%S") + fraction + zone,
    ):
        assert DEFAULT.normalize(f"at {written}, done") == "at <ts>, done", written


@given(st.uuids(), st.booleans(), st.booleans())
def test_a_uuid_vanishes_in_any_case_with_or_without_braces(value: uuid.UUID, upper: bool, braces: bool) -> None:
    """However a UUID is written, nothing of it stays."""
    written = str(value).upper() if upper else str(value)
    written = "{" + written + "}" if braces else written
    assert DEFAULT.normalize(f"job {written}.") == "job <uuid>."


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.0, 1),
        ({"a": 1.0, "b": -0.0, "c": 1e300}, {"a": 1, "b": 0, "c": int(1e300)}),
        (0.5, 0.5),
        (float("nan"), "<nan>"),
        ([float("inf"), float("-inf")], ["<inf>", "<-inf>"]),
        ({True: "b", None: "c"}, {"true": "b", "null": "c"}),
        ({2.0: "a", 2.5: "b"}, {"2": "a", "2.5": "b"}),
        ({9: 0, 10: 1}, {"10": 1, "9": 0}),
        ({"request_id": 1, "requestId": 2, "timestamp": 3, "traceId": 4, "nonce": 5, "cursor": 6, "q": 7}, {"q": 7}),
        ({"deep": [{"trace_id": 1, "q": 2}]}, {"deep": [{"q": 2}]}),
        ("toolu_01A09q90qw90lq917835lq9 and srvtoolu_01abc, msg_01XFDUDYJgAACzvnptvVoYEL", "<id> and <id>, <id>"),
        ("a_msg_is_here, msg_1", "a_msg_is_here, msg_1"),
        ("2026-11-30", "2026-11-30"),
        ("version 12345678T9", "version 12345678T9"),
        ("deadbeef-6b7d21fa-0000-4000-8000-00000000abcd0", "deadbeef-6b7d21fa-0000-4000-8000-00000000abcd0"),
        ("urn:uuid:6b7d21fa-0000-4000-8000-00000000abcd", "urn:uuid:<uuid>"),
        ("e\u0301", "\u00e9"),
        ({"e\u0301": 1}, {"\u00e9": 1}),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        (deque([1, 2]), [1, 2]),
        (OrderedDict(b=1, a=2), {"a": 2, "b": 1}),
        (Decimal("1.50"), "1.50"),
        (Path("a/b"), "a/b"),
        (uuid.UUID(int=7), "<uuid>"),
        (datetime.datetime(2026, 11, 30, 4, 0, tzinfo=datetime.UTC), "<ts>"),
        (datetime.date(2026, 11, 30), "2026-11-30"),
        (enum.StrEnum("Color", "RED").RED, "red"),
        ("\ud800", "\ud800"),
    ],
)
def test_values_are_written_as(value: object, expected: object) -> None:
    """Each kind of value has one plain form."""
    assert DEFAULT.normalize(value) == expected


def test_one_and_one_point_zero_are_the_same_argument() -> None:
    """A model that writes 1.0 where it wrote 1 has not changed the call."""
    assert DEFAULT.digest_call({"n": 1}) == DEFAULT.digest_call({"n": 1.0})


def test_records_are_written_by_their_fields() -> None:
    """Dataclasses and pydantic models count by fields, extra ones included."""

    @dataclasses.dataclass
    class Point:
        x: int
        y: object

    class Model(BaseModel, extra="allow"):
        a: int

    assert DEFAULT.normalize([Point(1, Point(2, None)), Model(a=1, b=2)]) == [
        {"x": 1, "y": {"x": 2, "y": None}},
        {"a": 1, "b": 2},
    ]


def test_bytes_are_known_by_digest_only() -> None:
    """Raw bytes never reach a trace, and equal bytes are equal in any container."""
    assert DEFAULT.normalize([b"secret", bytearray(b"secret"), memoryview(b"secret")]) == ["<bytes 461be6bcc873>"] * 3


def test_objects_without_a_plain_form_are_known_by_type_and_repr_without_addresses() -> None:
    """An argument that cannot be serialized is digested, never raised, and equally in every run."""

    class Handle:
        pass

    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    first, second = DEFAULT.canonical(Handle()), DEFAULT.canonical(Handle())
    assert first == second
    assert "Handle" in first
    assert "Broken" in DEFAULT.canonical(Broken())


def test_recursion_and_depth_give_a_clear_mark() -> None:
    """A value that contains itself, or is nested without end, has a digest and no traceback."""
    loop: list[object] = [1]
    loop.append({"again": loop})
    assert DEFAULT.normalize(loop) == [1, {"again": "<recursion>"}]

    @dataclasses.dataclass(eq=False)
    class Node:
        friends: set[object]

    node = Node(set())
    node.friends.add(node)
    assert DEFAULT.normalize(node) == {"friends": ["<recursion>"]}
    deep: object = "bottom"
    for _ in range(50_000):
        deep = [deep]
    assert "<deep>" in DEFAULT.canonical(deep)
    nested: object = "bottom"
    for _ in range(1_500):
        nested = {"a": nested}
    assert DEFAULT.digest(nested) != DEFAULT.digest({"a": nested})


def test_shared_values_are_no_recursion() -> None:
    """The same object twice, side by side, is written twice."""
    shared = [1]
    assert DEFAULT.normalize({"a": shared, "b": [shared, {1.0: shared}]}) == {"a": [1], "b": [[1], {"1": [1]}]}


def test_temporary_places_and_the_workspace_have_one_name(tmp_path: Path) -> None:
    """Where a run happened cannot be seen in its trace."""
    normalizer = Normalizer(workspace=tmp_path)
    random = tempfile.mkdtemp()
    Path(random).rmdir()
    assert normalizer.normalize(f"{tmp_path}/notes/mon.md") == "<workspace>/notes/mon.md"
    assert normalizer.normalize(f"cp {random}/a {tempfile.gettempdir()}/report.txt") == "cp <tmp>/a <tmp>/report.txt"
    assert normalizer.normalize("/tmp/pytest-of-me/pytest-12/x0/f") == "<tmp>/x0/f"
    assert normalizer.normalize("/data/tmp/x /tmpfile") == "/data/tmp/x /tmpfile"


def test_keys_that_become_equal_are_told_apart_by_their_values() -> None:
    """Two UUIDs as keys keep both members, in an order that does not depend on the UUIDs."""
    one, two = str(uuid.UUID(int=1)), str(uuid.UUID(int=2))
    expected = {"<uuid>": "a", "<uuid><#2>": "b"}
    assert DEFAULT.normalize({one: "a", two: "b"}) == expected
    assert DEFAULT.normalize({one: "b", two: "a"}) == expected


def test_a_project_adds_its_own_rules_and_keeps_what_matters_to_it() -> None:
    """`keys`, `patterns` and `keep` work on top of the defaults, and a case's rules on top of the project's."""
    project = Normalizer.parse({"keys": ["session_token"], "keep": ["cursor"]})
    case = project.extended({"patterns": {"build": r"build-\d+"}})
    value = {"session_token": 1, "sessionToken": 2, "cursor": "c1", "text": "build-12 at 2026-01-01T00:00Z"}
    assert case.normalize(value) == {"cursor": "c1", "text": "<build> at <ts>"}


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"key": []}, "unknown key 'key'; there are: keys, patterns, keep"),
        ({"keys": "session"}, "'keys' takes a list of names, not 'session'"),
        ({"patterns": ["x"]}, "'patterns' takes a mapping of names to expressions, not ['x']"),
        ({"patterns": {"x": "("}}, "the expression '(' does not compile: "),
        ({"patterns": {"x": "a*"}}, "the expression 'a*' matches the empty text and so everywhere"),
        ({"patterns": {"a b": "x"}}, "the name of a pattern is letters, digits, '-' and '_', not 'a b'"),
        (
            {"keep": ["cursors"]},
            "'cursors' is no default to keep; there are: cursor, id, ",
        ),
    ],
)
def test_a_wrong_rule_is_named(rules: dict[str, object], message: str) -> None:
    """Each wrong rule says what is wrong with it and what there is."""
    with pytest.raises(NormalizeError) as error:
        Normalizer.parse(rules)
    assert str(error.value).startswith(message)


def test_a_key_makes_digests_unguessable_and_has_a_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    """With HARNESS_DIGEST_KEY no plain SHA-256 of a guess equals a digest; the key itself cannot be read off."""
    monkeypatch.setenv("HARNESS_DIGEST_KEY", "k1")
    keyed = Normalizer(key=digest_key())
    assert keyed.digest_call({"a": 1}) != DEFAULT.digest_call({"a": 1})
    assert key_fingerprint(b"k1") != key_fingerprint(b"k2")
    monkeypatch.setenv("HARNESS_DIGEST_KEY", "")
    assert digest_key() is None
    assert key_fingerprint(None) is None


@given(st.text(alphabet=string.ascii_letters + 'é\u0301\u2028 \t\n"\\/', max_size=40))
def test_other_text_stays_as_it_is(text: str) -> None:
    """Text that holds nothing volatile is only brought to NFC."""
    assert DEFAULT.normalize(text) == unicodedata.normalize("NFC", text)
