"""What one run did, as plain data: the calls in their order, the turns, the stop_reasons."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Call", "Context", "Intervention", "Signature", "Trace"]

Signature: TypeAlias = "tuple[Any, ...]"


@dataclass(frozen=True, slots=True)
class Call:
    """One execution of one tool.

    Args:
        turn: the model response that asked for it, from 1; 0 when it was made outside any response.
        tool: its name.
        digest: 12 hex digits over the canonical JSON of the normalized input.
        ok: False when the tool raised or its result said `is_error`.
        args: per top-level argument an 8-digit digest (`detail: args`) or its normalized value (`detail: plain`);
            None with `detail: digest`.
        result: 12 hex digits over the normalized result, where it was observed.
        asked: False when no `tool_use` block of the turn asked for this execution: the loop ran a call again, or made
            one of its own.
    """

    turn: int
    tool: str
    digest: str
    ok: bool = True
    args: Mapping[str, Any] | None = None
    result: str | None = None
    asked: bool = True

    @property
    def key(self) -> tuple[str, str]:
        """What makes two calls the same call: tool and arguments."""
        return (self.tool, self.digest)


@dataclass(frozen=True, slots=True)
class Intervention:
    """A verdict of the stuck-loop guard that the loop acted on, after the calls of `turn`."""

    turn: int
    verdict: str
    detector: str


@dataclass(frozen=True, slots=True)
class Context:
    """Digests of what the loop sent with its first request.  Never a drift; named as the cause of one."""

    prompt: str | None = None
    system: str | None = None
    tools: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Trace:
    """The normalized record of one run.

    `writes` names the tools whose effect is not `read_only`, as far as they were called.  `detail` says what
    `Call.args` holds: `args` (digests), `plain` (values) or `digest` (nothing).  `digest_key` is the fingerprint of
    `HARNESS_DIGEST_KEY` when the digests are keyed.  `problems` are the reasons why an observed run must not become a
    golden (a limit that it broke, an error that ended it); a golden has none.  `owner` is the test file that a golden
    belongs to when no case file does, relative to the project's root.
    """

    case: str
    calls: tuple[Call, ...] = ()
    turns: int = 0
    stop_reasons: tuple[str | None, ...] = ()
    interventions: tuple[Intervention, ...] = ()
    writes: frozenset[str] = frozenset()
    model: str | None = None
    context: Context = Context()
    detail: str = "args"
    digest_key: str | None = None
    problems: tuple[str, ...] = ()
    owner: str | None = None

    def groups(self) -> Iterator[tuple[Call, ...]]:
        """The parallel groups in order: the calls of one response; a call outside any response stands alone."""
        group: list[Call] = []
        for call in self.calls:
            if group and (call.turn == 0 or call.turn != group[-1].turn):
                yield tuple(group)
                group = []
            group.append(call)
        if group:
            yield tuple(group)

    @cached_property
    def signature(self) -> Signature:
        """All that an exact comparison looks at: two traces drift exactly when their signatures differ.

        Calls of one parallel group are sorted, since their order carries no meaning.  Computed once a trace, so that
        comparing loaded traces costs one tuple comparison.
        """
        calls = [(call.turn, call.tool, call.digest, call.ok, call.asked) for call in self.calls]
        start = 0
        for end in range(1, len(calls) + 1):
            if end == len(calls) or calls[end][0] == 0 or calls[end][0] != calls[start][0]:
                if end - start > 1:
                    calls[start:end] = sorted(calls[start:end])
                start = end
        interventions = tuple((one.turn, one.verdict, one.detector) for one in self.interventions)
        return (self.turns, self.stop_reasons, tuple(calls), interventions, self.write_counts)

    @cached_property
    def write_counts(self) -> dict[str, int]:
        """How often each write tool was called, by name in order."""
        counts = Counter(call.tool for call in self.calls if call.tool in self.writes)
        return {tool: counts[tool] for tool in sorted(counts)}

    @cached_property
    def duplicates(self) -> dict[str, int]:
        """By tool, the calls beyond the first with the same arguments, by name in order."""
        counts: Counter[str] = Counter()
        for (tool, _), times in Counter(call.key for call in self.calls).items():
            if times > 1:
                counts[tool] += times - 1
        return {tool: counts[tool] for tool in sorted(counts)}

    def summary(self) -> dict[str, Any]:
        """What a golden states for its reader, recomputed from the calls."""
        return {"calls": len(self.calls), "duplicates": self.duplicates, "writes": self.write_counts}
