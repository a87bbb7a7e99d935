"""The files that a case puts before its loop: checked when the case is loaded, written into a fresh directory a run."""

from __future__ import annotations

import base64
import binascii
import json
import re
import tempfile
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.case.ids import is_device_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["WorkspaceFault", "checked_files", "fresh_directory", "lasting_workspace", "workspace"]

MAX_COMPONENT = 255
"""Bytes of one component that the usual file systems take."""


class WorkspaceFault(ValueError):  # noqa: N818 - it becomes a Problem of the case, never an error that anyone sees
    """What is wrong with one file of a workspace."""


def checked_files(contents: Mapping[str, Any]) -> tuple[dict[str, bytes], dict[str, str]]:
    """The files of a workspace as bytes, and what is wrong with the others.

    Args:
        contents: path below the workspace to text, `{"base64": text}` or `{"json": value}`.

    Returns:
        Bytes by path, and a message by path for each path or content that is refused.
    """
    files: dict[str, bytes] = {}
    faults: dict[str, str] = {}
    taken: dict[str, str] = {}
    for name, content in contents.items():
        try:
            _check_path(name)
            _check_taken(name, taken)
            files[name] = _bytes(content)
        except WorkspaceFault as fault:
            faults[name] = str(fault)
    return files, faults


@contextmanager
def fresh_directory(purpose: str) -> Iterator[Path]:
    """An empty directory that is removed afterwards, by its real path: macOS reaches its own through a link."""
    with tempfile.TemporaryDirectory(prefix=f"harness-{purpose}-", ignore_cleanup_errors=True) as name:
        yield Path(name).resolve()


@contextmanager
def workspace(files: Mapping[str, bytes]) -> Iterator[Path]:
    """A fresh directory with these files, as the working directory; the former one is restored afterwards.

    Args:
        files: bytes by path, as `checked_files` returned them.
    """
    with fresh_directory("workspace") as directory:
        _fill(directory, files)
        with chdir(directory):
            yield directory


@contextmanager
def lasting_workspace(directory: Path, files: Mapping[str, bytes]) -> Iterator[Path]:
    """An existing directory that outlives the run, with these files, as the working directory."""
    _fill(directory, files)
    with chdir(directory):
        yield directory


def _fill(directory: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:  # x: nothing that is there already, a link least of all, is written through
            file.write(content)


def _check_path(name: str) -> None:
    if not name:
        raise WorkspaceFault("a file needs a name")
    if re.search(r"[\x00-\x1f\x7f]", name):
        raise WorkspaceFault(f"{name!r} holds a control character")
    if "\\" in name:
        raise WorkspaceFault(f"{name!r} holds a backslash; folders are separated by '/'")
    if re.match(r"[A-Za-z]:", name):
        raise WorkspaceFault(f"{name!r} begins with a drive letter; a path is relative to the workspace")
    if name.startswith("/"):
        raise WorkspaceFault(f"{name!r} is absolute; a path is relative to the workspace")
    for part in name.split("/"):
        if part in (".", ".."):
            raise WorkspaceFault(f"{name!r} holds {part!r}; write the path from the workspace down")
        if not part:
            raise WorkspaceFault(f"{name!r} has an empty part; a folder exists by the files in it")
        if is_device_name(part):
            raise WorkspaceFault(f"{part!r} is the name of a device on Windows; choose another")
        if part.endswith((".", " ")) or re.search(r'[<>:"|?*]', part):
            raise WorkspaceFault(f"{part!r} is no file name on Windows; choose another")
        if len(part.encode("utf-8", "surrogatepass")) > MAX_COMPONENT:
            raise WorkspaceFault(f"{part[:20]!r}... is longer than {MAX_COMPONENT} bytes")


def _check_taken(name: str, taken: dict[str, str]) -> None:
    """Refuse two files of one name, and a file that is a folder of another, as file systems that ignore case do."""
    key = name.casefold()
    parts = key.split("/")
    above = ["/".join(parts[:end]) for end in range(1, len(parts))]
    other = taken.get(key) or next((taken[folder] for folder in above if taken.get(folder, "/")[-1] != "/"), None)
    if other is not None:
        raise WorkspaceFault(f"{name!r} cannot exist beside {other!r}")
    taken[key] = name
    for folder in above:
        taken.setdefault(folder, f"{name[: len(folder)]}/")


def _bytes(content: Any) -> bytes:
    try:
        if isinstance(content, str):
            return content.encode()
        if "base64" in content:
            return base64.b64decode("".join(content["base64"].split()), validate=True)
        return json.dumps(content["json"], ensure_ascii=False, indent=2).encode() + b"\n"
    except binascii.Error as error:
        raise WorkspaceFault(f"'base64' does not hold base64: {error}") from None
    except UnicodeEncodeError:
        raise WorkspaceFault("the text holds half a surrogate pair, which no file can hold as UTF-8") from None
    except ValueError as error:  # non-ASCII in base64
        raise WorkspaceFault(f"'base64' does not hold base64: {error}") from None
