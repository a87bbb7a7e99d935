"""Where a loop's error is said to be: in the user's own code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.case.verdict import error_line

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("library", [".venv/lib/python3.11/site-packages/client.py", "venv/site-packages/client.py"])
def test_a_virtual_environment_in_the_project_is_not_the_users_code(tmp_path: Path, library: str) -> None:
    """The line that called the library is named, not the line of the library that raised."""
    names: dict[str, object] = {}
    exec(compile("def send():\n    raise LookupError", str(tmp_path / library), "exec"), names)
    exec(compile("\n\ndef run():\n    send()", str(tmp_path / "loop.py"), "exec"), names)
    with pytest.raises(LookupError) as caught:
        names["run"]()  # type: ignore[operator]
    assert error_line(caught.value, tmp_path) == "the loop raised LookupError at loop.py:4"


def test_an_error_outside_of_the_project_has_no_place(tmp_path: Path) -> None:
    """A path of this machine would say nothing to anybody else."""
    names: dict[str, object] = {}
    exec(compile("def run():\n    raise LookupError", str(tmp_path / "elsewhere.py"), "exec"), names)
    with pytest.raises(LookupError) as caught:
        names["run"]()  # type: ignore[operator]
    assert error_line(caught.value, tmp_path / "project") == "the loop raised LookupError"
