"""What the pytest fixture `golden_trace` is: the gate for runs that a Python test drives itself."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from harness.case.ids import SUFFIXES, case_id, shown_path
from harness.drift import compare as compare_traces
from harness.errors import CaseError, GoldenError, PolicyError
from harness.policy import Policy
from harness.recorder import Recorder
from harness.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.gate import Gate, Verdict

__all__ = ["GoldenTrace"]


class GoldenTrace:
    """Compares recorded runs with their goldens.

        def test_nightly(golden_trace):
            recorder = Recorder(case="nightly", writes={"publish"})
            run_my_loop(client_with(recorder.middleware), recorder.instrument(dispatch))
            golden_trace(recorder)

    Several tests may compare with one golden, such as the sync and the async way through one loop.

    Args:
        gate: of the project.
        owner: the test file, so that the golden is known to have one; relative to the project's root.
        test: the node id of the test.
        publish: is told each verdict.
        expected_to_fail: compare what ran, and never accept it.
    """

    def __init__(
        self, gate: Gate, owner: str, test: str, publish: Callable[[Verdict], None], *, expected_to_fail: bool
    ) -> None:
        self._gate = gate
        self._owner = owner
        self._test = test
        self._publish = publish
        self._expected_to_fail = expected_to_fail
        self._update = gate.update and not expected_to_fail
        self._accepted_here: set[str] = set()

    def __repr__(self) -> str:
        return f"<golden_trace of {self._test}>"

    def __call__(self, recorded: Recorder | Trace, *, compare: Mapping[str, Any] | None = None) -> Trace:
        """Fail the test when the run drifted from its golden; returns the trace.

        Args:
            recorded: a recorder when its run is over, or a trace.
            compare: a policy as under `compare:` in a case, on top of the project's.

        Raises:
            AssertionError: the run drifted, or has no golden yet.
            PolicyError: the policy is wrong.
            TypeError: it is neither a recorder nor a trace.
            ValueError: the recorder was given no case, or one that cannot have this golden.
        """
        __tracebackhide__ = True  # the test's own line is where the fault is
        if not isinstance(recorded, Recorder | Trace):
            raise TypeError(f"golden_trace takes a Recorder or a Trace, not {recorded!r}")
        trace = recorded.trace() if isinstance(recorded, Recorder) else recorded
        if not trace.calls and not trace.turns:
            nothing = "nothing was recorded: neither an instrumented call nor an answer of the model"
            trace = dataclasses.replace(trace, problems=(*trace.problems, nothing))
        complaint = self._complaint(trace.case)
        if complaint:
            raise ValueError(complaint)
        try:
            policy = Policy.parse(compare, self._gate.policy)
        except PolicyError as error:
            raise PolicyError(f"{'.'.join(('compare', *map(str, error.path)))}: {error}", error.path) from None
        if self._update and self._differs_from_accepted(trace, policy):
            first, _ = self._gate.accepted[trace.case]
            raise ValueError(
                f"{first} has accepted another run as {trace.case!r} in this session; "
                "two runs that differ need two names: Recorder(case=...)"
            )
        owned = dataclasses.replace(trace, owner=self._rightful_owner(trace.case))
        verdict = self._gate.judge(owned, policy, expected_to_fail=self._expected_to_fail)
        if self._update and verdict.passed:
            self._gate.accepted[trace.case] = (self._test, trace)
            self._accepted_here.add(trace.case)
        self._publish(verdict)
        if not verdict.passed:
            from harness.report.failure import failure_lines

            failures = recorded.failures() if isinstance(recorded, Recorder) else {}
            raise AssertionError("\n".join(line.text for line in failure_lines(verdict, None, failures)))
        return trace

    def _complaint(self, case: str) -> str | None:
        """Why a recorder's case cannot name a golden of ours."""
        cases = self._gate.project.cases
        if not case:
            return "a golden is filed under the case of its recorder, and this one has none: Recorder(case='nightly')"
        try:
            name = case_id(cases / f"{case}.yaml", cases)
        except CaseError as error:
            return f"{case!r} cannot name a golden: {error.problems[0].message}"
        if name != case:
            return f"{case!r} cannot name a golden; write it as {name!r}"
        file = next((path for suffix in SUFFIXES if (path := cases / f"{case}{suffix}").is_file()), None)
        return (
            None if file is None else f"the golden {case!r} is that of the case file {shown_path(file)}; take another"
        )

    def _differs_from_accepted(self, trace: Trace, policy: Policy) -> bool:
        """Whether this session accepted another run under the same name: the last one would win, silently."""
        test, accepted = self._gate.accepted.get(trace.case, ("", None))
        if accepted is None or (test == self._test and trace.case not in self._accepted_here):
            return False  # or this is a rerun of the test, which may replace what its earlier attempt did
        return bool(compare_traces(accepted, trace, policy))

    def _rightful_owner(self, case: str) -> str:
        """A golden that several test files compare with keeps its first owner, or each update would change it."""
        store = self._gate.store
        try:
            owner = store.load(case).owner
        except GoldenError:
            return self._owner
        return owner if owner is not None and (store.root / owner).is_file() else self._owner
