"""Whatever a tool returns, as the content of a tool_result that the API takes and that survives every
restart.

A result becomes durable before the model sees it, and one character that JSON cannot carry would then fail
every later request of the run (claude-code#6376: a lone surrogate from a tool).  So nothing leaves here
unclean.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

from harness.agent.blocks import is_block
from harness.agent.contract import MAX_RESULT_CHARS
from harness.errors import ToolError
from harness.plain import described, float_text, integer_text, name_text, opened

__all__ = ["MAX_MEDIA_CHARS", "ToolResult", "error_result", "result_of", "scrub"]

MAX_MEDIA_CHARS = 5_000_000
"""Base64 characters that one image or document may have: the API's limit for an image, from its
documentation.
"""

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)

_UNCLEAN = re.compile("[\x00\ud800-\udfff]")

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What one call gave: JSON-ready content (a string or a list of content blocks), and whether it is an
    error.
    """

    content: str | list[dict[str, Any]]
    is_error: bool = False

    def block(self, tool_use_id: str) -> dict[str, Any]:
        """The tool_result block that answers `tool_use_id`; an empty result has no content, as the API
        documents it.
        """
        answer: dict[str, Any] = {"type": "tool_result", "tool_use_id": tool_use_id}
        if self.content:
            answer["content"] = self.content
        if self.is_error:
            answer["is_error"] = True
        return answer


def result_of(value: Any, *, limit: int = MAX_RESULT_CHARS) -> ToolResult:
    """Turn what a tool returned into a result.

    Strings stay as they are.  Content blocks (mappings or SDK objects of the types text, image, document,
    search_result, tool_reference, with the fields that the API knows and no others), alone or in a list, stay
    blocks.  Bytes become an image or a document when
    they are one, text when they are UTF-8, else a note with size and digest.  Everything else becomes JSON:
    dataclasses and pydantic models by fields, sets sorted, dates and paths as strings; what JSON cannot hold
    is described by type and repr.  The content of a `ToolResult` goes the same way.

    Only the tool can fail, never its value: an object that resists being read is described, and is no error,
    because the model would do a write again that is said to have failed.

    Args:
        value: The returned value.  An iterator is read to its end, and what it raises is raised here.
        limit: Characters of text; what lies beyond is cut out of the middle and the model is told.
    """
    if issubclass(type(value), Iterator):  # not isinstance, which asks the value
        value = list(value)
    try:
        if not isinstance(value, ToolResult):
            return ToolResult(_limited(_content(value), limit))
        empty = isinstance(value.content, (list, tuple)) and not value.content
        return ToolResult([] if empty else _limited(_content(value.content), limit), bool(value.is_error))
    except Exception:  # noqa: BLE001 (whatever a foreign object does when it is looked at)
        failed = type(value) is ToolResult and value.is_error is True
        return ToolResult(_limited(scrub(described(value)), limit), failed)


