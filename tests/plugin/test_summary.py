"""The section `trajectories` at the end of a run, word for word, and reports too long for a terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.testing import MiniProject


def with_every_verdict(project: MiniProject) -> None:
    """Accepted cases, of which each then goes its own way, and an orphan."""
    text = project.read("cases/refund.yaml")
    names = ("a_same", "b_drift", "c_missing", "d_unusable", "e_failed", "f_skipped", "g_xfail")
    project.write({f"cases/{name}.yaml": text for name in names})
    assert project.pytest("--update-golden").exit_code == 0
    (project.root / "golden_traces/c_missing.json").rename(project.root / "golden_traces/z_orphan.json")
    project.write({"golden_traces/d_unusable.json": "{", "cases/h_broken.yaml": "agent\n"})
    project.edit("cases/b_drift.yaml", "cents: 1200}}\n    - say", "cents: 12000}}\n    - say")
    project.edit("cases/e_failed.yaml", "model:\n", "limits: {turns: 3}\nmodel:\n")
    project.edit("cases/f_skipped.yaml", "agent:", "marks: [skip]\nagent:")
    project.edit("cases/g_xfail.yaml", "agent:", "marks: [xfail]\nagent:")
    project.edit("cases/g_xfail.yaml", "returns: 30 days", "raises: gone")
    (project.root / "cases/refund.yaml").unlink()
    (project.root / "golden_traces/refund.json").unlink()


ORPHAN = [
    "orphan    golden_traces/z_orphan.json  no case file owns it",
    "remove orphans with: harness prune",
]
BROKEN = "cases/h_broken.yaml:1:1: a case is a mapping of keys to values; this file holds the text 'agent'"


def test_the_summary_of_a_plain_run(shop: MiniProject) -> None:
    """One line of counts, every verdict in it, then the goldens that nobody owns."""
    with_every_verdict(shop)
    outcome = shop.pytest()
    assert outcome.exit_code == 1
    assert outcome.summary == [
        "8 cases: 1 same as golden, 2 drifted, 1 without golden, 1 with an unusable golden, 1 failed, "
        "1 with a broken case file, 1 skipped",
        *ORPHAN,
    ]


def test_the_summary_of_an_update(shop: MiniProject) -> None:
    """What was made, what was replaced and why, what was kept and why; what did not change is not listed."""
    with_every_verdict(shop)
    outcome = shop.pytest("--update-golden")
    assert outcome.exit_code == 1
    assert outcome.summary == [
        "8 cases: 1 drifted, 1 failed, 1 with a broken case file, 1 skipped, 1 new golden, 2 accepted, 1 unchanged",
        "accepted  golden_traces/b_drift.json  changes writes: `refund` (call 3): `cents` changed",
        "new       golden_traces/c_missing.json  3 calls, 4 turns",
        "accepted  golden_traces/d_unusable.json  replaced: golden_traces/d_unusable.json is not JSON: "
        "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        "kept      golden_traces/e_failed.json  4 turns, limit 3",
        "kept      golden_traces/f_skipped.json  Skipped: unconditional skip",
        "kept      golden_traces/g_xfail.json  expected to fail: `read_policy` (call 2) failed (golden: succeeded)",
        f"not made  golden_traces/h_broken.json  {BROKEN}",
        *ORPHAN,
    ]


def test_a_run_without_anything_to_say_says_nothing(shop: MiniProject) -> None:
    """Ordinary tests alone, in a project with cases: no section."""
    shop.write({"test_it.py": "def test_it(): pass\n"})
    assert shop.pytest("test_it.py").summary == []


def test_a_long_diff_is_cut_counted_and_kept_in_a_file(shop: MiniProject) -> None:
    """5,000 calls that all changed: a verdict in seconds, a readable report, and the whole of it as an artifact."""
    shop.write({
        "loop.py": """\
            START = 0

            def run(dispatch):
                for number in range(5000):
                    dispatch("read", {"page": START + number})
            """,
        "cases/refund.yaml": """\
            agent: loop:run
            prompt: Read it all.
            tools:
              read: {effect: read_only, input: {page: integer}, returns: text}
            limits: {calls: 5000}
            model: {name: claude-sonnet-5, script: [{say: Never asked.}]}
            """,
    })  # fmt: skip
    assert shop.pytest("--update-golden").exit_code == 0
    shop.edit("loop.py", "START = 0", "START = 5000")
    before = time.monotonic()
    outcome = shop.pytest()
    assert time.monotonic() - before < 20
    report = outcome.section("case refund")
    assert report[0] == "drift: 5000 calls with other arguments: `read` ×5000"
    assert report[5] == "~     1     1   read(page=0f8eb4b7)"
    assert report[-4:] == [
        "… 4,940 more differences, all of them in .harness/reports/refund.txt",
        "",
        "cost           calls 5,000, turns 0, writes 0",
        "accept with: harness accept refund   or: pytest --update-golden",
    ]
    assert len(report) == 129
    whole = shop.read(".harness/reports/refund.txt").splitlines()
    assert sum(line.startswith("~ ") and "read(" in line for line in whole) == 5000
    assert len(outcome.output) < 20_000
    assert shop.pytest("--update-golden").exit_code == 0
    assert not (shop.root / ".harness/reports/refund.txt").exists(), "what was accepted waits for nobody"


def test_a_drift_leaves_its_trace_and_a_pass_takes_it_away(accepted: MiniProject) -> None:
    """The observed trace waits under `.harness/`, which git ignores, until the case passes again."""
    pending = accepted.root / ".harness/pending/refund.json"
    accepted.edit("cases/refund.yaml", "returns: 30 days", "raises: gone")
    accepted.pytest()
    assert '"tool": "read_policy"' in pending.read_text()
    assert accepted.read(".harness/.gitignore") == "*\n"
    accepted.edit("cases/refund.yaml", "raises: gone", "returns: 30 days")
    accepted.pytest()
    assert not pending.exists()


def test_artifacts_that_cannot_be_written_change_no_verdict(accepted: MiniProject) -> None:
    """A file where the artifact folder should be costs the artifacts, and nothing else."""
    accepted.write({".harness": "a file\n"})
    assert accepted.pytest().summary == ["1 case: 1 same as golden"]
    accepted.edit("cases/refund.yaml", "returns: 30 days", "raises: gone")
    assert accepted.pytest().summary == ["1 case: 1 drifted"]
    assert accepted.pytest("--update-golden").exit_code == 0
