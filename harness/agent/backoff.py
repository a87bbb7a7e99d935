"""How long to wait before the next attempt."""

from __future__ import annotations

import hashlib

__all__ = ["MAX_WAIT", "delay_before"]

MAX_WAIT = 60.0
"""Seconds.  The SDK's own bound for `retry-after`; a server that wants more is taken at its word and the run ends."""

_FIRST, _LARGEST, _JITTER = 0.5, 8.0, 0.25  # the SDK's own back-off (anthropic 2.14, `_calculate_retry_timeout`)


def delay_before(attempt: int, run_id: str, retry_after: float | None) -> float:
    """Seconds to wait before the attempt of that number, the first one being 1.

    What the server asks for goes first.  Otherwise the wait doubles from half a second to eight, shortened by up to a
    quarter so that many runs that fail together do not return together.  The share is drawn from the run's id: the same
    run waits the same time, and two runs do not.

    Args:
        attempt: Number of the coming attempt.
        run_id: Whose attempt it is.
        retry_after: Seconds that the server asked for.
    """
    if retry_after is not None and retry_after >= 0:
        return retry_after
    share = int.from_bytes(hashlib.sha256(f"{run_id}\x00{attempt}".encode()).digest()[:4]) / 2**32
    return min(_LARGEST, _FIRST * 2.0 ** max(attempt - 2, 0)) * (1 - _JITTER * share)
