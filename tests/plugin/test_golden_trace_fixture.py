"""The fixture `golden_trace`: the same gate for runs that a test in Python drives itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.testing import MiniProject

TEST = """\
from harness import Recorder

def run(case, *words, writes=("mail",), **options):
    recorder = Recorder(case=case, writes=writes, **options)
    dispatch = recorder.instrument(lambda name, input: "ok")
    for word in words:
        dispatch("search", {"query": word})
    dispatch("mail", {"to": "team"})
    return recorder

def test_nightly(golden_trace):
    golden_trace(run("nightly/report", "a", "b"))
"""
GOLDEN = "golden_traces/nightly/report.json"


@pytest.fixture
def nightly(mini_project: MiniProject) -> MiniProject:
    """A project with one test in Python and neither cases nor settings."""
    mini_project.write({"pyproject.toml": '[tool.pytest]\naddopts = ["-p", "no:randomly"]\n', "test_nightly.py": TEST})
    return mini_project


def test_missing_then_accepted_then_compared(nightly: MiniProject) -> None:
    """A run without golden fails; accepted once, the same run passes, and the next update writes nothing."""
    outcome = nightly.pytest()
    assert (outcome.exit_code, outcome.changed, outcome.summary) == (1, {}, ["1 case: 1 without golden"])
    assert outcome.section("short test summary info")[0] == (
        f"FAILED test_nightly.py::test_nightly - AssertionError: no golden yet: {GOLDEN} does not exist; "
        "look at the trace, then accept it with: pytest --update-golden, or: harness accept nightly/report"
    )
    outcome = nightly.pytest("--update-golden")
    assert (outcome.exit_code, outcome.changed) == (0, {GOLDEN: "added"})
    assert outcome.summary == ["1 case: 1 new golden", f"new       {GOLDEN}  3 calls, 0 turns"]
    assert nightly.pytest().summary == ["1 case: 1 same as golden"]
    outcome = nightly.pytest("--update-golden")
    assert (outcome.changed, outcome.summary) == ({}, ["1 case: 1 unchanged", "no golden was written: nothing changed"])


def test_drift_shows_the_test_and_the_calls(nightly: MiniProject) -> None:
    """A failure points at the line of the test, then shows what drifted; none of our frames."""
    nightly.pytest("--update-golden")
    nightly.edit("test_nightly.py", '"a", "b"', '"a", "c", "b"')
    outcome = nightly.pytest()
    assert [line.rstrip() for line in outcome.section("test_nightly")] == [
        "",
        "golden_trace = <golden_trace of test_nightly.py::test_nightly>",
        "",
        "    def test_nightly(golden_trace):",
        '>       golden_trace(run("nightly/report", "a", "c", "b"))',
        "E       AssertionError: drift: 1 more call (3 → 4, +33%): `search`",
        "E",
        "E       order          1 more call (3 → 4, +33%): `search`",
        "E",
        "E        golden   now",
        "E             1     1   search(query=ac8d8342)",
        "E       +           2   search(query=879923da)",
        "E             2     3   search(query=c100f95c)",
        "E             3     4   mail(to=e201fbda)  write",
        "E",
        "E       cost           calls 3 → 4 (+33%), turns 0, writes 1",
        "E       accept with: harness accept nightly/report   or: pytest --update-golden",
        "",
        "test_nightly.py:12: AssertionError",
    ]
    outcome = nightly.harness("accept", "nightly/report")
    assert (outcome.exit_code, outcome.changed) == (0, {GOLDEN: "changed"})
    assert nightly.pytest().exit_code == 0


def test_a_policy_relaxes_the_comparison(nightly: MiniProject) -> None:
    """`compare=` is what stands under `compare:` in a case."""
    nightly.pytest("--update-golden")
    nightly.edit(
        "test_nightly.py",
        'golden_trace(run("nightly/report", "a", "b"))',
        'golden_trace(run("nightly/report", "a", "c", "b"), compare={"order": {"at_most": "+1"}})',
    )
    assert nightly.pytest().summary == ["1 case: 1 same as golden"]


def test_several_runs_in_one_test(nightly: MiniProject) -> None:
    """Each has its own golden and its own verdict; the trace comes back for more assertions."""
    nightly.write({
        "test_nightly.py": TEST
        + """
    trace = golden_trace(run("nightly/mail"))
    assert [call.tool for call in trace.calls] == ["mail"]
    golden_trace(run("other", "x").trace())
