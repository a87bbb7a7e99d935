"""What an audit found: for people, for a pull request, for annotations, for machines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from harness.audit.probes import FLAWS
from harness.escaping import command_data, command_property, markdown_text
from harness.report.lines import Line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harness.audit.auditing import Audited, ToolAudit

__all__ = ["FORMATS", "Format", "audit_lines", "exit_code", "render"]

Format: TypeAlias = Literal["terminal", "json", "markdown", "github"]

_WORDS: Final = {
    "said_ok": "said ok",
    "refused_too_late": "refused too late",
    "died": "died",
    "hung": "hung",
    "refused_by_contract": "refused by the contract",
    "refused_by_tool": "refused by the tool",
}

_MOST_DRAWN: Final = 3
"""Drawn values of one field that a person is shown; a tool that takes one wrong value takes most."""

_MOST_CHANGES: Final = 4
_MOST_INPUT: Final = 120


def exit_code(audits: Sequence[ToolAudit]) -> int:
    """1 when there is a finding; else 2 when a tool was not audited, as nothing is known of it; else 0."""
    statuses = {one.status for one in audits}
    return 1 if "findings" in statuses else 2 if "not_audited" in statuses else 0


def render(audits: Sequence[ToolAudit], form: Format = "terminal") -> str:
    """The audits as one text, with a final newline."""
    return _RENDERERS[form](audits)


def audit_lines(audits: Sequence[ToolAudit]) -> Iterator[Line]:
    """The audits as styled lines: what is wrong, with its evidence, and how much was tried."""
    for audit in audits:
        yield Line(
            f"{audit.target.name} ({audit.target.effect or 'effect unknown'}): {_headline(audit)}", _style(audit)
        )
        width = max((len(one.probe.field) for one in audit.findings), default=0)
        for one, more in _shown(audit):
            yield Line(f"  {one.probe.field:<{width}}  {one.probe.flaw:<7}  {_finding(one)}", "removed")
            yield Line(f"  {'':<{width}}  {'':<7}  {_input(one)}{_answer(one)}", "faint")
            if more:
                yield Line(f"  {'':<{width}}  {'':<7}  and {more} more like it (--format json has all)", "faint")
        for note in audit.notes:
            yield Line(f"  note: {note}", "faint")
    yield Line(_summary(audits))


def _terminal(audits: Sequence[ToolAudit]) -> str:
    return "".join(f"{line.text}\n" for line in audit_lines(audits))


def _json(audits: Sequence[ToolAudit]) -> str:
    data = {"schema": "harness.audit/1", "exit_code": exit_code(audits), "tools": [_tool_data(one) for one in audits]}
    return json.dumps(data, ensure_ascii=True, indent=2) + "\n"


def _tool_data(audit: ToolAudit) -> dict[str, Any]:
    return {
        "tool": audit.target.name,
        "effect": audit.target.effect,
        "contract": audit.target.contract is not None,
        "status": audit.status,
        "reason": audit.reason or None,
        "calls": len(audit.calls),
        "outcomes": {name: audit.count(name) for name in _WORDS if audit.count(name)},
        "findings": [
            {
                "field": one.probe.field,
                "flaw": one.probe.flaw,
                "input": one.probe.input,
                "outcome": one.answer.outcome,
                "answer": one.answer.text,
                "changes": [change.to_data() for change in one.answer.changes],
            }
            for one in audit.findings
        ],
        "notes": list(audit.notes),
    }


def _markdown(audits: Sequence[ToolAudit]) -> str:
    lines = [f"**Tool audit:** {_summary(audits)}"]
    for audit in audits:
        if audit.status in ("refuses", "nothing_required"):
            continue
        lines += [
            "",
            f"<details><summary>{markdown_text(audit.target.name)}: {markdown_text(_headline(audit))}</summary>",
            "",
        ]
        if audit.findings:
            lines += ["| field | flaw | finding | input | answer |", "| --- | --- | --- | --- | --- |"]
        for one, more in _shown(audit):
            also = f" (and {more} more like it)" if more else ""
            cells = (one.probe.field, one.probe.flaw, _finding(one) + also, _input(one), one.answer.text)
            lines.append(f"| {' | '.join(map(markdown_text, cells))} |")
        lines += ["", *(f"- {markdown_text(note)}" for note in audit.notes), "", "</details>"]
    return "\n".join(lines) + "\n"


def _github(audits: Sequence[ToolAudit]) -> str:
    lines = []
    for audit in audits:
        where = "" if audit.target.source is None else "file={},line={},".format(*map(str, audit.target.source))
        name = audit.target.name
        if audit.status == "not_audited" or audit.reason:
            title = command_property(
                f"{name}: not audited" if audit.status == "not_audited" else f"{name}: audited in part"
            )
            lines.append(f"::warning {where}title={title}::{command_data(audit.reason)}")
        for one, more in _shown(audit):
            title = command_property(f"{name}: {one.probe.field} {one.probe.flaw}")
            also = f"\nand {more} more like it" if more else ""
            lines.append(
                f"::error {where}title={title}::{command_data(f'{_finding(one)}: {_input(one)}{_answer(one)}{also}')}"
            )
    return "".join(f"{line}\n" for line in lines)


def _headline(audit: ToolAudit) -> str:
    tried = ", ".join(f"{audit.count(name)} {word}" for name, word in _WORDS.items() if audit.count(name))
    counted = f"{len(audit.calls)} calls: {tried}" if audit.calls else ""
    if audit.status == "nothing_required":
        return "no required field, nothing to try"
    if audit.status == "not_audited":
        return f"NOT AUDITED: {audit.reason}" + (f" ({counted})" if counted else "")
    return counted + (f"; {audit.reason}" if audit.reason else "")


def _finding(one: Audited) -> str:
    """The outcome and its evidence."""
    changes = one.answer.changes
    shown = ", ".join(map(str, changes[:_MOST_CHANGES])) + (", …" if len(changes) > _MOST_CHANGES else "")
    words = _WORDS[one.answer.outcome]
    if one.answer.outcome == "said_ok":
        return f"{words}: {shown or 'nothing changed'}"
    return f"{words}: {shown}" if shown else words


def _shown(audit: ToolAudit) -> Iterator[tuple[Audited, int]]:
    """The findings that a person reads, each with how many more like it there are."""
    for field in dict.fromkeys(one.probe.field for one in audit.findings):
        for flaw in FLAWS:
            for outcome in _WORDS:
                key = (field, flaw, outcome)
                alike = [one for one in audit.findings if (one.probe.field, one.probe.flaw, one.answer.outcome) == key]
                shown = alike[:_MOST_DRAWN]
                for one in shown:
                    yield one, len(alike) - len(shown) if one is shown[-1] else 0


def _input(one: Audited) -> str:
    text = json.dumps(one.probe.input, ensure_ascii=False, default=repr)
    return text if len(text) <= _MOST_INPUT else f"{text[: _MOST_INPUT - 1]}…"


def _answer(one: Audited) -> str:
    return f" → {one.answer.text!r}" if one.answer.text else ""


def _style(audit: ToolAudit) -> Any:
    return {"findings": "removed", "not_audited": "changed"}.get(audit.status, "plain")


def _summary(audits: Sequence[ToolAudit]) -> str:
    findings = sum(len(one.findings) for one in audits)
    silent = sum(one.status == "not_audited" for one in audits)
    parts = [
        _number(len(audits), "tool"),
        _number(sum(len(one.calls) for one in audits), "forbidden call"),
        f"{findings or 'no'} finding{'s' * (findings != 1)}",
    ]
    return ", ".join(parts) + (f"; {_number(silent, 'tool')} NOT AUDITED" if silent else "")


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


_RENDERERS: Final[dict[Format, Callable[[Sequence[ToolAudit]], str]]] = {
    "terminal": _terminal,
    "json": _json,
    "markdown": _markdown,
    "github": _github,
}
FORMATS: Final[tuple[Format, ...]] = tuple(_RENDERERS)
