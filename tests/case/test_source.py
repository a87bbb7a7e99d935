"""YAML text becomes plain data with positions; what is wrong with it is said in one line each."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.case.source import MAX_BYTES, parse_source, read_source, render_path
from harness.errors import CaseError


def problems_of(content: bytes | str) -> list[str]:
    """What is said of a file, each as it is shown."""
    try:
        source = parse_source(content, "c.yaml")
    except CaseError as error:
        return str(error).splitlines()
    return [problem.render("c.yaml") for problem in source.problems]


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 9)
)
DEEP_BY_ALIASES = "a0: &a0 [x]\n" + "".join(f"a{level}: &a{level} [*a{level - 1}]\n" for level in range(1, 99))

BAD = {
    "empty": ("", ["c.yaml:1:1: the file is empty; a case needs at least agent, prompt and model"]),
    "blank": (" \n\n", ["c.yaml:1:1: the file is empty; a case needs at least agent, prompt and model"]),
    "only comments": (
        "# to do\n",
        ["c.yaml:1:1: the file holds only comments; a case needs at least agent, prompt and model"],
    ),
    "only a marker": (
        "---\n# to do\n",
        ["c.yaml:1:1: the file holds only comments; a case needs at least agent, prompt and model"],
    ),
    "duplicate key": (
        "prompt: a\nagent: b\nprompt: c\n",
        ["c.yaml:3:1: the key 'prompt' stands here a second time; it was first given at line 1, column 1"],
    ),
    "duplicate keys, all of them": (
        "a: {x: 1, x: 2}\nb: 1\na: 2\nb: 3\n",
        [
            "c.yaml:1:11: the key 'x' stands here a second time; it was first given at line 1, column 5 (at a)",
            "c.yaml:3:1: the key 'a' stands here a second time; it was first given at line 1, column 1",
            "c.yaml:4:1: the key 'b' stands here a second time; it was first given at line 2, column 1",
        ],
    ),
    "alias bomb": (
        BOMB,
        ["c.yaml:5:5: more than 200,000 values once its aliases are expanded; write out what is needed"],
    ),
    "deep by aliases": (
        DEEP_BY_ALIASES,
        ["c.yaml:63:6: nested more than 64 levels deep once its aliases are expanded"],
    ),
    "alias without anchor": (
        "a: *x\n",
        ["c.yaml:1:4: the alias *x has no anchor above it; write the value out (at a)"],
    ),
    "alias of itself": (
        "a: &x [1, *x]\n",
        ["c.yaml:1:11: the alias *x contains itself; write the value out (at a[1])"],
    ),
    "merge key": ("<<: {a: 1}\n", ["c.yaml:1:1: merge keys (<<) are not supported; write the keys out"]),
    "tab as indentation": ("a:\n\tb: 1\n", ["c.yaml:2:1: a tab in the indentation; YAML takes spaces only"]),
    "tab after spaces": ("a:\n  \tb: c\n", ["c.yaml:2:3: a tab in the indentation; YAML takes spaces only"]),
    "tab after a dash": ("a:\n-\ty\n", ["c.yaml:2:2: a tab in the indentation; YAML takes spaces only"]),
    "tab in a block text": ("a: |\n\tx\n", ["c.yaml:2:1: a tab in the indentation; YAML takes spaces only"]),
    "not UTF-8": (
        b"a: b\nn: caf\xe9\n",
        ["c.yaml:2:7: not UTF-8: byte 0xe9 at offset 11; save the file as UTF-8"],
    ),
    "not UTF-8 behind a BOM": (
        b"\xef\xbb\xbfa\xff",
        ["c.yaml:1:2: not UTF-8: byte 0xff at offset 4; save the file as UTF-8"],
    ),
    "UTF-16": ("a: 1\n".encode("utf-16"), ["c.yaml:1:1: the file is UTF-16; save it as UTF-8"]),
    "two documents": ("a: 1\n---\nb: 2\n", ["c.yaml:2:1: a second document starts here; a case file holds one"]),
    "document end, then more": (
        "a: 1\n...\nb: 2\n",
        ["c.yaml:3:1: a second document starts here; a case file holds one"],
    ),
    "a list": ("- a\n", ["c.yaml:1:1: a case is a mapping of keys to values; this file holds a list"]),
    "a text": (
        "\n  hello\n",
        ["c.yaml:2:3: a case is a mapping of keys to values; this file holds the text 'hello'"],
    ),
    "a number": ("5", ["c.yaml:1:1: a case is a mapping of keys to values; this file holds the number 5"]),
    "keys that are no text": (
        "1: a\ntrue: b\n~: c\n1.5: d\n? [x]\n: e\n",
        [
            'c.yaml:1:1: a key must be text, not the number 1; quote it: "1"',
            'c.yaml:2:1: a key must be text, not the boolean true; quote it: "true"',
            "c.yaml:3:1: a key must be text, not nothing",
            'c.yaml:4:1: a key must be text, not the number 1.5; quote it: "1.5"',
            "c.yaml:5:3: a key must be text, not a list",
        ],
    ),
    "tags": (
        "a: !foo 1\nb: !!python/object:os.system {}\nc: !!binary aGk=\nd: !!int x\n",
        [
            "c.yaml:1:4: the tag !foo is not supported; a case is plain data (at a)",
            "c.yaml:2:4: the tag !!python/object:os.system is not supported; a case is plain data (at b)",
            "c.yaml:3:4: the tag !!binary is not supported; a case is plain data (at c)",
            "c.yaml:4:4: 'x' is not what its tag !!int says (at d)",
        ],
    ),
    "NUL": (
        "a: b\nc: x\x00y\n",
        ['c.yaml:2:5: the character U+0000 is not allowed in YAML; remove it, or write "\\x00" in double quotes'],
    ),
    "bell": (
        "a: \x07\n",
        ['c.yaml:1:4: the character U+0007 is not allowed in YAML; remove it, or write "\\x07" in double quotes'],
    ),
    "lone surrogate": ("a: \ud800\n", ["c.yaml:1:4: the character U+D800 is not allowed in YAML; remove it"]),
    "too deep in blocks": ("a:\n" + "- " * 900 + "x", ["c.yaml:2:127: nested more than 64 levels deep"]),
    "far too deep in brackets": ("a: " + "[" * 5000, ["c.yaml:1:1003: nested more than 64 levels deep"]),
    "too deep in brackets": ("a: " + "[" * 80 + "]" * 80, ["c.yaml:1:67: nested more than 64 levels deep"]),
    "numbers that JSON cannot hold": (
        "a: .inf\nb: -.INF\nc: .NaN\nd: 1e999\n",
        [
            "c.yaml:1:4: .inf is no number that JSON can hold; quote it if it is text (at a)",
            "c.yaml:2:4: -.INF is no number that JSON can hold; quote it if it is text (at b)",
            "c.yaml:3:4: .NaN is no number that JSON can hold; quote it if it is text (at c)",
            "c.yaml:4:4: 1e999 is no number that JSON can hold; quote it if it is text (at d)",
        ],
    ),
    "endless number": ("a: " + "9" * 5000, ["c.yaml:1:4: a number of 5,000 digits; quote it if it is text (at a)"]),
    "colon in a value": (
        "prompt: Do this: now\n",
        ["c.yaml:1:16: a ':' where no key can stand; quote a text that holds ': ', or correct the indentation"],
    ),
    "line indented too far": (
        "a: 1\n b: 2\n",
        ["c.yaml:2:3: a ':' where no key can stand; quote a text that holds ': ', or correct the indentation"],
    ),
    "unclosed quote": ("a: 'x\nb: 1\n", ["c.yaml:1:4: a quoted text that never ends"]),
    "quote inside a quote": (
        "a: 'it's'\n",
        [
            "c.yaml:1:8: this does not continue the mapping that starts at line 1, column 1; "
            "check quotes and indentation"
        ],
    ),
    "unclosed list": (
        "a: [1\nb: 2\n",
        ["c.yaml:2:2: ',' or ']' is missing before this, in the list that starts at line 1, column 4"],
    ),
    "unclosed mapping": (
        "a: {x: 1\nb: 2\n",
        ["c.yaml:2:2: ',' or '}' is missing before this, in the mapping that starts at line 1, column 4"],
    ),
    "key without colon": ("a: 1\nb\nc: 2\n", ["c.yaml:2:1: a key without ':'; write 'key: value'"]),
    "list in a mapping": (
        "a: 1\n- b\n",
        [
            "c.yaml:2:1: this does not continue the mapping that starts at line 1, column 1; "
            "check quotes and indentation"
        ],
    ),
    "mapping in a list": (
        "- a\nb: 1\n",
        ["c.yaml:2:1: this does not continue the list that starts at line 1, column 1; check quotes and indentation"],
    ),
    "value that starts with @": ("a: @x\n", ["c.yaml:1:4: a value cannot start with '@'; quote it"]),
    "value that starts with a backquote": ("a: `x`\n", ["c.yaml:1:4: a value cannot start with '`'; quote it"]),
    "backslash in double quotes": (
        'a: "C:\\dir"\n',
        ["c.yaml:1:7: an unknown escape in double quotes; write \\\\ for a backslash, or use single quotes"],
    ),
    "half an emoji": (
        'a: "\\ud83d\\ude00"\n',
        ["c.yaml:1:7: an escape in double quotes that is no character; write the character itself"],
    ),
}


@pytest.mark.parametrize(("content", "said"), BAD.values(), ids=BAD.keys())
def test_a_bad_file_is_described_with_positions(content: bytes | str, said: list[str]) -> None:
    """Each fault of a file is one line with the place and what to do, and all that can be found are found."""
    assert problems_of(content) == said


# Where the two parsers do not say enough to be told apart: the one in Python sees these faults earlier or elsewhere.
DIFFERENT_IN_PYTHON = {
    "backslash in double quotes",
    "far too deep in brackets",
    "half an emoji",
}


@pytest.mark.parametrize(
    ("content", "said"),
    [BAD[name] for name in BAD if name not in DIFFERENT_IN_PYTHON],
    ids=[name for name in BAD if name not in DIFFERENT_IN_PYTHON],
)
def test_the_parser_in_python_leads_to_the_same_words(
    content: bytes | str, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A PyYAML that was built without its parser in C gives the same messages."""
    monkeypatch.delattr(yaml, "CSafeLoader")
    assert problems_of(content) == said