"""
    })  # fmt: skip
    outcome = nightly.pytest("--update-golden")
    others = {"golden_traces/nightly/mail.json": "added", "golden_traces/other.json": "added"}
    assert (outcome.exit_code, outcome.changed) == (0, {GOLDEN: "added", **others})
    assert outcome.summary[0] == "3 cases: 3 new golden"
    nightly.edit("test_nightly.py", '"other", "x"', '"other", "y"')
    assert nightly.pytest().summary == ["3 cases: 2 same as golden, 1 drifted"]


def test_a_golden_belongs_to_its_test_file(nightly: MiniProject) -> None:
    """It is no orphan while the file exists; a file that was renamed is told, and its golden is not lost."""
    nightly.pytest("--update-golden")
    assert json.loads(nightly.read(GOLDEN))["owner"] == "test_nightly.py"
    nightly.write({"cases/refund.yaml": "", "test_unrelated.py": "def test_it(): pass\n"})
    assert nightly.pytest("test_unrelated.py").summary == []
    (nightly.root / "test_nightly.py").rename(nightly.root / "test_by_night.py")
    outcome = nightly.pytest("test_by_night.py")
    assert outcome.exit_code == 0
    assert outcome.summary == [
        "1 case: 1 same as golden",
        f"note      {GOLDEN}  names test_nightly.py as its owner, now test_by_night.py; "
        "renew it with: pytest --update-golden",
    ]
    assert nightly.pytest("test_by_night.py", "--update-golden").changed == {GOLDEN: "changed"}
    assert nightly.pytest("test_by_night.py").summary == ["1 case: 1 same as golden"]
    (nightly.root / "test_by_night.py").unlink()
    assert nightly.pytest("test_unrelated.py").summary == [
        f"orphan    {GOLDEN}  no case file owns it",
        "remove orphans with: harness prune",
    ]


def test_two_tests_may_share_a_golden(nightly: MiniProject) -> None:
    """The sync and the async way through one loop: both are compared, and an update settles at once."""
    nightly.write({"test_other_way.py": TEST})
    assert nightly.pytest("--update-golden").changed == {GOLDEN: "added"}
    outcome = nightly.pytest("--update-golden")
    assert (outcome.exit_code, outcome.changed) == (0, {})
    assert nightly.pytest().summary == ["2 cases: 2 same as golden"]


@pytest.mark.parametrize(
    "code",
    [
        '@pytest.mark.parametrize("word", ["a", "b"])\n'
        'def test_it(golden_trace, word):\n    golden_trace(run("x", word))\n',
        'def test_it(golden_trace):\n    golden_trace(run("x", "a"))\n    golden_trace(run("x", "b"))\n',
    ],
    ids=["two tests", "one test"],
)
def test_two_runs_cannot_be_accepted_under_one_name(nightly: MiniProject, code: str) -> None:
    """The second would silently replace the first, and the next run would fail: the update says so at once."""
    nightly.write({"test_nightly.py": f"import pytest\n{TEST.partition('def test_nightly')[0]}{code}"})
    outcome = nightly.pytest("--update-golden")
    assert outcome.exit_code == 1
    assert "has accepted another run as 'x' in this session; two runs that differ need two names" in outcome.output


@pytest.mark.parametrize(
    ("case", "complaint"),
    [
        ("", "a golden is filed under the case of its recorder, and this one has none: Recorder(case='nightly')"),
        (
            "../up",
            "'../up' cannot name a golden: '..' cannot be part of a case id "
            "(letters, digits, '.', '_', '-'; the first a letter or digit); rename it to 'case'",
        ),
        (
            "a b",
            "'a b' cannot name a golden: 'a b' cannot be part of a case id "
            "(letters, digits, '.', '_', '-'; the first a letter or digit); rename it to 'a-b'",
        ),
        ("aux", "'aux' cannot name a golden: 'aux' is the name of a device on Windows; rename it to 'aux-case'"),
        ("a//b", "'a//b' cannot name a golden; write it as 'a/b'"),
        ("refund", "the golden 'refund' is that of the case file cases/refund.yaml; take another"),
    ],
)
def test_a_name_that_cannot_be_is_refused(nightly: MiniProject, case: str, complaint: str) -> None:
    """The name of a golden follows the rules of case ids, and never takes that of a case file."""
    nightly.write({"cases/refund.yaml": "", "test_nightly.py": TEST.replace("nightly/report", case)})
    outcome = nightly.pytest("test_nightly.py", "--update-golden")
    assert (outcome.exit_code, outcome.changed) == (1, {})
    assert outcome.section("short test summary info")[0] == (
        f"FAILED test_nightly.py::test_nightly - ValueError: {complaint}"
    )
    assert "golden_fixture.py" not in outcome.output


def test_an_absolute_name_is_refused(nightly: MiniProject) -> None:
    """No golden is ever written outside the project."""
    nightly.write({"test_nightly.py": TEST.replace("nightly/report", f"{nightly.root}/outside")})
    outcome = nightly.pytest("--update-golden")
    assert (outcome.exit_code, outcome.changed) == (1, {})
    assert "ValueError" in outcome.section("short test summary info")[0]


def test_a_wrong_policy_is_the_mistake_of_the_test(nightly: MiniProject) -> None:
    """The error names the place in the policy, and the traceback ends in the test."""
    nightly.edit("test_nightly.py", '"b"))', '"b"), compare={"turns": {"at_most": "many"}})')
    outcome = nightly.pytest()
    assert outcome.section("short test summary info")[0] == (
        "FAILED test_nightly.py::test_nightly - harness.errors.PolicyError: compare.turns.at_most: "
        "'at_most' takes a count (12), '+2' or '+20%', not 'many'"
    )
    assert "policy.py" not in outcome.output


@pytest.mark.parametrize(
    ("mark", "updates"),
    [
        ("xfail", False),
        ("xfail(reason='known')", False),
        ("xfail(True, reason='here')", False),
        ("xfail('1 == 1', reason='here')", False),
        ("xfail(False, reason='elsewhere')", True),
        ("xfail(condition=False, reason='elsewhere')", True),
        ("skip", False),
    ],
)
def test_marks_decide_whether_an_update_counts(nightly: MiniProject, mark: str, updates: bool) -> None:
    """A test that is expected to fail, or skipped, keeps its golden; a condition that does not hold is no reason."""
    nightly.pytest("--update-golden")
    nightly.write({
        "test_nightly.py": TEST.replace("def test_n", f"import pytest\n@pytest.mark.{mark}\ndef test_n").replace(
            '"a", "b"', '"a"'
        )
    })  # fmt: skip
    outcome = nightly.pytest("--update-golden")
    assert (outcome.exit_code, outcome.changed) == (0, {GOLDEN: "changed"} if updates else {})
    if mark.startswith("xfail") and not updates:
        assert outcome.summary[1] == f"kept      {GOLDEN}  expected to fail: 1 call fewer (3 → 2, -33%): `search`"


def test_a_comparison_in_teardown_counts(nightly: MiniProject) -> None:
    """A fixture of the user's own may compare when the test is over."""
    nightly.write({
        "test_nightly.py": TEST.partition("def test_nightly")[0]
        + """
import pytest

@pytest.fixture
def recorded(golden_trace):
    yield
    golden_trace(run("late", "a"))

def test_it(recorded):
    pass
"""
    })  # fmt: skip
    assert nightly.pytest("--update-golden").summary == [
        "1 case: 1 new golden",
        "new       golden_traces/late.json  2 calls, 0 turns",
    ]
    assert nightly.pytest().summary == ["1 case: 1 same as golden"]


