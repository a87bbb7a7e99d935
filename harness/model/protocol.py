"""What the Messages API refuses: one verdict on one request, with its status, error type and wording.

Shapes are judged before pairs, and one error is reported a response.  The rules, each with its source, stand in
`shapes` and `pairing`.  Wordings can change, so our own code matches on status and type alone.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.model.pairing import Facts, mispaired
from harness.model.shapes import misshapen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.model.conversation import Turn

__all__ = ["ERROR_TYPES", "MOST_BYTES", "Facts", "Violation", "check", "check_pairs", "check_shape", "parse_body"]

ERROR_TYPES: Final[Mapping[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""HTTP status -> `error.type` (PROTOCOL section 3)."""

MOST_BYTES: Final = 32 * 1024 * 1024  # [M] the limit of the Messages API

_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Violation:
    """A request that the API refuses: HTTP status, `error.type`, `error.message`."""

    status: int
    type: str
    message: str


def parse_body(body: bytes) -> dict[str, Any] | Violation:
    """The request in a body, or why it is none: too long, not JSON, not an object."""
    if len(body) > MOST_BYTES:
        return _refusal(413, "Request exceeds the maximum size")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        return _refusal(400, f"The request body is not valid JSON: {error}")
    if rb"\u" in body and (place := _lone_surrogate(body)) is not None:
        where = f"line 1 column {place + 1} (char {place})"
        return _refusal(400, f"The request body is not valid JSON: no low surrogate in string: {where}")
    if not isinstance(value, dict):
        return _refusal(400, "Input should be a valid dictionary")
    return value


def check(
    request: Mapping[str, Any], facts: Facts | None = None, *, beta: bool = False, counting: bool = False
) -> Violation | None:
    """Judges one request.

    Args:
        request: the parsed body of a request to `/v1/messages`.
        facts: what the model knows beyond it; by default nothing.
        beta: whether the beta API's fields are accepted.
        counting: whether it came to `/v1/messages/count_tokens`.
    """
    return check_shape(request, beta=beta, counting=counting) or check_pairs(request, facts or Facts())


def check_shape(request: Mapping[str, Any], *, beta: bool = False, counting: bool = False) -> Violation | None:
    """The first half of `check`: fields and types.  What passes can be taken apart into turns."""
    problem = misshapen(request, beta=beta, counting=counting)
    return _refusal(400, problem) if problem else None


def check_pairs(request: Mapping[str, Any], facts: Facts, turns: Sequence[Turn] | None = None) -> Violation | None:
    """The second half of `check`, on a well-formed request."""
    problem = mispaired(request, facts, turns)
    return _refusal(400, problem) if problem else None


def _refusal(status: int, message: str) -> Violation:
    return Violation(status, ERROR_TYPES[status], message)


def _lone_surrogate(body: bytes) -> int | None:
    """Where an escape names half of a surrogate pair, in characters ([I] claude-code#6376)."""
    text = body.decode("utf-8", "replace")
    high: re.Match[str] | None = None
    for escape in _ESCAPE.finditer(text):
        code = int(escape[1] or "0", 16)
        follows = high is not None and high.end() == escape.start()
        if 0xDC00 <= code <= 0xDFFF and follows:
            high = None
            continue
        if high is not None or 0xDC00 <= code <= 0xDFFF:
            return (high or escape).end()
        high = escape if 0xD800 <= code <= 0xDBFF else None
    return high.end() if high else None
