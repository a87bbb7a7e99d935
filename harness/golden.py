"""Golden traces on disk: one JSON file a case, written for `git diff` and refused when it is not what it says."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.atomic import write_atomically
from harness.crash_golden import CRASH_SUFFIX
from harness.errors import GoldenError, GoldenMissingError
from harness.normalize import DIGEST_KEY_VARIABLE, digest_key, key_fingerprint
from harness.project import DETAILS, Project
from harness.trace import Call, Context, Intervention, Trace

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = [
    "SCHEMA",
    "GoldenStore",
    "decode_trace",
    "dump_trace",
    "line_of",
    "load_golden",
    "load_trace",
    "parse_trace",
]

SCHEMA: Final = "harness.trace/1"

_SCHEMA_FORM: Final = re.compile(r"harness\.trace/(\d+)")
_CONFLICT: Final = re.compile(r"^(<{7,}|={7,}|>{7,}|\|{7,})( |\r?$)", re.MULTILINE)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def dump_trace(trace: Trace, *, results: bool = True) -> str:
    """The text of a trace: one call a line, keys in a fixed order, LF, a final newline.

    Args:
        trace: what to write.
        results: whether calls carry the digests of their results (goldens do only with `compare: {results: exact}`).
    """
    head = _head(trace)
    lines = [f"  {_json(key)}: {_json(value)}," for key, value in head]
    if trace.calls:
        lines.append('  "calls": [')
        lines.append(",\n".join(f"    {_json(_call_data(call, results))}" for call in trace.calls))
        lines.append("  ],")
    else:
        lines.append('  "calls": [],')
    interventions = [
        {"turn": one.turn, "verdict": one.verdict, "detector": one.detector} for one in trace.interventions
    ]
    lines.append(f'  "interventions": {_json(interventions)},')
    lines.append(f'  "summary": {_json(trace.summary())}' + ("," if trace.problems else ""))
    if trace.problems:
        lines.append(f'  "problems": {_json(trace.problems)}')
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", "\n".join(["{", *lines, "}", ""]))


def _head(trace: Trace) -> list[tuple[str, object]]:
    """What stands before the calls, a line each."""
    head: list[tuple[str, object]] = [("schema", SCHEMA), ("case", trace.case)]
    if trace.owner is not None:
        head.append(("owner", trace.owner))
    head.append(("model", trace.model))
    if trace.digest_key is not None:
        head.append(("digest_key", trace.digest_key))
    if trace.detail != "args":
        head.append(("detail", trace.detail))
    context = {"prompt": trace.context.prompt, "system": trace.context.system, "tools": dict(trace.context.tools)}
    return [*head, ("context", context), ("turns", trace.turns), ("stop_reasons", trace.stop_reasons)]


def line_of(trace: Trace, what: str, call: int = 0) -> int:
    """In which line of a trace's file something stands, from 1.

    Args:
        trace: as it was written.
        what: a key of the file: `turns`, `stop_reasons`, `calls`, `interventions`, `summary`.
        call: with `calls`, the index of the call that is looked for.
    """
    keys = [key for key, _ in _head(trace)]
    if what in keys:
        return 2 + keys.index(what)
    first = 3 + len(keys)  # behind the brace and the line that opens the calls
    if what == "calls":
        return first + call if call < len(trace.calls) else first - 1
    return first + (len(trace.calls) + 1 if trace.calls else 0) + (what == "summary")


def parse_trace(text: str, source: str, *, strict: bool = True) -> Trace:
    """The trace in a text.

    Args:
        text: as `dump_trace` writes it.
        source: what to call it in errors.
        strict: refuse what the harness would not have written.  Only where nothing is decided by what is read, as in
            the history of a golden, may this be saved: it takes half of the time.

    Raises:
        GoldenError: with `kind` `not_json`, `conflict`, `older`, `newer`, `edited` or `invalid`.
    """
    try:
        data = json.loads(text, object_pairs_hook=_once)
    except _RepeatedKeyError as error:
        raise GoldenError(f"{source} was edited by hand: {error}; restore it from git", "edited") from None
    except (ValueError, RecursionError) as error:
        if _CONFLICT.search(text):
            raise GoldenError(
                f"{source} holds unresolved merge conflict markers; finish merging the code, run the case, "
                "and accept what it does now",
                "conflict",
            ) from None
        raise GoldenError(f"{source} is not JSON: {error}", "not_json") from None
    if not isinstance(data, dict):
        raise GoldenError(f"{source} is not a trace: its top level is no object", "invalid")
    _check_schema(data.get("schema"), source)
    try:
        trace = _trace(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise GoldenError(f"{source} is not a trace of schema {SCHEMA}: {reason}", "invalid") from None
    if data["summary"] != trace.summary():
        raise GoldenError(
            f"{source} was edited by hand: its summary says {_json(data['summary'])}, "
            f"its calls give {_json(trace.summary())}; restore it from git or accept a new run",
            "edited",
        )
    strange = _strange_keys(text, data, trace) if strict else None
    if strange:
        raise GoldenError(
            f"{source} was edited by hand: {strange}; restore it from git or accept a new run",
            "edited",
        )
    return trace


def load_trace(path: Path, source: str | None = None) -> Trace:
    """The trace in a file.

    Raises:
        GoldenError: as `parse_trace`, and `missing` or `unreadable`.
    """
    source = source or str(path)
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise GoldenMissingError(f"{source} does not exist") from None
    except OSError as error:
        raise GoldenError(f"{source} cannot be read: {error.strerror or error}", "unreadable") from None
    return decode_trace(data, source)


def decode_trace(data: bytes, source: str, *, strict: bool = True) -> Trace:
    """The trace in the bytes of a file; arguments as for `parse_trace`.

    Raises:
        GoldenError: as `parse_trace`, and `unreadable` when they are not UTF-8.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise GoldenError(f"{source} is not UTF-8 (byte {error.start})", "unreadable") from None
    return parse_trace(text, source, strict=strict)


