"""`--update-golden`: writes what was selected, ran, and kept its limits; never anything else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.testing import MiniProject

GOLDEN = "golden_traces/refund.json"


@pytest.fixture
def three(accepted: MiniProject) -> MiniProject:
    """Three accepted cases that all do something else now."""
    text, golden = accepted.read("cases/refund.yaml"), accepted.read(GOLDEN)
    for name in ("returns/late", "sale"):
        accepted.write({
            f"cases/{name}.yaml": f"marks: [slow]\n{text}" if name == "returns/late" else text,
            f"golden_traces/{name}.json": golden.replace('"case": "refund"', f'"case": "{name}"'),
        })  # fmt: skip
    assert accepted.pytest().summary == ["3 cases: 3 same as golden"]
    accepted.edit("loop.py", "if not uses:", "if not uses or uses[0].name == 'refund':")
    accepted.write({name: accepted.read(name).replace("    - say: Done.\n", "") for name in CASES})
    return accepted


CASES = ("cases/refund.yaml", "cases/returns/late.yaml", "cases/sale.yaml")


@pytest.mark.parametrize(
    "selection",
    [
        ["cases/returns"],
        ["cases/returns/late.yaml"],
        ["cases/returns/late.yaml::late"],
        ["-k", "late"],
        ["-m", "slow"],
        ["--deselect", "cases/refund.yaml", "--deselect", "cases/sale.yaml"],
    ],
    ids=" ".join,
)
def test_only_the_selected_golden_is_touched(three: MiniProject, selection: list[str]) -> None:
    """However a case is selected, every other golden keeps its bytes and its time of change."""
    outcome = three.pytest("--update-golden", *selection)
    assert (outcome.exit_code, outcome.changed) == (0, {"golden_traces/returns/late.json": "changed"}), outcome.output


def test_a_second_update_writes_nothing(three: MiniProject) -> None:
    """Updating twice is no diff and no write, and says so."""
    first = three.pytest("--update-golden")
    assert first.changed == {
        GOLDEN: "changed",
        "golden_traces/returns/late.json": "changed",
        "golden_traces/sale.json": "changed",
    }
    second = three.pytest("--update-golden")
    assert (second.exit_code, second.changed) == (0, {})
    assert second.summary == ["3 cases: 3 unchanged", "no golden was written: nothing changed"]


def test_update_until_the_first_failure(three: MiniProject) -> None:
    """`-x --update-golden` accepts all that ran until then."""
    three.write({"cases/returns/a_typo.yaml": "agent: 1\n"})
    outcome = three.pytest("-x", "--update-golden")
    assert (outcome.exit_code, outcome.changed) == (1, {GOLDEN: "changed"})


@pytest.mark.parametrize("selection", [["-k", "nothing"], ["-m", "nothing"], ["test_it.py"]])
def test_an_update_of_nothing_is_silent(three: MiniProject, selection: list[str]) -> None:
    """Nothing selected, nothing written, nothing said of goldens."""
    three.write({"test_it.py": "def test_it(): pass\n"})
    outcome = three.pytest("--update-golden", "-o", "markers=nothing", *selection)
    assert (outcome.changed, outcome.summary) == ({}, [])


def test_a_skipped_case_keeps_its_golden(three: MiniProject) -> None:
    """A skipped case is no orphan, and an update says that its golden was kept."""
    three.edit("cases/sale.yaml", "agent:", "marks: [skip]\nagent:")
    outcome = three.pytest()
    assert outcome.summary == ["3 cases: 2 drifted, 1 skipped"]
    outcome = three.pytest("--update-golden")
    assert outcome.exit_code == 0
    assert outcome.summary == [
        "3 cases: 1 skipped, 2 accepted",
        f"accepted  {GOLDEN}  changes writes: 1 write fewer: `refund` (1 → 0); 1 call fewer (3 → 2, -33%): `refund`; "
        "turns 4 → 3 (-25%); 1 more facet",
        "accepted  golden_traces/returns/late.json  changes writes: 1 write fewer: `refund` (1 → 0); "
        "1 call fewer (3 → 2, -33%): `refund`; turns 4 → 3 (-25%); 1 more facet",
        "kept      golden_traces/sale.json  Skipped: unconditional skip",
    ]


def test_an_expected_failure_keeps_its_golden(three: MiniProject) -> None:
    """An xfail case that drifts has not drifted by decision: its golden stays, and that is said."""
    three.edit("cases/sale.yaml", "agent:", "marks: [xfail]\nagent:")
    outcome = three.pytest("cases/sale.yaml")
    assert (outcome.exit_code, outcome.summary) == (0, ["1 case: 1 drifted"])
    outcome = three.pytest("cases/sale.yaml", "--update-golden")
    reason = "1 write fewer: `refund` (1 → 0); 1 call fewer (3 → 2, -33%): `refund`; turns 4 → 3 (-25%); 1 more facet"
    assert (outcome.exit_code, outcome.changed) == (0, {})
    assert outcome.summary == [
        "1 case: 1 drifted",
        f"kept      golden_traces/sale.json  expected to fail: {reason}",
        "no golden was written",
    ]
    later = three.harness("accept", "*")
    assert (later.exit_code, later.changed) == (2, {})
    assert later.errors == (
        "refused   sale: sale cannot be accepted: it is expected to fail (xfail); "
        "take the mark away before its path is accepted\n"
    )
    outcome = three.pytest("cases/sale.yaml", "--update-golden", "--runxfail")
    assert (outcome.exit_code, outcome.changed) == (0, {"golden_traces/sale.json": "changed"})
    outcome = three.pytest("cases/sale.yaml", "--update-golden")
    assert outcome.exit_code == 1, "strict: a case that no longer fails must lose its mark"
    assert outcome.summary == ["1 case: 1 same as golden", "no golden was written: nothing changed"]


@pytest.mark.parametrize(
    ("file", "old", "new", "reason"),
    [
        ("loop.py", "return answer.stop_reason", "raise KeyError('x')", "the loop raised KeyError at loop.py:8"),
        ("loop.py", "return answer.stop_reason", "raise SystemExit(3)", "the loop raised SystemExit at loop.py:8"),
        ("cases/refund.yaml", "model:\n", "limits: {turns: 3}\nmodel:\n", "4 turns, limit 3"),
        ("cases/refund.yaml", "model:\n", "limits: {calls: 2}\nmodel:\n", "3 calls, limit 2"),
        (
            "loop.py",
            "if not uses:",
            "if len(messages) > 4:",
            "the loop stopped while the script had more: script[3], which says more, was never asked for",
        ),
        (
            "cases/refund.yaml",
            "loop:run",
            "lop:run",
            "cases/refund.yaml:1:1: there is no module 'lop' (named as 'lop:run'); did you mean 'loop'? (at agent)",
        ),
    ],
)
def test_a_run_that_must_not_count_is_never_blessed(
    accepted: MiniProject, file: str, old: str, new: str, reason: str
) -> None:
    """A run that raised, broke a limit or left its script fails, updating or not, and its golden stays."""
    accepted.edit(file, old, new)
    plain = accepted.pytest()
    update = accepted.pytest("--update-golden")
    for outcome in (plain, update):
        assert (outcome.exit_code, outcome.changed) == (1, {})
        assert outcome.section("case refund")[0] == reason
    assert update.summary[1:] == [f"kept      {GOLDEN}  {reason}", "no golden was written"]
    refused = accepted.harness("accept", "refund")
    assert (refused.exit_code, refused.changed) == (2, {})


def test_a_test_in_python_that_fails_costs_no_golden(accepted: MiniProject) -> None:
    """Errors elsewhere in the session change nothing for the cases."""
    accepted.write({"test_it.py": "def test_it(nothing): pass\n"})
    accepted.edit("cases/refund.yaml", "returns: 30 days", "raises: gone")
    outcome = accepted.pytest("--update-golden")
    assert (outcome.exit_code, outcome.changed) == (1, {GOLDEN: "changed"})


def test_what_cannot_be_written_is_said(accepted: MiniProject) -> None:
    """A file where the folder of the goldens should be: a clear message, and nothing else was touched."""
    accepted.write({"cases/deep/refund.yaml": accepted.read("cases/refund.yaml"), "golden_traces/deep": "no folder\n"})
    outcome = accepted.pytest("--update-golden")
    assert (outcome.exit_code, outcome.changed) == (1, {})
    message = "golden_traces/deep/refund.json could not be written: File exists; what was there is unchanged"
    assert outcome.section("case deep/refund")[0] == message
    assert outcome.summary == [
        "2 cases: 1 with an unusable golden, 1 unchanged",
        f"not made  golden_traces/deep/refund.json  {message}",
        "no golden was written",
    ]


def test_what_killed_updates_left_behind_is_cleared(accepted: MiniProject) -> None:
    """Temporary files of writers that no longer live go with the next update; those of living ones stay."""
    ours, dead = f"golden_traces/.refund.json.{os.getpid()}.tmp", "golden_traces/.refund.json.999999999.tmp"
    accepted.write({ours: "", dead: ""})
    assert accepted.pytest().changed == {}
    assert accepted.pytest("--update-golden").changed == {dead: "removed"}


def test_a_golden_is_written_for_a_reviewer(shop: MiniProject) -> None:
    """One call is one line, and no value of an argument stands in it."""
    assert shop.pytest("--update-golden").changed == {GOLDEN: "added"}
    assert shop.read(GOLDEN) == (
        "{\n"
        '  "schema": "harness.trace/1",\n'
        '  "case": "refund",\n'
        '  "model": "claude-sonnet-5",\n'
        '  "context": {"prompt": "5d9488f4", "system": null, "tools": '
        '{"find_order": "8101f937", "read_policy": "3a8ce18c", "refund": "4ae52053"}},\n'
        '  "turns": 4,\n'
        '  "stop_reasons": ["tool_use", "tool_use", "tool_use", "end_turn"],\n'
        '  "calls": [\n'
        '    {"turn": 1, "tool": "find_order", "digest": "389bf6f649e1", "args": {"id": "266aa588"}, "ok": true},\n'
        '    {"turn": 2, "tool": "read_policy", "digest": "8621a625ed2b", "args": {"name": "dfb461f6"}, "ok": true},\n'
        '    {"turn": 3, "tool": "refund", "digest": "56b68f669567", '
        '"args": {"cents": "15197cf7", "id": "266aa588"}, "ok": true}\n'
        "  ],\n"
        '  "interventions": [],\n'
        '  "summary": {"calls": 3, "duplicates": {}, "writes": {"refund": 1}}\n'
        "}\n"
    )
