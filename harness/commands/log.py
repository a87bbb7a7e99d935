"""`harness log`: how the goldens of cases changed over the history of the repository."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from harness.commands.common import complete_case, echo_lines, project_option, select, window_width
from harness.errors import HarnessError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from harness.golden_history import GoldenHistory
    from harness.project import Project
    from harness.report.entries import Version
    from harness.report.line import Line

__all__ = ["command"]


@click.command(short_help="How the golden of a case changed over time.")
@click.argument("cases", nargs=-1, shell_complete=complete_case)
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N",
              help="Versions of each case, or rows of the table, at most.")  # fmt: skip
@click.option("--since", type=click.DateTime(["%Y-%m-%d"]), default=None, metavar="YYYY-MM-DD",
              help="Only versions from this day on, in UTC.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True)
@project_option
def command(cases: tuple[str, ...], limit: int, since: datetime | None, form: str, root: Path | None) -> None:
    """Show the versions of the goldens of CASES (ids or globs) in git, newest first: calls, turns, writes, and why.

    A golden that moved is followed; what is not committed comes first.  Without CASES: how often each golden changed.

    \b
      harness log
      harness log notes/weekly_summary
      harness log 'notes/*' --since 2026-01-01
    """
    from harness.golden_history import GoldenHistory
    from harness.project import Project

    project = Project.find(root)
    history = GoldenHistory.of(project)
    if history.is_shallow:
        click.echo(
            "note: this clone is shallow, older versions are not in it; get them: git fetch --unshallow", err=True
        )
    if not cases:
        _show_overviews(history, limit, since, form)
        return
    wanted = _wanted(cases, history, project)
    versions = history.versions(wanted, limit if since is None else None)
    if since is not None:
        first = _seconds(since)
        versions = {
            case: tuple(one for one in found if _is_from(one, first))[:limit] for case, found in versions.items()
        }
    if form == "json":
        _echo_json({"cases": [{"case": case, "versions": [_data(one) for one in versions[case]]} for case in wanted]})
        return
    _show(wanted, versions)


def _wanted(cases: Sequence[str], history: GoldenHistory, project: Project) -> list[str]:
    """The ids that are meant; one that is deleted by now only when it is named."""
    from harness.case.ids import find_cases

    files = {path.relative_to(project.cases).with_suffix("").as_posix() for path in find_cases(project.cases)}
    named = sorted({case for case in cases if case in history.past})
    others = [case for case in cases if case not in named]
    found = [*named, *select(others, sorted(history.present | files), project)] if others else named
    missing = [case for case in found if case not in history.present | history.past]
    if missing:
        raise HarnessError(
            f"{missing[0]!r} has no golden yet, so it has no history; look at a run of it, "
            f"then accept it with: harness accept {missing[0]}"
        )
    return list(dict.fromkeys(found))


def _show(wanted: Sequence[str], versions: Mapping[str, Sequence[Version]]) -> None:
    from harness.report.line import Line
    from harness.report.versions import ASCII_BARS, BARS, version_lines

    width = window_width(sys.stdout) or 80
    for place, case in enumerate(wanted):
        if place:
            _echo([Line("")])
        _echo(version_lines(case, versions[case], width, BARS if _holds_unicode() else ASCII_BARS))


def _show_overviews(history: GoldenHistory, limit: int, since: datetime | None, form: str) -> None:
    from harness.report.versions import overview_lines

    overviews = history.overviews()
    if since is not None:
        overviews = [one for one in overviews if _is_from(one.last, _seconds(since))]
    if form == "json":
        keys = ("case", "versions")
        rows = [
            {**{key: getattr(one, key) for key in keys}, "first": _data(one.first), "last": _data(one.last)}
            for one in overviews
        ]
        _echo_json({"cases": rows})
    elif overviews:
        _echo(overview_lines(overviews, limit))
    else:
        click.echo("no golden has a version " + ("since that day" if since else "yet"), err=True)


def _echo(lines: Sequence[Line]) -> None:
    from dataclasses import replace

    from harness.report.versions import plain_ascii

    echo_lines(lines if _holds_unicode() else [replace(line, text=plain_ascii(line.text)) for line in lines])


def _holds_unicode() -> bool:
    try:
        "▁█→…".encode(sys.stdout.encoding or "utf-8")  # a stream in memory has no encoding, and holds all
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _seconds(day: datetime) -> int:
    from datetime import UTC

    return int(day.replace(tzinfo=UTC).timestamp())


def _is_from(version: Version, first: int) -> bool:
    return not version.commit or version.time >= first


def _data(version: Version) -> dict[str, Any]:
    counts = version.counts
    return {
        "commit": version.commit or None,
        "time": version.time,
        "author": version.author,
        "subject": version.subject,
        "calls": counts.calls if counts else None,
        "turns": counts.turns if counts else None,
        "writes": dict(counts.writes) if counts else None,
        "headline": version.headline,
    }


def _echo_json(data: object) -> None:
    # Names may hold what UTF-8 cannot: escaped, they always go out.
    click.echo(json.dumps(data, indent=1))