@dataclass(frozen=True, slots=True)
class GoldenStore:
    """The goldens below one folder.

    Args:
        folder: where they are.
        root: what paths in messages are relative to.
        fingerprint: of the digest key in use; a golden made with another one is refused.
    """

    folder: Path
    root: Path
    fingerprint: str | None = None

    @classmethod
    def of(cls, project: Project) -> GoldenStore:
        """The project's goldens, under the digest key of the environment."""
        return cls(project.golden_traces, project.root, key_fingerprint(digest_key()))

    def path(self, case: str) -> Path:
        """The file of a case's golden."""
        return self.folder / f"{case}.json"

    def shown(self, path: Path) -> str:
        """A path as messages name it."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()

    def load(self, case: str) -> Trace:
        """The golden of a case.

        Raises:
            GoldenError: `kind` says why it cannot be used; the message names the file and what to do.
        """
        path = self.path(case)
        source = self.shown(path)
        try:
            trace = load_trace(path, source)
        except GoldenMissingError:
            raise GoldenMissingError(
                f"no golden yet: {source} does not exist; look at the trace, "
                f"then accept it with: pytest --update-golden, or: harness accept {case}"
            ) from None
        if trace.case != case:
            raise GoldenError(
                f"{source} belongs to another case, {trace.case!r}; if the case was renamed, remove the file "
                f"and accept a new run with: harness accept {case}",
                "foreign",
            )
        self._check_key(trace, source)
        return trace

    def save(self, trace: Trace, *, results: bool = False) -> bool:
        """Write the golden of `trace.case`, atomically; returns whether the file changed.

        Raises:
            GoldenError: `unwritable`; the old file is still there, whole.
        """
        path = self.path(trace.case)
        try:
            return write_atomically(path, dump_trace(trace, results=results).encode("utf-8"))
        except OSError as error:
            raise GoldenError(
                f"{self.shown(path)} could not be written: {error.strerror or error}; what was there is unchanged",
                "unwritable",
            ) from None

    def cases(self) -> list[str]:
        """The cases that have a golden, by name; a crash golden alone is none."""
        found = (path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*.json"))
        return sorted(name.removesuffix(".json") for name in found if not name.endswith(CRASH_SUFFIX))

    def orphans(self, cases: frozenset[str] | set[str]) -> list[Path]:
        """The golden files that belong to none of `cases` and to no test file, sorted.

        A case's crash golden belongs to the case.
        """
        found = sorted(path for path in self.folder.rglob("*.json") if not path.name.startswith("."))
        return [path for path in found if self._case(path) not in cases and not self._has_owner(path)]

    def _case(self, path: Path) -> str:
        name = path.relative_to(self.folder).as_posix()
        return name.removesuffix(CRASH_SUFFIX if name.endswith(CRASH_SUFFIX) else ".json")

    def _has_owner(self, path: Path) -> bool:
        try:
            owner = load_trace(path).owner
        except GoldenError:
            return False
        return owner is not None and (self.root / owner).is_file()

    def _check_key(self, trace: Trace, source: str) -> None:
        if trace.digest_key == self.fingerprint:
            return
        if trace.digest_key is None:
            raise GoldenError(
                f"{source} cannot be compared: its digests are not keyed, but {DIGEST_KEY_VARIABLE} is set; to use the "
                "key from now on, accept a new run of every case: pytest --update-golden",
                "unkeyed",
            )
        if self.fingerprint is None:
            reason = f"its digests are keyed (key {trace.digest_key}), but {DIGEST_KEY_VARIABLE} is not set"
        else:
            reason = f"its digests are keyed with {trace.digest_key}, but {DIGEST_KEY_VARIABLE} is {self.fingerprint}"
        raise GoldenError(f"{source} cannot be compared: {reason}; set the key it was made with", "wrong_key")


def load_golden(case: str, project: Project | None = None) -> Trace:
    """The committed golden of a case, in the project around the working directory unless one is given.

    Raises:
        GoldenError: `kind` says why it cannot be used.
        ConfigError: the project's settings are wrong.
    """
    return GoldenStore.of(project or Project.find()).load(case)


class _RepeatedKeyError(Exception):
    """An object names a key twice: a reader sees one value, a parser takes the other."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedKeyError(f"the key {next(name for name in names if names.count(name) > 1)!r} stands twice")
    return data


