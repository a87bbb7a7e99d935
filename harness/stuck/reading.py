"""What a call on the web is about, what it found, and whether a search found anything at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

__all__ = ["sources_of", "topic_of", "useful_of"]

_SUBJECTS: Final = ("query", "q", "queries", "url", "urls")
_FILLERS: Final = frozenset(
    {
        "breaking",
        "current",
        "currently",
        "latest",
        "live",
        "new",
        "newest",
        "news",
        "now",
        "recent",
        "recently",
        "today",
    }
    | {"top", "up-to-date", "update", "updated", "updates"}
)
_PUNCTUATION: Final = ".,;:!?\"'()[]{}"
_IS_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE).match
_URL: Final = re.compile(r"https?://[^\s\"'<>)\]}]+", re.IGNORECASE)
_FOUND: Final = ("matches", "results", "hits", "files", "items", "count", "total", "num_matches")
_NOTHING: Final = re.compile(
    r"\s*(?:\(?(?:no|0|zero)\s+(?:\w+\s+)?(?:matches|match|results?|hits?|files?|occurrences?)\b"
    r"|nothing (?:was )?found\b|\(?(?:empty|none)\)?\s*\Z|(?:Found|found) (?:0|no)\b|not found\b)",
    re.IGNORECASE,
)
_BINARY: Final = re.compile(r"(?:Binary file .* matches|.*: binary file matches.*)\s*\Z", re.IGNORECASE).match


def topic_of(arguments: object) -> str | None:
    """What a web call is about: an address as it is; else the words of the query without fillers, sorted.

    Numbers and years stay: "budget 2023" and "budget 2024" are two questions.
    """
    if not isinstance(arguments, Mapping):
        return None
    subject = next((arguments[name] for name in _SUBJECTS if arguments.get(name)), None)
    texts = [subject] if isinstance(subject, str) else [*subject] if isinstance(subject, list | tuple) else []
    topics = sorted(_topic(text) for text in texts if isinstance(text, str) and text.strip())
    return "\n".join(topics) if topics else None


def _topic(text: str) -> str:
    text = text.strip()
    if _IS_URL(text):
        return text
    words = (word.strip(_PUNCTUATION) for word in text.lower().split())
    return " ".join(sorted(word for word in words if word and word not in _FILLERS))


def sources_of(result: object, topic: str | None) -> tuple[str, ...] | None:
    """The addresses that a web search found, without query and fragment, sorted; None when there are none.

    The result of a fetch is a page, not a list of finds: its links stay the same while its content moves.
    """
    if topic is not None and _IS_URL(topic):
        return None
    found = {
        re.split(r"[?#]", url, maxsplit=1)[0].rstrip("/.,;") for text in _texts(result) for url in _URL.findall(text)
    }
    return tuple(sorted(found)) or None


def _texts(value: object, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < 20:  # a list of finds is not nested deeper; what contains itself ends here
        inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
        for one in inside:
            yield from _texts(one, depth + 1)


def useful_of(result: object) -> bool | None:
    """Whether a search found at least one hit; None when its result does not say."""
    if result is None:
        return None
    if isinstance(result, Mapping):
        for name in _FOUND:
            if isinstance(value := result.get(name), list | tuple | int):
                return bool(value)
        return None if result else False
    if isinstance(result, list | tuple):
        texts = [one["text"] for one in result if isinstance(one, Mapping) and isinstance(one.get("text"), str)]
        return useful_of("\n".join(texts)) if texts else bool(result)
    if not isinstance(result, str):
        return None
    lines = [line for line in result.splitlines() if line.strip()]
    if not lines or (len(lines) <= 2 and _NOTHING.match(lines[0])):
        return False
    return not all(map(_BINARY, lines))
