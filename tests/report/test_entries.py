"""The entries of a report: what comes first, and what each case is called."""

from __future__ import annotations

from dataclasses import replace

from tests.report.drifts import SEVEN, change, passed, run_of_everything


def test_what_must_be_seen_first_comes_first() -> None:
    """What fails, then what was accepted anew, then the rest; in each group writes first."""
    report = run_of_everything()
    assert [(entry.case.partition("<")[0], entry.word(), entry.branch_word("main")) for entry in report.entries] == [
        ("drifts/argument", "drifted", ""),
        ("drifts/write", "drifted", ""),
        ("hostile/a|b`", "drifted", ""),
        ("first_run", "no golden", ""),
        ("drifts/dropped", "drifted", ""),
        ("drifts/failed", "drifted", ""),
        ("drifts/grown", "drifted", ""),
        ("drifts/repeated", "drifted", ""),
        ("drifts/sequential", "drifted", ""),
        ("drifts/stop_reason", "drifted", ""),
        ("drifts/swapped", "drifted", ""),
        ("crashing", "crash sweep failed", ""),
        ("raised", "failed", ""),
        ("conflict", "merge conflict", ""),
        ("edited", "unusable golden", ""),
        ("gone", "not run", "deleted in this branch"),
        ("fresh", "matches", "new in this branch"),
        ("blessed", "matches", "accepted anew in this branch"),
        ("moved/here", "matches", "renamed in this branch (was moved/there)"),
        ("unwanted", "skipped", ""),
        ("quiet", "matches", "as in main"),
    ]


def test_a_golden_accepted_anew_says_whether_its_writes_changed() -> None:
    """It is the word that a reviewer of a pull request needs most."""
    longer, dearer = (replace(passed("one"), branch=change("one", SEVEN[name])) for name in ("repeated", "argument"))
    assert (longer.branch_word("main"), dearer.branch_word("main")) == (
        "accepted anew in this branch",
        "accepted anew in this branch, writes changed",
    )
