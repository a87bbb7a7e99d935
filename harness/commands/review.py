"""`harness review`: decide on the traces of the last run, one by one, with single keys."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from harness.commands.accept import tell_message
from harness.commands.common import complete_pending, echo_lines, project_option, select, styled_text
from harness.errors import HarnessError

if TYPE_CHECKING:
    from pathlib import Path

    from harness.report.lines import Line
    from harness.review.session import Session

__all__ = ["command"]

_PAGE = 40
"""Lines that need no pager."""


@click.command(short_help="Accept or reject the traces of the last run, one by one.")
@click.argument("cases", nargs=-1, shell_complete=complete_pending)
@click.option("--all", "again", is_flag=True, help="Show those that were rejected before, too.")
@click.option(
    "--message", is_flag=True, help="Only print the commit message of what was accepted since the last commit."
)
@project_option
def command(cases: tuple[str, ...], again: bool, message: bool, root: Path | None) -> None:
    """Walk through the traces that wait for a decision (of CASES, or all), changes in writes first.

    Keys: a accept, w accept a change in writes, f only some facets, r reject, s skip, m more, A accept all the rest
    (never a change in writes), u undo, q quit. Every decision is kept at once: quit, and go on another time.

    \b
      harness review
      harness review 'notes/*'
      git commit -eF .harness/commit-message.txt     what was accepted, in words
    """
    from harness.gate import Gate
    from harness.project import Project
    from harness.review.decisions import Decisions
    from harness.review.session import Session
    from harness.review.waiting import waiting_traces

    project = Project.find(root)
    gate = Gate(project)
    decisions = Decisions.of(project)
    if message:
        if not decisions.accepted:
            raise HarnessError("nothing was accepted since the last commit")
        click.echo(decisions.message(), nl=False)
        return
    chosen = select(cases, gate.pending_cases(), project, "pending trace")
    waiting = waiting_traces(gate, chosen)
    known = [one for one in waiting if decisions.rejected.get(one.case) == one.sha256]
    session = Session(waiting if again else [one for one in waiting if one not in known], gate, decisions)
    if known and not again:
        click.echo(f"{len(known)} rejected before (--all shows them)", err=True)
    if session.over:
        click.echo("nothing waits for a decision", err=True)
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise HarnessError(
            f"{len(session.waiting)} to decide on, and review asks for single keys: it needs a terminal. "
            "Without one: harness diff golden pending, then harness accept CASE"
        )
    _walk(session)
    echo_lines([session.summary()])
    tell_message(decisions)


def _walk(session: Session) -> None:
    """Show, ask, do, until all is decided or the reader has enough."""
    from harness.report.lines import Line

    shown: tuple[int, str] | None = None
    while not session.over:
        now = (session.place, session.current.sha256 + session.current.golden_sha256)
        if now != shown:
            echo_lines(session.shown())
            shown = now
        click.echo(styled_text([Line(session.prompt(), "title")]).removesuffix("\n"), nl=False, color=True)
        try:
            key = click.getchar()
        except (EOFError, KeyboardInterrupt):
            click.echo("")
            return
        click.echo("")
        _say(session.press(key))


def _say(lines: list[Line]) -> None:
    if len(lines) <= _PAGE:
        echo_lines(lines)
        return
    click.echo_via_pager(styled_text(lines))
