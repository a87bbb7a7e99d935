"""What the pytest fixture `golden_trace` is: the gate for runs that a Python test drives itself."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, Final

from harness.policy import Policy
from harness.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.gate import Gate, Verdict
    from harness.trace import Trace

__all__ = ["GoldenTrace"]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")


class GoldenTrace:
    """Compares recorded runs with their goldens.

        def test_nightly(golden_trace):
            recorder = Recorder(case="nightly", writes={"publish"})
            run_my_loop(client_with(recorder.middleware), recorder.instrument(dispatch))
            golden_trace(recorder)

    Args:
        gate: of the project.
        owner: the test file, so that the golden is known to have one.
        publish: is told each verdict.
        update: accept what ran instead of comparing it.
    """

    def __init__(self, gate: Gate, owner: str | None, publish: Callable[[Verdict], None], *, update: bool) -> None:
        self._gate = gate
        self._owner = owner
        self._publish = publish
        self._update = update

    def __call__(self, recorded: Recorder | Trace, *, compare: Mapping[str, Any] | None = None) -> Trace:
        """Fail the test when the run drifted from its golden; returns the trace.

        Args:
            recorded: a recorder when its run is over, or a trace.
            compare: a policy as under `compare:` in a case, on top of the project's.

        Raises:
            AssertionError: the run drifted, or has no golden yet.
            PolicyError: the policy is wrong.
            ValueError: the recorder was given no case, or one that cannot be a file name.
        """
        trace = recorded.trace() if isinstance(recorded, Recorder) else recorded
        if not _NAME.fullmatch(trace.case):
            raise ValueError(
                f"a golden is filed under the case of its recorder, and {trace.case!r} is no name for one; "
                "use letters, digits, '.', '_', '-', and '/' for folders: Recorder(case='nightly')"
            )
        policy = Policy.parse(compare, self._gate.policy)
        owned = dataclasses.replace(trace, owner=self._owner)
        verdict = self._gate.judge(owned, policy, update=self._update)
        self._publish(verdict)
        if not verdict.passed:
            from harness.report.failure import failure_lines

            raise AssertionError("\n".join(line.text for line in failure_lines(verdict)))
        return trace
