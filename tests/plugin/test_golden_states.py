"""Goldens that cannot be used: each state has its own message and next command, the same everywhere."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.testing import MiniProject

GOLDEN = "golden_traces/refund.json"
FOUND_BY = {"CI": "true", "GITHUB_ACTIONS": "true"}


@dataclass(frozen=True)
class State:
    """How a golden gets into it, what is said of it, and what an update says that it did."""

    spoil: Callable[[MiniProject], None]
    message: str
    update: str
    env: dict[str, str] = field(default_factory=dict)
    word: str = "with an unusable golden"
    is_ours: bool = True
    way: str = "restore the golden from git, or"


def _remove(project: MiniProject) -> None:
    (project.root / GOLDEN).unlink()


def _make_folder(project: MiniProject) -> None:
    _remove(project)
    (project.root / GOLDEN / "inside").mkdir(parents=True)


def _cut(project: MiniProject) -> None:
    project.write({GOLDEN: project.read(GOLDEN)[:1]})


def _make_latin(project: MiniProject) -> None:
    (project.root / GOLDEN).write_bytes(project.read(GOLDEN).replace("refund", "refünd").encode("latin-1"))


def _merge(project: MiniProject) -> None:
    line = project.read(GOLDEN).splitlines(keepends=True)[8]
    theirs = line.replace("find_order", "search_order")
    project.edit(GOLDEN, line, f"<<<<<<< HEAD\n{line}=======\n{theirs}>>>>>>> branch\n")


def _replace(old: str, new: str) -> Callable[[MiniProject], None]:
    return lambda project: project.edit(GOLDEN, old, new)


STATES = {
    "missing": State(
        _remove,
        f"no golden yet: {GOLDEN} does not exist; look at the trace, then accept it with: pytest --update-golden, "
        "or: harness accept refund",
        f"new       {GOLDEN}  3 calls, 4 turns",
        word="without golden",
        is_ours=False,
    ),
    "a folder": State(
        _make_folder,
        f"{GOLDEN} cannot be read: Is a directory",
        f"kept      {GOLDEN}  {GOLDEN} could not be written: Is a directory; what was there is unchanged",
    ),
    "cut off": State(
        _cut,
        f"{GOLDEN} is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        "",
    ),
    "not UTF-8": State(
        _make_latin,
        f"{GOLDEN} is not UTF-8 (byte 47)",
        f"accepted  {GOLDEN}  replaced: {GOLDEN} is not UTF-8 (byte 47)",
    ),
    "in conflict": State(
        _merge,
        f"{GOLDEN} holds unresolved merge conflict markers; finish merging the code, run the case, "
        "and accept what it does now",
        "",
        way="look, then",
    ),
    "of an older version": State(
        _replace("harness.trace/1", "harness.trace/0"),
        f"{GOLDEN} has the older schema 'harness.trace/0'; accept a new run to write 'harness.trace/1'",
        "",
    ),
    "of a later version": State(
        _replace("harness.trace/1", "harness.trace/2"),
        f"{GOLDEN} has the later schema 'harness.trace/2', this version reads 'harness.trace/1'; "
        "upgrade trajectory-harness",
        f"kept      {GOLDEN}  {GOLDEN} has the later schema 'harness.trace/2', "
        "this version reads 'harness.trace/1'; upgrade trajectory-harness",
        is_ours=False,
    ),
    "edited by hand": State(
        _replace('"writes": {"refund": 1}', '"writes": {"refund": 2}'),
        f'{GOLDEN} was edited by hand: its summary says {{"calls": 3, "duplicates": {{}}, "writes": {{"refund": 2}}}}, '
        'its calls give {"calls": 3, "duplicates": {}, "writes": {"refund": 1}}; '
        "restore it from git or accept a new run",
        "",
    ),
    "of another case": State(
        _replace('"case": "refund"', '"case": "returns"'),
        f"{GOLDEN} belongs to another case, 'returns'; if the case was renamed, remove the file and accept a new run "
        "with: harness accept refund",
        "",
    ),
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_each_state_is_told_apart_everywhere(accepted: MiniProject, state: State) -> None:
    """An unusable golden fails with a message of its own, and CI changes neither verdict nor words nor exit code."""
    state.spoil(accepted)
    here = accepted.pytest(env=state.env)
    there = accepted.pytest(env={**state.env, **FOUND_BY})
    assert here.section("case refund")[0] == state.message
    # The message, or the last line, says what to do.
    restore = f"{state.way} accept this run with: harness accept refund   or: pytest --update-golden"
    assert (here.section("case refund")[-1] == restore) is state.is_ours
    assert here.summary[0] == f"1 case: 1 {state.word}"
    assert (here.exit_code, here.changed) == (1, {})
    for section in ("case refund", "trajectories"):
        assert there.section(section) == here.section(section)
    assert (there.exit_code, there.changed) == (1, {})


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_an_update_replaces_what_is_ours_to_replace(accepted: MiniProject, state: State) -> None:
    """A golden of a later version or another key stays as it is, and so does what is no file; others are renewed."""
    before = accepted.read(GOLDEN)
    state.spoil(accepted)
    outcome = accepted.pytest("--update-golden", env=state.env)
    assert outcome.summary[1] == (state.update or f"accepted  {GOLDEN}  replaced: {state.message.partition(';')[0]}")
    if outcome.summary[1].startswith("kept"):
        assert (outcome.exit_code, outcome.changed) == (1, {})
        assert outcome.summary[2] == "no golden was written"
    else:
        assert outcome.exit_code == 0
        assert accepted.read(GOLDEN) == before


def test_a_key_is_adopted_by_accepting_anew(accepted: MiniProject) -> None:
    """Goldens without a key cannot be compared under one; an update renews them, and the next run is green."""
    key = {"HARNESS_DIGEST_KEY": "k"}
    assert accepted.pytest(env=key).section("case refund")[0] == (
        f"{GOLDEN} cannot be compared: its digests are not keyed, but HARNESS_DIGEST_KEY is set; to use the key from "
        "now on, accept a new run of every case: pytest --update-golden"
    )
    assert accepted.pytest("--update-golden", env=key).exit_code == 0
    assert json.loads(accepted.read(GOLDEN))["digest_key"]
    assert accepted.pytest(env=key).exit_code == 0


def test_a_golden_of_another_key_names_both_keys(shop: MiniProject) -> None:
    """A wrong key is no drift: fingerprints say which key is needed, and keys are never shown."""
    shop.pytest("--update-golden", env={"HARNESS_DIGEST_KEY": "first secret"})
    fingerprint = json.loads(shop.read(GOLDEN))["digest_key"]
    assert shop.pytest(env={"HARNESS_DIGEST_KEY": "first secret"}).exit_code == 0
    outcome = shop.pytest(env={"HARNESS_DIGEST_KEY": "second secret"})
    message = outcome.section("case refund")[0]
    assert message.startswith(
        f"{GOLDEN} cannot be compared: its digests are keyed with {fingerprint}, but HARNESS_DIGEST_KEY is "
    )
    assert "secret" not in outcome.output
    assert shop.pytest().section("case refund")[0] == (
        f"{GOLDEN} cannot be compared: its digests are keyed (key {fingerprint}), but HARNESS_DIGEST_KEY is not set; "
        "set the key it was made with"
    )


def test_text_that_looks_like_a_conflict_is_none(shop: MiniProject) -> None:
    """Only a golden that git left in conflict is called one, not a tool's text that holds such lines."""
    shop.edit("cases/refund.yaml", "agent: loop:run\n", "agent: loop:run\ndetail: plain\n")
    shop.edit(
        "cases/refund.yaml",
        "read_policy: {name: refunds}",
        r'read_policy: {name: "<<<<<<< a\n=======\n>>>>>>> b\n"}',
    )
    assert shop.pytest("--update-golden").exit_code == 0
    assert "<<<<<<< a\\n=======\\n>>>>>>> b" in shop.read(GOLDEN)
    assert shop.pytest().summary == ["1 case: 1 same as golden"]
    shop.write({GOLDEN: shop.read(GOLDEN)[:-20]})
    assert shop.pytest().section("case refund")[0].startswith(f"{GOLDEN} is not JSON: ")


