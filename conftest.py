"""Fixtures and plugins of this repository's own tests."""

import signal
from collections.abc import Iterator

import pytest

pytest_plugins = ["pytester", "harness.testing"]


@pytest.fixture(autouse=True, scope="session")
def heeded_interrupt() -> Iterator[None]:
    """Ctrl-C is heard also where these tests run in the background: a shell has what it starts there ignore it."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, signal.SIG_IGN)
