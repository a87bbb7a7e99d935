"""The report of the last run: gathered from what lies in the project's folders and from git, nothing is run for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from harness.crash_golden import Row, dump_rows
from harness.errors import HarnessError
from harness.project import Project
from harness.report.entries import Counts
from harness.report.formats import render
from harness.report.line import plain_text
from harness.report.page.overview import overview_of
from harness.report.terminal import report_lines
from harness.report.wording import advice, headline
from harness.run_report import run_report
from tests.small_loop import LOOP

if TYPE_CHECKING:
    from harness.report.entries import Report
    from harness.testing import MiniProject

CASE = """\
agent: loop:run
prompt: Look in the {place}.
tools:
  look: {{effect: read_only, input: {{place: string}}, returns: here}}
model:
  name: m
  script:
    - call: {{look: {{place: {place}}}}}
    - say: Done.
"""


def case(place: str, calls: int = 1) -> str:
    text = CASE.format(place=place)
    call = f"    - call: {{look: {{place: {place}}}}}\n"
    return text.replace(call, call * calls)


def git(project: MiniProject, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    outcome = project.run("git", *who, *arguments)
    assert outcome.exit_code == 0, outcome.errors


def commit(project: MiniProject, message: str) -> None:
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", message)


@pytest.fixture
def shop(mini_project: MiniProject) -> MiniProject:
    """Four cases with goldens on `main`, and a branch that is checked out."""
    mini_project.write({"loop.py": LOOP, ".gitignore": ".harness/\n__pycache__/\n"})
    mini_project.write({f"cases/{name}.yaml": case(name) for name in ("desk", "hall", "shed", "yard")})
    assert mini_project.harness("run", "--update-golden").exit_code == 0
    git(mini_project, "init", "-q", "-b", "main")
    commit(mini_project, "begin")
    git(mini_project, "checkout", "-q", "-b", "careful")
    return mini_project


def words(report: Report) -> list[tuple[str, str, str]]:
    return [(entry.case, entry.word(), entry.branch_word(report.base)) for entry in report.entries]


def of(project: MiniProject, base: str | None = None) -> Report:
    return run_report(Project.at(project.root), base=base)


def test_a_golden_that_was_accepted_anew_is_never_simply_green(shop: MiniProject) -> None:
    """The run matches, and the report says against what: new, deleted, renamed and accepted goldens are told apart."""
    shop.write({"cases/desk.yaml": case("desk", 2), "cases/attic.yaml": case("attic")})
    for name in ("cases/hall.yaml", "golden_traces/hall.json"):
        (shop.root / name).unlink()
    git(shop, "mv", "cases/shed.yaml", "cases/hut.yaml")
    git(shop, "mv", "golden_traces/shed.json", "golden_traces/hut.json")
    assert shop.harness("run", "--update-golden").exit_code == 0
    commit(shop, "be careful")
    assert shop.harness("run").exit_code == 0

    report = of(shop)
    assert words(report) == [
        ("hall", "not run", "deleted in this branch"),
        ("attic", "matches", "new in this branch"),
        ("desk", "matches", "accepted anew in this branch"),
        ("hut", "matches", "renamed in this branch (was shed)"),
        ("yard", "matches", "as in main"),
    ]
    desk = report.entries[2]
    assert desk.branch is not None
    assert desk.branch.drift is not None
    assert desk.branch.drift.headline.startswith("1 more call (1 → 2, +100%): `look`")
    assert (desk.before, desk.now) == (Counts(2, 3), Counts(2, 3))
    assert report.failing == ()


def test_what_waits_is_compared_and_what_was_accepted_since_is_said(shop: MiniProject) -> None:
    """Drifts come from the pending traces; an acceptance after the run is no drift any more."""
    shop.write({"cases/desk.yaml": case("desk", 2), "cases/hall.yaml": case("hall", 3)})
    assert shop.harness("run").exit_code == 1
    assert shop.harness("accept", "desk").exit_code == 0
    report = of(shop)
    assert words(report)[:2] == [
        ("hall", "drifted", "as in main"),
        ("desk", "accepted", "accepted anew in this branch"),
    ]
    assert report.entries[1].headline.startswith("accepted since that run: 1 more call")
    assert [entry.case for entry in report.failing] == ["hall"]
    assert (report.entries[0].before, report.entries[0].now) == (Counts(1, 2), Counts(3, 4))


def test_a_merge_conflict_is_shown_as_what_it_is(shop: MiniProject) -> None:
    """Both sides are read back and compared."""
    shop.write({"cases/desk.yaml": case("desk", 2)})
    shop.harness("run", "--update-golden")
    commit(shop, "look twice")
    git(shop, "checkout", "-q", "main")
    shop.write({"cases/desk.yaml": case("desk", 4)})
    shop.harness("run", "--update-golden")
    commit(shop, "look four times")
    git(shop, "checkout", "-q", "careful")
    assert shop.run("git", "-c", "user.name=a", "-c", "user.email=a@b", "merge", "-q", "main").exit_code == 1

    entry = of(shop).entries[0]
    assert (entry.case, entry.word()) == ("desk", "merge conflict")
    assert entry.change.names == ("HEAD", "main")
    assert entry.change.drift is not None
    assert entry.change.drift.headline.startswith("2 more calls (2 → 4, +100%): `look` ×2")


def test_cases_of_which_nothing_is_known_are_said_not_to_have_run(shop: MiniProject) -> None:
    """In a fresh clone there are only goldens; the last run may have left out some."""
    assert [entry.word() for entry in of(shop).entries] == ["new golden", "new golden", "new golden", "new golden"]
    shop.harness("run", "desk")
    assert words(of(shop)) == [
        ("hall", "not run", "as in main"),
        ("shed", "not run", "as in main"),
        ("yard", "not run", "as in main"),
        ("desk", "matches", "as in main"),
    ]


def test_a_drift_from_an_earlier_run_is_not_forgotten(shop: MiniProject) -> None:
    """What waits, waits, whatever the last run was about."""
    shop.write({"cases/desk.yaml": case("desk", 2)})
    shop.harness("run", "desk")
    shop.harness("run", "hall")
    report = of(shop)
    assert words(report)[0] == ("desk", "drifted", "as in main")


def test_outside_of_git_there_is_no_branch(mini_project: MiniProject) -> None:
    """No error, and nothing is claimed; a base that was asked for by name is an error."""
    mini_project.write({"loop.py": LOOP, "cases/desk.yaml": case("desk")})
    mini_project.harness("run", "--update-golden")
    report = of(mini_project)
    assert (report.base, report.commit, words(report)) == ("", "", [("desk", "new golden", "")])
    with pytest.raises(HarnessError, match="is in no git repository"):
        of(mini_project, "main")


def test_a_spoilt_golden_and_a_spoilt_case_are_entries_too(shop: MiniProject) -> None:
    """With their one reason; the report of the others is whole."""
    shop.write({"cases/hall.yaml": case("hall", 2)})
    shop.harness("run")
    shop.write({"golden_traces/desk.json": "{", "cases/hall.yaml": "agent: ["})
    report = of(shop)
    by_case = {entry.case: entry for entry in report.entries}
    assert by_case["desk"].change.kind == "unusable"
    assert by_case["desk"].headline.startswith("golden_traces/desk.json is not JSON")
    assert by_case["hall"].headline.startswith("cases/hall.yaml:2:1: not valid YAML")
    assert by_case["yard"].word() == "matches"


def test_what_is_no_longer_so_is_not_said(shop: MiniProject) -> None:
    """A golden or a case that is another one since the run was not seen: it is not run, and nothing passed."""
    assert shop.harness("run").exit_code == 0
    shop.write({"cases/desk.yaml": case("desk", 2)})
    shop.write({"golden_traces/hall.json": shop.read("golden_traces/hall.json").replace('"place"', '"where"')})
    for name in ("golden_traces/shed.json", "cases/yard.yaml"):
        (shop.root / name).unlink()
    said = {entry.case: (entry.status, entry.headline) for entry in of(shop).entries}
    assert said == {
        "desk": ("not_run", "its case file changed after that run"),
        "hall": ("not_run", "its golden changed after that run"),
        "shed": ("not_run", "its golden is gone since that run"),
        "yard": ("not_run", "its case file is gone since that run"),
    }


def test_a_drift_is_not_accepted_because_its_trace_is_gone(shop: MiniProject) -> None:
    """Only the golden can say that what ran was accepted."""
    shop.write({"cases/desk.yaml": case("desk", 2)})
    assert shop.harness("run").exit_code == 1
    (shop.root / ".harness/pending/desk.json").unlink()
    entry = of(shop).entries[0]
    assert (entry.case, entry.status, entry.passed) == ("desk", "drift", False)
    assert str(advice(entry, of(shop))) == "what it did was not kept; run it again: harness run desk"


def test_a_drift_is_told_against_the_golden_that_there_is(shop: MiniProject) -> None:
    """A golden that changed after the run is what its trace waits for now."""
    shop.write({"cases/desk.yaml": case("desk", 2)})
    assert shop.harness("run").exit_code == 1
    shop.write({"golden_traces/desk.json": shop.read("golden_traces/desk.json").replace('"end_turn"', '"refusal"')})
    entry = of(shop).entries[0]
    assert (entry.case, entry.status) == ("desk", "drift")
    assert entry.change.drift is not None
    assert entry.headline == entry.change.drift.headline
    assert any("`refusal`" in one.message for one in entry.change.drift.findings)


def test_a_run_that_covers_nothing_leaves_no_older_results(shop: MiniProject) -> None:
    """Neither a pytest that selects no case nor a run that is interrupted says what an earlier one said."""
    assert shop.harness("run").exit_code == 0
    shop.write({"test_other.py": "def test_other(): pass\n"})
    assert shop.pytest("test_other.py").exit_code == 0
    outcome = shop.harness("diff", "--run")
    assert (outcome.exit_code, outcome.errors) == (
        2, "error: no run has left a record here; run the cases first: pytest, or harness run\n"
    )  # fmt: skip

    shop.write({"cases/hall.yaml": case("hall").replace("loop:run", "stop:run")})
    shop.write({"stop.py": "def run(client):\n    raise KeyboardInterrupt\n"})
    assert shop.harness("run").exit_code == 130
    assert {entry.case: entry.status for entry in of(shop).entries} == {
        "desk": "same", "hall": "not_run", "shed": "not_run", "yard": "not_run"
    }  # fmt: skip


@pytest.mark.parametrize(
    "spoilt",
    [
        '{"case": 5, "verdict": "same", "headline": ""}',
        '{"case": "\\ud800", "verdict": "same", "headline": ""}',
        '{"case": "a\\u0000b", "verdict": "same", "headline": ""}',
        '{"case": "desk", "verdict": [], "headline": ""}',
        '{"case": "desk", "verdict": "same", "headline": "", "calls": "1", "turns": "1", "writes": "[1]"}',
        '{"case": "desk", "verdict": "same", "headline": "", "calls": "1", "turns": "1", "writes": "{\\"a\\": []}"}',
        "[" * 20_000,
    ],
)
def test_a_spoilt_record_is_none(shop: MiniProject, spoilt: str) -> None:
    """A file that a hand was at is no reason for a traceback, and says nothing."""
    shop.write({".harness/results.json": f'{{"schema": "harness.results/1", "results": [{spoilt}]}}'})
    assert {entry.status for entry in of(shop).entries} == {"not_run"}


def test_goldens_that_could_not_be_compared_with_a_base_are_not_simply_green(
    shop: MiniProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shallow checkout of CI: every format says that nothing is known of the branch."""
    monkeypatch.setenv("GITHUB_BASE_REF", "release")
    assert shop.harness("run").exit_code == 0
    report = of(shop)
    why = "CI names 'release' as the target branch, but it was not fetched; fetch it with: git fetch origin release"
    assert (report.base, report.unbased) == ("", why)
    told = "No path changed; goldens are not compared with a base branch"
    assert plain_text(report_lines(report)).startswith(f"{told}\n")
    for form in ("markdown", "html", "json", "github", "gitlab"):
        text = render(report, form)
        assert "goldens are not compared with a base branch" in text.lower(), form
        assert "git fetch origin release" in text, form
    assert json.loads(render(report, "gitlab"))[0]["location"]["path"] == "cases/desk.yaml"
    assert overview_of(report).tone == "warn"


