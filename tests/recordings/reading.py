"""Recorded Messages API traffic in other people's formats, as HTTP exchanges.

Formats: VCR cassettes of Python and Ruby, HAR, a bare response body in JSON, an event stream as text, and its data
objects one a line.  What the recorder of an exchange took away (a body that it parsed, a compression that it undid) is
put back in the plainest form; everything else is left as it was recorded.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

__all__ = ["ABSENT", "FOLDER", "Exchange", "read_exchanges", "recordings"]

FOLDER: Final = Path(
    os.environ.get("HARNESS_RECORDINGS") or Path(__file__).parents[2].parent / "shared" / "data" / "recordings"
)

ABSENT: Final = "neither ../shared/data/recordings nor the folder that HARNESS_RECORDINGS names exists"
"""Why the tests of recorded traffic are skipped; the data stays outside of the project."""

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream; charset=utf-8"
_GZIP: Final = b"\x1f\x8b"

_MESSAGES: Final = ("/v1/messages", "/invoke")
"""Ends of a path where the Messages API answers; Bedrock's `invoke` takes and gives the same bodies."""

_ELSEWHERE: Final = (
    ("/count_tokens", "counts tokens"),
    ("/count-tokens", "counts tokens"),
    ("/v1/messages/batches", "is about a batch"),
    ("/v1/files", "is about a file"),
    ("/chat/completions", "speaks OpenAI's protocol"),
    ("/v1/responses", "speaks OpenAI's protocol"),
    (":generateContent", "speaks Gemini's protocol"),
    ("/converse", "speaks Bedrock's protocol"),
    ("/invoke-with-response-stream", "speaks Bedrock's protocol"),
)
"""Part of a path, and what an exchange there does that is no message."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer.

    Args:
        method: of the request, in upper case.
        url: of the request; empty when only an answer was recorded.
        request: its JSON body, None when there is none.
        status: of the answer.
        headers: of the answer, as far as they say how to read `body`: content type and encoding.
        body: of the answer, as on the wire.
    """

    method: str
    url: str
    request: Mapping[str, Any] | None
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> bytes:
        """The body without its compression."""
        return gzip.decompress(self.body) if self.headers.get("content-encoding") == "gzip" else self.body

    @property
    def streams(self) -> bool:
        """Whether the answer is an event stream."""
        return "text/event-stream" in self.headers["content-type"]

    @property
    def beta(self) -> bool:
        """Whether the request used the beta API."""
        return "beta=true" in urlsplit(self.url).query

    @property
    def events(self) -> list[dict[str, Any]]:
        """The data objects of the event stream, read line by line: the formats here put each on one."""
        lines = (line for line in self.text.splitlines() if line.startswith(b"data:"))
        return [json.loads(line.removeprefix(b"data:")) for line in lines]

    @property
    def kind(self) -> str:
        """`message`, `error`, or in words why it is no Messages API traffic."""
        path = urlsplit(self.url).path
        if self.url and not (self.method == "POST" and path.endswith(_MESSAGES)):
            reason = next((reason for part, reason in _ELSEWHERE if part in path), None)
            return reason or ("downloads something" if self.method in {"GET", "HEAD"} else "unknown")
        if self.status >= 400:
            return "error"
        objects = self.events if self.streams else [json.loads(self.text)]
        kinds = [one.get("type") for one in objects]
        return "error" if "error" in kinds else "message" if kinds[0] in {"message", "message_start"} else "unknown"

    def events_of(self, *kinds: str) -> list[dict[str, Any]]:
        """The events of these types."""
        return [event for event in self.events if event.get("type") in kinds]

    @property
    def openings(self) -> list[dict[str, Any]]:
        """The content blocks, streamed ones as they were opened."""
        if not self.streams:
            return list(json.loads(self.text)["content"])
        opened = [event["content_block"] for event in self.events_of("content_block_start")]
        # The answer to a tool that code called has its content in the first event, and streams nothing.
        return [*self.events[0]["message"]["content"], *opened]

    @property
    def tool_uses(self) -> dict[int, dict[str, Any]]:
        """The `tool_use` blocks by their place in the content, streamed ones with the input that was streamed."""
        found = {place: block for place, block in enumerate(self.openings) if block["type"] == "tool_use"}
        if self.streams:
            for place, block in found.items():
                deltas = [one["delta"] for one in self.events_of("content_block_delta") if one["index"] == place]
                if text := "".join(delta.get("partial_json", "") for delta in deltas):
                    found[place] = {**block, "input": json.loads(text)}
        return found

    @property
    def stop_reason(self) -> str | None:
        """Why the model stopped; None when the answer broke off."""
        if not self.streams:
            return _text(json.loads(self.text)["stop_reason"])
        last = self.events_of("message_start", "message_delta")[-1]
        return _text(last["delta" if last["type"] == "message_delta" else "message"]["stop_reason"])


