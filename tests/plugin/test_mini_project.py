"""The helper that runs a mini project."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

import harness.testing

if TYPE_CHECKING:
    from harness.testing import MiniProject


def test_changes_of_files_are_told(mini_project: MiniProject) -> None:
    """Added, removed, changed, and rewritten with the same bytes; caches and artifacts are nobody's business."""
    mini_project.write(
        {"same.txt": "s", "old.txt": "o", "changed.txt": "c", "rewritten.txt": "r", "deep/gone.txt": "g"}
    )
    code = """\
import os, pathlib
pathlib.Path("new.txt").write_text("n")
os.remove("old.txt"), os.remove("deep/gone.txt")
pathlib.Path("changed.txt").write_text("C")
os.replace(pathlib.Path("rewritten.txt").rename("aside.txt"), "rewritten.txt")
pathlib.Path("rewritten.txt").write_text("r")
for folder in (".harness", "deep/__pycache__"):
    pathlib.Path(folder).mkdir(parents=True)
    pathlib.Path(folder, "x").write_text("x")
print("said"); raise SystemExit("complained")
"""
    outcome = mini_project.run(sys.executable, "-c", code)
    assert (outcome.exit_code, outcome.output, outcome.errors) == (1, "said\n", "complained\n")
    assert outcome.changed == {
        "changed.txt": "changed",
        "deep/gone.txt": "removed",
        "new.txt": "added",
        "old.txt": "removed",
        "rewritten.txt": "rewritten",
    }


def test_both_ways_to_run_pytest_agree(mini_project: MiniProject) -> None:
    """In this process or in one of its own: the same exit code and the same sections."""
    mini_project.write({
        "pyproject.toml": '[tool.pytest]\naddopts = ["-p", "no:randomly"]\n',
        "test_it.py": "def test_good(): pass\ndef test_bad(): assert 0, 'no'\n",
    })  # fmt: skip
    inside, apart = mini_project.pytest(), mini_project.pytest_apart()
    assert inside.exit_code == apart.exit_code == 1
    for title in ("test_bad", "short test summary info"):
        assert inside.section(title) == apart.section(title) != []
    assert inside.section("no such heading") == []


def test_a_module_is_imported_anew_by_each_run(mini_project: MiniProject) -> None:
    """An edit is seen at once, also within a second and of the same size, and leaves nothing in this process."""
    mini_project.write({"code.py": "VALUE = 1\n", "test_it.py": "import code_\n"})
    mini_project.write({"code_.py": "VALUE = 1\n", "test_it.py": "import code_\ndef test(): assert code_.VALUE == 1\n"})
    path = list(sys.path)
    assert mini_project.pytest().exit_code == 0
    mini_project.edit("code_.py", "1", "2")
    assert mini_project.pytest().exit_code == 1
    assert "code_" not in sys.modules
    assert sys.path == path


def test_the_surroundings_do_not_show(mini_project: MiniProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """CI, a digest key, options of the outer run: gone for the inner one unless it is given them, and back after it."""
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("HARNESS_DIGEST_KEY", "k")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--co")
    code = "import os; print(sorted(os.environ.keys() & {'CI', 'HARNESS_DIGEST_KEY', 'PYTEST_ADDOPTS', 'GIVEN'}))"
    assert mini_project.run(sys.executable, "-c", code, env={"GIVEN": "1"}).output == "['GIVEN']\n"
    mini_project.write({"test_it.py": f"def test_it():\n    {code}\n"})
    assert "['CI']" in mini_project.pytest("-s", env={"CI": "1"}).output
    assert os.environ["HARNESS_DIGEST_KEY"] == "k"


def test_an_edit_that_does_not_fit_is_refused(mini_project: MiniProject) -> None:
    """What is to be replaced must stand exactly once, or the test would not test what it says."""
    mini_project.write({"a.txt": "x x"})
    with pytest.raises(ValueError, match=r"'x' stands 2 times in a.txt"):
        mini_project.edit("a.txt", "x", "y")
    with pytest.raises(ValueError, match=r"'z' stands 0 times in a.txt"):
        mini_project.edit("a.txt", "z", "y")


def test_exported_names() -> None:
    """What users may rely on."""
    assert harness.testing.__all__ == ["MiniProject", "Outcome", "mini_project"]
