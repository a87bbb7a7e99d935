"""Canonical JSON without what varies by run, and digests over it.

Keys are sorted, there is no white space, integral floats are integers, text is in NFC, and what varies is replaced by a
placeholder or dropped.  Equal digests mean equal canonical texts.

Most arguments hold nothing volatile.  So the C encoder of the standard library writes them first, a few searches look
for anything that could need more, and only then the exact but slower writer runs.  Both write the same text for the
values that the first one is trusted with; a property test holds them to it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from harness.errors import NormalizeError
from harness.plain import described, float_text, integer_text, name_text, opened
from harness.volatile import PLACEHOLDERS, VOLATILE_KEYS, Search, Volatile, camel

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["DIGEST_KEY_VARIABLE", "Normalizer", "digest_key", "key_fingerprint"]

DIGEST_KEY_VARIABLE: Final = "HARNESS_DIGEST_KEY"

MAX_NAMES: Final = 4096  # object keys remembered; they repeat from call to call

MAX_DEPTH: Final = 2000  # deeper than any tool input, and far from quadratic cost in the set of enclosing objects

_encode: Final = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_encode_string: Final = json.encoder.encode_basestring

_DROPPED: Final = "\0dropped"  # told by identity; no object key is this very string

# What the C encoder writes in another way than the exact writer: integral floats.
_ENCODED_OTHERWISE: Final = tuple(re.compile(pattern).search for pattern in (r"\.0(?:[,}\]]|$)", r"\+(?<=e\+)"))
# Keys that the C encoder may have made from numbers, booleans or None: it sorts them before it converts them.
_CONVERTED_KEY: Final = r"-?\d[^\"]*|true|false|null"


def digest_key() -> bytes | None:
    """The key for HMAC digests from `HARNESS_DIGEST_KEY`, or None when it is not set or empty."""
    value = os.environ.get(DIGEST_KEY_VARIABLE, "")
    return value.encode("utf-8", "surrogateescape") or None


def key_fingerprint(key: bytes | None) -> str | None:
    """8 hex digits that tell one digest key from another without telling the key."""
    if key is None:
        return None
    return hmac.digest(key, b"harness digest key fingerprint", "sha256").hex()[:8]


class Normalizer:
    """Turns any value into canonical JSON without what varies by run, and into digests.

    Args:
        keys: object keys to drop at any depth, beside the default ones; the camelCase form is dropped as well.
        patterns: name to regular expression; each match inside a string becomes `<name>`.
        keep: default keys (`cursor`) or placeholders (`uuid`, `ts`, `id`, `tmp`) that are not volatile here.
        workspace: directory of the case; its path becomes `<workspace>`.
        key: key for HMAC-SHA-256; without it digests are plain SHA-256.

    Raises:
        NormalizeError: a pattern does not compile or matches the empty text, or `keep` names nothing known.
    """

    def __init__(
        self,
        *,
        keys: Iterable[str] = (),
        patterns: Mapping[str, str] | None = None,
        keep: Iterable[str] = (),
        workspace: str | Path | None = None,
        key: bytes | None = None,
    ) -> None:
        self.keys = tuple(keys)
        self.patterns = dict(patterns or {})
        self.keep = tuple(keep)
        self.key = key
        known = sorted({*VOLATILE_KEYS, *PLACEHOLDERS})
        for index, name in enumerate(self.keep):
            if name not in known:
                raise NormalizeError(f"{name!r} is no default to keep; there are: {', '.join(known)}", ("keep", index))
        dropped = [name for name in (*VOLATILE_KEYS, *self.keys) if name not in self.keep]
        self._dropped = frozenset(dropped) | frozenset(map(camel, dropped))
        self._volatile = Volatile(self.patterns, self.keep, workspace)
        names = "|".join([*(re.escape(_encode(name)[1:-1]) for name in sorted(self._dropped)), _CONVERTED_KEY])
        self._suspects: tuple[Search, ...] = (
            *self._volatile.gates,
            re.compile(f'"(?:{names})":').search,
            *_ENCODED_OTHERWISE,
        )
        self._names: dict[str, str] = {}
        self._hash = _sha256 if key is None else partial(_hmac_sha256, key)
        # A project's own expression may look for what JSON escapes, or use anchors: no search in a text can decide.
        self._shortcut = self._volatile.gated

    @classmethod
    def parse(
        cls, rules: Mapping[str, Any] | None, *, workspace: str | Path | None = None, key: bytes | None = None
    ) -> Normalizer:
        """Build one from a `normalize:` mapping with the keys `keys`, `patterns` and `keep`.

        Raises:
            NormalizeError: with the path of what is wrong.
        """
        rules = rules or {}
        if not isinstance(rules, Mapping):
            raise NormalizeError(f"'normalize' takes a mapping with keys, patterns, keep, not {rules!r}")
        for name in rules:
            if name not in ("keys", "patterns", "keep"):
                raise NormalizeError(f"unknown key {name!r}; there are: keys, patterns, keep", (str(name),))
        for name in ("keys", "keep"):
            value = rules.get(name, [])
            if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
                raise NormalizeError(f"{name!r} takes a list of names, not {value!r}", (name,))
        patterns = rules.get("patterns", {})
        if not isinstance(patterns, Mapping):
            raise NormalizeError(f"'patterns' takes a mapping of names to expressions, not {patterns!r}", ("patterns",))
        return cls(
            keys=rules.get("keys", ()), patterns=patterns, keep=rules.get("keep", ()), workspace=workspace, key=key
        )

    def extended(self, rules: Mapping[str, Any] | None, *, workspace: str | Path | None = None) -> Normalizer:
        """These rules and those of a `normalize:` mapping on top, for a run in `workspace`."""
        more = Normalizer.parse(rules)
        return Normalizer(
            keys=(*self.keys, *more.keys),
            patterns={**self.patterns, **more.patterns},
            keep=(*self.keep, *more.keep),
            workspace=workspace,
            key=self.key,
        )

    def canonical(self, value: object) -> str:
        """The canonical JSON text of the normalized value.  Never raises, whatever the value."""
        if self._shortcut:
            try:
                text = _encode(value)
            except (TypeError, ValueError, RecursionError):
                return self._write(value)
            if not self._suspicious(text):
                return text
        return self._write(value)

    def normalize(self, value: object) -> Any:
        """The normalized value as plain JSON data; one nested too deep for the parser becomes its digest."""
        text = self.canonical(value)
        try:
            return json.loads(text)
        except (RecursionError, ValueError):  # ValueError: an integer of more digits than the interpreter takes
            return f"<digest {self._hash(text)[:12]}>"

    def digest(self, value: object) -> str:
        """12 hex digits over the canonical JSON of the value."""
        return self._hash(self.canonical(value))[:12]

    def digest_call(self, arguments: object) -> tuple[str, dict[str, str]]:
        """The digest of a tool's input, and 8 hex digits for each of its top-level arguments by name.

        An input that is no object counts as one argument, `input`.
        """
        if self._shortcut and type(arguments) is dict:
            try:
                texts = {
                    name: _encode_string(value) if type(value := arguments[name]) is str else _encode(value)
                    for name in sorted(arguments)
                }
                text = "{" + ",".join([f"{_encode_string(name)}:{value}" for name, value in texts.items()]) + "}"
            except (TypeError, ValueError, RecursionError):
                return self._digest_members(arguments)
            if not self._suspicious(text):
                return self._hash(text)[:12], {name: self._hash(value)[:8] for name, value in texts.items()}
        if isinstance(arguments, Mapping):
            return self._digest_members(arguments)
        digest = self.digest(arguments)
        return digest, {"input": digest[:8]}

    def _digest_members(self, arguments: Mapping[Any, Any]) -> tuple[str, dict[str, str]]:
        texts = {name: self._write(member, frozenset((id(arguments),))) for name, member in self._named(arguments)}
        text = "{" + ",".join([f"{_encode_string(name)}:{value}" for name, value in texts.items()]) + "}"
        return self._hash(text)[:12], {name: self._hash(value)[:8] for name, value in texts.items()}

    def _suspicious(self, text: str) -> bool:
        """Whether the C encoder's text may differ from the exact writer's.  May err towards True only."""
        for search in self._suspects:
            if search(text):
                return True
        return not (text.isascii() or unicodedata.is_normalized("NFC", text))

    def _write(self, value: object, enclosing: frozenset[int] = frozenset()) -> str:
        """The exact writer.  Iterative over nested lists and objects, so that depth cannot overflow the stack."""
        out: list[str] = []
        # What is still to do, last first: a finished text, or a value; and the ids of what encloses it.
        todo: list[tuple[bool, Any, frozenset[int]]] = [(False, value, enclosing)]
        while todo:
            finished, item, above = todo.pop()
            if finished:
                out.append(item)
                continue
            kind = type(item)
            if kind is str:
                out.append(_encode_string(self._volatile.replaced(item)))
                continue
            content = item if kind is dict or kind is list or kind is int else opened(item)
            if isinstance(content, Mapping | list | tuple | AbstractSet):
                if id(item) in above:
                    out.append('"<recursion>"')
                elif len(above) >= MAX_DEPTH:
                    out.append('"<deep>"')
                else:
                    self._open(content, item, above, out, todo)
            else:
                out.append(self._scalar(content))
        return "".join(out)

    def _open(
        self,
        content: Mapping[Any, Any] | list[Any] | tuple[Any, ...] | AbstractSet[Any],
        item: object,
        above: frozenset[int],
        out: list[str],
        todo: list[tuple[bool, Any, frozenset[int]]],
    ) -> None:
        """Write how a holder begins, and leave its members and its end to do."""
        inside = above | {id(item)}
        if isinstance(content, Mapping):
            out.append("{")
            todo.append((True, "}", above))
            for index, (name, member) in reversed(list(enumerate(self._named(content)))):
                todo.append((False, member, inside))
                todo.append((True, ("," if index else "") + _encode_string(name) + ":", inside))
        elif isinstance(content, AbstractSet):
            out.append("[" + ",".join(sorted(self._write(member, inside) for member in content)) + "]")
        else:
            out.append("[")
            todo.append((True, "]", above))
            for index in range(len(content) - 1, -1, -1):
                todo.append((False, content[index], inside))
                if index:
                    todo.append((True, ",", inside))

    def _named(self, value: Mapping[Any, Any]) -> list[tuple[str, object]]:
        """The members of an object that stay, under their written names, in order.

        Names that become equal (two UUIDs as keys) are told apart by the order of their values.
        """
        named: list[tuple[str, object]] = []
        for key, member in value.items():
            name = self._names.get(key) if type(key) is str else self._written_name(key)
            if name is None:
                name = self._written_name(key)
                if len(self._names) < MAX_NAMES:
                    self._names[key] = name
            if name is not _DROPPED:
                named.append((name, member))
        if len({name for name, _ in named}) < len(named):
            named = self._numbered(named)
        return sorted(named, key=lambda pair: pair[0])

    def _written_name(self, key: object) -> str:
        if isinstance(key, str) and unicodedata.normalize("NFC", key) in self._dropped:
            return _DROPPED
        return self._volatile.replaced(name_text(key))

    def _numbered(self, named: list[tuple[str, object]]) -> list[tuple[str, object]]:
        by_name: dict[str, list[object]] = {}
        for name, member in named:
            by_name.setdefault(name, []).append(member)
        taken = set(by_name)
        numbered: list[tuple[str, object]] = []
        for name, members in by_name.items():
            first, *rest = sorted(members, key=self._write)
            numbered.append((name, first))
            number = 2
            for member in rest:
                while f"{name}<#{number}>" in taken:
                    number += 1
                taken.add(f"{name}<#{number}>")
                numbered.append((f"{name}<#{number}>", member))
        return numbered

    def _scalar(self, value: object) -> str:
        if value is None or value is True or value is False:
            return _encode(value)
        if isinstance(value, str):
            return _encode_string(self._volatile.replaced(str(value)))
        if isinstance(value, int | float):
            text = integer_text(value) if isinstance(value, int) else float_text(value)
            return _encode_string(text) if text.startswith("<") else text
        if isinstance(value, bytes | bytearray | memoryview):
            return _encode_string(f"<bytes {self._hash(bytes(value).hex())[:12]}>")
        return _encode_string(self._volatile.replaced(described(value)))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _hmac_sha256(key: bytes, text: str) -> str:
    return hmac.digest(key, text.encode("utf-8", "surrogatepass"), "sha256").hex()