PLAIN = {
    "no": "no", "yes": "yes", "on": "on", "off": "off", "y": "y", "NO": "NO",
    "true": True, "False": False, "TRUE": True, "tRue": "tRue",
    "~": None, "null": None, "NULL": None, "": None, "nUll": "nUll",
    "0": 0, "-0": 0, "12": 12, "+12": 12, "-7": -7, "0x1F": 31, "0o17": 15,
    "007": "007", "00": "00", "-01": "-01", "1_000": "1_000", "0b1": "0b1", "08": "08",
    "1.5": 1.5, "1.": 1.0, ".5": 0.5, "1e3": 1000.0, "-2.5E-1": -0.25, "1.2.3": "1.2.3", ".": ".", "+": "+",
    "01.5": "01.5",
    "2024-01-01": "2024-01-01", "2024-01-01T00:00:00Z": "2024-01-01T00:00:00Z", "12:30": "12:30",
    "12:30:45": "12:30:45",
    "=": "=", "<<": "<<", "hello": "hello",
}  # fmt: skip


@pytest.mark.parametrize(("text", "value"), PLAIN.items(), ids=map(repr, PLAIN))
def test_plain_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    """`no`, dates, times of day and leading zeros stay text; numbers, booleans and null are those of YAML 1.2."""
    found = parse_source(f"a: {text}\nb: ['{text}', \"{text}\"]\n", "c.yaml")
    assert (found.data, found.problems) == ({"a": value, "b": [text, text]}, ())
    assert type(found.data["a"]) is type(value)


