"""From the run of a case to a verdict: compared with its golden, or accepted as the new one."""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from harness.atomic import write_atomically
from harness.drift import Drift, compare
from harness.errors import GoldenError, HarnessError, PolicyError
from harness.golden import GoldenStore, dump_trace
from harness.normalize import DIGEST_KEY_VARIABLE
from harness.policy import Policy
from harness.report.lines import SHOWN, Line, drift_lines, plain_text, printable, trace_lines

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from harness.project import Project
    from harness.trace import Trace

__all__ = ["NOT_OURS", "PASSED", "Gate", "Status", "Verdict"]

Status: TypeAlias = Literal["same", "drift", "missing", "unusable", "failed", "new", "accepted", "unchanged"]

PASSED: Final = frozenset({"same", "new", "accepted", "unchanged"})
"""The statuses with which the build may go on."""

_EXPECTED: Final = "it is expected to fail (xfail); take the mark away before its path is accepted"

NOT_OURS: Final = ("newer", "wrong_key")
"""Kinds of goldens that are not ours to replace: another version or another key made them."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says of one run.

    `same`, `drift`, `missing` and `unusable` compare it with its golden; `failed` says that the run itself must not
    count (`problems`); `new`, `accepted` and `unchanged` say what an update did to the golden.

    Args:
        case: whose run it was.
        status: the verdict in a word.
        headline: the reason in one line.
        lines: the whole story.
        trace: what was observed.
        drift: its comparison with the golden, where there was one.
    """

    case: str
    status: Status
    headline: str
    lines: tuple[Line, ...] = ()
    trace: Trace | None = None
    drift: Drift | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "headline", printable(self.headline))

    @property
    def passed(self) -> bool:
        """Whether the build may go on."""
        return self.status in PASSED