def test_no_format_says_that_all_passed_where_a_case_did_not_run(shop: MiniProject) -> None:
    """A run of one case is not a run of four."""
    assert shop.harness("run", "desk").exit_code == 0
    report = of(shop)
    assert plain_text(report_lines(report)).startswith("No path changed; 3 cases did not run\n")
    for form in ("markdown", "html", "json"):
        assert "No path changed; 3 cases did not run" in render(report, form), form


@pytest.mark.parametrize("what", ["key", "case"])
def test_digests_that_say_nothing_of_each_other_are_not_compared(shop: MiniProject, what: str) -> None:
    """Another key is no changed prompt, and another case's golden no drift."""
    shop.write({"cases/desk.yaml": case("desk", 2)})
    env = {"HARNESS_DIGEST_KEY": "sesame-open-the-door"} if what == "key" else {}
    if what == "case":
        shop.write({"golden_traces/desk.json": shop.read("golden_traces/hall.json")})
    assert shop.harness("run", "desk", env=env).exit_code == 1
    entry = of(shop).entries[0]
    assert (entry.case, entry.status, entry.change.kind, entry.change.drift) == ("desk", "unusable", "unusable", None)
    assert {"key": "different keys (HARNESS_DIGEST_KEY)", "case": "another case, 'hall'"}[what] in entry.change.problem
    assert json.loads(render(of(shop), "json"))["cases"][0]["change"]["problem"] == entry.change.problem


