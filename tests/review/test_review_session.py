"""The review, key by key: what is shown first, what each key decides, what it never does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.gate import Gate
from harness.golden import dump_trace
from harness.project import Project
from harness.review.decisions import Decisions
from harness.review.session import HELP, Session
from harness.review.waiting import waiting_traces
from tests.report.drifts import GOLDEN, GROWN, SEVEN
from tests.review.conftest import CASE, READ_MORE, crash_failed, waits

if TYPE_CHECKING:
    from harness.testing import MiniProject


def begin(project: MiniProject, *cases: str) -> Session:
    gate = Gate(Project.at(project.root))
    return Session(waiting_traces(gate, cases or None), gate, Decisions.of(gate.project))


def press(session: Session, keys: str) -> list[str]:
    return [line.text for key in keys for line in session.press(key)]


def golden(project: MiniProject, case: str) -> str:
    return project.read(f"golden_traces/{case}.json")


def test_changes_in_writes_come_first_and_refused_runs_last(waiting: MiniProject) -> None:
    """What matters most is seen by a fresh eye."""
    session = begin(waiting)
    assert [one.case for one in session.waiting] == ["dear", "notes/mail", "grown", "new", "notes/failed", "slow"]
    shown = [line.text for line in session.shown()]
    assert shown[1:3] == ["1/6  dear  changes writes", "drift: `refund` (call 5): `cents` changed"]
    assert session.prompt() == "w accept with writes  r reject  s skip  m more  ? help  q quit"


def test_a_change_in_writes_has_a_key_of_its_own(waiting: MiniProject) -> None:
    """The key that accepts everything else says so, and accepts nothing."""
    session = begin(waiting, "dear")
    before = golden(waiting, "dear")
    assert press(session, "a") == ["this changes what the case writes; if that is right, press w"]
    assert (golden(waiting, "dear"), session.over) == (before, False)
    assert press(session, "w") == ["accepted  dear"]
    assert golden(waiting, "dear") != before
    assert (session.over, session.summary().text) == (True, "1 accepted")


def test_accepting_all_the_rest_leaves_writes_and_refused_runs(waiting: MiniProject) -> None:
    """They stay in the review, to be decided on one by one."""
    session = begin(waiting)
    assert press(session, "A") == [
        "accepted  grown",
        "accepted  new",
        "accepted  notes/failed",
        "3 left: changes in writes, and what cannot be accepted",
    ]
    assert [one.case for one in session.waiting] == ["dear", "notes/mail", "slow"]


@pytest.mark.parametrize("key", ["a", "w", "f"])
def test_what_broke_a_limit_is_accepted_by_no_key(waiting: MiniProject, key: str) -> None:
    """The reason is said."""
    session = begin(waiting, "slow")
    before = golden(waiting, "slow")
    assert "25 turns, limit 24" in press(session, key)[0]
    assert (golden(waiting, "slow"), session.over) == (before, False)
    assert session.prompt() == "r reject  s skip  m more  ? help  q quit"


def test_a_case_whose_sweep_failed_is_not_accepted(waiting: MiniProject) -> None:
    """No path of a loop that mails twice after a kill is right."""
    crash_failed(waiting, "grown")
    session = begin(waiting, "grown")
    assert press(session, "a") == [
        "grown cannot be accepted: its crash sweep failed: killed at turn5.save_b: executed_twice"
    ]


def test_only_some_facets_are_accepted(waiting: MiniProject) -> None:
    """Chosen by number; what is left of the case is shown again."""
    waits(waiting, "more", READ_MORE)
    session = begin(waiting, "more")
    session.press("f")
    assert session.prompt() == "1 [ ] order  2 [ ] duplicates  3 [ ] stop_reasons   choose by number  f back"
    session.press("3")
    assert session.prompt() == "1 [ ] order  2 [ ] duplicates  3 [x] stop_reasons   a accept  f back"
    assert press(session, "a") == ["accepted  more  (only stop_reasons)", "what is left of it:"]
    assert session.current.facets == ("order", "duplicates")
    assert press(session, "a") == ["accepted  more"]
    assert session.summary().text == "1 accepted in part, 1 accepted"


def test_facets_that_concern_writes_need_their_key_too(waiting: MiniProject) -> None:
    """Also when chosen one by one."""
    session = begin(waiting, "notes/mail")
    session.press("f")
    press(session, "12")
    assert session.prompt().endswith("w accept with writes  f back")
    assert press(session, "a") == ["these facets change what the case writes; if that is right, press w"]
    assert press(session, "w") == ["accepted  notes/mail  (only writes, order)"]
    assert session.over


def test_a_rejected_trace_is_not_asked_about_until_it_runs_anew(waiting: MiniProject) -> None:
    """Rejecting is kept at once; another trace of the same case is another question."""
    session = begin(waiting, "grown")
    assert press(session, "r") == ["rejected  grown"]
    kept = Decisions.of(Project.at(waiting.root)).rejected
    assert kept == {"grown": session.waiting[0].sha256}
    waits(waiting, "grown", SEVEN["failed"])
    assert begin(waiting, "grown").current.sha256 != kept["grown"]


def test_an_acceptance_is_taken_back(waiting: MiniProject) -> None:
    """Golden and pending trace are what they were, and the case is shown again."""
    session = begin(waiting)
    before = (golden(waiting, "dear"), waiting.read(".harness/pending/dear.json"))
    press(session, "w")
    assert press(session, "u") == ["taken back  dear"]
    assert (golden(waiting, "dear"), waiting.read(".harness/pending/dear.json")) == before
    assert (session.current.case, session.decisions.accepted) == ("dear", {})
    assert press(session, "u") == ["nothing was accepted in this review"]


def test_a_new_golden_that_is_taken_back_is_gone(waiting: MiniProject) -> None:
    """There was none before."""
    session = begin(waiting, "new")
    press(session, "au")
    assert not (waiting.root / "golden_traces/new.json").exists()
    assert (waiting.root / ".harness/pending/new.json").exists()


def test_a_case_that_ran_again_meanwhile_is_not_accepted_unseen(waiting: MiniProject) -> None:
    """Who decides, decides on what was shown."""
    session = begin(waiting, "grown")
    waits(waiting, "grown", SEVEN["failed"])
    assert press(session, "a") == ["grown was run again meanwhile: look at what it does now"]


def test_going_back_and_forth_decides_nothing(waiting: MiniProject) -> None:
    """Skipping, looking back, showing more, asking for help."""
    session = begin(waiting)
    said = press(session, "ss p?mx".replace(" ", ""))
    assert session.current.case == "notes/mail"
    assert said[: len(HELP)] == [f"  {key}  {what}" for key, what in HELP]
    assert "all that notes/mail does now:" in said
    assert said[-1] == "'x' does nothing here; ? lists the keys"
    press(session, "q")
    assert (session.over, session.summary().text, Decisions.of(session.gate.project).accepted) == (
        True,
        "2 skipped, 5 left",
        {},
    )


def test_a_golden_that_changed_meanwhile_is_looked_at_again(waiting: MiniProject) -> None:
    """What was shown was a harmless change; against the golden of now it is a mail that is sent no more."""
    session = begin(waiting, "grown")
    waits(waiting, "grown", GROWN, SEVEN["write"])
    assert press(session, "a") == ["the golden of grown changed meanwhile: look at what is new against it now"]
    assert press(session, "a") == ["this changes what the case writes; if that is right, press w"]
    assert press(session, "w") == ["accepted  grown"]


def test_a_case_that_ran_again_meanwhile_is_looked_at_again(waiting: MiniProject) -> None:
    """Also when the run passed, or broke a limit."""
    session = begin(waiting, "grown", "new", "notes/failed")
    waits(waiting, "grown", SEVEN["write"])
    assert press(session, "a") == ["grown was run again meanwhile: look at what it does now"]
    assert session.current.touches_writes
    assert press(session, "sa") == ["accepted  new"]
    (waiting.root / ".harness/pending/notes/failed.json").unlink()
    assert "nothing is pending" in press(session, "a")[0]
    assert session.over


def test_a_limit_that_was_lowered_meanwhile_holds(waiting: MiniProject) -> None:
    """What is decided is decided on what holds now."""
    session = begin(waiting, "grown")
    before = golden(waiting, "grown")
    waiting.write({"cases/grown.yaml": CASE + "limits: {turns: 2}\n"})
    assert press(session, "a") == ["grown cannot be accepted: 10 turns, limit 2"]
    assert (golden(waiting, "grown"), session.over) == (before, False)


def test_what_ran_after_an_acceptance_is_not_undone(waiting: MiniProject) -> None:
    """Undoing would put an older trace in the place of what the last run did."""
    session = begin(waiting, "grown", "new")
    press(session, "a")
    waits(waiting, "grown", SEVEN["write"])
    assert press(session, "u") == ["grown cannot be put back: it ran, or its golden changed, after it was accepted"]
    assert waiting.read(".harness/pending/grown.json") == dump_trace(replace(SEVEN["write"], case="grown"))


def test_two_reviews_at_once_lose_nothing(waiting: MiniProject) -> None:
    """What each accepted is in the commit message of both."""
    one, other = begin(waiting, "grown"), begin(waiting, "new")
    press(one, "a")
    press(other, "a")
    assert list(Decisions.of(Project.at(waiting.root)).accepted) == ["grown", "new"]
    press(one, "u")
    assert list(Decisions.of(Project.at(waiting.root)).accepted) == ["new"]


def test_all_the_rest_holds_no_golden_that_cannot_be_read(waiting: MiniProject) -> None:
    """It may hold any writes, so it has to be looked at."""
    waiting.write({"golden_traces/grown.json": "{broken"})
    session = begin(waiting, "grown", "new")
    assert press(session, "A") == ["accepted  new", "1 left: changes in writes, and what cannot be accepted"]
    assert waiting.read("golden_traces/grown.json") == "{broken"


def test_a_golden_in_conflict_is_decided_against_both_sides(waiting: MiniProject) -> None:
    """The merged run against each branch's golden; a change in writes against either takes the key for it."""
    ours, theirs = (dump_trace(replace(one, case="grown"), results=False) for one in (GOLDEN, SEVEN["argument"]))
    conflict = f"<<<<<<< HEAD\n{ours}=======\n{theirs}>>>>>>> dear\n"
    waiting.write({"golden_traces/grown.json": conflict})
    session = begin(waiting, "grown")
    shown = [line.text for line in session.shown()]
    assert shown[1] == "1/1  grown  changes writes"
    assert shown[2].startswith("merge conflict; against HEAD: 4 more calls (6 → 10, +67%)")
    assert "; against dear: `refund` (call 9): `cents` changed; " in shown[2]
    assert [line for line in shown if line.startswith("against ")] == ["against HEAD:", "against dear:"]
    assert press(session, "f") == ["a conflict is accepted as a whole, or not"]
    assert press(session, "a") == ["this changes what the case writes; if that is right, press w"]
    assert press(session, "w") == ["accepted  grown"]
    accepted = Decisions.of(Project.at(waiting.root)).accepted["grown"]
    assert (accepted.headline, accepted.writes) == (shown[2], True)
    assert golden(waiting, "grown") == dump_trace(replace(GROWN, case="grown"), results=False)


def test_taking_back_the_second_step_keeps_the_first(waiting: MiniProject) -> None:
    """In the golden, and in what is noted of it."""
    waits(waiting, "more", READ_MORE)
    session = begin(waiting, "more")
    press(session, "f3a")
    press(session, "a")
    press(session, "u")
    assert session.current.facets == ("order", "duplicates")
    assert session.summary().text == "1 accepted in part, 1 left"
    press(session, "u")
    assert (len(session.current.facets), session.summary().text) == (3, "1 left")
    press(session, "f3a")
    assert Decisions.of(Project.at(waiting.root)).accepted["more"].facets == ("stop_reasons",)
