"""The two stores survive the loss of power at any moment; stores with one thing wrong do not, and that is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.power.check import Finding, Verdict, cut_everywhere
from harness.power.operations import Make, Map, Mark, Sync, Write
from harness.power.stores import STORES, check_store, record_store

FOUND: dict[str, Verdict] = {}


def planted(store: str, work: Path) -> Verdict:
    """What is found in a planted store; looked for once for all tests.  Few states are enough for a missing sync."""
    if store not in FOUND:
        FOUND[store] = check_store(f"planted_stores:{store}", work, finish=False, sample=0, bound=1)
    return FOUND[store]


@pytest.mark.parametrize("store", [*STORES, "planted_stores:FoldsInOften"])
def test_a_store_that_syncs_what_it_must_survives_every_loss(work: Path, store: str) -> None:
    """codex#6950.  Whenever the power goes, before or after is loaded, nothing acknowledged is lost, and the run is
    finished from there.
    """
    verdict = check_store(store, work, sample=2, bound=8)
    assert [str(found) for found in verdict.findings[:3]] == []
    assert verdict.states > 100


@pytest.mark.parametrize(
    ("store", "problem", "lost"),
    [
        ("NoFsync", "lost", "the move of 'runs/one/checkpoint.json.tmp' to 'runs/one/checkpoint.json'"),
        ("NoFsyncOfTheFile", "unreadable", "of 'runs/one/checkpoint.json' the size"),
        ("NoFolderFsync", "lost", "the move of 'runs/one/checkpoint.json.tmp' to 'runs/one/checkpoint.json'"),
        ("NewFolderNotSynced", "lost", "the new 'runs/one'"),
        ("RenameBeforeSync", "unreadable", "of 'runs/one/checkpoint.json' the size"),
        ("InPlace", "unreadable", "of 'runs/one/checkpoint.json' the size"),
        ("Off", "lost", "of 'runs/one/state.sqlite-wal'"),
        ("Off", "unreadable", "of 'runs/one/state.sqlite'"),
        ("Normal", "lost", "of 'runs/one/state.sqlite-wal'"),
        ("SqliteNoFolderFsync", "lost", "the move of 'runs/one/state.sqlite.new' to 'runs/one/state.sqlite'"),
    ],
)
def test_a_missing_sync_is_found(work: Path, store: str, problem: str, lost: str) -> None:
    """A store that misses one sync, or has it in the wrong place, is found, and the finding names what was lost."""
    verdict = planted(store, work)
    found = [found for found in verdict.findings if found.problem == problem]
    assert any(any(words.startswith(lost) for words in finding.lost) for finding in found)


def test_synchronous_normal_loses_an_intent(work: Path) -> None:
    """With synchronous=NORMAL the record that the mail was begun can be lost after it was acknowledged: the mail is
    sent, and the next process believes that it never was.
    """
    verdict = planted("Normal", work)
    intent = 6  # create, asked, answered, started and settled of the first call, started of the second
    assert ("lost", intent, f"save {intent - 1} is found") in {
        (found.problem, found.acknowledged, found.detail) for found in verdict.findings
    }


def test_synchronous_normal_never_damages_the_file(work: Path) -> None:
    """What SQLite documents of NORMAL: the last commits may be lost, and nothing else happens.  The loss is refused
    where the note of the lock file outlived the commits, and else it passes unseen.
    """
    verdict = planted("Normal", work)
    assert {found.problem for found in verdict.findings} == {"lost", "unreadable"}
    refused = [found.detail for found in verdict.findings if found.problem == "unreadable"]
    assert [detail for detail in refused if "were saved: its log" not in detail] == []


def test_the_recording_has_the_syncs_that_sqlite_makes_by_itself(work: Path) -> None:
    """The real library is recorded: it syncs the folder of a new log, and maps the index of it."""
    log = record_store(STORES[1], work)
    assert Sync("runs/one") in log
    assert Map("runs/one/state.sqlite-shm") in log
    assert [mark.text for mark in log if isinstance(mark, Mark)][:3] == ["begin 1", "done 1", "begin 2"]
    before = log[: log.index(Mark("done 2"))]
    *before, note = before
    assert isinstance(note, Write)  # how many changes were committed: after the commit, and not synced
    assert note.path == "runs/one/lock"
    assert before[-1] == Sync("runs/one") or before[-1] == Sync("runs/one/state.sqlite-wal")


def test_a_log_that_is_folded_in_often_is_folded_in_while_the_run_goes_on(work: Path) -> None:
    """The store that is to show a fold in the middle of a run does so, else its passing says nothing."""
    log = record_store("planted_stores:FoldsInOften", work)
    middle = log[log.index(Mark("done 2")) : log.index(Mark("done 8"))]
    assert [write.path for write in middle if isinstance(write, Write)].count("runs/one/state.sqlite") > 3


def test_a_finding_is_the_same_again(tmp_path: Path) -> None:
    """The same recording and seed give the same findings, so that one can be looked into; and it tells its story."""
    log = [
        Mark("begin 1"), Make("a"), Sync(""), Write("a", 0, b"x" * 9), Sync("a"), Mark("done 1"),
        Mark("begin 2"), Write("a", 0, b"y" * 9), Mark("done 2"),
    ]  # fmt: skip

    def load(root: Path) -> str:
        return (root / "a").read_text() if (root / "a").exists() else ""

    def findings(seed: int) -> list[Finding]:
        return cut_everywhere(log, load, ["", "x" * 9, "y" * 9], tmp_path / "left", sample=4, seed=seed).findings

    assert findings(1) == findings(1) != findings(2)
    assert str(min(findings(1), key=lambda finding: (-finding.cut, len(finding.lost)))) == (
        "lost: save 1 is found\n"
        "  the power went after operation 9 (Mark(text='done 2')), save 2 had returned\n"
        "  lost: of 'a' 1 of 1 sectors that were not synced"
    )


def test_a_store_that_is_not_there(work: Path) -> None:
    """A factory that cannot be imported is one error that says how to name one."""
    with pytest.raises(HarnessError, match=r"there is no store 'planted_stores:Nope'.*as module:callable"):
        check_store("planted_stores:Nope", work)
