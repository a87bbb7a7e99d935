"""Every dialect in which traffic is recorded reads as the same exchange."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest
import yaml

from tests.recordings.reading import Exchange, read_exchanges

URL = "https://api.anthropic.com/v1/messages?beta=true"
ASKED = {"model": "claude-sonnet-5", "messages": [{"role": "user", "content": "Grüße"}]}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "mail", "input": {"on": "2026-01-02", "to": "Zoë"}}
SAID = {"type": "message", "content": [CALL], "stop_reason": "tool_use"}
BODY = json.dumps(SAID, ensure_ascii=False, separators=(",", ":")).encode()
ZIPPED = gzip.compress(BODY, mtime=0)
PLAIN = {"content-type": "application/json"}
EVENTS = [
    {"type": "message_start", "message": {"content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {**CALL, "input": {}}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"on": '}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "1}"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    {"type": "message_stop"},
]


def expected(body: bytes = BODY, **headers: str) -> Exchange:
    return Exchange("POST", URL, ASKED, 200, PLAIN | headers, body)


def vcr(response: dict[str, Any], request: dict[str, Any], **headers: list[str]) -> dict[str, Any]:
    head = {"Content-Type": ["application/json"], **{name.replace("_", "-"): value for name, value in headers.items()}}
    return {
        "request": {"method": "post", "uri": URL, **request},
        "response": {"status": {"code": 200, "message": "OK"}, "headers": head, **response},
    }


def har(content: dict[str, Any], **headers: str) -> dict[str, Any]:
    named = [{"name": name.replace("_", "-"), "value": value} for name, value in headers.items()]
    entry = {
        "request": {"method": "POST", "url": URL, "postData": {"text": json.dumps(ASKED)}},
        "response": {"status": 200, "headers": named, "content": {"mimeType": "application/json", **content}},
    }
    return {"log": {"entries": [entry]}}


SENT = {"body": json.dumps(ASKED)}
CASSETTES = {
    "text": (vcr({"body": {"string": BODY.decode()}}, SENT), expected()),
    "base64": (vcr({"body": {"string": BODY}}, SENT), expected()),
    "gzip": (
        vcr({"body": {"string": ZIPPED}}, SENT, Content_Encoding=["gzip"]),
        expected(ZIPPED, **{"content-encoding": "gzip"}),
    ),
    "gzip, header lost": (
        vcr({"body": {"string": ZIPPED}}, SENT),
        expected(ZIPPED, **{"content-encoding": "gzip"}),
    ),
    "parsed_body": (vcr({"parsed_body": SAID}, {"parsed_body": ASKED}), expected()),
}


@pytest.mark.parametrize("dialect", CASSETTES)
def test_cassettes_of_python(dialect: str) -> None:
    """Bodies as text, as bytes, compressed, or parsed by whoever recorded them."""
    interaction, exchange = CASSETTES[dialect]
    text = yaml.safe_dump({"interactions": [interaction], "version": 1}, allow_unicode=True, sort_keys=False)
    text = text.replace(
        "'2026-01-02'", "2026-01-02"
    )  # as other writers of YAML leave it: a text, for JSON has no dates
    assert read_exchanges("x.yaml", text.encode()) == [exchange]


@pytest.mark.parametrize(
    "body",
    [
        f"encoding: UTF-8\n        string: '{BODY.decode()}'",
        f"encoding: ASCII-8BIT\n        string: !binary |-\n          {base64.b64encode(BODY).decode()}",
        f"encoding: UTF-8\n        base64_string: {base64.b64encode(BODY).decode()}",
    ],
    ids=["text", "!binary", "base64_string"],
)
def test_cassettes_of_ruby(body: str) -> None:
    """Ruby has a tag of its own for bytes, and a list of values for each header."""
    text = f"""---
