"""`harness prune`: remove goldens that no case file owns."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from harness.commands.common import project_option
from harness.errors import HarnessError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["command"]


@click.command(short_help="Remove goldens that no case owns.")
@click.option("--check", is_flag=True, help="Only list them; exit code 1 when there are any.")
@project_option
def command(check: bool, root: Path | None) -> None:
    """Remove the golden traces whose case file, or test file, no longer exists.

    \b
      harness prune --check     in CI
      harness prune
    """
    from harness.golden import GoldenStore
    from harness.project import Project
    from harness.report.summary import owned_ids

    project = Project.find(root)
    if not project.cases.is_dir():
        raise HarnessError(f"there is no folder {project.cases.name!r} here; refusing to call every golden an orphan")
    store = GoldenStore.of(project)
    orphans = store.orphans(owned_ids(project))
    for path in orphans:
        click.echo(f"{'orphan ' if check else 'removed'} {store.shown(path)}")
        if not check:
            _remove(path, store.folder)
    if not orphans:
        click.echo("every golden has a case", err=True)
    sys.exit(1 if check and orphans else 0)


def _remove(path: Path, folder: Path) -> None:
    try:
        path.unlink()
        parent = path.parent
        while parent != folder and not any(parent.iterdir()):
            parent.rmdir()
            parent = parent.parent
    except OSError as error:
        raise HarnessError(f"{path.name} could not be removed: {error.strerror or error}") from None
