"""`harness init`: set up cases in a project."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import click

from harness.atomic import write_atomically
from harness.errors import HarnessError

__all__ = ["command"]

_ATTRIBUTES = "golden_traces/**/*.json text eol=lf\n"
_IGNORED = ".harness/\n"


@click.command(short_help="Set up cases, goldens and CI in this project.")
@click.option("--agent", metavar="MODULE:CALLABLE", default=None,
              help="Your loop (default: a small one is written to agent_loop.py).")  # fmt: skip
@click.option("--root", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path(),
              help="Folder of the project (default: the working directory).")  # fmt: skip
def command(agent: str | None, root: Path) -> None:
    """Write a first case, the folder for goldens, a CI workflow, .gitattributes and .gitignore.

    What exists is kept as it is; running it twice changes nothing.

    \b
      harness init
      harness init --agent mypackage.agent:run
    """
    if agent is not None and (":" not in agent or agent.startswith(":") or agent.endswith(":")):
        raise HarnessError(f"--agent takes module:callable, such as mypackage.agent:run, not {agent!r}")
    files = {
        "cases/first.yaml": _resource("first.yaml").format(agent=agent or "agent_loop:run"),
        "golden_traces/.gitkeep": "",
        ".github/workflows/trajectories.yml": _resource("workflow.yml"),
    }
    if agent is None:
        files["agent_loop.py"] = _resource("agent_loop.py")
    for name, text in files.items():
        _write(root, name, text)
    for name, line in ((".gitattributes", _ATTRIBUTES), (".gitignore", _IGNORED)):
        _append(root, name, line)
    click.echo("next: harness run --update-golden   then look at golden_traces/ and commit it", err=True)


def _resource(name: str) -> str:
    return resources.files("harness.scaffold").joinpath(f"{name}.txt").read_text(encoding="utf-8")


def _write(root: Path, name: str, text: str) -> None:
    path = root / name
    if path.exists():
        click.echo(f"kept    {name}")
        return
    _save(path, text)
    click.echo(f"written {name}")


def _append(root: Path, name: str, line: str) -> None:
    path = root / name
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if line.strip() in before.splitlines():
        click.echo(f"kept    {name}")
        return
    _save(path, before + ("" if not before or before.endswith("\n") else "\n") + line)
    click.echo(f"written {name}")


def _save(path: Path, text: str) -> None:
    try:
        write_atomically(path, text.encode("utf-8"))
    except OSError as error:
        raise HarnessError(f"{path.name} could not be written: {error.strerror or error}") from None
