"""What `harness check TRACE...` says: for people, for a pull request, for annotations, for machines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from harness.escaping import command_data, command_property, markdown_text
from harness.stuck.audit import Gap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harness.stuck.audit import Audit, Finding

__all__ = ["FORMATS", "Format", "exit_code", "render_audits"]

Format: TypeAlias = Literal["terminal", "json", "markdown", "github"]
_Reports: TypeAlias = "Sequence[tuple[Audit, str]]"


def render_audits(
    audits: Sequence[Audit], form: Format = "terminal", files: Sequence[str] = (), *, quiet: bool = False
) -> str:
    """The findings of all traces as one text, with a final newline.

    Args:
        audits: one a trace.
        form: `terminal`, `json`, `markdown` (a comment) or `github` (annotations).
        files: the file of each trace, where annotations should point; otherwise they name the case alone.
        quiet: in the terminal, traces without a finding are counted and not named.
    """
    reports = list(zip(audits, [*files, *[""] * (len(audits) - len(files))], strict=True))
    return _terminal(reports, quiet=quiet) if form == "terminal" else _RENDERERS[form](reports)


def exit_code(audits: Sequence[Audit], fail_on: Literal["nudge", "force_stop"] = "force_stop") -> int:
    """1 when a trace has a verdict that should fail the build, else 0."""
    failing = {"force_stop"} if fail_on == "force_stop" else {"nudge", "force_stop"}
    return int(any(one.verdict in failing for one in audits))


def _terminal(reports: _Reports, *, quiet: bool) -> str:
    lines: list[str] = []
    for audit, _ in reports:
        if quiet and not audit.findings:
            continue
        lines.append(f"{audit.case}: {audit.verdict}{_rest(audit)}")
        for finding in audit.findings:
            lines.append(f"  {_headline(finding)}")
            if finding.verdict.evidence is not None:
                lines.append(f"    {finding.verdict.evidence.explanation()}")
    lines += _gap_lines([audit for audit, _ in reports])
    lines.append(_summary(reports))
    return "\n".join(lines) + "\n"


def _gap_lines(audits: Sequence[Audit]) -> Iterator[str]:
    """What cannot be judged, once for all traces: most lack the same."""
    found: dict[str, list[tuple[int, int] | None]] = {}
    for audit in audits:
        for gap in audit.gaps:
            found.setdefault(gap.sentence, []).append(gap.calls)
    for sentence, each in found.items():
        calls = [one for one in each if one is not None]
        some, of = (sum(one[side] for one in calls) for side in (0, 1))
        yield f"not judged in {_traces(len(each))}: {Gap(sentence, (some, of) if calls else None)}"


def _json(reports: _Reports) -> str:
    data = [audit.to_data() | ({"file": file} if file else {}) for audit, file in reports]
    return json.dumps({"schema": "harness.check/1", "traces": data}, ensure_ascii=False, indent=2) + "\n"


def _markdown(reports: _Reports) -> str:
    lines = [f"**Stuck-loop check:** {_summary(reports)}"]
    for audit, _ in reports:
        if not audit.findings:
            continue
        lines += ["", f"<details><summary>{markdown_text(audit.case)}: {audit.verdict}{_rest(audit)}</summary>", ""]
        lines += ["| call | turn | verdict | detector | finding | evidence |", "| --- | --- | --- | --- | --- | --- |"]
        for finding in audit.findings:
            verdict = finding.verdict
            if verdict.evidence is not None:
                facts = (verdict.at_call, finding.turn, verdict.kind, verdict.detector)
                words = (verdict.evidence.sentence(), verdict.evidence.explanation())
                lines.append(f"| {' | '.join(markdown_text(str(cell)) for cell in (*facts, *words))} |")
        lines += ["", *(f"- not judged: {markdown_text(one)}" for one in audit.unjudged), "", "</details>"]
    return "\n".join(lines) + "\n"


def _github(reports: _Reports) -> str:
    """Workflow commands; escaped as GitHub documents it, or a tool's name could begin a command of its own."""
    lines = []
    for audit, file in reports:
        for finding in audit.findings:
            level = "error" if finding.verdict.kind == "force_stop" else "warning"
            where = f"file={command_property(file)}," if file else ""
            title = command_property(f"{audit.case}: {finding.verdict.kind} ({finding.verdict.detector})")
            evidence = finding.verdict.evidence
            text = "" if evidence is None else f"{evidence.sentence()}\n{evidence.explanation()}"
            lines.append(f"::{level} {where}title={title}::{command_data(text)}")
    return "".join(f"{line}\n" for line in lines)


def _headline(finding: Finding) -> str:
    verdict = finding.verdict
    said = "" if verdict.evidence is None else f": {verdict.evidence.sentence()}"
    via = "" if verdict.via == "threshold" else f" via {verdict.via}"
    return f"call {verdict.at_call} (turn {finding.turn}): {verdict.kind} by {verdict.detector}{via}{said}"


def _rest(audit: Audit) -> str:
    rest = audit.calls - audit.judged
    return f" ({rest} more call{'s' if rest != 1 else ''} after it)" if rest else ""


def _summary(reports: _Reports) -> str:
    stops = sum(one.verdict == "force_stop" for one, _ in reports)
    nudges = sum(one.verdict == "nudge" for one, _ in reports)
    return f"{_traces(len(reports))}, {stops} stuck, {nudges} with a nudge only"


def _traces(count: int) -> str:
    return f"{count:,} trace{'s' * (count != 1)}"


_RENDERERS: Final[dict[Format, Callable[[_Reports], str]]] = {
    "json": _json,
    "markdown": _markdown,
    "github": _github,
}
FORMATS: Final[tuple[Format, ...]] = ("terminal", *_RENDERERS)