def _strange_keys(text: str, data: dict[str, Any], trace: Trace) -> str | None:
    """What stands in the file and not in the trace that was read from it."""
    canonical = dump_trace(trace)
    # What the harness wrote is compared as it is: reading it again would take as long as reading it the first time.
    again = data if canonical == text else json.loads(canonical)
    if data == again:
        return (len(trace.stop_reasons) != trace.turns and "it has not as many stop_reasons as turns") or None
    other = sorted(key for key in {*data, *again} if data.get(key) != again.get(key))
    return f"{', '.join(map(repr, other))} cannot have been written by the harness"


# Made once: `json.dumps` makes an encoder for each call that wants other settings than its own.
_json: Final = json.JSONEncoder(ensure_ascii=False).encode


def _call_data(call: Call, results: bool) -> dict[str, object]:
    data: dict[str, object] = {"turn": call.turn, "tool": call.tool, "digest": call.digest}
    if call.args is not None:
        data["args"] = {name: call.args[name] for name in sorted(call.args)}
    data["ok"] = call.ok
    if not call.asked:
        data["asked"] = False
    if results and call.result is not None:
        data["result"] = call.result
    return data


def _check_schema(schema: object, source: str) -> None:
    match = _SCHEMA_FORM.fullmatch(schema) if isinstance(schema, str) else None
    if match is None:
        raise GoldenError(f"{source} is not a trace: its schema is {schema!r}, not {SCHEMA!r}", "invalid")
    if int(match[1]) > 1:
        raise GoldenError(
            f"{source} has the later schema {schema!r}, this version reads {SCHEMA!r}; upgrade trajectory-harness",
            "newer",
        )
    if int(match[1]) < 1:
        raise GoldenError(f"{source} has the older schema {schema!r}; accept a new run to write {SCHEMA!r}", "older")


def _trace(data: Mapping[str, Any]) -> Trace:
    context = data["context"]
    detail = data.get("detail", "args")
    if detail not in DETAILS:
        raise ValueError(f"detail is {detail!r}")
    calls = tuple(_call(index, call) for index, call in enumerate(data["calls"]))
    stop_reasons = tuple(data["stop_reasons"])
    if not all(reason is None or isinstance(reason, str) for reason in stop_reasons):
        raise TypeError("stop_reasons holds what is no text")
    return Trace(
        case=_text(data["case"], "case"),
        calls=calls,
        turns=_count(data["turns"], "turns"),
        stop_reasons=stop_reasons,
        interventions=tuple(
            Intervention(
                _count(one["turn"], "turn"), _text(one["verdict"], "verdict"), _text(one["detector"], "detector")
            )
            for one in data["interventions"]
        ),
        writes=frozenset(data["summary"]["writes"]),
        model=data["model"],
        context=Context(context.get("prompt"), context.get("system"), dict(context.get("tools", {}))),
        detail=detail,
        digest_key=data.get("digest_key"),
        problems=tuple(map(str, data.get("problems", ()))),
        owner=data.get("owner"),
    )


def _call(index: int, data: Mapping[str, Any]) -> Call:
    where = f"calls[{index}]"
    args = data.get("args")
    if args is not None and not isinstance(args, dict):
        raise TypeError(f"{where}.args is no object")
    for name in ("ok", "asked"):
        if not isinstance(data.get(name, name == "asked"), bool):
            raise TypeError(f"{where}.{name} is {data.get(name)!r}")
    return Call(
        turn=_count(data["turn"], f"{where}.turn"),
        tool=_text(data["tool"], f"{where}.tool"),
        digest=_text(data["digest"], f"{where}.digest"),
        ok=data["ok"],
        args=args,
        result=None if data.get("result") is None else _text(data["result"], f"{where}.result"),
        asked=data.get("asked", True),
    )


def _count(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"{where} is {value!r}")
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{where} is {value!r}")
    return value
