"""Compares a whole text with a committed file: what a format looks like is decided by who reads the diff.

A small comparison of our own: the files are what a user would see, one a format, with its own suffix.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = ["check_snapshot"]

FOLDER: Final = Path(__file__).parent / "snapshots"
RENEW: Final = "HARNESS_RENEW_SNAPSHOTS"


def check_snapshot(name: str, text: str) -> None:
    """Assert that a text is what the file holds; with HARNESS_RENEW_SNAPSHOTS=1 write it instead."""
    path = FOLDER / name
    data = text.encode("utf-8", "backslashreplace")
    if os.environ.get(RENEW):
        path.write_bytes(data)
    assert path.is_file(), f"{name} does not exist; look at what would be written, with {RENEW}=1"
    assert data.decode("utf-8") == path.read_bytes().decode("utf-8"), f"not as in {name}; if wanted: {RENEW}=1"