class Gate:
    """Judges the runs of one project.

    Args:
        project: where goldens and pending traces are.
        update: accept what ran instead of comparing it.

    Attributes:
        accepted: by case, who accepted which run in this session, where a golden may have several claimants.
    """

    def __init__(self, project: Project, *, update: bool = False) -> None:
        self.accepted: dict[str, tuple[str, Trace]] = {}
        self.project = project
        self.store = GoldenStore.of(project)
        self.policy = Policy.parse(project.compare)
        self.update = update

    def policy_of(self, case: str) -> Policy:
        """How strict the comparison of a case is, by its file; the project's policy where it has none.

        Raises:
            CaseError: its file is wrong.
        """
        from harness.case.named import case_named

        found = case_named(case, self.project)
        return self.policy if found is None else found.policy(self.policy)

    def judge(
        self, trace: Trace, policy: Policy, *, update: bool | None = None, expected_to_fail: bool = False
    ) -> Verdict:
        """Compare a run with its golden, or accept it.

        A run that does not pass leaves its trace under `pending/` for `harness accept`; one that passes removes it.

        Args:
            trace: what was observed; its `problems` keep it from being accepted.
            policy: how strict to be.
            update: overrides the gate's own setting for this run.
            expected_to_fail: the run is compared and never accepted, now or later.
        """
        wanted = (self.update if update is None else update) and not expected_to_fail
        problems = [*trace.problems, *_policy_problems(trace, policy)]
        if problems:
            verdict = self._failed(trace, problems)
        elif wanted:
            verdict = self._accept(trace, policy)
        else:
            verdict = self._compare(trace, policy)
        self._keep(verdict, replace(trace, problems=(*trace.problems, _EXPECTED)) if expected_to_fail else trace)
        return verdict

    def pending_fault(self, case: str, trace: Trace) -> str:
        """Why what is pending for a case must not become its golden, however it compares; empty when it may.

        Args:
            case: whose golden it would become.
            trace: what is pending.
        """
        if trace.case != case:
            return f"what is pending is a run of another case, {trace.case!r}; run {case} again"
        if not self._has_source(case, trace):
            return f"{'its case file' if trace.owner is None else trace.owner} is gone; if it was renamed, run it again"
        if trace.digest_key != self.store.fingerprint:
            keys = [f"the key {key}" if key else "no key" for key in (trace.digest_key, self.store.fingerprint)]
            return (
                f"its digests were made with {keys[0]}, and {DIGEST_KEY_VARIABLE} gives {keys[1]}; "
                "set the key that goldens are made with, and run it again"
            )
        return next(iter(trace.problems), "")

    def accept_pending(self, case: str, trace: Trace, policy: Policy, facets: Collection[str] = ()) -> Verdict:
        """Accept what is pending for a case without running it again.

        Args:
            case: its id.
            trace: what is pending, as it was looked at: a run may rewrite the file at any time.
            policy: how strict its comparison is.
            facets: what to accept of it, as in `harness.policy.FACETS`; empty for the whole run.  Where drift is left,
                the trace stays pending.

        Raises:
            HarnessError: it must not be this golden (`pending_fault`), the golden there is not ours to replace, or the
                facets cannot be taken apart from others.
        """
        fault = self.pending_fault(case, trace)
        if fault:
            raise HarnessError(f"{case} cannot be accepted: {fault}")
        verdict = self._accept_facets(trace, policy, facets) if facets else self.judge(trace, policy, update=True)
        if not verdict.passed:
            raise HarnessError(f"{case} cannot be accepted: {verdict.headline}")
        return verdict

    def _accept_facets(self, trace: Trace, policy: Policy, facets: Collection[str]) -> Verdict:
        from harness.composition import compose

        golden = self.store.load(trace.case)
        composed = compose(golden, trace, facets, results=policy.wants_results)
        self.store.save(composed, results=policy.wants_results)
        left = self._compare(trace, policy)
        self._keep(left, trace)
        taken = compare(golden, composed, policy)
        return Verdict(trace.case, "accepted", taken.headline, tuple(drift_lines(taken)), trace, left.drift)

    def _has_source(self, case: str, trace: Trace) -> bool:
        """Whether what made a trace, a case file or a test, is still there."""
        from harness.case.named import case_file

        if trace.owner is not None:
            return (self.project.root / trace.owner).is_file()
        return case_file(case, self.project) is not None

    def pending_path(self, case: str) -> Path:
        """Where the observed trace of a case waits for a decision."""
        return self.project.pending / f"{case}.json"

    def pending_cases(self) -> list[str]:
        """The cases whose last run waits for a decision, by name."""
        folder = self.project.pending
        return sorted(path.relative_to(folder).as_posix().removesuffix(".json") for path in folder.rglob("*.json"))

    def _failed(self, trace: Trace, problems: list[str]) -> Verdict:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        lines = [Line(f"problem: {problem}", "removed") for problem in problems[1:]]
        lines += trace_lines(replace(trace, problems=()), SHOWN)
        return Verdict(trace.case, "failed", problems[0] + more, tuple(lines), trace)

    def _compare(self, trace: Trace, policy: Policy) -> Verdict:
        try:
            golden = self.store.load(trace.case)
        except GoldenError as error:
            status: Status = "missing" if error.kind == "missing" else "unusable"
            lines = trace_lines(trace, SHOWN)
            if error.kind not in ("missing", *NOT_OURS):
                # Neither branch's golden is what the merged code does.
                way = "look, then" if error.kind == "conflict" else "restore the golden from git, or"
                lines += [Line(""), _advice(trace.case, f"{way} accept this run with")]
            return Verdict(trace.case, status, str(error), tuple(lines), trace)
        drift = compare(golden, trace, policy)
        if not drift:
            stale = trace.owner is not None and golden.owner != trace.owner
            owner = f"names {golden.owner} as its owner, now {trace.owner}; renew it with: pytest --update-golden"
            return Verdict(trace.case, "same", owner if stale else "", (), trace, drift)
        lines = drift_lines(drift, whole=self.store.shown(self.report_path(trace.case)))
        lines.append(_advice(trace.case, "accept with"))
        return Verdict(trace.case, "drift", drift.headline, tuple(lines), trace, drift)

    def _accept(self, trace: Trace, policy: Policy) -> Verdict:
        drift: Drift | None = None
        replaced = ""
        try:
            drift = compare(self.store.load(trace.case), trace, policy)
        except GoldenError as error:
            if error.kind in NOT_OURS:
                return Verdict(trace.case, "unusable", str(error), (), trace)
            what = str(error).partition(";")[0]  # without the advice, which was just taken
            replaced = "" if error.kind == "missing" else f"replaced: {what}"
        try:
            changed = self.store.save(trace, results=policy.wants_results)
        except GoldenError as error:
            return Verdict(trace.case, "unusable", str(error), (), trace)
        if not changed:
            return Verdict(trace.case, "unchanged", "", (), trace, drift)
        if drift is None and not replaced:
            return Verdict(trace.case, "new", f"{len(trace.calls)} calls, {trace.turns} turns", (), trace)
        headline = replaced or (drift.headline if drift else "") or "; ".join(drift.causes if drift else ())
        lines = tuple(drift_lines(drift)) if drift else ()
        return Verdict(trace.case, "accepted", headline or "within its policy", lines, trace, drift)

    def _keep(self, verdict: Verdict, trace: Trace) -> None:
        """The observed trace, and a diff too long for a terminal, as files beside nothing that is committed."""
        pending, report = self.pending_path(trace.case), self.report_path(trace.case)
        with contextlib.suppress(OSError):  # artifacts help; their absence must not change a verdict
            if verdict.passed:
                pending.unlink(missing_ok=True)
                report.unlink(missing_ok=True)
                return
            ignore = self.project.artifacts / ".gitignore"
            if not ignore.exists():
                write_atomically(ignore, b"*\n")
            write_atomically(pending, dump_trace(trace).encode("utf-8"))
            if verdict.drift:
                whole = plain_text(drift_lines(verdict.drift, limit=None))
                write_atomically(report, whole.encode("utf-8", "backslashreplace"))

    def report_path(self, case: str) -> Path:
        """Where the whole diff of a drift is written."""
        return self.project.artifacts / "reports" / f"{case}.txt"


def _advice(case: str, what: str) -> Line:
    command = f"harness accept {shlex.quote(case)}"
    return Line(f"{what}: {command}   or: pytest --update-golden", "faint", hang=2)


def _policy_problems(trace: Trace, policy: Policy) -> list[str]:
    """What the policy asks for that this run makes impossible: which tools write is known only now."""
    try:
        policy.check_writes(trace.writes)
        policy.check_detail(trace.detail)
    except PolicyError as error:
        return [f"compare: {'.'.join(map(str, error.path))}: {error}"]
    return []