http_interactions:
- request:
    method: post
    uri: {URL}
    body:
      encoding: UTF-8
      string: '{json.dumps(ASKED)}'
    headers:
      Content-Type:
      - application/json
  response:
    status:
      code: 200
      message: OK
    headers:
      Content-Type:
      - application/json
    body:
        {body}
  recorded_at: Wed, 19 Aug 2026 14:38:55 GMT
recorded_with: VCR 6.4.0
"""
    assert read_exchanges("x.yml", text.encode()) == [expected()]


@pytest.mark.parametrize(
    ("content", "headers", "exchange"),
    [
        ({"text": BODY.decode()}, {}, expected()),
        ({"text": BODY.decode()}, {"content_encoding": "gzip"}, expected()),  # as browsers write it: undone
        ({"text": base64.b64encode(BODY).decode(), "encoding": "base64"}, {}, expected()),
        (
            {"text": json.dumps([base64.b64encode(ZIPPED).decode()]), "encoding": "base64"},
            {"content_encoding": "gzip"},
            expected(ZIPPED, **{"content-encoding": "gzip"}),
        ),
    ],
    ids=["text", "decoded", "base64", "chunks"],
)
def test_har(content: dict[str, Any], headers: dict[str, str], exchange: Exchange) -> None:
    """Bodies as text or in base64, whole or in chunks; a header may speak of a compression that was undone."""
    assert read_exchanges("x.har", json.dumps(har(content, **headers)).encode()) == [exchange]


def test_bare_answers() -> None:
    """An answer without its request is one that the Messages API gave; an error body, one that it refused with."""
    assert read_exchanges("x.json", BODY) == [Exchange("POST", "", None, 200, PLAIN, BODY)]
    error = b'{"type":"error","error":{"type":"api_error","message":"no"}}'
    [refused] = read_exchanges("x.json", error)
    assert (refused.status, refused.kind) == (400, "error")


def test_event_streams() -> None:
    """Raw event streams are kept, data objects get their frame, and one file may hold the answers of several turns."""
    lines = [json.dumps(event, separators=(",", ":")) for event in EVENTS]
    chunks = "\n".join([*lines, *lines])
    stream = "".join(f"event: {event['type']}\ndata: {line}\n\n" for event, line in zip(EVENTS, lines, strict=True))
    [raw] = read_exchanges("x.txt", stream.rstrip("\n").encode())
    assert raw == Exchange("POST", "", None, 200, {"content-type": "text/event-stream; charset=utf-8"}, stream.encode())
    assert read_exchanges("x.chunks.txt", chunks.encode()) == [raw, raw]
    assert (raw.kind, raw.stop_reason) == ("message", "tool_use")
    assert raw.tool_uses == {0: {"type": "tool_use", "id": "toolu_1", "name": "mail", "input": {"on": 1}}}


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("POST", "/v1/messages", "message"),
        ("POST", "/anthropic/v1/messages?beta=true", "message"),
        ("POST", "/model/anthropic.claude/invoke", "message"),
        ("POST", "/v1/messages/count_tokens", "counts tokens"),
        ("GET", "/v1/messages/batches/b1/results", "is about a batch"),
        ("DELETE", "/v1/files/f1", "is about a file"),
        ("POST", "/v1/chat/completions", "speaks OpenAI's protocol"),
        ("GET", "/sample.pdf", "downloads something"),
        ("POST", "/elsewhere", "unknown"),
    ],
)
def test_what_is_no_message_is_told_by_its_endpoint(method: str, path: str, kind: str) -> None:
    """Each endpoint has its name, and one that is not known is not passed over."""
    assert Exchange(method, f"https://example.com{path}", None, 200, PLAIN, BODY).kind == kind


def test_a_file_in_no_format_is_refused() -> None:
    """A reader that skips what it does not know would hide it."""
    with pytest.raises(ValueError, match=r"x\.yaml is in no format that is known"):
        read_exchanges("x.yaml", b"hello: world")
    with pytest.raises(ValueError, match=r"x\.json is in no format that is known"):
        read_exchanges("x.json", b"[]")
