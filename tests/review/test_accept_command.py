"""`harness accept`: what is accepted, what needs to be meant, what never is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.crash_golden import Row, dump_rows
from harness.golden import dump_trace
from tests.report.drifts import GOLDEN, GROWN, SEARCH, SEVEN, at, call, trace
from tests.review.conftest import CASE, READ_MORE, crash_failed, waits

if TYPE_CHECKING:
    from harness.testing import MiniProject

DEAR_AND_LONGER = trace(*GOLDEN.calls[:4], at(3, SEARCH), call(4, "refund", id="7", cents=12000), GOLDEN.calls[5])
"""Another amount, and a read repeated."""

LOOP = """\
def run(client, prompt, tools, dispatch):
    history = [{"role": "user", "content": prompt}]
    answer = client.messages.create(model="m", max_tokens=99, messages=history, tools=tools)
    (use,) = answer.content
    result = {"type": "tool_result", "tool_use_id": use.id, "content": str(dispatch(use.name, use.input))}
    history += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
    client.messages.create(model="m", max_tokens=99, messages=history, tools=tools)
"""
PAY = """\
agent: loop:run
prompt: Pay.
tools: {pay: {effect: irreversible, input: {cents: number}, returns: paid}}
model: {name: m, script: [{call: {pay: {cents: 5}}}, {say: Done.}]}
"""


def test_a_glob_accepts_no_change_in_writes(waiting: MiniProject) -> None:
    """What was accepted by sweep cannot send a mail more; by its id, or with --writes, it can."""
    outcome = waiting.harness("accept", "notes/*")
    assert (outcome.exit_code, outcome.changed) == (2, {"golden_traces/notes/failed.json": "changed"})
    assert outcome.errors.splitlines()[0] == (
        "refused   notes/mail: notes/mail changes what it writes (1 more write: `send_email` (1 → 2); "
        "1 more call (6 → 7, +17%): `send_email`): name it by its id, or give --writes"
    )
    assert waiting.harness("accept", "notes/mail").changed == {"golden_traces/notes/mail.json": "changed"}


def test_with_writes_meant_a_glob_accepts_them(waiting: MiniProject) -> None:
    """--writes means all of them."""
    outcome = waiting.harness("accept", "notes/*", "dear", "--writes")
    assert (outcome.exit_code, sorted(outcome.changed)) == (
        0,
        ["golden_traces/dear.json", "golden_traces/notes/failed.json", "golden_traces/notes/mail.json"],
    )


def test_another_amount_is_a_change_in_writes(waiting: MiniProject) -> None:
    """A tenfold refund is one write, as before; it needs to be meant all the same."""
    outcome = waiting.harness("accept", "d*")
    assert (outcome.exit_code, outcome.changed) == (2, {})


def test_one_facet_is_accepted_and_the_rest_stays_pending(waiting: MiniProject) -> None:
    """The next acceptance takes the rest."""
    waits(waiting, "more", READ_MORE)
    outcome = waiting.harness("accept", "more", "--facet", "stop_reasons")
    assert outcome.exit_code == 0
    assert outcome.output.splitlines()[0] == (
        "accepted  golden_traces/more.json  stop_reason of turn 6: `end_turn` → `max_tokens`"
    )
    assert outcome.output.splitlines()[-1] == (
        "left      golden_traces/more.json  1 more call (6 → 7, +17%): `search`; "
        "`search` repeated with the same arguments once (golden: never)"
    )
    assert waiting.read("golden_traces/more.json") == dump_trace(
        replace(GOLDEN, case="more", stop_reasons=READ_MORE.stop_reasons), results=False
    )
    assert waiting.harness("accept", "more").exit_code == 0
    assert waiting.read("golden_traces/more.json") == dump_trace(replace(READ_MORE, case="more"), results=False)
    assert waiting.harness("accept", "more").errors.startswith("error: no pending trace is called 'more'")


def test_facets_that_hang_together_are_one_error(waiting: MiniProject) -> None:
    """Nothing is written, and what to name as well is said."""
    outcome = waiting.harness("accept", "grown", "--facet", "turns")
    assert (outcome.exit_code, outcome.changed) == (2, {})
    assert outcome.errors == (
        "refused   grown: `turns` cannot be accepted without `order`, `duplicates`, `stop_reasons`: "
        "they come from the same calls; name them as well, or accept the whole run\n"
    )


def test_what_broke_a_limit_or_an_invariant_is_never_accepted(waiting: MiniProject) -> None:
    """By no name and no option: neither the limit of the run, nor one lowered since, nor a failed sweep."""
    waits(waiting, "long", GOLDEN, SEVEN["dropped"])
    waiting.write({"cases/long.yaml": CASE + "limits: {turns: 5}\n"})
    crash_failed(waiting, "grown")
    outcome = waiting.harness("accept", "slow", "long", "grown", "--writes")
    assert (outcome.exit_code, outcome.changed) == (2, {})
    assert outcome.errors == (
        "refused   slow: slow cannot be accepted: 25 turns, limit 24\n"
        "refused   long: long cannot be accepted: 6 turns, limit 5\n"
        "refused   grown: grown cannot be accepted: its crash sweep failed: killed at turn5.save_b: executed_twice\n"
    )


def test_the_commit_message_says_what_was_accepted(waiting: MiniProject) -> None:
    """Changes in writes first, also over several commands; `git commit -F` takes the file."""
    waits(waiting, "more", READ_MORE)
    waiting.harness("accept", "more", "--facet", "stop_reasons")
    waiting.harness("accept", "new")
    outcome = waiting.harness("accept", "notes/mail")
    assert outcome.errors == "commit with: git commit -eF .harness/commit-message.txt\n"
    assert (
        waiting.read(".harness/commit-message.txt")
        == """\
