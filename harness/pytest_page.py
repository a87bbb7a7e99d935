"""`pytest --harness-report=FILE`: the page of this session, written at its end whatever became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.errors import HarnessError
from harness.page_file import page_file, shown_file, write_run_page
from harness.results_record import forget_results

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from _pytest.terminal import TerminalReporter

    from harness.project import Project

__all__ = ["PagePlugin"]


class PagePlugin:
    """Registered in the process that reports, when the option is given.

    Args:
        given: the file, as the user wrote it, relative to the directory that pytest was started in.
        folder: that directory.
        project: whose cases ran; known when the session has ended, since a test may make it one.
    """

    def __init__(self, given: str, folder: Path, project: Callable[[], Project]) -> None:
        try:
            self._path = page_file(given, folder)
        except HarnessError as error:
            raise pytest.UsageError(f"--harness-report: {error}") from None
        self._folder = folder
        self._project = project
        self._error = ""

    def pytest_sessionstart(self) -> None:
        """What an earlier run said of a case is not what this one says, should it leave the case out."""
        forget_results(self._project())

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Write the page, once the results of this session are on record."""
        try:
            write_run_page(self._project(), self._path)
        except HarnessError as error:
            self._error = str(error)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Where it is, as pytest says of its own reports."""
        if self._error:
            terminalreporter.write_line(f"--harness-report: {self._error}", red=True)
        else:
            terminalreporter.write_sep("-", f"trajectory report: {shown_file(self._path, self._folder)}")