def recordings() -> list[str]:
    """The files of the folder, relative to it, sorted; none when it is absent."""
    files = (path for path in FOLDER.rglob("*") if path.is_file() and path.suffix != ".md")
    return sorted(path.relative_to(FOLDER).as_posix() for path in files)


def read_exchanges(name: str, data: bytes) -> list[Exchange]:
    """The exchanges in a file.

    Args:
        name: of the file; its suffix tells the formats of text apart.
        data: what is in it.

    Raises:
        ValueError: it is in none of the formats.
    """
    if name.endswith(".chunks.txt"):
        return [_bare(stream, _EVENTS) for stream in _streams(data)]
    if name.endswith(".txt"):
        # An editor may have taken the blank line from the end of the file, without which the last event is not sent.
        return [_bare(data.rstrip() + b"\n\n", _EVENTS)]
    value = json.loads(data) if name.endswith((".json", ".har")) else yaml.load(data, Loader=_Loader)
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} is in no format that is known")
    if "interactions" in value or "http_interactions" in value:
        return [_of_vcr(one) for one in value.get("interactions") or value["http_interactions"]]
    if "log" in value:
        return [_of_har(one) for one in value["log"]["entries"]]
    if "type" in value:
        return [_bare(data, _JSON)]
    raise ValueError(f"{name} is in no format that is known")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


class _Loader(yaml.CSafeLoader):
    """Plain YAML, with Ruby's own tag for bytes, and texts that look like dates left alone: JSON has none."""

    yaml_implicit_resolvers: Final = {
        first: [(tag, form) for tag, form in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_constructor("!binary", yaml.CSafeLoader.construct_yaml_binary)


def _bare(body: bytes, content_type: str) -> Exchange:
    status = 200
    if content_type == _JSON and json.loads(body)["type"] == "error":
        status = 400
    return Exchange("POST", "", None, status, {"content-type": content_type}, body)


def _streams(data: bytes) -> Iterator[bytes]:
    """The event streams in a file of data objects: it may hold the answers of several turns, one after the other."""
    stream = b""
    for line in data.splitlines():
        if not line.strip():
            continue
        event = json.loads(line)["type"]
        stream += b"event: %b\ndata: %b\n\n" % (event.encode(), line)
        if event == "message_stop":
            yield stream
            stream = b""
    if stream:
        yield stream


def _of_vcr(interaction: Mapping[str, Any]) -> Exchange:
    request, response = interaction["request"], interaction["response"]
    given = (response.get("headers") or {}).items()
    headers = {name.lower(): value[0] if isinstance(value, list) else value for name, value in given}
    return _exchange(
        request["method"], request["uri"], _vcr_body(request), response["status"]["code"], headers, _vcr_body(response)
    )


def _vcr_body(message: Mapping[str, Any]) -> bytes:
    if "parsed_body" in message:
        return json.dumps(message["parsed_body"], ensure_ascii=False, separators=(",", ":")).encode()
    body = message.get("body")
    if isinstance(body, Mapping):
        if "base64_string" in body:
            return base64.b64decode(body["base64_string"])
        body = body.get("string")
    return body if isinstance(body, bytes) else (body or "").encode()


def _of_har(entry: Mapping[str, Any]) -> Exchange:
    request, response = entry["request"], entry["response"]
    headers = {one["name"].lower(): one["value"] for one in response.get("headers", ())}
    content = response.get("content", {})
    headers.setdefault("content-type", content.get("mimeType", ""))
    sent = (request.get("postData") or {}).get("text") or ""
    return _exchange(request["method"], request["url"], sent.encode(), response["status"], headers, _har_body(content))


def _har_body(content: Mapping[str, Any]) -> bytes:
    text = content.get("text") or ""
    if content.get("encoding") != "base64":
        return text.encode()
    # Polly.js writes a list of the chunks that came, as JSON inside the text.
    chunks = json.loads(text) if text.startswith("[") else [text]
    return b"".join(map(base64.b64decode, chunks))


def _exchange(method: str, url: str, sent: bytes, status: int, headers: Mapping[str, str], received: bytes) -> Exchange:
    try:
        request = json.loads(sent)
    except ValueError:
        request = None
    # Recorders undo a compression and leave its header, or the other way round; the body says how it is.
    kept = {"content-type": headers.get("content-type", "")}
    if received.startswith(_GZIP):
        kept["content-encoding"] = "gzip"
    return Exchange(method.upper(), url, request if isinstance(request, dict) else None, status, kept, received)
