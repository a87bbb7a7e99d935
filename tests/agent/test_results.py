"""Whatever a tool returns or raises becomes content that the API takes and that survives every restart."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import enum
import hashlib
import json
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from anthropic.lib.tools import ToolError as SdkToolError
from anthropic.types import TextBlockParam
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from harness.agent import ToolInputError, ToolResult
from harness.agent.execution import result_or_error
from harness.agent.results import MAX_MEDIA_CHARS, error_result, result_of, scrub

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    when: datetime.date


class Row(BaseModel):
    name: str
    at: pathlib.PurePosixPath


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", "text"),
        ("", ""),
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (1.5, "1.5"),
        ([], "[]"),
        ({}, "{}"),
        ({"a": [1, {"ü": None}]}, '{"a": [1, {"ü": null}]}'),
        ((1, 2), "[1, 2]"),
        ({3, 1, 2}, "[1, 2, 3]"),
        ({1: "a", None: "b", Colour.RED: "c"}, '{"1": "a", "null": "b", "red": "c"}'),
        (float("nan"), '"<nan>"'),
        (Point(1, datetime.date(2026, 3, 1)), '{"x": 1, "when": "2026-03-01"}'),
        (Row(name="n", at=pathlib.PurePosixPath("a/b")), '{"name": "n", "at": "a/b"}'),
        (b"plain \xc3\xbc", "plain ü"),
        ({"data": PNG}, '{"data": "[16 bytes of image/png]"}'),
        (b"\xff\x00\xfe", f"[3 bytes of binary data, SHA-256 {hashlib.sha256(bytes([255, 0, 254])).hexdigest()}]"),
        (iter(["a", "b"]), '["a", "b"]'),
        ("a\x00b\ud800c", "a\ufffdb\ufffdc"),
        ({"k\x00": ["\udfff"]}, '{"k\ufffd": ["\ufffd"]}'),
    ],
    ids=lambda value: re.sub("<list_iterator.*>", "<list_iterator>", repr(value)),  # workers must agree on ids
)  # fmt: skip
def test_any_value_becomes_text(value: Any, content: str) -> None:
    """Strings stay, everything else becomes JSON, and nothing that JSON cannot carry is left."""
    assert result_of(value) == ToolResult(content)


def test_what_cannot_be_serialized_is_described() -> None:
    """An object without JSON form is known by type and repr; a repr that fails costs only itself."""
    assert result_of(Rude()).content == f'"<{__name__}.Rude>"'
    assert str(result_of(object()).content).startswith('"<builtins.object: <object object at 0x')
    endless: list[Any] = []
    endless.append(endless)
    assert result_of(endless).content == "[a result of type list that is nested too deeply to be shown]"


def test_content_blocks_stay_blocks() -> None:
    """Blocks go to the model as they are, alone or in a list; a list with anything else is data."""
    text = TextBlockParam(type="text", text="x")
    image = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    assert result_of([text, image]) == ToolResult([dict(text), image])
    assert result_of(image) == ToolResult([image])
    assert result_of([text, 1]).content == '[{"type": "text", "text": "x"}, 1]'
    assert result_of({"type": "text"}).content == '{"type": "text"}'
    assert result_of({"type": "invoice", "text": "x"}).content == '{"type": "invoice", "text": "x"}'


PICTURE = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
        {"type": "text", "text": "x", "citations": None},
        {"type": "image", "source": PICTURE, "transformations": {"oversized_image": "error"}},
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "x"},
            "title": "T",
            "context": None,
            "citations": {"enabled": True},
        },
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "x"}]}},
        {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}},
        {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "x"}]},
        {"type": "tool_reference", "tool_name": "read_file"},
    ],
)
def test_every_block_of_the_api_is_known(block: dict[str, Any]) -> None:
    """Each type of block in each of its shapes reaches the model as it is, in a `ToolResult` as well."""
    assert result_of([block]) == ToolResult([block])
    assert result_of(ToolResult([block], is_error=True)) == ToolResult([block], is_error=True)


@pytest.mark.parametrize(
    "data",
    [
        {"type": "text", "text": "Hello", "marks": [{"type": "bold"}]},
        {"type": "text", "text": 5},
        {"type": "text", "text": "x", "citations": [{"type": "book"}]},
        {"type": "text", "text": "x", "cache_control": {"type": "forever"}},
        {"type": "image", "source": "https://example.com/a.png"},
        {"type": "image", "source": {"type": "url", "url": 5}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "QUJD"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "no base64"}},
        {"type": "document", "source": "crm"},
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": " "}]}},
        {"type": "search_result", "source": "s", "title": "t", "content": "x"},
        {"type": "search_result", "content": [{"type": "text", "text": "x"}]},
        {"type": "tool_reference", "tool_name": None},
        {"type": "weird"},
        {"type": ["text"], "text": "x"},
    ],
)
def test_data_that_looks_like_a_block_is_data(data: dict[str, Any]) -> None:
    """The API would refuse every later request of the run for one unknown field, so it is sent as text."""
    text = json.dumps([data])
    assert result_of([data]) == ToolResult(text)
    assert result_of([{"type": "text", "text": "x"}, data]).content == json.dumps([{"type": "text", "text": "x"}, data])
    assert result_of(ToolResult([data], is_error=True)) == ToolResult(text, is_error=True)


def test_the_content_of_a_tool_result_is_cleaned_as_any_other() -> None:
    """A lone surrogate or a blank block in a `ToolResult` would make the run impossible to resume."""
    assert result_of(ToolResult("a\ud800")) == ToolResult("a\ufffd")
    blocks = [{"type": "text", "text": "\x00b"}, {"type": "text", "text": " "}]
    assert result_of(ToolResult(blocks, is_error=True)) == ToolResult([{"type": "text", "text": "\ufffdb"}], True)
    assert result_of(ToolResult([])) == ToolResult([])


class Choosy:
    def to_dict(self, orient: str) -> dict[str, Any]:
        raise AssertionError(orient)

    def __repr__(self) -> str:
        return "Choosy()"


class Closed(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise OSError("closed")

    def __iter__(self) -> Iterator[str]:
        raise OSError("closed")

    def __len__(self) -> int:
        return 1

    def get(self, key: str, default: Any = None) -> Any:
        raise OSError("closed")


class Burst(dict[str, Any]):
    def items(self) -> Any:
        raise OSError("burst")


class Liar:
    @property
    def __class__(self) -> Any:  # type: ignore[override]
        raise OSError("liar")

    def __repr__(self) -> str:
        return "Liar(\ud800)"


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (Choosy(), f'"<{__name__}.Choosy: Choosy()>"'),
        (Choosy, f"\"<builtins.type: <class '{__name__}.Choosy'>>\""),
        ([Choosy()], f'["<{__name__}.Choosy: Choosy()>"]'),
        (Closed(), f'"<{__name__}.Closed>"'),
        (Burst(a=1), f"<{__name__}.Burst: {{'a': 1}}>"),
        (Liar(), f"<{__name__}.Liar: Liar(\ufffd)>"),
        ({"type": "text", "text": 5}, '{"type": "text", "text": 5}'),
        (ToolResult(None), "null"),  # type: ignore[arg-type]
        (ToolResult(5), "5"),  # type: ignore[arg-type]
        (ToolResult({"a": 1}), '{"a": 1}'),  # type: ignore[arg-type]
        (ToolResult(["a"]), '["a"]'),  # type: ignore[list-item]
        (ToolResult(b"plain"), "plain"),  # type: ignore[arg-type]
        (ToolResult(Closed()), f'"<{__name__}.Closed>"'),  # type: ignore[arg-type]
    ],
    ids=range(13),
)
def test_a_call_that_succeeded_is_never_reported_as_failed(value: Any, content: str) -> None:
    """A value that resists conversion is described and is no error: the model would do the write again."""
    assert result_or_error(value, 1000) == ToolResult(content)


def test_an_iterator_that_fails_is_a_failure_of_the_tool() -> None:
    """A generator runs the tool's own code while it is read."""

    def rows() -> Iterator[int]:
        yield 1
        raise OSError("lost")

    assert result_or_error(rows(), 1000) == ToolResult("OSError: lost", is_error=True)