Accept the paths of 3 cases

Changes in writes:
- notes/mail: 1 more write: `send_email` (1 → 2); 1 more call (6 → 7, +17%): `send_email`

- more: stop_reason of turn 6: `end_turn` → `max_tokens` (only stop_reasons)
- new: new golden, 6 calls, 6 turns
"""
    )


def test_after_a_commit_the_message_starts_anew(waiting: MiniProject) -> None:
    """What was committed is not told twice."""
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com")
    waiting.run("git", "init", "-q")
    waiting.run(*git, "commit", "-q", "--allow-empty", "-m", "begin")
    waiting.harness("accept", "grown")
    assert waiting.run(*git, "commit", "-q", "--allow-empty", "-F", ".harness/commit-message.txt").exit_code == 0
    waiting.harness("accept", "new")
    assert waiting.harness("review", "--message").output == (
        "Accept the path of new\n\n- new: new golden, 6 calls, 6 turns\n"
    )


def test_a_spoilt_case_file_or_trace_is_one_refusal(waiting: MiniProject) -> None:
    """The other cases are accepted all the same."""
    waiting.write({"cases/grown.yaml": "agent: [", ".harness/pending/dear.json": "{"})
    outcome = waiting.harness("accept", "grown", "dear", "new")
    assert (outcome.exit_code, outcome.changed) == (2, {"golden_traces/new.json": "added"})
    refused = outcome.errors.splitlines()
    assert refused[0].startswith("refused   grown: grown cannot be accepted: cases/grown.yaml:2:1: not valid YAML")
    assert any(line.startswith("refused   dear: dear cannot be accepted: .harness/pending/dear") for line in refused)


def test_a_sweep_that_failed_in_an_earlier_run_still_forbids(waiting: MiniProject) -> None:
    """A run of other cases, or of pytest without any, does not wash a broken invariant off."""
    rows = [Row("turn1.model.after", "same"), Row("turn5.save_b", "executed_twice", {"send_email": 2}, turns=6)]
    waiting.write({".harness/crash/grown.crash.json": dump_rows("grown", rows)})
    outcome = waiting.harness("accept", "grown")
    assert (outcome.exit_code, outcome.changed) == (2, {})
    assert outcome.errors == (
        "refused   grown: grown cannot be accepted: its last crash sweep failed: killed at turn5.save_b: "
        "executed_twice; mend it, then: harness crash grown\n"
    )
    waiting.write({".harness/crash/grown.crash.json": dump_rows("grown", rows[:1])})
    assert waiting.harness("accept", "grown").changed == {"golden_traces/grown.json": "changed"}


@pytest.mark.parametrize("other", ["dear", "../../evil"])
def test_what_is_pending_becomes_the_golden_of_its_own_case_alone(waiting: MiniProject, other: str) -> None:
    """A trace that was copied, or comes from somewhere else, is not filed under the name that it gives itself."""
    waiting.write({".harness/pending/grown.json": dump_trace(replace(GROWN, case=other))})
    outcome = waiting.harness("accept", "grown", "--writes")
    assert (outcome.exit_code, outcome.changed) == (2, {})
    assert outcome.errors == (
        f"refused   grown: grown cannot be accepted: what is pending is a run of another case, {other!r}; "
        "run grown again\n"
    )
    assert not (waiting.root.parent / "evil.json").exists()


@pytest.mark.parametrize("case", ["grown", "new"])
def test_digests_of_another_key_are_not_accepted(waiting: MiniProject, case: str) -> None:
    """A run without the key, or with the key of another machine, would make a golden that nobody can compare with."""
    outcome = waiting.harness("accept", case, env={"HARNESS_DIGEST_KEY": "sesame-open-the-door"})
    assert (outcome.exit_code, outcome.changed) == (2, {})
    assert "its digests were made with no key, and HARNESS_DIGEST_KEY gives the key " in outcome.errors


@pytest.mark.parametrize("golden", ["{broken", dump_trace(replace(GOLDEN, case="dear")), "<<<<<<< HEAD\n"])
def test_a_golden_that_cannot_be_read_may_hold_any_writes(waiting: MiniProject, golden: str) -> None:
    """What replaces it has to be meant: nobody can say that no write came or went."""
    waiting.write({"golden_traces/grown.json": golden})
    outcome = waiting.harness("accept", "g*")
    assert (outcome.exit_code, outcome.changed) == (2, {})
    assert outcome.errors.startswith("refused   grown: grown may change what it writes (its golden cannot be used: ")
    assert waiting.harness("accept", "grown").changed == {"golden_traces/grown.json": "changed"}


def test_a_golden_that_is_a_folder_is_one_refusal(waiting: MiniProject) -> None:
    """No traceback, and nothing is removed."""
    (waiting.root / "golden_traces/new.json").mkdir()
    outcome = waiting.harness("accept", "new")
    assert (outcome.exit_code, outcome.changed) == (2, {})
    assert outcome.errors == "refused   new: new.json cannot be read: Is a directory\n"


@pytest.mark.parametrize("folder", [".", "cases", "cases/notes"])
def test_a_folder_of_cases_is_named_from_where_one_stands(waiting: MiniProject, folder: str) -> None:
    """As a shell completes it."""
    name = {".": "cases/notes", "cases": "notes", "cases/notes": "."}[folder]
    outcome = waiting.harness("accept", name, folder=folder)
    assert outcome.changed == {"golden_traces/notes/failed.json": "changed"}


@pytest.mark.parametrize(
    "spoilt",
    [
        "[", "null", "[" * 20_000,
        '{"accepted": {"x": 5}, "rejected": {}, "commit": ""}',
        '{"accepted": {"x": {"headline": 5, "status": [], "facets": [1], "writes": 0}}, "rejected": {}, "commit": ""}',
    ],
)  # fmt: skip
def test_spoilt_decisions_are_none(waiting: MiniProject, spoilt: str) -> None:
    """A file that a hand was at keeps nobody from deciding."""
    waiting.write({".harness/decisions.json": spoilt})
    assert waiting.harness("accept", "new").exit_code == 0
    assert "- new: new golden, 6 calls, 6 turns\n" in waiting.harness("review", "--message").output


def test_what_nothing_runs_any_more_is_not_accepted(waiting: MiniProject) -> None:
    """A case, or a test, that was renamed since would leave a golden that nobody owns."""
    (waiting.root / "cases/new.yaml").unlink()
    waiting.write({".harness/pending/nightly.json": dump_trace(replace(GOLDEN, case="nightly", owner="test_it.py"))})
    outcome = waiting.harness("accept", "new", "nightly")
    assert (outcome.exit_code, outcome.changed) == (2, {})
    assert outcome.errors == (
        "refused   new: new cannot be accepted: its case file is gone; if it was renamed, run it again\n"
        "refused   nightly: nightly cannot be accepted: test_it.py is gone; if it was renamed, run it again\n"
    )
    waiting.write({"test_it.py": ""})
    assert waiting.harness("accept", "nightly").changed == {"golden_traces/nightly.json": "added"}


def test_what_cannot_be_noted_is_not_accepted(waiting: MiniProject) -> None:
    """A refusal leaves the golden as it was, also when it comes late."""
    (waiting.root / ".harness/decisions.json").mkdir()
    golden = waiting.read("golden_traces/grown.json")
    outcome = waiting.harness("accept", "grown", "new")
    assert (outcome.exit_code, outcome.changed) == (2, {"golden_traces/grown.json": "rewritten"})
    assert waiting.read("golden_traces/grown.json") == golden
    assert outcome.errors.splitlines() == [
        f"refused   {case}: the decisions could not be kept: Is a directory" for case in ("grown", "new")
    ]
    assert all((waiting.root / f".harness/pending/{case}.json").is_file() for case in ("grown", "new"))


def test_a_case_that_is_accepted_in_two_steps_is_told_whole(waiting: MiniProject) -> None:
    """The changed amount of a write does not vanish from the commit message when the rest is accepted after it."""
    for command in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "begin")):
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        assert waiting.run("git", *who, *command).exit_code == 0
    waits(waiting, "dear", DEAR_AND_LONGER, None)
    waiting.harness("accept", "dear", "--facet", "arguments")
    assert "Changes in writes:\n- dear: `refund` (call 5): `cents` changed (only arguments)\n" in waiting.read(
        ".harness/commit-message.txt"
    )
    assert waiting.harness("accept", "d*").exit_code == 0
    assert waiting.read(".harness/commit-message.txt") == (
        "Accept the new path of dear\n\nChanges in writes:\n- dear: `refund` (call 6): `cents` changed; "
        "1 more call (6 → 7, +17%): `search`; `search` repeated with the same arguments once (golden: never)\n"
    )


def test_outside_of_git_two_steps_are_told_one_after_the_other(waiting: MiniProject) -> None:
    """There is no commit to compare with."""
    waits(waiting, "dear", DEAR_AND_LONGER, None)
    waiting.harness("accept", "dear", "--facet", "arguments")
    waiting.harness("accept", "dear")
    assert waiting.read(".harness/commit-message.txt") == (
        "Accept the new path of dear\n\nChanges in writes:\n- dear: `refund` (call 5): `cents` changed; then "
        "1 more call (6 → 7, +17%): `search`; `search` repeated with the same arguments once (golden: never)\n"
    )


def test_what_an_update_wrote_is_in_the_commit_message_too(mini_project: MiniProject) -> None:
    """Whoever accepts by running, with or without pytest; a change in writes is marked where it is listed."""
    mini_project.write({"loop.py": LOOP, "cases/pay.yaml": PAY})
    assert mini_project.harness("run", "--update-golden").exit_code == 0
    assert (
        mini_project.read(".harness/commit-message.txt")
        == "Accept the path of pay\n\n- pay: new golden, 1 calls, 2 turns\n"
    )
    mini_project.run("git", "init", "-q")
    who = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com")
    mini_project.run(*who, "add", "-A")
    mini_project.run(*who, "commit", "-q", "-m", "begin")
    mini_project.edit("cases/pay.yaml", "{pay: {cents: 5}}", "{pay: {cents: 50}}")
    outcome = mini_project.pytest("--update-golden")
    assert outcome.summary == [
        "1 case: 1 accepted",
        "accepted  golden_traces/pay.json  changes writes: `pay` (call 1): `cents` changed",
    ]
    assert mini_project.harness("review", "--message").output == (
        "Accept the new path of pay\n\nChanges in writes:\n- pay: `pay` (call 1): `cents` changed\n"
    )
