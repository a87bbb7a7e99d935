"""`harness demo`: a loop drifts, and what the harness says of it.  Nothing to configure, nothing is left behind."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import click

from harness.errors import HarnessError

__all__ = ["command"]

_BEFORE: Final = "result = dispatch(block.name, block.input)"
_AFTER: Final = """\
result = dispatch(block.name, block.input)
                if "error" not in str(result):  # "make sure that it really went through"
                    result = dispatch(block.name, block.input)"""


@click.command(short_help="See a drift found, in a temporary folder.")
def command() -> None:
    """Set up a small project in a temporary folder, change one line of its loop, and show what the harness finds.

    Everything is real: the loop, the SDK, the trace, the golden; only the model is scripted.
    """
    with tempfile.TemporaryDirectory(prefix="harness-demo-") as folder:
        root = Path(folder)
        click.secho("1. A small agent: it looks an order up and refunds it.  Its answers are always right.", bold=True)
        _harness(root, "init")
        click.secho("\n2. Run the case and accept its path as golden.", bold=True)
        _harness(root, "run", "--update-golden")
        _harness(root, "show", "first")
        click.secho("\n3. Somebody makes the loop more careful:", bold=True)
        loop = root / "agent_loop.py"
        text = loop.read_text(encoding="utf-8")
        if _BEFORE not in text:
            raise HarnessError("the demo's own loop is not what the demo expects; please report this")
        loop.write_text(text.replace(_BEFORE, _AFTER), encoding="utf-8")
        for line in _AFTER.splitlines()[1:]:
            click.secho(f"   + {line.strip()}", fg="green")
        click.secho("\n4. The final answer is the same.  The path is not:", bold=True)
        if _harness(root, "run", expect=1) != 1:
            raise HarnessError("the demo's drift was not found; please report this")
    click.secho("\nThe customer would have been refunded twice.  Now in your project: harness init", bold=True)


def _harness(root: Path, *arguments: str, expect: int = 0) -> int:
    click.secho(f"$ harness {' '.join(arguments)}", dim=True)
    done = subprocess.run(  # noqa: S603 (our own command)
        [sys.executable, "-m", "harness", *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    click.echo(done.stdout + done.stderr, nl=False)
    if done.returncode != expect:
        raise HarnessError(f"harness {arguments[0]} ended with exit code {done.returncode}")
    return done.returncode
