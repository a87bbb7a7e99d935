"""A disk that loses its power: from the operations so far to every state that it may be found in.

The rules, the weakest that programs are told to rely on (ALICE, OSDI'14; `man 2 fsync`):

- What was synced stays.  Of the rest, each sector of a file (512 bytes) is found as it was at the last sync or after
  any write since, independently of all other sectors and files; or torn between two of these at any byte.
- The size of a file is found as it was at the last sync or at any time since, or on the way to a larger one,
  independently of its bytes.  Bytes that never arrived are zeros.
- A new, moved or removed name is found so or not, independently of all others, until its folder is synced.  A move
  happens wholly or not at all.
- A file that was mapped for writing may hold anything.

Not in the rules, since no program could stand it: a sync that lies, and bytes that change where nothing was written
(the "powersafe overwrite" that SQLite assumes as well).
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise, product
from typing import TYPE_CHECKING, Final, TypeAlias

from harness.power.operations import Make, Map, Mark, Move, Remove, Sync, Truncate, Write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from harness.power.operations import Operation

__all__ = ["SECTOR", "Disk", "Remains"]

SECTOR: Final = 512
"""Bytes that a disk writes as one, at best."""

_ROOT: Final = 0

_Key: TypeAlias = tuple[str, int, int]  # "name" | "size" | "sector" | "noise", the inode, which of them
_Pick: TypeAlias = "int | tuple[int, int, bool]"  # a version, or torn after it: at which byte, and the tail first


@dataclass(frozen=True, slots=True)
class Remains:
    """What is found after the power came back.

    Args:
        files: the bytes of each file, by path.
        folders: the folders, without the root.
        lost: in words, what did not make it; for people.
    """

    files: Mapping[str, bytes]
    folders: frozenset[str]
    lost: tuple[str, ...] = field(default=(), compare=False)


@dataclass(slots=True)
class _File:
    """`versions[0]` is durable; each later one is the whole file after another operation, at its time."""

    versions: list[tuple[int, bytes]]
    mapped: bool = False

    def at(self, time: int) -> bytes:
        return next(data for came, data in reversed(self.versions) if came <= time)

    def sector(self, time: int, at: int) -> bytes:
        """Past the end there are zeros, so that a larger size alone never brings back what was cut off."""
        return self.at(time)[at : at + SECTOR].ljust(SECTOR, b"\0")

    def units(self, inode: int) -> Iterator[_Unit]:
        """What is not certain of it."""
        times = [time for time, _ in self.versions]
        if self.mapped:
            yield _Unit(("noise", inode, 0), (0, times[-1]))
        elif len(times) > 1:
            yield from _unless_certain(("size", inode, 0), times, lambda time: len(self.at(time)))
            for at in range(0, max(len(data) for _, data in self.versions), SECTOR):
                yield from _unless_certain(("sector", inode, at), times, partial(self.sector, at=at))


@dataclass(slots=True)
class _Folder:
    """`names` is durable; each of `pending` is one change of names, at its time: a name that goes has no inode."""

    names: dict[str, int] = field(default_factory=dict)
    pending: list[tuple[int, str, dict[str, int | None]]] = field(default_factory=list)

    def now(self) -> dict[str, int]:
        names = dict(self.names)
        for _, _, change in self.pending:
            _rename(names, change)
        return names


@dataclass(frozen=True, slots=True)
class _Unit:
    """One thing that is found in one of several versions, told by the times at which they came."""

    key: _Key
    times: tuple[int, ...]


class Disk:
    """A disk in use.  Apply operations; ask at any time what would be left."""

    def __init__(self) -> None:
        self._files: dict[int, _File] = {}
        self._folders: dict[int, _Folder] = {_ROOT: _Folder()}
        self._time = 0

    def apply(self, operation: Operation) -> None:
        """Do one operation.

        Raises:
            KeyError: It names a path that there is not.
        """
        self._time += 1
        match operation:
            case Mark():
                pass
            case Make(path, is_folder):
                inode = len(self._files) + len(self._folders)
                if is_folder:
                    self._folders[inode] = _Folder()
                else:
                    self._files[inode] = _File([(self._time, b"")])
                self._change_names(f"the new {path!r}", {path: inode})
            case Write(path, offset, data):
                self._change_bytes(
                    path, lambda old: old[:offset].ljust(offset, b"\0") + data + old[offset + len(data) :]
                )
            case Truncate(path, size):
                self._change_bytes(path, lambda old: old[:size].ljust(size, b"\0"))
            case Map(path):
                self._files[self._find(path)].mapped = True
            case Move(source, target):
                self._change_names(f"the move of {source!r} to {target!r}", {source: None, target: self._find(source)})
            case Remove(path):
                self._find(path)
                self._change_names(f"the removal of {path!r}", {path: None})
            case Sync(path):
                self._sync(self._find(path))

    def has(self, path: str) -> bool:
        """Whether there is such a path, for the running program."""
        try:
            self._find(path)
        except KeyError:
            return False
        return True

    def size(self, path: str) -> int:
        """Bytes of a file, for the running program.

        Raises:
            KeyError: There is no such file.
        """
        return len(self._files[self._find(path)].versions[-1][1])

    def mapped(self, path: str) -> bool:
        """Whether a file was ever mapped for writing.

        Raises:
            KeyError: There is no such file.
        """
        return self._files[self._find(path)].mapped

    def now(self) -> Remains:
        """What the running program sees: what is left when nothing is lost."""
        units = self._units()
        return self._found(units, {unit.key: len(unit.times) - 1 for unit in units}, 0)

    def count(self) -> int:
        """In how many ways it may be found, without torn sectors; ways that look alike are counted each."""
        return math.prod(len(unit.times) for unit in self._units())

    def after_power_loss(self, *, bound: int = 64, sample: int = 64, seed: int = 0) -> Iterator[Remains]:
        """What may be left, each state once.

        All of `count()` when that is not above `bound`.  Else: nothing kept, everything kept, everything up to each
        moment since the last sync, each single thing lost or kept alone, and `sample` random ones.  To both come
        `sample` random ones with torn sectors and sizes.
        """
        units = self._units()
        chance = random.Random(seed)  # noqa: S311 (repeatable on purpose)
        seen: set[tuple[frozenset[tuple[str, bytes]], frozenset[str]]] = set()
        ways: Iterable[tuple[_Pick, ...]]
        if math.prod(len(unit.times) for unit in units) <= bound:
            ways = product(*(range(len(unit.times)) for unit in units))
        else:
            ways = [*_corners(units), *(_drawn(units, chance, torn=False) for _ in range(sample))]
        torn = [_drawn(units, chance, torn=True) for _ in range(sample if units else 0)]
        for way in (*ways, *torn):
            found = self._found(units, dict(zip((unit.key for unit in units), way, strict=True)), seed)
            mark = (frozenset(found.files.items()), found.folders)
            if mark not in seen:
                seen.add(mark)
                yield found

    def _find(self, path: str) -> int:
        inode = _ROOT
        for name in path.split("/") if path else ():
            inode = self._folders[inode].now()[name]
        return inode

    def _change_names(self, words: str, change: dict[str, int | None]) -> None:
        parents = {path.rpartition("/")[0] for path in change}
        if len(parents) != 1:
            raise KeyError(f"{words}: from one folder to another")
        folder = self._folders[self._find(parents.pop())]
        folder.pending.append((self._time, words, {path.rpartition("/")[2]: to for path, to in change.items()}))

    def _change_bytes(self, path: str, change: Callable[[bytes], bytes]) -> None:
        versions = self._files[self._find(path)].versions
        versions.append((self._time, change(versions[-1][1])))

    def _sync(self, inode: int) -> None:
        if inode in self._files:
            del self._files[inode].versions[:-1]
        else:
            folder = self._folders[inode]
            folder.names, folder.pending = folder.now(), []

    def _units(self) -> list[_Unit]:
        """Everything that is not certain, whatever the names will lead to."""
        units = []
        for inode, folder in self._folders.items():
            units += [_Unit(("name", inode, n), (0, time)) for n, (time, _, _) in enumerate(folder.pending)]
        for inode in self._within_reach():
            units += self._files[inode].units(inode)
        return units

    def _within_reach(self) -> list[int]:
        """The files that a name may lead to; what is written to the others cannot be found."""
        named: set[int] = set()
        for folder in self._folders.values():
            named.update(folder.names.values())
            named.update(inode for _, _, change in folder.pending for inode in change.values() if inode is not None)
        return sorted(named & self._files.keys())

    def _found(self, units: list[_Unit], picks: dict[_Key, _Pick], seed: int) -> Remains:
        files: dict[str, bytes] = {}
        folders: set[str] = set()
        lost: list[str] = []
        by_inode: dict[int, list[_Unit]] = {}
        for unit in units:
            by_inode.setdefault(unit.key[1], []).append(unit)

        def walk(inode: int, prefix: str) -> None:
            folder = self._folders[inode]
            names = dict(folder.names)
            for number, (_, words, change) in enumerate(folder.pending):
                if picks["name", inode, number]:
                    _rename(names, change)
                else:
                    lost.append(words)
            for name, child in names.items():
                path = f"{prefix}{name}"
                if child in self._folders:
                    folders.add(path)
                    walk(child, f"{path}/")
                else:
                    files[path], missing = self._bytes(child, by_inode.get(child, []), picks, seed)
                    lost.extend(f"of {path!r} {what}" for what in missing)

        walk(_ROOT, "")
        return Remains(files, frozenset(folders), tuple(lost))

    def _bytes(self, inode: int, units: list[_Unit], picks: dict[_Key, _Pick], seed: int) -> tuple[bytes, list[str]]:
        file = self._files[inode]
        last = file.versions[-1][1]
        content = bytearray(last.ljust(max(len(data) for _, data in file.versions), b"\0"))
        size, stale, words = len(last), 0, []
        for unit in units:
            (kind, _, at), pick = unit.key, picks[unit.key]
            if pick == len(unit.times) - 1:
                continue
            if kind == "noise":
                content[:] = random.Random(seed + inode).randbytes(len(content))  # noqa: S311 (repeatable on purpose)
                words.append("everything (it was mapped)")
            elif kind == "size":
                size = _picked_size(file, unit, pick)
                words.append(f"the size {len(last)} (it is {size})")
            else:
                content[at : at + SECTOR] = _picked_sector(file, unit, pick)
                stale += 1
        if stale:
            words.append(f"{stale} of {sum(unit.key[0] == 'sector' for unit in units)} sectors that were not synced")
        return bytes(content[:size]), words


def _rename(names: dict[str, int], change: dict[str, int | None]) -> None:
    for name, inode in change.items():
        if inode is None:
            names.pop(name, None)
        else:
            names[name] = inode


def _unless_certain(key: _Key, times: list[int], value: Callable[[int], object]) -> Iterator[_Unit]:
    """The versions that differ from the one before, when there is more than one."""
    kept = [times[0], *(time for before, time in pairwise(times) if value(time) != value(before))]
    if len(kept) > 1:
        yield _Unit(key, tuple(kept))


def _picked_size(file: _File, unit: _Unit, pick: _Pick) -> int:
    if isinstance(pick, int):
        return len(file.at(unit.times[pick]))
    version, byte, _ = pick
    before, after = (len(file.at(time)) for time in unit.times[version : version + 2])
    return before if after <= before else before + byte % (after - before)


def _picked_sector(file: _File, unit: _Unit, pick: _Pick) -> bytes:
    at = unit.key[2]
    if isinstance(pick, int):
        return file.sector(unit.times[pick], at)
    version, byte, tail_first = pick
    before, after = (file.sector(time, at) for time in unit.times[version : version + 2])
    return before[:byte] + after[byte:] if tail_first else after[:byte] + before[byte:]


def _corners(units: list[_Unit]) -> Iterator[tuple[int, ...]]:
    newest = tuple(len(unit.times) - 1 for unit in units)
    for moment in sorted({time for unit in units for time in unit.times}):
        yield tuple(max((n for n, time in enumerate(unit.times) if time <= moment), default=0) for unit in units)
    for number in range(len(units)):
        yield (*newest[:number], 0, *newest[number + 1 :])
        yield (*(0,) * number, newest[number], *(0,) * (len(units) - number - 1))


def _drawn(units: list[_Unit], chance: random.Random, *, torn: bool) -> tuple[_Pick, ...]:
    """A random way.  Each file and folder draws first how much of it is kept: of many sectors that are drawn evenly,
    the states where one alone is missing would never come.
    """
    share: dict[int, float] = {}
    way: list[_Pick] = []
    for unit in units:
        kept = share.setdefault(unit.key[1], chance.choice((0.0, 0.1, 0.5, 0.9, 1.0)))
        newest = len(unit.times) - 1
        if torn and unit.key[0] in {"size", "sector"} and chance.random() < 0.25:
            size = SECTOR if unit.key[0] == "sector" else 1 << 30
            way.append((chance.randrange(newest), chance.randrange(1, size), chance.random() < 0.5))
        elif chance.random() < kept:
            way.append(newest)
        else:
            way.append(chance.randrange(newest))
    return tuple(way)
