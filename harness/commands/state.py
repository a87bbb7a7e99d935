"""`harness state`: what a run's state directory holds, for people and for other programs."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]

_STATE_DIR = click.argument("state_dir", type=click.Path(file_okay=False, path_type=Path))


@click.group(short_help="Look into the state of a durable run.")
def command() -> None:
    """Look into the state directory of a durable run, beside a process that may be running on it.

    \b
      harness state show state/            the published JSON layout
      harness state show --ledger state/   one line a call: how far it came, and when
      harness state export state/          messages and calls as JSON Lines
    """


@command.command(short_help="The state as JSON, or its ledger as a table.")
@_STATE_DIR
@click.option("--ledger", is_flag=True, help="One line a call, without inputs and results.")
def show(state_dir: Path, ledger: bool) -> None:
    """Print the state that STATE_DIR holds, in the layout of `checkpoint.json`.

    Exit code 2 when it holds none, or one that cannot be read.
    """
    from harness.agent.state_view import show_ledger, show_state

    click.echo((show_ledger if ledger else show_state)(state_dir), nl=False)


@command.command(short_help="The trajectory as JSON Lines.")
@_STATE_DIR
def export(state_dir: Path) -> None:
    """Print the run, its messages and its calls, one JSON object a line; the messages are as the model gets them."""
    from harness.agent.state_view import export_state

    click.echo(export_state(state_dir), nl=False)
