"""A progress bar for commands that go through many cases."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Progress"]


class Progress:
    """A bar with count and remaining time on stderr, where that is a terminal; nothing elsewhere.

    Args:
        total: how many steps there are.
    """

    def __init__(self, total: int) -> None:
        self._bar: Any = None
        if sys.stderr.isatty() and total > 1:
            from rich import progress
            from rich.console import Console

            columns = (
                progress.BarColumn(),
                progress.MofNCompleteColumn(),
                progress.TimeRemainingColumn(),
                progress.TextColumn("{task.description}"),
            )
            self._bar = progress.Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def advance(self, case: str) -> None:
        """One step is done."""
        if self._bar:
            self._bar.update(self._task, advance=1, description=case)

    def show(self, write: Callable[..., object]) -> None:
        """Write to stdout without tearing the bar."""
        if self._bar:
            self._bar.stop()
        write()
        if self._bar:
            self._bar.start()