def test_orphans_are_named_and_never_removed(accepted: MiniProject) -> None:
    """A golden without a case is named by every run, fails none, and goes only by `harness prune`."""
    accepted.write({"golden_traces/old/renamed.json": accepted.read(GOLDEN)})
    orphan = [
        "orphan    golden_traces/old/renamed.json  no case file owns it",
        "remove orphans with: harness prune",
    ]
    outcome = accepted.pytest()
    assert (outcome.exit_code, outcome.summary) == (0, ["1 case: 1 same as golden", *orphan])
    outcome = accepted.pytest("--update-golden")
    assert (outcome.exit_code, outcome.changed) == (0, {})
    assert outcome.summary == ["1 case: 1 unchanged", "no golden was written: nothing changed", *orphan]
    check = accepted.harness("prune", "--check")
    assert (check.exit_code, check.output) == (1, "orphan  golden_traces/old/renamed.json\n")
    pruned = accepted.harness("prune")
    assert (pruned.exit_code, pruned.changed) == (0, {"golden_traces/old/renamed.json": "removed"})
    assert accepted.pytest().summary == ["1 case: 1 same as golden"]


def test_a_crash_golden_belongs_to_its_case(accepted: MiniProject) -> None:
    """The record of a crash sweep is no orphan while there is the case."""
    accepted.write({"golden_traces/refund.crash.json": "{}\n"})
    assert accepted.pytest().summary == ["1 case: 1 same as golden"]
