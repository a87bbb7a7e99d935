"""`harness init`: set up cases in a project."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.atomic import write_atomically
from harness.errors import HarnessError

if TYPE_CHECKING:
    from harness.project import Project

__all__ = ["command"]

_IGNORED = ".harness/"


@click.command(short_help="Set up cases, goldens and CI in this project.")
@click.option("--agent", metavar="MODULE:CALLABLE", default=None,
              help="Your loop (default: a small one is written to agent_loop.py).")  # fmt: skip
@click.option("--git", is_flag=True,
              help="Only set git up: diffs and merges of goldens as traces, in this clone.")  # fmt: skip
@click.option("--remove", is_flag=True, help="With --git: remove those settings again.")
@click.option("--root", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path(),
              help="Folder of the project (default: the working directory).")  # fmt: skip
def command(agent: str | None, git: bool, remove: bool, root: Path) -> None:
    """Write a first case, the folder for goldens, a CI workflow, .gitattributes and .gitignore.

    What exists is kept as it is; running it twice changes nothing.

    \b
      harness init
      harness init --agent mypackage.agent:run
      harness init --git
    """
    from harness.case.references import missing_module
    from harness.project import Project

    project = Project.at(root)
    if remove and not git:
        raise HarnessError("--remove goes with --git: what init writes is yours, and removed like any file")
    if git:
        _set_up_git(project, remove=remove)
        return
    if agent is not None and (":" not in agent or agent.startswith(":") or agent.endswith(":")):
        raise HarnessError(f"--agent takes module:callable, such as mypackage.agent:run, not {agent!r}")
    if agent is not None and (missing := missing_module(agent.partition(":")[0], root)):
        click.echo(
            f"warning: there is no module {missing!r} in this folder or on sys.path; "
            f"the case will not run until there is (--agent {agent})",
            err=True,
        )
    goldens = _below(project.golden_traces, project)
    files = {
        f"{_below(project.cases, project)}/first.yaml": _resource("first.yaml").format(agent=agent or "agent_loop:run"),
        f"{goldens}/.gitkeep": "",
        ".github/workflows/trajectories.yml": _resource("workflow.yml"),
    }
    if agent is None:
        files["agent_loop.py"] = _resource("agent_loop.py")
    for name, text in files.items():
        _write(root, name, text)
    _write_attributes(project)
    ignored = _text(root / ".gitignore")
    separator = "" if not ignored or ignored.endswith("\n") else "\n"
    _put(root, ".gitignore", ignored if _IGNORED in ignored.splitlines() else f"{ignored}{separator}{_IGNORED}\n")
    click.echo(f"next: harness run --update-golden   then look at {goldens}/ and commit it", err=True)
    click.echo("also: harness init --git            git diff and git merge then know what a golden is", err=True)


def _set_up_git(project: Project, *, remove: bool) -> None:
    """One line for each thing that is there now, or is no longer."""
    from harness.drivers.setup import remove_settings, write_settings

    if remove:
        for name, there in remove_settings(project.root):
            click.echo(f"{'removed' if there else 'absent '} {name}")
        return
    _below(project.golden_traces, project)  # goldens that git cannot have: say it before anything is set
    for name, new in write_settings(project.root):
        click.echo(f"{'set    ' if new else 'kept   '} {name}")
    _write_attributes(project)
    click.echo("these settings are this clone's own; to undo them: harness init --git --remove", err=True)


def _write_attributes(project: Project) -> None:
    from harness.drivers.setup import attributes_with

    pattern = f"{_below(project.golden_traces, project)}/**/*.json"
    _put(project.root, ".gitattributes", attributes_with(_text(project.root / ".gitattributes"), pattern))


def _below(folder: Path, project: Project) -> str:
    """A folder of the project relative to its root.

    Raises:
        HarnessError: it lies elsewhere, where init does not write.
    """
    below = Path(os.path.relpath(folder, project.root))
    if below.parts[:1] == ("..",):
        raise HarnessError(f"{folder.name}/ lies outside of {project.root.name}/, so harness init cannot set it up")
    return below.as_posix()


def _resource(name: str) -> str:
    return resources.files("harness.scaffold").joinpath(f"{name}.txt").read_text(encoding="utf-8")


def _write(root: Path, name: str, text: str) -> None:
    path = root / name
    if path.exists():
        click.echo(f"kept    {name}")
        return
    _save(path, text)
    click.echo(f"written {name}")


def _put(root: Path, name: str, text: str) -> None:
    """Have a file hold a text that was made from what it held."""
    if _text(root / name) == text:
        click.echo(f"kept    {name}")
        return
    _save(root / name, text)
    click.echo(f"written {name}")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise HarnessError(f"{path.name} cannot be read: {error}") from None


def _save(path: Path, text: str) -> None:
    try:
        write_atomically(path, text.encode("utf-8"))
    except OSError as error:
        raise HarnessError(f"{path.name} could not be written: {error.strerror or error}") from None
