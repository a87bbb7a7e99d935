"""The edit script: right for every pair of sequences, shortest where it promises to be, and worded as people read."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.align import Edit, align, apply

if TYPE_CHECKING:
    from collections.abc import Sequence

Key = tuple[str, str]

# Few keys, so that they repeat: the letter is the tool.
keys = st.tuples(st.sampled_from("rsw"), st.sampled_from("123"))
sequences = st.lists(keys, max_size=14)

# Limits that send small inputs the way that large ones take.
METHODS: dict[str, dict[str, float]] = {
    "pairs": {},
    "matrix": {"_FEW_PAIRS": 0},
    "halves": {"_FEW_PAIRS": 0, "_MATRIX_CELLS": 0},
    "halves, then matrix": {"_FEW_PAIRS": 0, "_MATRIX_CELLS": 25},
    "halves, no room for masks": {"_FEW_PAIRS": 0, "_MATRIX_CELLS": 0, "_MASK_BYTES": 0},
    "windows": {"_FEW_PAIRS": 8, "_MATRIX_CELLS": 36, "_EXACT_CELLS": 36, "_WINDOW": 6},
    "pairs, runs stop early": {"_SLIDES": 0.2},
}
every_method = pytest.mark.parametrize("method", METHODS)
every_exact_method = pytest.mark.parametrize("method", [name for name in METHODS if name != "windows"])
every_tidy_method = pytest.mark.parametrize("method", [name for name in METHODS if "early" not in name])


def calls(text: str) -> list[Key]:
    """`"r1 r2 s1"`: the tool r with the arguments 1 and 2, then the tool s."""
    return [(word[0], word[1:]) for word in text.split()]


def script(a: str, b: str, method: str = "pairs") -> str:
    """The whole script as one line: `r1` equal, `+r1` added, `-r1` removed, `>r1` moved, `r1~r2` changed."""
    golden, observed = a.split(), b.split()
    words = []
    for edit in align_by(method, calls(a), calls(b)):
        if edit.op == "changed":
            words.append(f"{golden[edit.a]}~{observed[edit.b]}")
        elif edit.op == "removed":
            words.append(f"-{golden[edit.a]}")
        else:
            words.append({"equal": "", "moved": ">", "added": "+"}[edit.op] + observed[edit.b])
    return " ".join(words)


def longest_common(a: list[Key], b: list[Key]) -> int:
    """The length of a longest common subsequence, by the definition."""
    row = [0] * (len(b) + 1)
    for key in a:
        before = row
        row = [0]
        for column, other in enumerate(b):
            row.append(before[column] + 1 if key == other else max(before[column + 1], row[column]))
    return row[-1]


def align_by(method: str, a: Sequence[Key], b: Sequence[Key]) -> list[Edit]:
    """The script when common subsequences are searched by one of METHODS, whatever the size of the input."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in METHODS[method].items():
            patch.setattr(f"harness.{'align' if name == '_SLIDES' else 'subsequence'}.{name}", value)
        return align(a, b)


