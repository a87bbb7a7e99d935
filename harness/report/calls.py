"""A call as one line: its tool, its arguments, what became of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.facets import changed_arguments
from harness.report.line import Line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.report.line import Style
    from harness.trace import Call

__all__ = ["call_line", "changed_values"]

_LONGEST: Final = 200
"""Characters of one value: beyond that no reader compares, and a report must stay a report."""

_MANY: Final = 40
"""Arguments of one call that are named."""

_SHARED: Final = 24
"""Characters that two values begin with in common and need not be told twice."""


def call_line(before: str, call: Call, after: str = "", style: Style = "plain") -> Line:
    """One call, with something before and after it; where the window is narrow, its values give way.

    Args:
        before: what stands left of it.
        call: which.
        after: what there is to say of it.
        style: how it is meant.
    """
    if call.args is None:
        return Line.of_parts(f"{before}{call.tool}", [("  ", call.digest)], after, style)
    values = [(f"{name}=", _value(value)) for name, value in list(call.args.items())[:_MANY]]
    if len(call.args) > _MANY:
        values.append((f"{len(call.args) - _MANY} more", ""))
    separated = [(label if not place else f", {label}", value) for place, (label, value) in enumerate(values)]
    return Line.of_parts(f"{before}{call.tool}(", separated, f"){after}", style)


def changed_values(indent: str, before: Call, now: Call) -> Iterator[Line]:
    """One line a changed argument, by name: its value in the golden and its value now.

    Args:
        indent: what stands left of each.
        before: the call in the golden.
        now: the same call now.
    """
    names = changed_arguments(before, now)
    if names is None:
        yield Line(f"{indent}arguments: {before.digest} → {now.digest}", "changed")
        return
    old, new = before.args or {}, now.args or {}
    for name in names:
        if name in old and name in new and isinstance(old[name], dict | list) and type(old[name]) is type(new[name]):
            for where, left, right in _inner_changes(old[name], new[name]):
                yield _change(f"{indent}{name}{where}", left, right)
        else:
            left, right = (_text(side[name]) if name in side else None for side in (old, new))
            yield _change(f"{indent}{name}", left, right)


def _change(label: str, old: str | None, new: str | None) -> Line:
    if old is not None and new is not None and max(len(old), len(new)) > _SHARED * 2:
        shared = _common_start(old, new)
        if shared > _SHARED:  # or both would be cut before they begin to differ
            old, new = (f"…{one[shared - _SHARED // 2 :]}" for one in (old, new))
    left, right = ("absent" if one is None else _limited(one) for one in (old, new))
    return Line.of_parts(f"{label}: ", [("", left), (" → ", right)], "", "changed")


def _common_start(old: str, new: str) -> int:
    """How many characters two texts begin with in common."""
    shortest = min(len(old), len(new))
    return next((place for place in range(shortest) if old[place] != new[place]), shortest)


def _inner_changes(old: object, new: object) -> Iterator[tuple[str, str | None, str | None]]:
    """Where inside a plain value something changed.  DeepDiff is imported only here: it costs a third of a second."""
    from deepdiff import DeepDiff

    diff = DeepDiff(old, new, verbose_level=2)
    for kind, entries in sorted(diff.items()):
        for path, change in sorted(entries.items()):
            where = path.removeprefix("root")
            if isinstance(change, dict) and "old_value" in change:
                yield where, _text(change["old_value"]), _text(change["new_value"])
            elif kind.endswith("_added"):
                yield where, None, _text(change)
            else:
                yield where, _text(change), None


def _value(value: object) -> str:
    return _limited(_text(value))


def _text(value: object) -> str:
    return str(value).replace("\n", "⏎")


def _limited(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
