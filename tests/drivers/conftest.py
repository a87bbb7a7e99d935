"""Repositories whose git calls the drivers, as `harness init --git` sets them up."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.drivers.setup import attributes_with, write_settings
from tests.changes.repositories import GitFolder, be_neutral


@pytest.fixture(autouse=True)
def neutral_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of the machine, no hook's variables, no CI, no colours; the drivers are those of this checkout."""
    be_neutral(monkeypatch)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def shop(tmp_path: Path) -> GitFolder:
    """A repository with the drivers and one commit."""
    shop = GitFolder.new(tmp_path / "shop")
    list(write_settings(shop.root))
    shop.commit("Set git up", {".gitattributes": attributes_with("", "golden_traces/**/*.json")})
    return shop