class TestScripts:
    """Small edits as a reviewer would word them."""

    def test_every_field_of_the_entries(self) -> None:
        """An entry names the operation and the indices on the sides that it has."""
        assert align(calls("l1 r1 d1 r2 s1"), calls("l1 r1 r3 s1 l1")) == [
            Edit("equal", 0, 0),
            Edit("equal", 1, 1),
            Edit("removed", 2, None),
            Edit("changed", 3, 2),
            Edit("equal", 4, 3),
            Edit("added", None, 4),
        ]

    @pytest.mark.parametrize(
        ("a", "b", "expected"),
        [
            pytest.param("", "", "", id="nothing"),
            pytest.param("l1 r1", "l1 r1", "l1 r1", id="equal"),
            pytest.param("", "l1 r1", "+l1 +r1", id="all added"),
            pytest.param("l1 r1", "", "-l1 -r1", id="all removed"),
            pytest.param("l1 r1 s1", "l1 r2 s1", "l1 r1~r2 s1", id="an argument changed"),
            pytest.param("l1 r1 s1", "l1 s1 r1", "l1 s1 >r1", id="neighbours swapped"),
            pytest.param("l1 r1 s1", "l1 r1 r1 s1", "l1 r1 +r1 s1", id="repeated"),
            pytest.param("l1 r1 r1 s1", "l1 r1 s1", "l1 r1 -r1 s1", id="repeated no more"),
            pytest.param("l1 r1 s1", "l1 s1", "l1 -r1 s1", id="dropped"),
            pytest.param("l1 r1", "l1", "l1 -r1", id="dropped at the end"),
            pytest.param("l1 r1", "r1", "-l1 r1", id="dropped at the start"),
            pytest.param("l1 s1", "l1 w1 s1", "l1 +w1 s1", id="added"),
            pytest.param("l1 r1 s1", "l1 w1 s1", "l1 -r1 +w1 s1", id="another tool instead"),
            pytest.param("l1 r1 r2 r3 s1", "l1 r4 r5 r6 s1", "l1 r1~r4 r2~r5 r3~r6 s1", id="all arguments changed"),
            pytest.param("l1 r1 r2 s1", "l1 r4 r5 r6 s1", "l1 r1~r4 r2~r5 +r6 s1", id="changed, and one more"),
            pytest.param("l1 r1 r2 r3 s1", "l1 r4 r5 s1", "l1 r1~r4 r2~r5 -r3 s1", id="changed, and one less"),
            pytest.param("r1 w1 s1", "r2 s2", "r1~r2 -w1 s1~s2", id="removed between changed ones"),
            pytest.param("r1 w1 s1", "s2 r2", "-w1 s1~s2 r1~r2", id="changed and swapped"),
            pytest.param("r1 l1", "l1 r2", "l1 r1~r2", id="changed and past one neighbour, down"),
            pytest.param("l1 r1", "r2 l1", "r1~r2 l1", id="changed and past one neighbour, up"),
            pytest.param("r1 l1 l2", "l1 l2 r2", "-r1 l1 l2 +r2", id="two neighbours are no neighbourhood"),
            pytest.param("l1 r1 r2 r3 s1 w1", "r2 l1 r1 w1 r3 s1", ">r2 l1 r1 >w1 r3 s1", id="two moved"),
            pytest.param("r1 r1 l1 l2", "l1 r1 l2 r1", "l1 >r1 l2 >r1", id="moved, one to one"),
        ],
    )
    def test_reads_as_a_reviewer_would_say_it(self, a: str, b: str, expected: str) -> None:
        """One edit gives one entry that is not equal, and it is the one that people would name."""
        assert script(a, b) == expected

    @every_tidy_method
    @pytest.mark.parametrize(
        ("a", "b", "expected"),
        [
            pytest.param(
                "l1 r1 w1 s1",
                "l1 r1 w1 r1 w1 r1 w1 s1",
                "l1 r1 w1 +r1 +w1 +r1 +w1 s1",
                id="a block thrice",
            ),
            pytest.param(
                "l1 r1 w1 r1 w1 r1 w1 s1",
                "l1 r1 w1 s1",
                "l1 r1 w1 -r1 -w1 -r1 -w1 s1",
                id="a block once instead of thrice",
            ),
            pytest.param(
                "l1 r1 w1 d1 s1",
                "l2 r1 w1 d1 r1 w1 d1 r1 w1 d1 s2",
                "l1~l2 r1 w1 d1 +r1 +w1 +d1 +r1 +w1 +d1 s1~s2",
                id="a block thrice between changes",
            ),
            pytest.param("l1 r1", "l2 r1 r1 r1", "l1~l2 r1 +r1 +r1", id="the last call thrice"),
            pytest.param("r1 w1", "l1 r1 w1 r1 w1", "+l1 +r1 +w1 r1 w1", id="one run rather than two"),
            pytest.param(
                "l1 r1 w1 d1 s1",
                "l2 r1 x1 w1 y1 r1 w1 d1 s2",
                "l1~l2 r1 +x1 +w1 +y1 +r1 w1 d1 s1~s2",
                id="one run around what it can take in",
            ),
        ],
    )
    def test_a_repeated_block_is_one_block_behind_its_model(self, method: str, a: str, b: str, expected: str) -> None:
        """Of equal neighbours the later ones were added, and they stand together, whatever finds them."""
        assert script(a, b, method) == expected

    def test_runs_that_meet_on_the_way_down_go_on_as_one(self) -> None:
        """A run that slides into the next one, and with it into a third one, takes both along."""
        expected = "r2 -r2 r1 >r0 r1 r1 -r2 -r1 -r2"
        assert script("r0 r2 r2 r1 r1 r1 r2 r1 r2", "r2 r1 r0 r1 r1", "halves") == expected

    def test_apply_takes_what_is_kept_from_the_golden_side(self) -> None:
        """Equal and moved calls are those of a, changed and added ones those of b, removed ones are gone."""
        edits = [
            Edit("equal", 1, 0),
            Edit("changed", 2, 1),
            Edit("removed", 3, None),
            Edit("added", None, 2),
            Edit("moved", 0, 3),
        ]
        assert apply(edits, "ABCD", "wxyz") == ["B", "x", "y", "A"]

    def test_kind_is_what_the_caller_says(self) -> None:
        """Keys of any form can be aligned when `kind` says what a change leaves as it is."""
        assert align("aXb", "axb", kind=str.lower) == [
            Edit("equal", 0, 0),
            Edit("changed", 1, 1),
            Edit("equal", 2, 2),
        ]