def test_images_and_documents_in_bytes_are_shown_as_what_they_are() -> None:
    """A screenshot returned as bytes reaches the model as a picture, a PDF as a document."""
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    assert result_of(PNG) == ToolResult([{"type": "image", "source": source}])
    pdf = result_of(b"%PDF-1.7 \xff").content
    assert isinstance(pdf, list)
    assert pdf[0]["type"] == "document"


def test_blank_text_blocks_are_left_out() -> None:
    """One blank text block would have the API refuse the whole request."""
    assert result_of([{"type": "text", "text": " "}, {"type": "text", "text": "a"}]) == ToolResult(
        [{"type": "text", "text": "a"}]
    )
    assert result_of([{"type": "text", "text": ""}]).block("toolu_1") == {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
    }


def test_a_long_result_is_cut_in_the_middle_and_says_so() -> None:
    """Head and tail are kept, and the model learns how much is missing and what to do."""
    cut = str(result_of("a" * 90 + "b" * 20, limit=50).content)
    assert cut == (
        "a" * 40
        + "\n[result shortened: 110 characters in all; the first 40 and the last 10 are shown, "
        + "60 between them are not. Ask for a smaller part if you need the rest.]\n"
        + "b" * 10
    )
    assert result_of("a" * 50, limit=50).content == "a" * 50