def test_rules_that_were_relaxed_in_the_branch_are_named(shop: MiniProject) -> None:
    """Every case passes, and every format says why that is worth less than before."""
    shop.edit(
        "cases/desk.yaml", "prompt:", "compare: {arguments: {ignore: [look.place]}}\nlimits: {turns: 99}\nprompt:"
    )
    shop.edit("cases/hall.yaml", "prompt:", "marks: [skip]\nprompt:")
    shop.edit("cases/shed.yaml", "prompt: Look", "prompt: Please look")
    shop.write({"pyproject.toml": "[tool.harness.compare]\nturns = 'ignore'\n", "cases/attic.yaml": case("attic")})
    shop.harness("run")
    report = of(shop)
    assert report.rules == (
        "[tool.harness] compare turns: exact → ignore",
        "desk: compare arguments: exact → without look.place",
        'desk: limits: not given → {"turns": 99}',
        'hall: marks: not given → ["skip"]',
    )
    assert "; 4 rules changed" in headline(report)
    for form in ("terminal", "markdown", "json", "github", "html"):
        assert "look.place" in shop.harness("diff", "--run", "--format", form, "--exit-zero").output, form


def test_a_branch_that_relaxes_nothing_says_nothing_of_rules(shop: MiniProject) -> None:
    """Another prompt, a comment, a case that cannot be read: no rule changed."""
    shop.edit("cases/desk.yaml", "prompt: Look", "# soon\nprompt: Please look")
    shop.write({"cases/hall.yaml": "agent: ["})
    assert of(shop).rules == ()


def test_what_a_sweep_saw_is_no_golden(shop: MiniProject) -> None:
    """Of a case that has no crash golden nothing is new, however it was swept."""
    rows = [Row("turn1.model.before", "liveness")]
    shop.write({".harness/crash/desk.crash.json": dump_rows("desk", rows)})
    shop.harness("run")
    entry = next(one for one in of(shop).entries if one.case == "desk")
    assert (bool(entry.change.crash), entry.change.differs, entry.crash_rows) == (False, False, tuple(rows))