class TestLaws:
    """What holds for every pair of sequences, by every method."""

    @every_method
    @given(a=sequences, b=sequences)
    def test_turns_one_into_the_other(self, method: str, a: list[Key], b: list[Key]) -> None:
        """Applying the script of a and b to a gives b."""
        assert apply(align_by(method, a, b), a, b) == b

    @every_method
    @given(a=sequences, b=sequences)
    def test_every_call_is_told_once_in_a_readable_order(self, method: str, a: list[Key], b: list[Key]) -> None:
        """Each index appears once; the entries follow b, and what was removed stays in order among what was kept."""
        edits = align_by(method, a, b)
        assert sorted(edit.a for edit in edits if edit.a is not None) == list(range(len(a)))
        assert [edit.b for edit in edits if edit.b is not None] == list(range(len(b)))
        in_order = [edit.a for edit in edits if edit.op in ("equal", "removed")]
        assert in_order == sorted(in_order)

    @every_method
    @given(a=sequences, b=sequences)
    def test_operations_mean_what_they_say(self, method: str, a: list[Key], b: list[Key]) -> None:
        """Indices, keys and kinds of each entry are those of its operation."""
        for edit in align_by(method, a, b):
            if edit.op == "added":
                assert (edit.a is None, edit.b is None) == (True, False)
            elif edit.op == "removed":
                assert (edit.a is None, edit.b is None) == (False, True)
            elif edit.op == "changed":
                assert a[edit.a][0] == b[edit.b][0]
                assert a[edit.a] != b[edit.b]
            else:
                assert a[edit.a] == b[edit.b]

    @every_method
    @given(a=sequences, b=sequences)
    def test_nothing_is_removed_here_and_added_there(self, method: str, a: list[Key], b: list[Key]) -> None:
        """A key that is missing on one side and new on the other has moved."""
        edits = align_by(method, a, b)
        removed = {a[edit.a] for edit in edits if edit.op == "removed"}
        added = {b[edit.b] for edit in edits if edit.op == "added"}
        assert removed & added == set()

    @every_method
    @given(a=sequences, b=st.one_of(st.none(), sequences))
    def test_all_equal_exactly_when_equal(self, method: str, a: list[Key], b: list[Key] | None) -> None:
        """The script of equal sequences, and no other one, holds nothing but `equal`."""
        observed = list(a) if b is None else b
        assert all(edit.op == "equal" for edit in align_by(method, a, observed)) == (a == observed)

    @every_exact_method
    @given(a=sequences, b=sequences)
    def test_keeps_as_much_as_can_be_kept(self, method: str, a: list[Key], b: list[Key]) -> None:
        """The calls told as equal are a longest common subsequence."""
        kept = sum(edit.op == "equal" for edit in align_by(method, a, b))
        assert kept == longest_common(a, b)

    @every_tidy_method
    @given(a=sequences, b=sequences)
    def test_the_later_of_equal_neighbours_is_the_new_one(self, method: str, a: list[Key], b: list[Key]) -> None:
        """No run of added, or of removed, calls could stand further down and still be the same run."""
        edits = align_by(method, a, b)
        told_a = sorted((edit.a, edit.op) for edit in edits if edit.a is not None)
        told_b = sorted((edit.b, edit.op) for edit in edits if edit.b is not None)
        for sequence, told, lone in ((a, told_a, "removed"), (b, told_b, "added")):
            start = 0
            for index, op in told:
                if op != lone:
                    assert not (start < index and op == "equal" and sequence[index] == sequence[start])
                    start = index + 1

    @given(before=sequences, block=st.lists(keys, min_size=1, max_size=4), after=sequences, times=st.integers(1, 3))
    def test_a_repeated_block_is_contiguous(
        self, before: list[Key], block: list[Key], after: list[Key], times: int
    ) -> None:
        """A block done again reads as that many calls added in one place."""
        edits = align(before + block + after, before + block + block * times + after)
        ops = [edit.op for edit in edits]
        first = ops.index("added")
        added = len(block) * times
        assert ops == ["equal"] * first + ["added"] * added + ["equal"] * (len(ops) - first - added)

    @every_method
    @given(a=sequences, b=sequences)
    def test_the_same_input_gives_the_same_script(self, method: str, a: list[Key], b: list[Key]) -> None:
        """Nothing but the two sequences decides, not even the identity of the keys."""
        others = tuple(("".join(tool), "".join(digest)) for tool, digest in b)
        assert align_by(method, a, b) == align_by(method, a, others)