def test_a_byte_order_mark_is_accepted() -> None:
    """A BOM, as Windows editors write it, moves no position."""
    source = parse_source(b"\xef\xbb\xbfa: 1\n", "c.yaml")
    assert (source.data, source.position(("a",))) == ({"a": 1}, (1, 1))


def test_small_aliases_are_allowed() -> None:
    """An anchor and a few aliases are ordinary YAML, and each use is data of its own."""
    source = parse_source("a: &notes {path: notes}\nb: [*notes, *notes]\nc: &word hi\nd: *word\n", "c.yaml")
    assert source.problems == ()
    assert source.data == {"a": {"path": "notes"}, "b": [{"path": "notes"}] * 2, "c": "hi", "d": "hi"}
    assert source.data["b"][0] is not source.data["b"][1]


def test_standard_tags_are_understood() -> None:
    """`!!str` and its like say what a plain value is."""
    source = parse_source("a: !!str 5\nb: !!int '5'\nc: ! 7\nd: !!float 3\ne: !!map {}\nf: !!seq []\n", "c.yaml")
    assert source.problems == ()
    assert source.data == {"a": "5", "b": 5, "c": "7", "d": 3.0, "e": {}, "f": []}


def test_positions_point_to_keys_and_items() -> None:
    """A position is that of the key, or of the list item; where a path goes into nothing, of the last that is there."""
    source = parse_source("# c\na: 1\nm:\n  s:\n    - call: {x: {y: 1}}\n    -  say: é\n", "c.yaml")
    wanted = {
        (): (2, 1),
        ("a",): (2, 1),
        ("a", "b", 3): (2, 1),
        ("m",): (3, 1),
        ("m", "s"): (4, 3),
        ("m", "s", 0): (5, 7),
        ("m", "s", 0, "call", "x", "y"): (5, 18),
        ("m", "s", 1, "say"): (6, 8),
        ("m", "s", 9): (4, 3),
        ("m", "s", -1): (4, 3),
        ("z",): (2, 1),
    }
    assert {path: source.position(path) for path in wanted} == wanted


