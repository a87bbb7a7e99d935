"""The page of the last run in a file: complained of before the run, gathered and written whole after it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from harness.atomic import write_output
from harness.errors import HarnessError

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.project import Project
    from harness.report.entries import Report

__all__ = ["page_file", "shown_file", "write_page", "write_run_page"]


def page_file(given: str | Path, folder: Path) -> Path:
    """Where a page is to go.  What keeps it from being written is said here, before cases run for it.

    Args:
        given: as the user wrote it.
        folder: what it is relative to.

    Raises:
        HarnessError: it is a folder, or it cannot be made where it is to be.
    """
    path = folder / given
    if not str(given) or path.is_dir():
        raise HarnessError(
            f"the report cannot be written: {str(given)!r} is a folder; name a file, such as report.html"
        )
    above = next(one for one in path.parents if one.exists())
    if not above.is_dir():
        raise HarnessError(
            f"the report cannot be written to {str(given)!r}: {shown_file(above, folder)!r} is no folder"
        )
    if not os.access(above, os.W_OK | os.X_OK):
        raise HarnessError(
            f"the report cannot be written to {str(given)!r}: {shown_file(above, folder)!r} is not writable; "
            "name a file elsewhere"
        )
    return path


def shown_file(path: Path, folder: Path) -> str:
    """A path as a reader in `folder` would type it."""
    return Path(os.path.relpath(path, folder)).as_posix()


def write_run_page(project: Project, path: Path) -> Report:
    """Write the page of what the last run said, and of what its branch did to the goldens; returns what is in it.

    Raises:
        HarnessError: a golden cannot be read, or the page cannot be written.
    """
    from harness.run_report import run_report

    report = run_report(project)
    write_page(report, path)
    return report


def write_page(report: Report, path: Path, step: Callable[[], object] | None = None) -> int:
    """Write a report as a page, whole or not at all; returns its size in bytes.

    Args:
        report: what to show.
        path: the file, as `page_file` found it.
        step: called after each case.

    Raises:
        HarnessError: it cannot be written; an older page is still there.
    """
    from harness.report.page import render_page

    data = render_page(report, step).encode("utf-8")
    try:
        write_output(path, data)
    except OSError as error:
        raise HarnessError(f"the report {path.name} cannot be written: {error.strerror or error}") from None
    return len(data)