class TestLongTraces:
    """What small sequences cannot show.  Times and memory: benchmarks/align.py."""

    @staticmethod
    def repetitive(size: int, distinct: int, seed: int) -> list[Key]:
        rng = random.Random(seed)
        return [("r", str(rng.randrange(distinct))) for _ in range(size)]

    @pytest.mark.parametrize("distinct", [2, 3, 30, 100])
    @every_exact_method
    def test_is_exact_by_every_exact_method(self, method: str, distinct: int) -> None:
        """The subsequence of long repetitive traces is a longest one."""
        a, b = self.repetitive(300, distinct, seed=1), self.repetitive(250, distinct, seed=2)
        edits = align_by(method, a, b)
        assert sum(edit.op == "equal" for edit in edits) == longest_common(a, b)
        assert apply(edits, a, b) == b

    def test_windows_follow_a_shift(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Beyond the exact methods a few edits are still found as those few edits."""
        for limit, value in {"_FEW_PAIRS": 0, "_MATRIX_CELLS": 10_000, "_EXACT_CELLS": 0, "_WINDOW": 100}.items():
            monkeypatch.setattr(f"harness.subsequence.{limit}", value)
        trace = self.repetitive(3_000, 40, seed=3)
        after = [("w", "1"), *trace[:1_000], *trace[1_030:2_000], ("w", "2"), *trace[2_000:], ("w", "3")]
        edits = align(trace, after)
        assert [edit for edit in edits if edit.op not in ("equal", "removed")] == [
            Edit("added", None, 0),
            Edit("added", None, 1_971),
            Edit("added", None, 2_972),
        ]
        assert [edit.a for edit in edits if edit.op == "removed"] == list(range(1_000, 1_030))

    def test_small_traces_never_load_rapidfuzz(self) -> None:
        """The 30 ms that its import takes are paid by long repetitive traces only."""
        program = (
            "import sys; from harness.align import align\n"
            "align([('r', n % 3) for n in range(60)], [('r', n % 5) for n in range(60)])\n"
            "assert 'rapidfuzz' not in sys.modules\n"
            "align([('r', n % 3) for n in range(900)], [('r', n % 5) for n in range(900)])\n"
            "assert 'rapidfuzz' in sys.modules\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
