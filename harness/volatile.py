"""What varies from run to run inside a text, and the placeholder that takes its place."""

from __future__ import annotations

import os
import re
import tempfile
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from harness.errors import NormalizeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["PLACEHOLDERS", "VOLATILE_KEYS", "Search", "Volatile", "camel"]

Search: TypeAlias = Callable[[str], re.Match[str] | None]

VOLATILE_KEYS: Final = ("cursor", "nonce", "request_id", "timestamp", "trace_id")

PLACEHOLDERS: Final = ("id", "tmp", "ts", "uuid", "workspace")

_HEX: Final = "[0-9a-fA-F]"
_UUID: Final = rf"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"
_ZONE: Final = r"(?: ?(?:[Zz](?![A-Za-z0-9])|UTC|GMT|[+-]\d{2}:?\d{2}|[+-]\d{2}(?![\d:-])))?"

# name, expression, gates.  Every match of an expression contains a match of one of its gates.  A gate begins with a
# fixed character, which the regular expression engine finds at memchr speed, so that a text without anything volatile
# costs next to nothing.
_DEFAULTS: Final = (
    (
        "ts",  # RFC 3339 and ISO 8601: seconds, fraction and zone belong to the match, so that nothing of them stays
        r"(?<!\d)\d{4}-(?:0\d|1[0-2])-(?:[0-2]\d|3[01])[Tt _]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?" + _ZONE,
        (r"-\d\d[Tt _]\d\d:",),
    ),
    (
        "ts",  # the basic form, without separators
        r"(?<!\d)\d{8}[Tt]\d{4}(?:\d{2}(?:[.,]\d+)?)?(?!\d)" + _ZONE,
        (r"T\d{4}", r"t\d{4}"),
    ),
    (
        "uuid",
        rf"\{{{_UUID}\}}|(?<!{_HEX}){_UUID}(?!{_HEX})",
        (r"-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-",),
    ),
    (
        "id",
        r"(?<![A-Za-z0-9])(?:srv)?toolu_[A-Za-z0-9_-]+|(?<![A-Za-z0-9])msg_[A-Za-z0-9]{8,}",
        (r"_(?<=toolu_)|_(?<=msg_)",),
    ),
)

# What the writer puts between angle brackets by itself.
_WRITTEN: Final = r"bytes [0-9a-f]{12}|digest [0-9a-f]{12}|int -?0x[0-9a-f]+|#\d+|nan|-?inf|recursion|deep"

# A directory that `tempfile` or pytest named at random, below a root for temporary files.
_RANDOM_DIRECTORY: Final = r"(?:/(?:tmp[a-z0-9_]{8}|pytest-of-[^/\s\"']+/pytest-(?:\d+|current))(?![\w-]))?"


@dataclass(frozen=True, slots=True)
class _Rule:
    placeholder: str
    expression: re.Pattern[str]
    gates: tuple[Search, ...]


class Volatile:
    """The rules for text: the defaults, less those kept, and a project's own patterns.

    Args:
        patterns: name to regular expression; each match becomes `<name>`.
        keep: default placeholders that are not volatile here.
        workspace: directory of the case; its path becomes `<workspace>`.

    Raises:
        NormalizeError: a pattern does not compile, or matches the empty text.
    """

    def __init__(
        self, patterns: Mapping[str, str], keep: Iterable[str] = (), workspace: str | Path | None = None
    ) -> None:
        kept = set(keep)
        # The project's own rules see a text before the defaults cut it up.
        self._rules = [_Rule(f"<{name}>", _compiled(name, pattern), ()) for name, pattern in patterns.items()]
        for name, root in _roots(workspace):
            if name not in kept:
                random = _RANDOM_DIRECTORY if name == "tmp" else ""
                expression = re.compile(rf"(?<![\w./-]){re.escape(root)}(?![\w-]){random}")
                self._rules.append(_Rule(f"<{name}>", expression, (re.compile(re.escape(root)).search,)))
        for name, pattern, gates in _DEFAULTS:
            if name not in kept:
                self._rules.append(_Rule(f"<{name}>", re.compile(pattern), tuple(re.compile(g).search for g in gates)))
        names = "|".join(sorted({*PLACEHOLDERS, *patterns}))
        self._placeholder = re.compile(f"<(?:{names}|{_WRITTEN})>")
        self.gates: tuple[Search, ...] = tuple(dict.fromkeys(gate for rule in self._rules for gate in rule.gates))
        ungated = [rule.expression.search for rule in self._rules if not rule.gates]
        self._searches: tuple[Search, ...] = (*ungated, *self.gates)
        self.gated = not ungated

    def replaced(self, text: str) -> str:
        """The text in NFC with each volatile part replaced by its placeholder; placeholders stay as they are.

        Repeated until nothing changes, since a replacement may complete a match of another rule.  Each round turns at
        least one character outside placeholders into a placeholder, so it ends.
        """
        if not text.isascii():
            text = unicodedata.normalize("NFC", text)
        while True:
            before = text
            if self._found(text):
                for rule in self._rules:
                    if not rule.gates or any(gate(text) for gate in rule.gates):
                        text = self._apply(rule, text)
            if text == before:
                return text

    def _found(self, text: str) -> bool:
        """Whether any rule could apply.  Most texts end here: nearly all of the cost of a text is these searches."""
        for search in self._searches:  # noqa: SIM110 (any() over a generator costs twice as much)
            if search(text):
                return True
        return False

    def _apply(self, rule: _Rule, text: str) -> str:
        if "<" not in text:
            return rule.expression.sub(lambda _: rule.placeholder, text)
        parts: list[str] = []
        end = 0
        for kept in self._placeholder.finditer(text):
            parts += (rule.expression.sub(lambda _: rule.placeholder, text[end : kept.start()]), kept.group())
            end = kept.end()
        parts.append(rule.expression.sub(lambda _: rule.placeholder, text[end:]))
        return "".join(parts)


def camel(key: str) -> str:
    """The camelCase form of a snake_case key."""
    first, *rest = key.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _compiled(name: object, pattern: object) -> re.Pattern[str]:
    path = ("patterns", str(name))
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
        raise NormalizeError(f"the name of a pattern is letters, digits, '-' and '_', not {name!r}", path)
    if not isinstance(pattern, str):
        raise NormalizeError(f"a pattern is a regular expression as text, not {pattern!r}", path)
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise NormalizeError(f"the expression {pattern!r} does not compile: {error}", path) from None
    if compiled.match(""):
        raise NormalizeError(f"the expression {pattern!r} matches the empty text and so everywhere", path)
    return compiled


def _roots(workspace: str | Path | None) -> list[tuple[str, str]]:
    """Placeholder and path of each directory whose place says nothing: the workspace first, then the longest."""
    temporary = tempfile.gettempdir()
    places = dict.fromkeys((temporary, os.path.realpath(temporary), "/tmp"), "tmp")  # noqa: S108 (a text to find)
    if workspace is not None:
        places |= {str(Path(workspace).absolute()): "workspace", os.path.realpath(workspace): "workspace"}
    return sorted(
        ((name, root) for root, name in places.items()), key=lambda pair: (pair[0] != "workspace", -len(pair[1]))
    )
