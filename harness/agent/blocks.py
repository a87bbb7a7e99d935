"""Which mappings are content blocks that the API takes inside a tool_result, and which only look like one.

The API refuses a whole request for one field that it does not know, and a result that is durable is sent with
every later request.  So a mapping is a block only when nothing about it is strange; data of another system
(`{"type": "text", "text": …, "marks": […]}` of an editor) is data.

The shapes are those of the SDK's parameter types (`anthropic.types.ToolResultBlockParam` and what it holds).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

__all__ = ["is_block"]

Check: TypeAlias = Callable[[Any], bool]


def is_block(value: Any) -> bool:
    """Whether plain JSON data is a content block of a tool_result, down to its last field."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    return isinstance(kind, str) and kind in _BLOCKS and _BLOCKS[kind](value)


def _shape(required: Mapping[str, Check], optional: Mapping[str, Check]) -> Check:
    """All of the required fields, any of the optional ones, and no other."""
    fields = {**required, **optional}

    def fits(value: Any) -> bool:
        return (
            isinstance(value, Mapping)
            and required.keys() <= value.keys() <= fields.keys()
            and all(fields[name](item) for name, item in value.items())
        )

    return fits


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _said(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _url(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(("https://", "http://"))


def _base64(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(base64.b64decode(value, validate=True))
    except ValueError:
        return False


def _one_of(*values: str) -> Check:
    return lambda value: isinstance(value, str) and value in values


def _or_null(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and bool(value) and all(check(item) for item in value)


def _any_of(*checks: Check) -> Check:
    return lambda value: any(check(value) for check in checks)


def _citation(value: Any) -> bool:
    """A citation of a response that is passed on; what it cites is the API's own word."""
    return isinstance(value, Mapping) and value.get("type") in _CITATIONS and _text(value.get("cited_text"))


_CITATIONS: Final = (
    "char_location",
    "page_location",
    "content_block_location",
    "web_search_result_location",
    "search_result_location",
)

_CACHED: Final[dict[str, Check]] = {
    "cache_control": _or_null(_shape({"type": _one_of("ephemeral")}, {"ttl": _one_of("5m", "1h")}))
}
_CITED: Final = _shape({}, {"enabled": _flag})


def _texts(check: Check) -> Check:
    citations = _or_null(lambda value: isinstance(value, list) and all(_citation(item) for item in value))
    return _shape({"type": _one_of("text"), "text": check}, {"citations": citations, **_CACHED})


_URL_SOURCE: Final = _shape({"type": _one_of("url"), "url": _url}, {})
_FILE_SOURCE: Final = _shape({"type": _one_of("file"), "file_id": _said}, {})


def _inline(encoding: str, data: Check, *media: str) -> Check:
    return _shape({"type": _one_of(encoding), "media_type": _one_of(*media), "data": data}, {})


_IMAGE: Final = _shape(
    {
        "type": _one_of("image"),
        "source": _any_of(
            _inline("base64", _base64, "image/jpeg", "image/png", "image/gif", "image/webp"), _URL_SOURCE, _FILE_SOURCE
        ),
    },
    {"transformations": _or_null(_shape({}, {"oversized_image": _one_of("downsize", "error")})), **_CACHED},
)

_CONTENT_SOURCE: Final = _shape(
    {"type": _one_of("content"), "content": _any_of(_said, _list_of(_any_of(_texts(_said), _IMAGE)))}, {}
)

_BLOCKS: Final[dict[str, Check]] = {
    "text": _texts(_text),
    "image": _IMAGE,
    "document": _shape(
        {
            "type": _one_of("document"),
            "source": _any_of(
                _inline("base64", _base64, "application/pdf"),
                _inline("text", _said, "text/plain"),
                _CONTENT_SOURCE,
                _URL_SOURCE,
                _FILE_SOURCE,
            ),
        },
        {"title": _or_null(_text), "context": _or_null(_text), "citations": _or_null(_CITED), **_CACHED},
    ),
    "search_result": _shape(
        {
            "type": _one_of("search_result"),
            "source": _said,
            "title": _said,
            "content": _list_of(_texts(_said)),
        },
        {"citations": _CITED, **_CACHED},
    ),
    "tool_reference": _shape({"type": _one_of("tool_reference"), "tool_name": _said}, _CACHED),
}
