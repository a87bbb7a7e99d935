"""Labelled call sequences, as they stand in a file: what was called, and which verdict is right.

The format is that of STUCK.md, section 6.  A reader of such a file wants to know at once all that is wrong with it and
where, so every problem is collected with its line and column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import yaml

from harness.errors import LabelledError, Problem
from harness.stuck.digests import arguments_digest, digest_of, result_digest
from harness.stuck.evidence import ERROR_CLASSES, Event, Record, error_class_of, is_blank_thought
from harness.stuck.profiles import FAMILIES, MODALITIES, TRAITS
from harness.stuck.verdict import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from yaml.nodes import Node

    from harness.stuck.profiles import Family, Modality, Trait

__all__ = ["LabelledSequence", "Outcome", "parse_labelled", "read_labelled"]

Mark: TypeAlias = tuple[int, Kind, str]
"""One verdict that is not `continue`: number of the call, verdict, detector."""

_VERDICTS: Final = ("continue", "nudge", "force_stop")
_VIAS: Final = ("threshold", "validation", "escalation")
_SEQUENCE_KEYS: Final = ("id", "about", "source", "calls", "expect", "why")
_CALL_KEYS: Final = (
    "tool", "args", "ok", "result", "error_class", "error", "read_only", "family", "modality", "topic", "sources",
    "useful", "traits", "step",
)  # fmt: skip
_EXPECT_KEYS: Final = ("verdict", "detector", "at_call", "via", "trace")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came, or should come, of a sequence.

    Args:
        verdict: the worst one.
        detector: whose it is; None with `continue`.
        at_call: the stopping call; else the first nudged one; else the number of calls.
        via: what made it; None with `continue`.
        trace: every verdict but `continue`, in order, up to the stop.
    """

    verdict: Kind
    detector: str | None
    at_call: int
    via: str | None
    trace: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class LabelledSequence:
    """One sequence of a file: its calls and events, the right outcome, and the reason for it."""

    id: str
    items: tuple[Record | Event, ...]
    expect: Outcome
    about: str = ""
    why: str = ""
    source: str | None = None
    line: int = 1