def test_paths_are_written_for_people() -> None:
    """Names are joined by dots, positions in lists and odd names stand in brackets."""
    assert render_path(()) == ""
    assert render_path(("model", "script", 2, "call")) == "model.script[2].call"
    assert render_path(("workspace", "notes/mon.md", "json")) == 'workspace["notes/mon.md"].json'


def test_what_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing file, a directory, a dangling link, a pipe and a huge file have a message each, and none hangs."""
    monkeypatch.chdir(tmp_path)
    Path("folder.yaml").mkdir()
    Path("link.yaml").symlink_to("nowhere")
    os.mkfifo("pipe.yaml")
    with Path("huge.yaml").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    said = {}
    for name in ("missing.yaml", "folder.yaml", "link.yaml", "pipe.yaml", "huge.yaml", "a\0b.yaml"):
        with pytest.raises(CaseError) as caught:
            read_source(Path(name))
        said[name] = str(caught.value)
    assert said == {
        "missing.yaml": "missing.yaml: there is no such file",
        "folder.yaml": "folder.yaml: this is a directory; a case is one YAML file",
        "link.yaml": "link.yaml: a symbolic link to a file that does not exist",
        "pipe.yaml": "pipe.yaml: this is not a regular file; a case is one YAML file",
        "huge.yaml": "huge.yaml: the file has 4,194,305 bytes and a case at most 4 MiB; "
        "let the loop's own code make large data",
        "a\0b.yaml": "a\0b.yaml: no file can have a NUL in its name",
    }


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    """A file that may not be read says so."""
    path = tmp_path / "c.yaml"
    path.write_text("a: 1")
    path.chmod(0)
    with pytest.raises(CaseError, match="the file cannot be read: Permission denied"):
        read_source(path, "c.yaml")


pieces = ["a: ", "- ", "\n", "  ", "&x ", "*x", "? ", "[", "]", "{", "}", "b", ": ", "!!int ", "<<: ", "---\n", "'"]
yaml_like = st.text(st.sampled_from("ab:-\n\t []{},&*!|>'\"%@`#?<1.~é\u2028\x07")) | st.lists(
    st.sampled_from(pieces)
).map("".join)


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=200) | yaml_like | st.text(max_size=200))
def test_parsing_raises_nothing_but_case_errors(content: bytes | str) -> None:
    """Whatever the bytes or the text, the outcome is data or a CaseError with at least one problem."""
    data = None
    try:
        source = parse_source(content, "c.yaml")
        problems, data = source.problems, source.data
    except CaseError as error:
        problems = error.problems
    assert problems or data is not None
    assert all(problem.message and problem.line and problem.column for problem in problems)
    json.dumps(data, allow_nan=False)


# YAML has no escapes for pairs of surrogates, so JSON that was written with them is not read: up to U+FFFF here.
# A key in one line has at most 1,024 characters in YAML, escapes included.
words = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=40)
json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(words, json_like, min_size=1, max_size=5))
def test_json_is_read_as_itself(data: dict[str, object]) -> None:
    """JSON is YAML: what any JSON writer wrote comes back as it was."""
    source = parse_source(json.dumps(data), "c.yaml")
    assert (source.data, source.problems) == (data, ())


keys = st.text("abcdefgh", min_size=1, max_size=5)
tree = st.recursive(
    st.just("x"),
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(keys, inner, min_size=1, max_size=3),
    max_leaves=10,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(keys, tree, min_size=1, max_size=4), st.booleans())
def test_positions_point_to_the_key(data: dict[str, object], flow: bool) -> None:
    """At the position of any path stands its key, in block and in flow style."""
    text = yaml.safe_dump(data, default_flow_style=flow, sort_keys=False)
    source, lines = parse_source(text, "c.yaml"), text.splitlines()

    def check(value: object, path: tuple[str | int, ...]) -> None:
        for key, inner in value.items() if isinstance(value, dict) else ():
            line, column = source.position((*path, key))
            assert lines[line - 1][column - 1 :].startswith(f"{key}:")
            check(inner, (*path, key))
        for index, inner in enumerate(value) if isinstance(value, list) else ():
            check(inner, (*path, index))

    check(data, ())
