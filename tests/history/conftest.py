"""A repository with goldens whose history is to be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.changes.repositories import GitFolder, be_neutral

if TYPE_CHECKING:
    from harness.testing import MiniProject


@pytest.fixture(autouse=True)
def neutral_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """git as on a fresh machine."""
    be_neutral(monkeypatch)


@pytest.fixture
def shop(mini_project: MiniProject) -> GitFolder:
    """An empty repository, in the folder of the mini project."""
    (mini_project.root / "cases").mkdir()
    return GitFolder.new(mini_project.root)
