"""The README is true: its commands are what CI runs, its samples are the files that it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")])


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_ci_runs_the_commands_as_printed() -> None:
    """Both set-up commands stand in `.ci/run`, to the letter."""
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    main_job, tests = (block.strip() for block in blocks("sh")[:2])
    assert main_job in lines
    assert tests in lines
    assert lines.index(tests) < lines.index(main_job)


def test_the_case_shown_is_the_case_in_the_repository() -> None:
    """Comments aside, the sample is `cases/notes/weekly_summary.yaml`."""
    shown = yaml.safe_load(blocks("yaml")[0])
    assert shown == yaml.safe_load((ROOT / "cases/notes/weekly_summary.yaml").read_text(encoding="utf-8"))


def test_the_golden_shown_is_the_golden_in_the_repository() -> None:
    """Byte for byte."""
    assert blocks("json")[0] == (ROOT / "golden_traces/notes/reads_twice.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    """Each relative link names a file that exists."""
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text(encoding="utf-8"))
    assert [target for target in targets if not (document.parent / target).exists()] == []


def test_python_samples_are_python() -> None:
    """Each sample in each document compiles."""
    samples = [
        (document.name, sample)
        for document in DOCUMENTS
        for sample in blocks("python", document.read_text(encoding="utf-8"))
    ]
    assert {"README.md", "durable.md", "python.md"} <= {name for name, _ in samples}
    faulty = []
    for name, sample in samples:
        try:
            compile(sample, name, "exec")
        except SyntaxError as error:
            faulty.append(f"{name}: {error}")
    assert faulty == []


def test_every_command_is_listed() -> None:
    """The table of commands is complete."""
    from harness.cli import COMMANDS

    assert [name for name in COMMANDS if f"`harness {name}" not in README] == []