def read_labelled(path: Path) -> list[LabelledSequence]:
    """The sequences of a file.

    Raises:
        LabelledError: the file cannot be read, or something in it is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise LabelledError(path, [Problem(f"cannot be read: {reason}")]) from None
    return parse_labelled(text, str(path))


def parse_labelled(text: str, file: str) -> list[LabelledSequence]:
    """The sequences of a text; `file` is its name in messages.

    Raises:
        LabelledError: with all that is wrong, in the order of the text.
    """
    reader = _Reader()
    root = reader.compose(text)
    sequences = [] if root is None else reader.sequences(root)
    if not reader.problems and not sequences:
        reader.problems.append(Problem("holds no sequences; it must be a list of them"))
    if reader.problems:
        raise LabelledError(file, sorted(reader.problems, key=lambda one: (one.line or 0, one.column or 0)))
    return sequences


class _Reader:
    """Goes through the nodes of a YAML document and keeps what it finds wrong."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def compose(self, text: str) -> Node | None:
        """The document as nodes with positions; None when it is no YAML, or uses what data has no need of."""
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            # An alias would let nine lines stand for a thousand million nodes.
            alias = next((one for one in yaml.parse(text, Loader=loader) if isinstance(one, yaml.AliasEvent)), None)
            if alias is not None:
                self._wrong(alias, "", "aliases are not read; write the value out")
                return None
            return yaml.compose(text, Loader=loader)
        except yaml.MarkedYAMLError as error:
            at = error.problem_mark
            position = (None, None) if at is None else (at.line + 1, at.column + 1)
            self.problems.append(Problem(f"is no YAML: {error.problem or error.context}", "", *position))
        except (yaml.YAMLError, RecursionError) as error:
            self.problems.append(Problem(f"is no YAML: {str(error).partition(chr(10))[0]}"))
        return None

    def sequences(self, root: Node) -> list[LabelledSequence]:
        """The list at the top of the file."""
        found = []
        seen: dict[str, int] = {}
        for index, node in self._list(root, "", "a list of sequences"):
            sequence = self._sequence(node, f"[{index}]")
            if sequence is None:
                continue
            if sequence.id in seen:
                self._wrong(node, f"[{index}].id", f"the id {sequence.id!r} stands already at line {seen[sequence.id]}")
            seen.setdefault(sequence.id, sequence.line)
            found.append(sequence)
        return found

    def _sequence(self, node: Node, path: str) -> LabelledSequence | None:
        fields = self._fields(node, path, _SEQUENCE_KEYS, ("id", "calls", "expect"))
        if fields is None:
            return None
        name = self._value(fields, "id", path, _is_text, "a text")
        texts = {key: self._value(fields, key, path, _is_text, "a text") for key in ("about", "why", "source")}
        items = [
            self._item(one, f"{path}.calls[{i}]") for i, one in self._list(fields["calls"], f"{path}.calls", "a list")
        ]
        calls = sum(not isinstance(item, Event) for item in items)  # broken ones included
        expect = self._outcome(fields["expect"], f"{path}.expect", calls)
        if not calls and not self.problems:
            self._wrong(fields["calls"], f"{path}.calls", "holds no call")
        if name is None or expect is None or None in items:
            return None
        whole = cast("tuple[Record | Event, ...]", tuple(items))
        about, why = texts["about"] or "", texts["why"] or ""
        return LabelledSequence(name, whole, expect, about, why, texts["source"], node.start_mark.line + 1)

    def _item(self, node: Node, path: str) -> Record | Event | None:
        if any(key.value == "event" for key, _ in _pairs(node)):
            fields = self._fields(node, path, ("event",), ("event",))
            event = fields and self._choice(fields, "event", path, tuple(one.value for one in Event))
            return Event(event) if event else None
        fields = self._fields(node, path, _CALL_KEYS, ("tool", "args", "ok"))
        if fields is None:
            return None
        before = len(self.problems)
        tool = self._value(fields, "tool", path, _is_text, "a text")
        ok = self._value(fields, "ok", path, _is_flag, "true or false")
        read_only = self._value(fields, "read_only", path, _is_flag, "true or false")
        useful = self._value(fields, "useful", path, _is_flag, "true, false or null")
        topic = self._value(fields, "topic", path, _is_text, "a text")
        sources = self._value(fields, "sources", path, _is_texts, "a list of texts")
        traits = self._value(fields, "traits", path, _is_texts, "a list of traits") or []
        for one in traits:
            if one not in TRAITS:
                self._unknown(fields["traits"], f"{path}.traits", one, TRAITS)
        turn = self._value(fields, "step", path, _is_count, "a whole number")
        error_class = self._choice(fields, "error_class", path, ERROR_CLASSES)
        family = self._choice(fields, "family", path, FAMILIES)
        modality = self._choice(fields, "modality", path, MODALITIES)
        arguments = self._plain(fields["args"], f"{path}.args")
        given = "error" if not ok and "error" in fields else "result"
        result = self._plain(fields[given], f"{path}.{given}") if given in fields else None
        for name in ("error", "error_class"):
            if ok and name in fields and self._plain(fields[name], path) is not None:
                self._wrong(fields[name], f"{path}.{name}", f"a call with ok: true has no {name!r}")
        if len(self.problems) > before:
            return None
        return Record(
            tool=cast("str", tool),
            args_digest=arguments_digest(arguments),
            ok=cast("bool", ok),
            error_class=None if ok else cast("Any", error_class) or error_class_of(result),
            result_digest=result_digest(result),
            read_only=bool(read_only),
            family=cast("Family | None", family),
            modality=cast("Modality | None", modality),
            topic_digest=None if topic is None else digest_of("topic", topic),
            sources_digest=digest_of("sources", "\n".join(sorted(set(sources)))) if sources else None,
            useful=useful,
            traits=cast("frozenset[Trait]", frozenset(traits)),
            blank_thought=is_blank_thought(arguments),
            turn=turn,
        )

    def _outcome(self, node: Node, path: str, calls: int) -> Outcome | None:
        fields = self._fields(node, path, _EXPECT_KEYS, ("verdict", "at_call", "trace"))
        if fields is None:
            return None
        before = len(self.problems)
        verdict = self._choice(fields, "verdict", path, _VERDICTS)
        detector = self._value(fields, "detector", path, _is_text, "the name of a detector, or null")
        via = self._choice(fields, "via", path, _VIAS)
        at_call = self._value(fields, "at_call", path, _is_count, "the number of a call, from 1")
        if at_call is not None and not 1 <= at_call <= calls:
            self._wrong(fields["at_call"], f"{path}.at_call", f"there is no call {at_call}: the sequence has {calls}")
        trace: list[Mark] = []
        for index, one in self._list(fields["trace"], f"{path}.trace", "a list of [call, verdict, detector]"):
            mark = self._plain(one, f"{path}.trace[{index}]")
            if (
                isinstance(mark, list)
                and len(mark) == 3
                and _is_count(mark[0])
                and mark[1] in _VERDICTS[1:]
                and _is_text(mark[2])
            ):
                trace.append((mark[0], mark[1], mark[2]))
            else:
                self._wrong(
                    one, f"{path}.trace[{index}]", f"must be [call, nudge or force_stop, detector], not {mark!r}"
                )
        if len(self.problems) > before or verdict is None or at_call is None:
            return None
        return Outcome(cast("Kind", verdict), detector, at_call, via, tuple(trace))

    def _fields(
        self, node: Node, path: str, known: tuple[str, ...], required: tuple[str, ...]
    ) -> dict[str, Node] | None:
        """The members of a mapping; None when it is none, or lacks what it must have."""
        if not isinstance(node, yaml.MappingNode):
            self._wrong(node, path, "must be a mapping")
            return None
        fields: dict[str, Node] = {}
        for key, value in _pairs(node):
            if not isinstance(key, yaml.ScalarNode):
                self._wrong(key, path, "a key must be a text")
            elif key.value in fields:
                self._wrong(key, path, f"the key {key.value!r} stands here twice")
            elif key.value not in known:
                self._unknown(key, path, key.value, known, what="key")
            else:
                fields[key.value] = value
        missing = [name for name in required if name not in fields]
        if missing:
            self._wrong(node, path, f"lacks {', '.join(map(repr, missing))}")
        return None if missing else fields

    def _list(self, node: Node, path: str, what: str) -> Iterator[tuple[int, Node]]:
        if isinstance(node, yaml.SequenceNode):
            yield from enumerate(node.value)
        else:
            self._wrong(node, path, f"must be {what}")

    def _value(self, fields: Mapping[str, Node], name: str, path: str, fits: Callable[[Any], bool], what: str) -> Any:
        """A member that must be of one kind; None when it is absent, null or wrong."""
        if name not in fields:
            return None
        value = self._plain(fields[name], f"{path}.{name}")
        if value is not None and not fits(value):
            self._wrong(fields[name], f"{path}.{name}", f"must be {what}, not {value!r}")
            return None
        return value

    def _choice(self, fields: Mapping[str, Node], name: str, path: str, known: tuple[str, ...]) -> str | None:
        value = None if name not in fields else self._plain(fields[name], f"{path}.{name}")
        if value is not None and value not in known:
            self._unknown(fields[name], f"{path}.{name}", value, known)
            return None
        return cast("str | None", value)

    def _plain(self, node: Node, path: str) -> Any:
        """A node as plain data, by the rules of YAML 1.1 that the format's first reader had."""
        try:
            return yaml.SafeLoader("").construct_object(node, deep=True)
        except yaml.MarkedYAMLError as error:
            self._wrong(node, path, f"cannot be read: {error.problem}")
        except (ValueError, TypeError) as error:  # a date such as 2024-02-31, a list as a key
            self._wrong(node, path, f"cannot be read: {error}")
        return None

    def _unknown(self, node: Node, path: str, value: object, known: tuple[str, ...], what: str = "value") -> None:
        from difflib import get_close_matches

        near = get_close_matches(str(value), known, n=1)
        meant = f"; did you mean {near[0]!r}?" if near else f"; there are: {', '.join(known)}"
        self._wrong(node, path, f"unknown {what} {value!r}{meant}")

    def _wrong(self, node: Any, path: str, message: str) -> None:
        mark = node.start_mark
        self.problems.append(Problem(message, path, mark.line + 1, mark.column + 1))


def _pairs(node: Node) -> list[tuple[Node, Node]]:
    return node.value if isinstance(node, yaml.MappingNode) else []


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
