"""docs/git.md shows what really happens: its session is run here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tests.changes.repositories import GitFolder

if TYPE_CHECKING:
    from harness.testing import MiniProject

DOCUMENT = Path(__file__).parents[2] / "docs" / "git.md"

LOOP = """\
def run(prompt, dispatch):
    dispatch("read", {"page": 1})
    dispatch("read", {"page": 2})
    dispatch("mail", {"to": "team"})
"""
CASE = """\
agent: loop:run
prompt: Read the notes, mail the team.
tools:
  read: {effect: read_only, input: {page: integer}, returns: text}
  mail: {effect: irreversible, input: {to: string}, returns: sent}
model: {name: claude-sonnet-5, script: [{say: Never asked.}]}
"""


def accept(git: GitFolder, project: MiniProject, old: str, new: str, subject: str) -> None:
    """Change the loop, accept what it does, commit both."""
    project.edit("loop.py", old, new)
    assert project.harness("run", "--update-golden").exit_code == 0
    git.commit(subject)


def session(project: MiniProject) -> dict[str, str]:
    """What each command of the document says, in its order."""
    git = GitFolder.new(project.root)
    project.write({"loop.py": LOOP, "cases/weekly.yaml": CASE, ".gitignore": ".harness/\n"})
    project.harness("init")
    for name in ("cases/first.yaml", "agent_loop.py", ".github/workflows/trajectories.yml"):
        (project.root / name).unlink()
    setup = project.harness("init", "--git")
    outputs = {"setup": setup.output + setup.errors}
    project.harness("run", "--update-golden")
    git.commit("Add the weekly case")

    project.edit("loop.py", '"page": 2', '"page": 3')
    project.harness("run", "--update-golden")
    outputs["diff"] = git.git("diff", "golden_traces")
    outputs["textconv"] = git.git("diff", "--no-ext-diff", "golden_traces")
    git.git("checkout", "-q", ".")

    git.git("checkout", "-q", "-b", "more-careful")
    accept(git, project, '("mail"', '("read", {"page": 3})\n    dispatch("mail"', "Read to the end")
    git.git("checkout", "-q", "main")
    accept(git, project, '{"page": 1})', '{"page": 0})\n    dispatch("read", {"page": 1})', "Read the cover, too")
    outputs["merge"] = git.merge("more-careful")
    project.harness("run")
    outputs["accept"] = project.harness("accept", "weekly").output.splitlines()[0] + "\n"
    git.git("add", "golden_traces")
    git.git("commit", "-q", "--no-edit")
    outputs["log"] = project.harness("log", "weekly").output
    return outputs


def neutral(text: str) -> str:
    """Without ids of commits and contents, which a change of the format would change."""
    return re.sub(r"\b[0-9a-f]{7,8}\b", "<id>", text)


def test_what_the_document_shows_is_what_happens(mini_project: MiniProject) -> None:
    """Each output stands in it as it is; a line that git or a run adds before it may be left out."""
    shown = neutral(DOCUMENT.read_text(encoding="utf-8"))
    for name, output in session(mini_project).items():
        text = neutral(output).strip("\n")
        if name == "merge":
            text = "\n".join(line for line in text.splitlines() if line.startswith(("golden_traces", "  ")))
        assert text in shown, f"{name}:\n{text}"
