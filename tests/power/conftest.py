"""Where the power-loss tests work: in memory where there is such, since they sync thousands of times."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.power.strace import why_not


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty directory for a recording; planted stores can be imported in the recorded process."""
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    here = Path(__file__).parent
    monkeypatch.syspath_prepend(here)
    monkeypatch.setenv("PYTHONPATH", f"{here}:{here.parent.parent}")
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as directory:
        yield Path(directory)
