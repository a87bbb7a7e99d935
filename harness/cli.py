"""The command `harness`.  Each subcommand lives in a module of its own and imports what it needs when it runs."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from harness import __version__
from harness.errors import HarnessError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["COMMANDS", "main"]

COMMANDS: Final = (
    "accept",
    "audit",
    "check",
    "crash",
    "demo",
    "diff",
    "init",
    "log",
    "mutate",
    "prune",
    "report",
    "review",
    "run",
    "schema",
    "show",
    "state",
)

_HELP: Final = """\
Trajectory regression tests for tool-using agents.

A case drives the real loop, its trace is compared with the committed golden trace, drift fails the build.

\b
  harness demo                  see a drift found, nothing to configure
  harness init                  set up cases in this project
  harness run                   run all cases, without pytest
  harness review                accept or reject what changed, one by one
  harness report                the last run as one HTML page
  harness diff                  what this branch did to the goldens
  harness crash                 kill cases at every point, and resume them

Completion for bash: eval "$(_HARNESS_COMPLETE=bash_source harness)"; likewise for zsh and fish.
"""


class _Commands(click.Group):
    """Finds a subcommand in `harness.commands` when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (the interface of click)
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"harness.commands.{cmd_name}").command
        return command


@click.group(cls=_Commands, help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="harness")
def _group() -> None:
    pass


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; errors that the user can mend are one message on stderr and exit code 2.

    An interruption is exit code 130, as shells have it: it must not look like a drift.
    """
    if sys.stdout is None:  # closed by who started us
        sys.stdout = io.StringIO()
    for stream in (sys.stdout, sys.stderr):
        # A pipe on Windows, or PYTHONIOENCODING: what the encoding does not hold is escaped, and no reason to stop.
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")
    try:
        with _told_where_it_goes():
            _check_folder()
            code = _group.main(arguments, prog_name="harness", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except HarnessError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)


@contextlib.contextmanager
def _told_where_it_goes() -> Iterator[None]:
    """That stdout takes no more is no fault of ours: a disk is full, a terminal is gone.

    Raises:
        HarnessError: it could not be written.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.filename is not None or isinstance(error, BrokenPipeError):
            raise  # what names a file is about that file
        with contextlib.suppress(OSError):  # or the interpreter says it again when it leaves
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise HarnessError(f"stdout cannot be written: {error.strerror or error}") from None


def _check_folder() -> None:
    """A shell stands in a folder that was removed more often than one thinks: a temporary one, another branch's."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise HarnessError("the working directory no longer exists; cd to one that does") from None
