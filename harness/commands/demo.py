"""`harness demo`: a loop drifts, another mails twice after a kill, and what the harness says of them.

Nothing to configure, nothing is left behind.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib import resources
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


@click.command(short_help="See a drift and a double mail found, in a temporary folder.")
def command() -> None:
    """Set up small projects in a temporary folder and show what the harness finds: a loop that was made more careful,
    and one that mails twice after a kill.

    Everything is real: the loops, the SDK, the traces, the kills; only the model is scripted.
    """
    with tempfile.TemporaryDirectory(prefix="harness-demo-") as folder:
        for name, show in (("drift", _show_drift), ("crash", _show_crash)):
            root = Path(folder, name)
            root.mkdir()
            show(root)
    click.secho("\nNow in your project: harness init", bold=True)


def _show_drift(root: Path) -> None:
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
    click.secho("\nThe customer would have been refunded twice.", bold=True)


def _show_crash(root: Path) -> None:
    click.secho(
        "\n5. Another agent saves its messages, so that it can go on after a crash.  It is killed at every", bold=True
    )
    click.secho("   point, really killed, and started again each time:", bold=True)
    (root / "cases").mkdir()
    scaffold = resources.files("harness.scaffold")
    for name, target in (("resuming_loop.py.txt", "resuming_loop.py"), ("resuming.yaml.txt", "cases/resuming.yaml")):
        (root / target).write_text(scaffold.joinpath(name).read_text(encoding="utf-8"), encoding="utf-8")
    if _harness(root, "crash", expect=1) != 1:
        raise HarnessError("the demo's double mail was not found; please report this")
    click.secho("\nThe team would have had the mail twice: after a restart, every pending call ran again.", bold=True)


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
