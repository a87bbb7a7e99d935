"""What was decided on pending traces, kept until it is committed: `.harness/decisions.json`."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

from harness.atomic import write_atomically
from harness.changes import commit_side
from harness.drift import compare
from harness.errors import HarnessError
from harness.golden import load_golden
from harness.report.line import printable
from harness.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from harness.project import Project

__all__ = ["Accepted", "Decisions", "note_updates"]

_NAME: Final = "decisions.json"
_MESSAGE: Final = "commit-message.txt"
_SCHEMA: Final = "harness.decisions/1"
_WIDTH: Final = 72


@dataclass(frozen=True, slots=True)
class Accepted:
    """One golden that was accepted.

    Args:
        headline: what changed.
        status: `new`, or `accepted`.
        facets: the facets that were accepted; empty for the whole run.
        writes: whether a change in writes was accepted.
    """

    headline: str
    status: str = "accepted"
    facets: tuple[str, ...] = ()
    writes: bool = False


@dataclass(slots=True)
class Decisions:
    """What was accepted since the last commit, and which pending traces were rejected.

    Args:
        project: where they are kept.
        commit: what was checked out when they were made; what was accepted before another commit is in that.
        accepted: by case.
        rejected: by case, the SHA-256 of the pending trace: a new run is decided on anew.
    """

    project: Project
    commit: str = ""
    accepted: dict[str, Accepted] = field(default_factory=dict)
    rejected: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, project: Project) -> Decisions:
        """The decisions that are kept in a project; none where nothing usable is."""
        commit = _commit(project)
        try:
            data = json.loads((project.artifacts / _NAME).read_text(encoding="utf-8"))
            accepted = {str(case): _accepted(**one) for case, one in data["accepted"].items()}
            rejected = {str(case): str(digest) for case, digest in data["rejected"].items()}
            made_at = data["commit"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return cls(project, commit)
        return cls(project, commit, accepted if made_at == commit else {}, rejected)

    def accept(self, case: str, how: Accepted) -> Accepted | None:
        """Note an acceptance, beside what others decided meanwhile; returns what was noted of the case before.

        A case that was accepted before, since the last commit, is noted for all that changed since then.

        Raises:
            HarnessError: it cannot be kept.
        """
        self._read_again()
        before = dict(self.accepted), dict(self.rejected)
        known = self.accepted.get(case)
        self.accepted[case] = how if known is None else _together(self.project, case, known, how)
        self.rejected.pop(case, None)
        try:
            self.save()
        except HarnessError:
            self.accepted, self.rejected = before
            raise
        return known

    def take_back(self, case: str, before: Accepted | None) -> None:
        """Forget an acceptance, but not what was noted before it; errors as for `accept`."""
        self._read_again()
        if before is None:
            self.accepted.pop(case, None)
        else:
            self.accepted[case] = before
        self.save()

    def reject(self, case: str, sha256: str) -> None:
        """Note that a pending trace is not what the case is to do; errors as for `accept`."""
        self._read_again()
        self.rejected[case] = sha256
        self.save()

    def _read_again(self) -> None:
        """A review may stay open for an hour: what another one decided since must not be lost."""
        now = Decisions.of(self.project)
        self.commit, self.accepted, self.rejected = now.commit, now.accepted, now.rejected

    def save(self) -> None:
        """Keep them, and the commit message that they make.

        Raises:
            HarnessError: they cannot be written.
        """
        data = {
            "schema": _SCHEMA,
            "commit": self.commit,
            "accepted": {case: asdict(one) for case, one in sorted(self.accepted.items())},
            "rejected": dict(sorted(self.rejected.items())),
        }
        try:
            ignore = self.project.artifacts / ".gitignore"
            if not ignore.exists():
                write_atomically(ignore, b"*\n")
            write_atomically(self.project.artifacts / _NAME, json.dumps(data, indent=1).encode())
            write_atomically(self.message_path, self.message().encode("utf-8", "replace"))
        except OSError as error:
            raise HarnessError(f"the decisions could not be kept: {error.strerror or error}") from None

    @property
    def message_path(self) -> Path:
        """Where the commit message is: `git commit -F` takes it."""
        return self.project.artifacts / _MESSAGE

    def message(self) -> str:
        """A commit message that says what was accepted, changes in writes first; empty when nothing was."""
        if not self.accepted:
            return ""
        ordered = sorted(self.accepted.items(), key=lambda entry: (not entry[1].writes, entry[0]))
        if len(ordered) == 1:
            subject = (
                f"Accept the {'path' if ordered[0][1].status == 'new' else 'new path'} of {printable(ordered[0][0])}"
            )
        else:
            subject = f"Accept the paths of {len(ordered)} cases"
        writes = [_item(case, one) for case, one in ordered if one.writes]
        others = [_item(case, one) for case, one in ordered if not one.writes]
        parts = [subject[:_WIDTH]]
        if writes:
            parts.append("\n".join(["Changes in writes:", *writes]))
        if others:
            parts.append("\n".join(others))
        return "\n\n".join(parts) + "\n"


def note_updates(project: Project, results: Iterable[Mapping[str, str]]) -> None:
    """Note the goldens that a run with `--update-golden` wrote.  That it cannot be noted changes no run.

    Args:
        project: whose.
        results: as `harness.session_results.verdict_facts` makes them.
    """
    decisions = Decisions.of(project)
    with contextlib.suppress(HarnessError):
        for one in results:
            if one["verdict"] in ("new", "accepted") and not one["case"].endswith(".crash"):
                writes = "writes_changed" in one
                decisions.accept(one["case"], Accepted(one["headline"], one["verdict"], writes=writes))


def _together(project: Project, case: str, before: Accepted, now: Accepted) -> Accepted:
    """Two acceptances of a case as one: what changed since the last commit, or one after the other without git."""
    status = "new" if "new" in (before.status, now.status) else "accepted"
    writes = before.writes or now.writes
    try:
        repository = Repository.around(project.golden_traces)
        committed = commit_side(repository, repository.commit("HEAD"), project.golden_traces, "HEAD").traces[case]
        drift = compare(committed, load_golden(case, project))
    except (HarnessError, KeyError):
        facets = tuple(dict.fromkeys((*before.facets, *now.facets))) if before.facets and now.facets else ()
        return Accepted(f"{before.headline}; then {now.headline}", status, facets, writes)
    return Accepted(drift.headline or "as it was", "accepted", (), drift.touches_writes)


def _accepted(headline: object, status: object, facets: list[object], writes: object) -> Accepted:
    """What was kept; a file that a hand was at may hold anything."""
    return Accepted(str(headline), str(status), tuple(map(str, facets)), writes is True)


def _item(case: str, one: Accepted) -> str:
    new = "new golden, " if one.status == "new" else ""
    only = f" (only {', '.join(one.facets)})" if one.facets else ""
    return printable(f"- {case}: {new}{one.headline}{only}")


def _commit(project: Project) -> str:
    try:
        return Repository.around(project.root).commit("HEAD")
    except HarnessError:
        return ""