def error_result(error: BaseException, *, limit: int = MAX_RESULT_CHARS) -> ToolResult:
    """Turn what a tool raised into an `is_error` result.

    An error of the harness speaks for itself; any other is named by its type.  An error that carries content
    of its own, as the SDK's `ToolError` does, is answered with that content.
    """
    content = getattr(error, "content", None) if type(error).__name__ == "ToolError" else None
    if isinstance(content, (str, list, tuple)):
        return replace(result_of(content, limit=limit), is_error=True)
    text = _words_of(error)
    if not isinstance(error, ToolError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return ToolResult(_limited(scrub(text), limit), is_error=True)


def scrub(value: Any) -> Any:
    """A JSON value without NULs and lone surrogates, each replaced by U+FFFD, in keys as well."""
    if isinstance(value, str):
        return _UNCLEAN.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {scrub(key): scrub(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [scrub(item) for item in value]
    return value


def _content(value: Any) -> str | list[dict[str, Any]]:
    if isinstance(value, str):
        return str(scrub(value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _from_bytes(bytes(value))
    block = _as_block(value)
    if block is not None:
        return _with_text([block])
    if isinstance(value, (list, tuple)) and value:
        blocks = [_as_block(item) for item in value]
        if all(block is not None for block in blocks):
            return _with_text([block for block in blocks if block is not None])
    return _as_json(value)


def _as_block(value: Any) -> dict[str, Any] | None:
    try:
        given = value if isinstance(value, Mapping) else _to_dict(value)
        if not isinstance(given, Mapping) or not isinstance(given.get("type"), str):
            return None
        plain = scrub(_plain(given, 0))
    except Exception:  # noqa: BLE001 (what cannot be read is no block; whether it is JSON is asked next)
        return None
    return plain if is_block(plain) else None


def _to_dict(value: Any) -> Any:
    """What an object of the SDK says of itself; `to_dict` of a class, or of another library, may want arguments."""
    to_dict = None if isinstance(value, type) else getattr(value, "to_dict", None)
    return to_dict() if callable(to_dict) else None


def _with_text(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without blank text blocks, for which the API refuses the whole request."""
    return [block for block in blocks if block["type"] != "text" or str(block["text"]).strip()]


def _from_bytes(data: bytes) -> str | list[dict[str, Any]]:
    media = next((media for magic, media in _MAGIC if data.startswith(magic)), None)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        media = "image/webp"
    if media is not None:
        source = {"type": "base64", "media_type": media, "data": base64.b64encode(data).decode("ascii")}
        return [{"type": "document" if media == "application/pdf" else "image", "source": source}]
    try:
        return str(scrub(data.decode("utf-8")))
    except UnicodeDecodeError:
        return f"[{len(data):,} bytes of binary data, SHA-256 {hashlib.sha256(data).hexdigest()}]"


def _as_json(value: Any) -> str:
    try:
        return json.dumps(scrub(_plain(value, 0)), ensure_ascii=False, allow_nan=False)
    except RecursionError:
        return f"[a result of type {type(value).__name__} that is nested too deeply to be shown]"


_MAX_DEPTH = 200  # deeper than any result that a model reads; a result that contains itself ends here


def _plain(value: object, depth: int) -> Any:
    """`value` in the types of JSON."""
    if depth > _MAX_DEPTH:
        raise RecursionError
    value = opened(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        # Python refuses to write longer ones in decimal, and so would json.dumps.
        return int(value) if value.bit_length() < 10_000 else integer_text(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else float_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        content = _from_bytes(bytes(value))
        return content if isinstance(content, str) else f"[{len(value):,} bytes of {_media_type(content)}]"
    if isinstance(value, Mapping):
        return {name_text(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, AbstractSet):
        return sorted((_plain(item, depth + 1) for item in value), key=json.dumps)
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    return described(value)


def _media_type(blocks: list[dict[str, Any]]) -> str:
    return str(blocks[0]["source"]["media_type"])


def _words_of(error: BaseException) -> str:
    try:
        return _ADDRESS.sub("0x", str(error))  # an address says nothing and differs by run
    except Exception:  # noqa: BLE001 (a fault of a foreign __str__ is no fault of the call)
        return described(error)


def _limited(content: str | list[dict[str, Any]], limit: int) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return _cut(content, limit)
    left = limit
    blocks = []
    for block in content:
        kept = _small_media(block)
        if kept["type"] == "text":
            kept = {**kept, "text": _cut(kept["text"], max(left, 0))}
            left -= len(kept["text"])
        blocks.append(kept)
    return blocks


def _cut(text: str, limit: int) -> str:
    """Head and tail of a text: what it is stands at the head, how it ended (error, total) at the tail."""
    if len(text) <= limit:
        return text
    head, tail = limit - limit // 5, limit // 5
    note = (
        f"[result shortened: {len(text):,} characters in all; the first {head:,} and the last {tail:,} are shown, "
        f"{len(text) - limit:,} between them are not. Ask for a smaller part if you need the rest.]"
    )
    return f"{text[:head]}\n{note}\n{text[len(text) - tail :]}"


def _small_media(block: dict[str, Any]) -> dict[str, Any]:
    source = block.get("source")
    data = source.get("data") if isinstance(source, Mapping) else None
    if not isinstance(data, str) or len(data) <= MAX_MEDIA_CHARS:
        return block
    kind = block["type"]
    note = f"[{kind} left out: {len(data):,} base64 characters, and the API takes {MAX_MEDIA_CHARS:,}]"
    return {"type": "text", "text": note}
