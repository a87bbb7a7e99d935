"""The model of the disk: what may be left after the power went, and nothing else."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.power.disk import SECTOR, Disk, Remains
from harness.power.operations import Make, Map, Move, Operation, Remove, Sync, Truncate, Write


def disk_after(*operations: Operation) -> Disk:
    disk = Disk()
    for operation in operations:
        disk.apply(operation)
    return disk


def whole_states(disk: Disk) -> set[tuple[tuple[str, bytes], ...]]:
    """All states without torn sectors, as pairs of path and bytes."""
    assert disk.count() <= 1000
    return {tuple(sorted(found.files.items())) for found in disk.after_power_loss(bound=1000, sample=0)}


NAMES = ("a", "b", "d/c")


@st.composite
def histories(draw: st.DrawFn) -> list[Operation]:
    """Operations that a program can make, one after the other, on three files and a folder."""
    disk = Disk()
    log: list[Operation] = []
    for _ in range(draw(st.integers(0, 12))):
        there = [name for name in NAMES if disk.has(name)]
        choices: list[st.SearchStrategy[Operation]] = [st.builds(Sync, st.just(""))]
        if not disk.has("d"):
            choices.append(st.builds(Make, st.just("d"), st.just(True)))
        else:
            choices.append(st.just(Sync("d")))
        missing = [name for name in NAMES if name not in there and (disk.has("d") or "/" not in name)]
        if missing:
            choices.append(st.builds(Make, st.sampled_from(missing)))
        if there:
            path = st.sampled_from(there)
            size = st.integers(0, 3 * SECTOR)
            data = st.builds(lambda byte, n: bytes([byte]) * n, st.integers(1, 255), st.integers(1, 2 * SECTOR))
            choices += [
                st.builds(Write, path, size, data),
                st.builds(Truncate, path, size),
                st.builds(Sync, path),
                st.builds(Remove, path),
            ]
        choices += [st.just(Move(one, two)) for one, two in (("a", "b"), ("b", "a")) if disk.has(one)]
        operation = draw(st.one_of(choices))
        disk.apply(operation)
        log.append(operation)
    return log


def replay(log: list[Operation]) -> dict[str, bytes]:
    """The same, the plain way: a dictionary."""
    files: dict[str, bytes] = {}
    for operation in log:
        match operation:
            case Make(path, False):
                files[path] = b""
            case Write(path, offset, data):
                old = files[path].ljust(offset + len(data), b"\0")
                files[path] = old[:offset] + data + old[offset + len(data) :]
            case Truncate(path, size):
                files[path] = files[path].ljust(size, b"\0")[:size]
            case Move(source, target):
                files[target] = files.pop(source)
            case Remove(path):
                del files[path]
    return files


@settings(max_examples=60)
@given(histories())
def test_without_loss_it_is_the_log_replayed(log: list[Operation]) -> None:
    """What a running program sees is what it wrote, and the power may always go after all of it arrived."""
    disk = disk_after(*log)
    assert dict(disk.now().files) == replay(log)
    assert disk.now() in list(disk.after_power_loss(bound=16, sample=2))


@settings(max_examples=60)
@given(histories(), st.integers(0, 99))
def test_what_was_synced_with_its_folders_is_all_there_is(log: list[Operation], seed: int) -> None:
    """When everything was synced, files and folders, one state is left, and it is the whole."""
    disk = disk_after(*log)
    everything = disk.now()
    for path in ("", *everything.folders, *everything.files):
        disk.apply(Sync(path))
    assert list(disk.after_power_loss(sample=4, seed=seed)) == [everything]


@settings(max_examples=60)
@given(histories(), histories(), st.integers(0, 99))
def test_what_was_synced_stays_whatever_happens_beside_it(
    before: list[Operation], after: list[Operation], seed: int
) -> None:
    """A file that is synced with its folder, and left alone from then on, is whole in every state."""
    disk = disk_after(Make("kept"), Write("kept", 3, b"safe"), Sync("kept"), Sync(""), *before)
    disk.apply(Sync(""))
    for operation in after:
        try:
            disk.apply(operation)
        except KeyError:
            continue  # made for an empty disk; what does not fit is not done
    for found in disk.after_power_loss(bound=8, sample=8, seed=seed):
        assert found.files["kept"] == b"\0\0\0safe"


@settings(max_examples=60)
@given(histories(), st.integers(0, 99))
def test_nothing_is_found_that_was_never_written(log: list[Operation], seed: int) -> None:
    """Each byte that is found was written at that place of some file, or is zero."""
    disk = disk_after(*log)
    written: dict[int, set[int]] = {}
    for operation in log:
        if isinstance(operation, Write):
            for at, byte in enumerate(operation.data, operation.offset):
                written.setdefault(at, {0}).add(byte)
    for found in disk.after_power_loss(bound=8, sample=8, seed=seed):
        for content in found.files.values():
            assert all(byte in written.get(at, {0}) for at, byte in enumerate(content))


@settings(max_examples=60)
@given(histories())
def test_all_states_are_tried_when_there_are_few(log: list[Operation]) -> None:
    """Below the bound, raising it changes nothing, and no more states are found than are counted."""
    disk = disk_after(*log)
    if disk.count() <= 64:
        few = list(disk.after_power_loss(bound=64, sample=0))
        assert few == list(disk.after_power_loss(bound=10_000, sample=0))
        assert len(few) <= disk.count()


def test_an_unsynced_file_of_two_sectors() -> None:
    """Name, size and both sectors are lost or kept independently of each other; what did not arrive is zeros."""
    disk = disk_after(Make("a"), Write("a", 0, b"x" * 600))
    zeros, written = (b"\0", b"x")
    contents = {first * 512 + second * 88 for first, second in product((zeros, written), repeat=2)}
    assert whole_states(disk) == {(), (("a", b""),), *((("a", content),) for content in contents)}


def test_writes_to_one_sector_arrive_in_their_order() -> None:
    """A sector is found as it was after some write, never with a later one and without an earlier one."""
    disk = disk_after(Make("a"), Write("a", 0, b"...."), Sync("a"), Sync(""), Write("a", 0, b"1"), Write("a", 1, b"2"))
    assert whole_states(disk) == {(("a", b"...."),), (("a", b"1..."),), (("a", b"12.."),)}


def test_a_sector_may_be_torn_at_any_byte() -> None:
    """Of a sector the beginning may be new and the rest old, or the other way round."""
    disk = disk_after(Make("a"), Write("a", 0, b"old!" * 128), Sync("a"), Sync(""), Write("a", 0, b"new!" * 128))
    found = {state.files["a"] for state in disk.after_power_loss(sample=400)}
    old, new = b"old!" * 128, b"new!" * 128
    assert {old, new} < found
    assert found <= {f for at in range(513) for f in (new[:at] + old[at:], old[:at] + new[at:])}


def test_a_file_sync_says_nothing_of_its_name() -> None:
    """A file whose bytes are synced may be gone until its folder is synced."""
    disk = disk_after(Make("a"), Write("a", 0, b"x"), Sync("a"))
    assert whole_states(disk) == {(), (("a", b"x"),)}


def test_a_move_before_the_sync_shows_an_empty_file() -> None:
    """The classic: the new name is durable, and the bytes behind it are not."""
    old = (Make("a"), Write("a", 0, b"old"), Sync("a"), Sync(""))
    disk = disk_after(*old, Make("a.tmp"), Write("a.tmp", 0, b"new"), Move("a.tmp", "a"), Sync(""))
    assert whole_states(disk) == {(("a", content),) for content in (b"", b"\0\0\0", b"new")}


def test_names_arrive_in_any_order() -> None:
    """Two names of one folder are lost and kept independently of each other."""
    disk = disk_after(Make("a"), Make("b"))
    assert whole_states(disk) == {(), (("a", b""),), (("b", b""),), (("a", b""), ("b", b""))}


def test_a_lost_folder_takes_with_it_what_was_synced_in_it() -> None:
    """A file that is synced with its folder is gone when the name of that folder was not."""
    disk = disk_after(Make("d", folder=True), Make("d/a"), Write("d/a", 0, b"x"), Sync("d/a"), Sync("d"))
    assert list(disk.after_power_loss(sample=0)) == [
        Remains({}, frozenset()),
        Remains({"d/a": b"x"}, frozenset({"d"})),
    ]


def test_a_mapped_file_may_hold_anything() -> None:
    """Nobody sees what is written to memory: the file is found with noise in it, also after a sync."""
    disk = disk_after(Make("a"), Write("a", 0, b"seen" * 8), Map("a"), Sync("a"), Sync(""))
    found = [state.files["a"] for state in disk.after_power_loss()]
    assert len(found) == 2
    assert b"seen" * 8 in found


def test_a_finding_says_what_was_lost() -> None:
    """Each state says in words what did not arrive."""
    disk = disk_after(Make("a"), Write("a", 0, b"x" * 600))
    words = {state.lost for state in disk.after_power_loss(sample=0)}
    assert ("the new 'a'",) in words
    assert ("of 'a' the size 600 (it is 0)", "of 'a' 2 of 2 sectors that were not synced") in words


def test_an_unknown_path_is_refused() -> None:
    """An operation on a path that there is not is a fault of the recording."""
    with pytest.raises(KeyError):
        disk_after(Write("nowhere", 0, b"x"))