def test_a_test_that_fails_afterwards_has_accepted_what_it_compared(nightly: MiniProject) -> None:
    """The comparison is over when it is over; assertions after it are the test's own affair."""
    nightly.edit("test_nightly.py", '"b"))', '"b"))\n    assert False')
    outcome = nightly.pytest("--update-golden")
    assert (outcome.exit_code, outcome.changed) == (1, {GOLDEN: "added"})


def test_strange_values_are_digested_and_never_lost(nightly: MiniProject) -> None:
    """Bytes, sets, NaN, half characters, deep nesting, objects: a whole golden, and the same run equals it."""
    nightly.write({
        "test_nightly.py": r'''
from harness import Recorder

class Thing:
    pass

def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value

def test_strange(golden_trace):
    recorder = Recorder(case="strange", writes=())
    dispatch = recorder.instrument(lambda name, input: input)
    strange = (b"\x00\xff", {3, 1, 2}, float("nan"), "half \ud800", deep(100_000), Thing(), 10**5000, {1: 2, "1": 3})
    for value in strange:
        dispatch("store", {"value": value})
    dispatch("na\ud800me\n", {"ke\ud800y": 1})
    dispatch("store", recorder)
    golden_trace(recorder)
'''
    })  # fmt: skip
    outcome = nightly.pytest("--update-golden")
    assert outcome.exit_code == 0, outcome.output
    golden = json.loads(nightly.read("golden_traces/strange.json"))
    assert golden["summary"]["calls"] == len(golden["calls"]) == 10
    assert len({call["digest"] for call in golden["calls"]}) == 10
    assert nightly.pytest().summary == ["1 case: 1 same as golden"]
    nightly.edit("test_nightly.py", r'{"ke\ud800y": 1}', r'{"ke\ud800y": 2}')
    outcome = nightly.pytest()
    assert outcome.summary == ["1 case: 1 drifted"]
    assert outcome.section("short test summary info")[0] == (
        r"FAILED test_nightly.py::test_strange - AssertionError: drift: `na\ud800me\n` (call 9): `ke\ud800y` changed"
    )
