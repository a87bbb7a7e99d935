"""One review: which trace is shown, what each key does, what was decided.  Keys in, lines out; no terminal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from harness.errors import HarnessError
from harness.report.lines import SHOWN, Line, drift_lines, trace_lines
from harness.review.accepting import Acceptance, accept
from harness.review.waiting import waiting_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.gate import Gate
    from harness.review.decisions import Decisions
    from harness.review.waiting import Waiting

__all__ = ["HELP", "Session"]

HELP: Final = (
    ("a", "accept: the trace becomes the golden"),
    ("w", "accept, with its change in writes"),
    ("f", "choose facets, and accept only those"),
    ("r", "reject: it stays drift, and is not asked about again until it does something else"),
    ("s", "skip: decide later (also: space)"),
    ("p", "back to the one before"),
    ("m", "show more: the whole diff and the whole trace"),
    ("A", "accept all that are left, but for changes in writes"),
    ("u", "undo the last acceptance"),
    ("q", "quit; what was decided is kept"),
)
"""The keys, and what each does."""

_SKIP: Final = frozenset({"s", "n", " ", "\r", "\n"})
_QUIT: Final = frozenset({"q", "\x04"})


@dataclass(slots=True)
class Session:
    """A walk through what waits.

    Args:
        waiting: what to decide on, in this order.
        gate: of the project.
        decisions: where decisions are kept.
    """

    waiting: list[Waiting]
    gate: Gate
    decisions: Decisions
    place: int = 0
    over: bool = False
    chosen: list[str] | None = None
    _done: list[tuple[Acceptance, str]] = field(default_factory=list)
    _counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.over = not self.waiting

    @property
    def current(self) -> Waiting:
        """What is shown."""
        return self.waiting[self.place]

    def shown(self) -> Iterator[Line]:
        """The case that is to be decided on: what it is, what changed."""
        one = self.current
        mark = "  changes writes" if one.touches_writes else ""
        yield Line("")
        yield Line(f"{self.place + 1}/{len(self.waiting)}  {one.case}{mark}", "title")
        drifted = one.change.drift is not None and one.conflict is None
        yield Line(f"drift: {one.headline}" if drifted else one.headline, "removed")
        if one.note:
            yield Line(one.note, "changed")
        yield Line("")
        yield from self._body(SHOWN)

    def more(self) -> Iterator[Line]:
        """The whole diff, and the whole trace."""
        one = self.current
        yield from self._body(None)
        if one.change.drift is not None and one.trace is not None:
            yield Line("")
            yield Line(f"all that {one.case} does now:", "title")
            yield from trace_lines(one.trace)

    def _body(self, limit: int | None) -> Sequence[Line]:
        one = self.current
        if one.conflict is not None:
            lines: list[Line] = []
            for name, drift in one.conflict.items():
                lines += [Line(f"against {name}:", "title"), *drift_lines(drift, limit, whole="more (m)"), Line("")]
            return lines
        if one.change.drift is not None:
            return drift_lines(one.change.drift, limit, whole="more (m)")
        return trace_lines(one.trace, limit) if one.trace is not None else [Line(one.change.problem, "removed")]

    def prompt(self) -> str:
        """The keys that make sense now, in one line."""
        if self.chosen is not None:
            facets = "  ".join(
                f"{number} {'[x]' if facet in self.chosen else '[ ]'} {facet}"
                for number, facet in enumerate(self.current.facets, 1)
            )
            key = "w accept with writes" if self._chosen_writes() else "a accept"
            return f"{facets}   {key if self.chosen else 'choose by number'}  f back"
        one = self.current
        words = []
        if not one.refused:
            words += ["w accept with writes" if one.touches_writes else "a accept"]
            words += ["f facets"] if len(one.facets) > 1 else []
        words += ["r reject", "s skip", "m more", "? help", "q quit"]
        return "  ".join(words)

    def press(self, key: str) -> list[Line]:
        """What a key does, and what to say of it."""
        if self.chosen is not None:
            return self._press_facet(key, self.chosen)
        if key in _QUIT:
            self.over = True
        elif key in _SKIP:
            self._next("skipped")
        elif key == "a" and self.current.touches_writes:
            return [Line("this changes what the case writes; if that is right, press w", "changed")]
        elif key in ("a", "w"):
            return self._accept((), writes=key == "w")
        elif key == "f":
            return self._choose()
        elif key == "r":
            return self._reject()
        elif key == "p":
            self.place = max(0, self.place - 1)
        elif key == "m":
            return list(self.more())
        elif key == "A":
            return self._accept_all()
        elif key == "u":
            return self._undo()
        elif key == "?":
            return [Line(f"  {one}  {what}") for one, what in HELP]
        else:
            return [Line(f"{key!r} does nothing here; ? lists the keys", "faint")]
        return []

    def summary(self) -> Line:
        """What was decided, in one line."""
        said = ", ".join(f"{count} {word}" for word, count in self._counts.items() if count)
        left = len(self.waiting) - self.place
        rest = f"{left} left" if left else ""
        return Line(", ".join(part for part in (said, rest) if part) or "nothing was decided", "title")

    def _choose(self) -> list[Line]:
        if self.current.refused or len(self.current.facets) < 2:
            one = "a conflict is" if self.current.conflict is not None else "there is but one facet: it is"
            return [Line(self.current.refused or f"{one} accepted as a whole, or not", "changed")]
        self.chosen = []
        return []

    def _press_facet(self, key: str, chosen: list[str]) -> list[Line]:
        facets = self.current.facets
        if key in ("\x1b", "q", "f"):
            self.chosen = None
        elif key.isdecimal() and 1 <= int(key) <= len(facets):
            facet = facets[int(key) - 1]
            chosen.remove(facet) if facet in chosen else chosen.append(facet)
        elif key in ("a", "w", "\r", "\n") and chosen:
            if self._chosen_writes() and key != "w":
                return [Line("these facets change what the case writes; if that is right, press w", "changed")]
            self.chosen = None
            return self._accept([facet for facet in facets if facet in chosen], writes=key == "w")
        return []

    def _chosen_writes(self) -> bool:
        return any(self.current.writing(facet) for facet in self.chosen or ())

    def _accept(self, facets: Sequence[str], *, writes: bool) -> list[Line]:
        one = self.current
        try:
            done = accept(one, self.gate, self.decisions, facets, writes=writes)
        except HarnessError as error:
            self._look_again()
            return [Line(str(error), "removed")]
        word = "accepted in part" if facets and done.verdict.drift else "accepted"
        self._done.append((done, word))
        only = f"  (only {', '.join(facets)})" if facets else ""
        lines = [Line(f"accepted  {one.case}{only}", "added")]
        if facets and done.verdict.drift:
            self.waiting[self.place] = waiting_for(one.case, self.gate)
            self._count(word)
            return [*lines, Line("what is left of it:", "faint")]
        self._next(word)
        return lines

    def _look_again(self) -> None:
        """Take what waits as it is now: what was shown may have been overtaken by a run, or by another review."""
        try:
            self.waiting[self.place] = waiting_for(self.current.case, self.gate)
        except HarnessError:  # it passed meanwhile, or somebody else decided
            del self.waiting[self.place]
            self.over = self.place >= len(self.waiting)

    def _accept_all(self) -> list[Line]:
        lines: list[Line] = []
        left = self.waiting[self.place :]
        kept = [one for one in left if one.touches_writes or one.refused]
        for one in left:
            if one in kept:
                continue
            try:
                self._done.append((accept(one, self.gate, self.decisions), "accepted"))
            except HarnessError as error:
                kept.append(one)
                lines.append(Line(str(error), "removed"))
            else:
                self._count("accepted")
                lines.append(Line(f"accepted  {one.case}", "added"))
        self.waiting[self.place :] = kept
        self.over = self.place >= len(self.waiting)
        if kept:
            lines.append(Line(f"{len(kept)} left: changes in writes, and what cannot be accepted", "changed"))
        return lines

    def _reject(self) -> list[Line]:
        one = self.current
        try:
            self.decisions.reject(one.case, one.sha256)
        except HarnessError as error:
            return [Line(str(error), "removed")]
        self._next("rejected")
        return [Line(f"rejected  {one.case}", "removed")]

    def _undo(self) -> list[Line]:
        if not self._done:
            return [Line("nothing was accepted in this review", "faint")]
        last, word = self._done[-1]
        try:
            last.undo(self.decisions)
        except HarnessError as error:
            return [Line(str(error), "removed")]
        self._done.pop()
        again = waiting_for(last.case, self.gate)
        known = [one.case for one in self.waiting]
        if last.case in known:
            self.place = known.index(last.case)
            self.waiting[self.place] = again
        else:
            self.waiting.insert(self.place, again)
        self._count(word, -1)
        self.over = False
        return [Line(f"taken back  {last.case}", "changed")]

    def _next(self, word: str) -> None:
        self._count(word)
        self.place += 1
        self.over = self.place >= len(self.waiting)

    def _count(self, word: str, by: int = 1) -> None:
        self._counts[word] = self._counts.get(word, 0) + by