def test_the_limit_counts_all_text_blocks_together() -> None:
    """Ten blocks are not ten times the limit."""
    blocks = [{"type": "text", "text": "x" * 40}] * 3
    content = result_of(blocks, limit=50).content
    assert isinstance(content, list)
    assert content[0] == blocks[0]
    assert [("shortened" in block["text"]) for block in content] == [False, True, True]


def test_a_picture_beyond_the_apis_limit_is_left_out_and_said_so() -> None:
    """A request that the API would refuse whole is not sent."""
    data = "A" * (MAX_MEDIA_CHARS + 4)
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    assert result_of([block]).content == [
        {"type": "text", "text": "[image left out: 5,000,004 base64 characters, and the API takes 5,000,000]"}
    ]


def test_errors_are_told_apart() -> None:
    """A tool's exception carries its type, a refusal its own words, an SDK error its own content."""
    assert error_result(ValueError("bad\x00 value")) == ToolResult("ValueError: bad\ufffd value", is_error=True)
    assert error_result(KeyError()) == ToolResult("KeyError", is_error=True)
    assert error_result(RuntimeError("<A object at 0x7f001122>")).content == "RuntimeError: <A object at 0x>"
    refusal = ToolInputError("t", ["`a` is required and missing"])
    assert error_result(refusal).content == str(refusal)
    blocks: list[Any] = [
        {"type": "text", "text": "no"},
        {"type": "image", "source": {"type": "url", "url": "https://a.io/b.png"}},
    ]
    assert error_result(SdkToolError(blocks)) == ToolResult(blocks, is_error=True)


def test_a_result_answers_its_call() -> None:
    """The block carries content and `is_error` only where there is something to say."""
    assert ToolResult("x").block("toolu_1") == {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
    assert ToolResult("", is_error=True).block("toolu_1") == {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "is_error": True,
    }


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary() | st.dates(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner),
    max_leaves=12,
)


@given(ANYTHING)
def test_every_result_is_clean_json(value: Any) -> None:
    """Law: whatever comes in, what goes out is valid UTF-8 JSON without NULs, and cleaning twice changes nothing."""
    content = result_of(value).content
    assert scrub(content) == content
    sent = json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8")
    assert b"\x00" not in sent
    assert json.loads(sent) == content
