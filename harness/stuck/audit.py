"""The detectors over traces: what they would have said, and what a trace holds too little evidence for.

A trace keeps digests in which what varies by run is left out, and often no results.  So an audit is conservative: a
result that was not recorded is taken to be new, and an error whose class is not recorded to be a passing one.  What is
found in spite of that would have been found at run time as well; what cannot be judged is said.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from harness.normalize import Normalizer
from harness.stuck.config import Config
from harness.stuck.detectors.failing import SameToolError
from harness.stuck.digests import digest_of
from harness.stuck.evidence import Record, is_blank_thought
from harness.stuck.fold import State, step
from harness.stuck.reading import topic_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.stuck.profiles import Profile
    from harness.stuck.verdict import Verdict
    from harness.trace import Call, Trace

__all__ = ["Audit", "Finding", "Gap", "audit"]

_NO_ARGUMENTS: Final = Normalizer().digest({})
_BLANK_TEXTS: Final = frozenset(Normalizer().digest(text)[:8] for text in ("", " ", "\n", None))


@dataclass(frozen=True, slots=True)
class Finding:
    """One verdict over a trace, with the calls that prove it as the trace has them (index from 0)."""

    verdict: Verdict
    turn: int
    calls: tuple[tuple[int, Call], ...]


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that a trace cannot show, as a sentence.

    Args:
        sentence: what it is and what follows; of calls, what comes after their number.
        calls: how many calls it is about, of how many; None when it is about the trace.
    """

    sentence: str
    calls: tuple[int, int] | None = None

    def __str__(self) -> str:
        if self.calls is None:
            return self.sentence
        some, of = self.calls
        return f"{some:,} of {of:,} calls {self.sentence}"


@dataclass(frozen=True, slots=True)
class Audit:
    """What the detectors make of one trace.

    Args:
        case: whose trace it is.
        calls: how many calls it holds.
        findings: nudges, and at most one force_stop at the end: the run should have been over then.
        judged: how many calls were looked at, up to that stop.
        gaps: what the trace cannot show.
    """

    case: str
    calls: int
    findings: tuple[Finding, ...]
    judged: int
    gaps: tuple[Gap, ...]

    @property
    def unjudged(self) -> tuple[str, ...]:
        """What the trace cannot show, one sentence each."""
        return tuple(map(str, self.gaps))

    @property
    def verdict(self) -> str:
        """The worst verdict: `continue`, `nudge` or `force_stop`."""
        return self.findings[-1].verdict.kind if self.findings else "continue"

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "case": self.case,
            "verdict": self.verdict,
            "calls": self.calls,
            "judged": self.judged,
            "findings": [
                one.verdict.to_data() | {"turn": one.turn, "turns": [call.turn for _, call in one.calls]}
                for one in self.findings
            ],
            "unjudged": list(self.unjudged),
        }


def audit(trace: Trace, config: Config | None = None) -> Audit:
    """Fold a trace's calls, as far as its evidence goes.

    Args:
        trace: golden, observed or imported.
        config: the settings of the project; what it declares about tools is needed: a trace only knows names.
    """
    config = config or Config()
    state = State()
    findings: list[Finding] = []
    lenient = _lenient(config)
    for record in _records(trace, config):
        state, verdict = step(state, record, lenient)
        if verdict.kind != "continue" and verdict.evidence is not None:
            calls = tuple((number - 1, trace.calls[number - 1]) for number in verdict.evidence.calls)
            findings.append(Finding(verdict, trace.calls[state.calls - 1].turn, calls))
        if verdict.kind == "force_stop":
            break
    gaps = tuple(_gaps(trace, config))
    return Audit(trace.case, len(trace.calls), tuple(findings), state.calls, gaps)


def _lenient(config: Config) -> Config:
    """Errors of unknown class get the limits of passing trouble."""
    detectors = tuple(
        replace(one, transient_classes=one.transient_classes | {"other"}) if isinstance(one, SameToolError) else one
        for one in config.detectors
    )
    return replace(config, detectors=detectors)


def _records(trace: Trace, config: Config) -> Iterator[Record]:
    for index, call in enumerate(trace.calls):
        profile = config.profile(call.tool)
        plain = call.args if trace.detail == "plain" else None
        topic = topic_of(plain) if profile.family == "web" else None
        yield Record(
            tool=call.tool,
            args_digest=call.digest,
            ok=call.ok,
            error_class=None if call.ok else "other",
            result_digest=call.result or hashlib.sha256(f"unrecorded {index}".encode()).hexdigest(),
            read_only=call.tool not in trace.writes,
            family=profile.family,
            modality=profile.modality,
            topic_digest=None if topic is None else digest_of("topic", topic),
            traits=profile.traits,
            blank_thought=_is_blank(trace, call),
            turn=call.turn or None,
        )


def _is_blank(trace: Trace, call: Call) -> bool:
    """Whether the call certainly had no thought, as far as the trace's detail tells."""
    if trace.detail == "plain" and isinstance(call.args, Mapping):
        return is_blank_thought(call.args)
    if call.args is not None:
        return "input" not in call.args and (
            "thought" not in call.args or (trace.digest_key is None and call.args["thought"] in _BLANK_TEXTS)
        )
    return trace.digest_key is None and call.digest == _NO_ARGUMENTS


def _gaps(trace: Trace, config: Config) -> Iterator[Gap]:
    """What the trace cannot show, only where it matters for its calls."""
    profiles: dict[str, Profile] = {call.tool: config.profile(call.tool) for call in trace.calls}
    families = {profile.family for profile in profiles.values()}
    active = {name for name, _, _ in config.asked}
    silent = sum(call.result is None for call in trace.calls)
    if silent:
        yield Gap(
            "have no recorded result and count as having brought something new: "
            "a repeated read may be polling (observed traces under .harness/ have results)",
            (silent, len(trace.calls)),
        )
    if "ConsecutiveDuplicate" in active and any(not call.ok for call in trace.calls):
        yield Gap("the class of an error is not recorded: refused arguments and outages look like any other")
    if "FamilyNoProgress" in active and "web" in families:
        topics = "" if trace.detail == "plain" else "topics (with detail: plain they are) and "
        yield Gap(f"FamilyNoProgress: {topics}sources of web calls are not recorded")
    if "SearchEscalation" in active and "search" in families:
        yield Gap("SearchEscalation: whether a search found anything is not recorded; only failed ones count")
    if trace.calls and trace.turns > 1:
        yield Gap("messages of the user and compactions are not recorded: the trace is judged as one task")
