"""`python -m harness.drivers textconv|diff|merge`: what `harness init --git` has git call.

git stops a whole `git diff` or `git log` when one of these fails, so none does: what cannot be read is shown as it is.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harness.report.line import Line

__all__ = ["CONFLICT", "main"]

CONFLICT: Final = 3
"""Exit code of a merge that was left to the user: not 1, which is how Python says that it could not start."""

_COLOURS: Final = {"added": "32", "changed": "33", "faint": "2", "moved": "36", "removed": "31", "title": "1"}
_UNNAMED: Final = ("HEAD", "theirs")
_PLAIN_DIFF: Final = ("git", "diff", "--no-index", "--no-ext-diff", "--no-textconv")


def main(arguments: Sequence[str]) -> int:
    """Run one driver; returns the exit code.

    Args:
        arguments: the driver's name, then what git hands over.
    """
    tasks: dict[str, tuple[Callable[..., int], int]] = {
        "textconv": (_textconv, 1),
        "diff": (_diff, 1),
        "merge": (_merge, 5),
    }
    task, least = tasks.get(arguments[0], (None, 0)) if arguments else (None, 0)
    if task is None or len(arguments) <= least:
        sys.stderr.write("usage: python -m harness.drivers textconv|diff|merge ARGUMENT…   (git calls this)\n")
        return 2
    return task(*arguments[1:])


def _textconv(file: str) -> int:
    from harness.drivers.readable import readable

    _write(readable(Path(file).read_bytes()))
    return 0


def _diff(path: str, *versions: str) -> int:
    """git's protocol: path, then file, id and mode of both versions; of a rename the new path and a note as well."""
    from harness.drivers.semantic import conflict_lines, golden_diff
    from harness.report.line import Line

    if len(versions) < 6:
        lines = conflict_lines(path, _content(path) or b"")
        _show(lines or [Line(f"* Unmerged path {path}")])
        return 0
    old_file, _, old_mode, new_file, _, new_mode, *renamed = versions
    now = renamed[0] if renamed else path
    lines = golden_diff(now, _content(old_file), _content(new_file), was=path if renamed else "")
    if lines is None:
        _write(_text_diff(path, now, old_file, new_file))
        return 0
    if "." not in (old_mode, new_mode) and old_mode != new_mode:
        lines.append(Line(f"mode {old_mode} → {new_mode}", "faint"))
    _show(lines)
    return 0


def _merge(base: str, ours: str, theirs: str, size: str, path: str, *names: str) -> int:
    """git's protocol: three files, the middle one for the result; the size of markers; the path; the sides' names."""
    from harness.drivers.merging import merge_goldens
    from harness.report.line import printable

    before, ours_now, theirs_now = (Path(one).read_bytes() for one in (base, ours, theirs))
    labels = _labels(names)
    merged = merge_goldens(path, before, ours_now, theirs_now, labels, int(size))
    if merged is None:
        markers = (f"--marker-size={size}", "-L", labels[0], "-L", "base", "-L", labels[1])
        done = subprocess.run(["git", "merge-file", *markers, "--", ours, base, theirs], check=False)  # noqa: S603, S607
        return CONFLICT if done.returncode else 0
    Path(ours).write_bytes(merged.data)
    sys.stderr.write("".join(f"{printable(line)}\n" for line in merged.lines))
    return 0 if merged.clean else CONFLICT


def _labels(names: Sequence[str]) -> tuple[str, str]:
    """What to call the two sides.  git hands the names over since 2.44; before, `git merge` told them its children."""
    if len(names) == 2 and not any(name.startswith("%") or not name for name in names):
        return names[0], names[1]
    heads = [value for name, value in os.environ.items() if name.startswith("GITHEAD_")]
    return _UNNAMED[0], heads[0] if len(heads) == 1 else _UNNAMED[1]


def _content(file: str) -> bytes | None:
    return None if file == os.devnull else Path(file).read_bytes()


def _text_diff(path: str, now: str, old_file: str, new_file: str) -> bytes:
    """What git shows without us, under the names that the files have and not those of temporary copies."""
    from harness.report.line import printable

    command = [*_PLAIN_DIFF, "--color=always" if _in_colour() else "--no-color", "--", old_file, new_file]
    text = subprocess.run(command, capture_output=True, check=False).stdout  # noqa: S603
    place = text.find(b"@@")
    body = text[text.rfind(b"\n", 0, place) + 1 :] if place >= 0 else b"the files differ\n"
    names = [printable(f"a/{path}"), printable(f"b/{now}")]
    old, new = (
        os.devnull if file == os.devnull else name for file, name in zip((old_file, new_file), names, strict=True)
    )
    return f"diff --git {names[0]} {names[1]}\n--- {old}\n+++ {new}\n".encode() + body


def _show(lines: Iterable[Line]) -> None:
    from harness.report.line import fitted

    colour, width = _in_colour(), _width()
    text = ""
    for line in lines:
        code = _COLOURS.get(line.style) if colour else None
        text += "".join(f"\033[{code}m{part}\033[m\n" if code else f"{part}\n" for part in fitted(line, width))
    # At once: had a part of it gone out before a failure, the shell around this would show the files below it.
    _write(f"{text}\n".encode("utf-8", "replace"))


def _width() -> int:
    """How many cells a line has: git tells those that write to its pager; 0 for a file or a pipe."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit():
        return int(columns)
    return os.get_terminal_size(1).columns if sys.stdout.isatty() else 0


def _in_colour() -> bool:
    """Whether git would use colours here; a pager counts as a terminal, since git started it for one."""
    terminal = sys.stdout.isatty() or os.environ.get("GIT_PAGER_IN_USE") == "true"
    if os.environ.get("NO_COLOR"):
        return False
    command = ["git", "config", "--get-colorbool", "color.diff", "true" if terminal else "false"]
    return subprocess.run(command, capture_output=True, check=False).stdout.strip() == b"true"  # noqa: S603


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    # A reader that closed the pager is no failure, and whatever else goes wrong, the shell around this shows the files.
    try:
        code = main(sys.argv[1:])
    except BrokenPipeError:
        code = 0
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)
