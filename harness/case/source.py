"""YAML text becomes plain data in which every key knows the line and column where it stands.

The parser's events are composed here, not by PyYAML: its constructor resolves `no`, `2024-01-01` and `12:30` by YAML
1.1, drops duplicate keys silently, expands aliases without a bound and forgets positions.  Plain scalars follow the
core schema of YAML 1.2, with one exception in favour of people: a number with leading zeros (`007`) stays text.
"""

from __future__ import annotations

import json
import re
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import yaml

from harness.case.syntax import explain
from harness.case.words import named, spelled
from harness.errors import CaseError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["KeyPath", "Source", "parse_source", "read_source", "render_path"]

KeyPath: TypeAlias = "tuple[str | int, ...]"

MAX_BYTES = 4 * 1024 * 1024
"""A script of 10,000 calls takes about 0.6 MB; more than this is a wrong file, not a case."""
MAX_DEPTH = 64
"""Nesting that still leaves every recursive reader of the data far from Python's own limit."""
MAX_NODES = 200_000
"""Keys and values after aliases are expanded; nine lines of nested aliases reach 10**9."""
MAX_DIGITS = 300
"""More digits than any quantity has, fewer than the 4,300 at which `int()` itself refuses."""

_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_STANDARD = "tag:yaml.org,2002:"
_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class _Node:
    """One value with its place.  `value` is a scalar, a list of nodes, or key -> (line, column of the key, node)."""

    line: int
    column: int
    value: Any
    size: int = 1
    height: int = 1

    def plain(self) -> Any:
        """The value as plain data; aliased parts become separate copies."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, (_, _, node) in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return str(self.value) if isinstance(self.value, _Merge) else self.value


@dataclass(frozen=True, slots=True)
class Source:
    """One parsed file.

    Args:
        file: its name as it is shown to people.
        data: the top-level mapping as plain data (str, int, float, bool, None, list, dict with string keys).
        problems: what is wrong with it as YAML, as far as reading could go on.
    """

    file: str
    data: dict[str, Any]
    problems: tuple[Problem, ...]
    _root: _Node = field(repr=False)

    def position(self, path: KeyPath = ()) -> tuple[int, int]:
        """Line and column, from 1, of the key or list item at `path`; of its nearest ancestor when it is not there."""
        node, place = self._root, (self._root.line, self._root.column)
        for part in path:
            if isinstance(node.value, dict) and part in node.value:
                line, column, node = node.value[part]
                place = (line, column)
            elif isinstance(node.value, list) and isinstance(part, int) and 0 <= part < len(node.value):
                node = node.value[part]
                place = (node.line, node.column)
            else:
                break
        return place

    def problem(self, message: str, path: KeyPath = ()) -> Problem:
        """`message` about what stands at `path`."""
        line, column = self.position(path)
        return Problem(message, render_path(path), line, column)


def render_path(path: KeyPath) -> str:
    """A path of keys for people: `model.script[2].call`, `workspace["notes/mon.md"]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif re.fullmatch(r"[A-Za-z_][\w-]*", part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part, ensure_ascii=False)}]"
    return text


def read_source(path: Path, shown: str | None = None) -> Source:
    """Reads and parses a file.

    Args:
        path: the file.
        shown: its name in messages; `path` when not given.

    Raises:
        CaseError: it cannot be read, or is not a YAML mapping.
    """
    file = path.as_posix() if shown is None else shown
    try:
        status = path.stat()
        # Opening a FIFO would wait for a writer for ever, so what the path is comes first.
        if not stat.S_ISREG(status.st_mode):
            kind = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise CaseError(file, [Problem(f"this is {kind}; a case is one YAML file")])
        if status.st_size > MAX_BYTES:
            raise CaseError(file, [Problem(_too_large(status.st_size))])
        content = path.read_bytes()
    except FileNotFoundError as error:
        if path.is_symlink():
            raise CaseError(file, [Problem("a symbolic link to a file that does not exist")]) from error
        raise CaseError(file, [Problem("there is no such file")]) from error
    except OSError as error:
        raise CaseError(file, [Problem(f"the file cannot be read: {error.strerror}")]) from error
    except ValueError as error:
        raise CaseError(file, [Problem("no file can have a NUL in its name")]) from error
    return parse_source(content, file)


def parse_source(content: bytes | str, file: str) -> Source:
    """Parses YAML text.

    Args:
        content: the whole file.
        file: its name in messages.

    Raises:
        CaseError: not UTF-8, too large, not YAML, or not a mapping at the top.  Faults that leave the rest readable
            (duplicate keys, tags, ...) are in `Source.problems` instead.
    """
    text = content if isinstance(content, str) else _decode(content, file)
    if len(text) > MAX_BYTES:
        raise CaseError(file, [Problem(_too_large(len(text)))])
    text = text.removeprefix("\ufeff")
    bad = _UNPRINTABLE.search(text)
    if bad:
        raise CaseError(file, [_unprintable(text, bad.start())])
    composer = _Composer()
    try:
        root = composer.compose(text)
    except _Stop as stop:
        raise CaseError(file, _in_order([*composer.problems, stop.problem])) from None
    if not isinstance(root.value, dict):
        found = Problem(
            f"a case is a mapping of keys to values; this file holds {named(root.value)}",
            line=root.line,
            column=root.column,
        )
        raise CaseError(file, _in_order([*composer.problems, found]))
    return Source(file, root.plain(), tuple(_in_order(composer.problems)), root)


class _Stop(Exception):  # noqa: N818 - it ends the reading of one file and never leaves this module
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.message)


@dataclass(slots=True)
class _Open:
    """A collection whose end has not been seen; `key` is the key that waits for its value, with its place."""

    node: _Node
    anchor: str | None
    key: tuple[str | None, int, int] | None = None


class _Composer:
    """Builds nodes from events, with a stack of its own: depth costs memory here and never recursion."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._stack: list[_Open] = []
        self._anchors: dict[str, _Node | None] = {}
        self._root: _Node | None = None

    def compose(self, text: str) -> _Node:
        """The node at the top of the one document in a text; raises `_Stop` where nothing can be read any further."""
        documents = 0
        for event in _events(text):
            line, column = event.start_mark.line + 1, event.start_mark.column + 1
            match event:
                case yaml.DocumentStartEvent():
                    documents += 1
                    if documents > 1:
                        raise _Stop(Problem("a second document starts here; a case file holds one", "", line, column))
                case yaml.MappingStartEvent():
                    self._check_tag(event, "map", line, column)
                    self._open(_Node(line, column, {}), event.anchor)
                case yaml.SequenceStartEvent():
                    self._check_tag(event, "seq", line, column)
                    self._open(_Node(line, column, []), event.anchor)
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    closed = self._stack.pop()
                    self._complete(closed.node, closed.anchor)
                case yaml.ScalarEvent():
                    self._complete(_Node(line, column, self._scalar(event, line, column)), event.anchor)
                case yaml.AliasEvent():
                    self._alias(event.anchor or "", line, column)
                case _:
                    pass
        blank = "the file is empty" if not text.strip() else "the file holds only comments"
        if self._root is None or self._root.value is None:
            raise _Stop(Problem(f"{blank}; a case needs at least agent, prompt and model", "", 1, 1))
        return self._root

    def _problem(self, message: str, line: int, column: int) -> None:
        self.problems.append(Problem(message, self._here(), line, column))

    def _here(self) -> str:
        path: list[str | int] = []
        for frame in self._stack:
            if isinstance(frame.node.value, list):
                path.append(len(frame.node.value))
            elif frame.key is not None and frame.key[0] is not None:
                path.append(frame.key[0])
        return render_path(tuple(path))

    def _open(self, node: _Node, anchor: str | None) -> None:
        self._stack.append(_Open(node, anchor))
        if anchor is not None:
            self._anchors[anchor] = None  # known, not complete: an alias to it now would contain itself
        if len(self._stack) > MAX_DEPTH:
            raise _Stop(Problem(_TOO_DEEP, "", node.line, node.column))

    def _alias(self, name: str, line: int, column: int) -> None:
        target = self._anchors.get(name)
        if target is None:
            fault = "contains itself" if name in self._anchors else "has no anchor above it"
            self._problem(f"the alias *{name} {fault}; write the value out", line, column)
            target = _Node(line, column, None)
        self._complete(target, None)

    def _complete(self, node: _Node, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        if not self._stack:
            self._root = node
            return
        frame = self._stack[-1]
        parent = frame.node
        if isinstance(parent.value, list):
            parent.value.append(node)
        elif frame.key is None:
            frame.key = (self._key(node, frame), node.line, node.column)
        else:
            name, line, column = frame.key
            frame.key = None
            if name is not None and name not in parent.value:
                parent.value[name] = (line, column, node)
        parent.size += node.size
        parent.height = max(parent.height, node.height + 1)
        if parent.size > MAX_NODES:
            message = f"more than {MAX_NODES:,} values once its aliases are expanded; write out what is needed"
            raise _Stop(Problem(message, "", node.line, node.column))
        if parent.height > MAX_DEPTH:
            raise _Stop(Problem(f"{_TOO_DEEP} once its aliases are expanded", "", node.line, node.column))

    def _key(self, node: _Node, frame: _Open) -> str | None:
        """The name of a key, or None when it is unusable and its value is to be passed over."""
        name = node.value
        if not isinstance(name, str):
            plain = not isinstance(name, list | dict)
            remedy = f"; quote it: {json.dumps(spelled(name))}" if plain and name is not None else ""
            self._problem(f"a key must be text, not {named(name)}{remedy}", node.line, node.column)
            return None
        if isinstance(name, _Merge):
            self._problem("merge keys (<<) are not supported; write the keys out", node.line, node.column)
            return None
        if name in frame.node.value:
            line, column, _ = frame.node.value[name]
            message = f"the key {name!r} stands here a second time; it was first given at line {line}, column {column}"
            self._problem(message, node.line, node.column)
            return None
        return name

    def _check_tag(self, event: Any, kind: str, line: int, column: int) -> None:
        if event.tag not in (None, "!", _STANDARD + kind):
            self._problem(f"the tag {_tag(event.tag)} is not supported; a case is plain data", line, column)

    def _scalar(self, event: Any, line: int, column: int) -> Any:
        text: str = event.value
        if event.tag is None and event.implicit[0]:
            return self._plain(text, line, column)
        if event.tag in (None, "!", _STANDARD + "str"):
            return text
        kind = event.tag.removeprefix(_STANDARD)
        types = {"int": int, "float": float, "bool": bool, "null": type(None)}
        if kind not in types:
            self._problem(f"the tag {_tag(event.tag)} is not supported; a case is plain data", line, column)
            return text
        value = self._plain(text, line, column)
        if type(value) is int and kind == "float":
            return float(value)
        if type(value) is not types[kind]:
            self._problem(f"{text!r} is not what its tag {_tag(event.tag)} says", line, column)
        return value

    def _plain(self, text: str, line: int, column: int) -> Any:
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if text == "<<":
            return _Merge(text)
        if _INTEGER.fullmatch(text):
            if len(text) > MAX_DIGITS:
                self._problem(f"a number of {len(text):,} digits; quote it if it is text", line, column)
                return 0
            return int(text, 0) if text[:2] in {"0o", "0x"} else int(text)
        finite = _FLOAT.fullmatch(text)
        if finite and abs(float(text)) != float("inf"):
            return float(text)
        if finite or _NOT_FINITE.fullmatch(text):
            self._problem(f"{text} is no number that JSON can hold; quote it if it is text", line, column)
            return 0.0
        return text


class _Merge(str):
    """A plain `<<`: as a key it would merge, which a reviewer cannot see; as a value it is text."""

    __slots__ = ()


def _events(text: str) -> Iterator[Any]:
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        yield from yaml.parse(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        if mark and "nesting depth" in (error.problem or ""):  # the scanner in C looks ahead and gives up at 1,000
            raise _Stop(Problem(_TOO_DEEP, "", mark.line + 1, mark.column + 1)) from None
        raise _Stop(explain(error, text)) from None
    except yaml.YAMLError as error:
        raise _Stop(Problem(f"not valid YAML: {error}", "", 1, 1)) from None


def _decode(content: bytes, file: str) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise CaseError(file, [Problem("the file is UTF-16; save it as UTF-8", "", 1, 1)])
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        start = content.rfind(b"\n", 0, error.start) + 1
        before = content[start : error.start].removeprefix(_BOM).decode()
        line, column = content.count(b"\n", 0, error.start) + 1, len(before) + 1
        message = f"not UTF-8: byte 0x{content[error.start]:02x} at offset {error.start}; save the file as UTF-8"
        raise CaseError(file, [Problem(message, "", line, column)]) from error


def _unprintable(text: str, index: int) -> Problem:
    line, column = text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)
    code = ord(text[index])
    escape = f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    remedy = "remove it" if 0xD800 <= code <= 0xDFFF else f'remove it, or write "{escape}" in double quotes'
    return Problem(f"the character U+{code:04X} is not allowed in YAML; {remedy}", "", line, column)


def _too_large(size: int) -> str:
    limit = MAX_BYTES // (1024 * 1024)
    return f"the file has {size:,} bytes and a case at most {limit} MiB; let the loop's own code make large data"


def _in_order(problems: list[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda one: (one.line or 0, one.column or 0))


def _tag(tag: str) -> str:
    return f"!!{tag.removeprefix(_STANDARD)}" if tag.startswith(_STANDARD) else tag
