"""git as on a fresh machine, for all tests here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.changes.repositories import GitFolder, be_neutral

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def neutral_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of the machine, no hook's variables, no CI."""
    be_neutral(monkeypatch)


@pytest.fixture
def shop(tmp_path: Path) -> GitFolder:
    """An empty repository."""
    return GitFolder.new(tmp_path / "shop")
