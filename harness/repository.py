"""What git knows: the files of a folder at a commit, the commit that a branch began at, how files changed over time."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.errors import HarnessError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["Repository", "Revision", "path_names"]

_LIMIT: Final = 120
"""Seconds for one git command: large histories on cold disks are slow, a hanging credential prompt is for ever."""

_ELSEWHERE: Final = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_IMPLICIT_WORK_TREE"),
    *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_SHALLOW_FILE"),
    *("GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"),
)
"""Variables that name a repository, or say how to read paths.  git sets the first ones for its hooks and drivers, some
relative to a working directory that is not ours; which repository is meant is known by the folder."""

_PLAIN: Final = (
    *("core.quotePath=false", "color.ui=false", "diff.relative=false"),
    *("i18n.logOutputEncoding=UTF-8", "log.follow=false", "log.showRoot=true", "log.showSignature=false"),
)
"""Settings of the user that would change what is read here."""

_REGULAR: Final = ("100644", "100755")
"""Modes of files; what else is in a tree (symbolic links, submodules) holds no content that could be a trace."""

_TARGETS: Final = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
"""What the two large forges call the branch that a pull request goes to."""


_REMOTE: Final = "refs/remotes/origin"
_USUAL: Final = (f"{_REMOTE}/HEAD", f"{_REMOTE}/main", f"{_REMOTE}/master", "refs/heads/main", "refs/heads/master")
"""The branch that others are merged into, where CI does not say so."""


@dataclass(frozen=True, slots=True)
class Revision:
    """One commit that changed a file.

    Args:
        commit: its whole id.
        time: of the commit, in seconds since the epoch.
        author: a name, as the commit has it.
        subject: the first line of its message.
        files: what it changed below the folder that was asked for: path relative to that folder -> ids of the content
            before and after, None where there was no file.  Before a merge means: on its first parent.
    """

    commit: str
    time: int
    author: str
    subject: str
    files: Mapping[str, tuple[str | None, str | None]]


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository, reached through the `git` command.

    Args:
        root: its working tree.
    """

    root: Path

    @classmethod
    def around(cls, folder: Path) -> Repository:
        """The repository that a folder is in.

        Raises:
            HarnessError: there is none, or no git.
        """
        place = next(one for one in (folder, *folder.parents) if one.is_dir())
        try:
            top = _git(place, "rev-parse", "--show-toplevel").decode("utf-8", "surrogateescape").removesuffix("\n")
        except _GitError as error:
            raise HarnessError(f"{folder.name}/ is in no git repository ({error})") from None
        return cls(Path(top))

    @property
    def has_commits(self) -> bool:
        """Whether anything was committed on the branch that is checked out."""
        return self._has("HEAD")

    @property
    def is_shallow(self) -> bool:
        """Whether the history ends early, because the clone was told to."""
        try:
            return _git(self.root, "rev-parse", "--is-shallow-repository").strip() == b"true"
        except _GitError:
            return False

    def commit(self, reference: str) -> str:
        """The id of the commit that a name stands for: a branch, a tag, `HEAD~2`, a shortened id.

        Raises:
            HarnessError: there is no such commit here.
        """
        try:
            # The name is the user's: what begins with a dash is no option.
            found = _git(self.root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{reference}^{{commit}}")
        except _GitError:
            raise HarnessError(
                f"git knows no commit {reference!r} here{self._shallow_hint()}; git branch -a lists the branches"
            ) from None
        return found.decode("ascii").strip()

    def target(self) -> str:
        """The branch that this one will be merged into: what CI says, else the remote's default, else main or master.

        Raises:
            HarnessError: none of these exists.
        """
        wanted = next((value for name in _TARGETS if (value := os.environ.get(name))), None)
        if wanted is not None:
            for name in (f"{_REMOTE}/{wanted}", f"refs/heads/{wanted}"):
                if self._has(name):
                    return self._shortened(name)
            raise HarnessError(
                f"CI names {wanted!r} as the target branch, but it was not fetched{self._shallow_hint()}; "
                f"fetch it with: git fetch origin {wanted}"
            )
        for name in _USUAL:
            if self._has(name):
                return self._shortened(name)
        raise HarnessError("no branch to compare with: neither origin/HEAD, main nor master exists; name one")

    def merge_base(self, reference: str | None = None) -> str:
        """The commit at which the checked-out branch left another one (default: `target()`).

        Raises:
            HarnessError: the branches have no common commit here, as in a shallow clone.
        """
        name = self.target() if reference is None else reference
        other = self.commit(name)
        if not self.has_commits:
            raise HarnessError(f"nothing was committed on this branch yet, so it has no commit in common with {name}")
        try:
            return _git(self.root, "merge-base", "HEAD", other).decode("ascii").split("\n")[0]
        except _GitError:
            raise HarnessError(f"HEAD and {name} have no common commit here{self._shallow_hint()}") from None

    def describe(self) -> str:
        """What is checked out, as short as it is unmistakable, with a `+` where something is not committed."""
        try:
            said = _git(self.root, "describe", "--always", "--exclude=*", "--dirty=+")
        except _GitError:
            return ""  # no commit yet
        return said.decode("utf-8", "replace").strip()

    def ids(self, commit: str, folder: Path) -> dict[str, str]:
        """The files below a folder as they were at a commit: path relative to it -> id of the content.

        Args:
            commit: its id.
            folder: absolute, inside the working tree; of a file, the path relative to it is empty.

        Raises:
            HarnessError: the folder is outside of the repository, or git failed.
        """
        prefix = self.inside(folder)
        listed = self._ask("ls-tree", "-r", "-z", "--full-tree", commit, "--", *([prefix] if prefix else []))
        found: dict[str, str] = {}
        for entry in listed.split(b"\0"):
            facts, _, name = entry.decode("utf-8", "surrogateescape").partition("\t")
            if name and facts.split()[0] in _REGULAR:
                found[_below(name, prefix)] = facts.split()[2]
        return found

    def files(self, commit: str, folder: Path) -> dict[str, bytes]:
        """The files below a folder as they were at a commit, by path relative to it; empty when it was not there.

        Arguments and errors as for `ids`.
        """
        names = self.ids(commit, folder)
        contents = self.contents(list(dict.fromkeys(names.values())))
        return {name: contents[blob] for name, blob in names.items() if blob in contents}

    def contents(self, ids: Sequence[str]) -> dict[str, bytes]:
        """The contents with these ids, in one call of git; one that is not here (a partial clone) is left out."""
        if not ids:
            return {}
        answer = self._ask("cat-file", "--batch", data="".join(f"{one}\n" for one in ids).encode("ascii"))
        found: dict[str, bytes] = {}
        place = 0
        for _ in ids:
            end = answer.index(b"\n", place)
            head = answer[place:end].split()
            place = end + 1
            if len(head) == 3:
                size = int(head[2])
                found[head[0].decode("ascii")] = answer[place : place + size]
                place += size + 1
        return found

    def unmerged(self, folder: Path) -> dict[str, tuple[str | None, str | None]]:
        """The files below a folder that a merge left in conflict: path relative to it -> ids of ours and of theirs.

        None stands for a side that has no such file.
        """
        prefix = self.inside(folder)
        listed = self._ask("ls-files", "--unmerged", "-z", "--", prefix or ".").decode("utf-8", "surrogateescape")
        found: dict[str, tuple[str | None, str | None]] = {}
        for entry in listed.split("\0")[:-1]:
            facts, _, name = entry.partition("\t")
            _, blob, stage = facts.split()
            ours, theirs = found.get(_below(name, prefix), (None, None))
            found[_below(name, prefix)] = (blob if stage == "2" else ours, blob if stage == "3" else theirs)
        return found

    def history(self, folder: Path, limit: int | None = None) -> Iterator[Revision]:
        """The commits that changed something at or below a path, newest first, merges as what they changed themselves.

        A commit comes before its parents, whatever the clocks said.

        Args:
            folder: absolute, inside the working tree; a file is fine, too.
            limit: how many commits at most.
        """
        prefix = self.inside(folder)
        if not self.has_commits:
            return
        # A merge counts by what it has from none of its parents.
        arguments = [
            "log",
            "--topo-order",
            "--raw",
            "--diff-merges=dense-combined",
            "-z",
            "--no-abbrev",
            "--no-renames",
        ]
        arguments += ["--format=%H%x00%ct%x00%an%x00%s"]
        arguments += [f"--max-count={limit}"] if limit is not None else []
        text = self._ask(*arguments, "--", prefix or ".").decode("utf-8", "surrogateescape")
        yield from _revisions(text.split("\0"), prefix)

    def setting(self, name: str) -> str | None:
        """The value of a setting in this repository's own configuration; None where it has none."""
        try:
            found = _git(self.root, "config", "--local", "--null", "--get", name)
        except _GitError:
            return None
        return found.decode("utf-8", "surrogateescape").removesuffix("\0")

    def configure(self, name: str, value: str | None) -> None:
        """Give a setting in this repository's own configuration a value; None removes it.

        Raises:
            HarnessError: the configuration cannot be written.
        """
        if value is not None:
            self._ask("config", "--local", "--replace-all", name, value)
        elif self.setting(name) is not None:
            self._ask("config", "--local", "--unset-all", name)

    def inside(self, folder: Path) -> str:
        """A path as git names it: relative to the root of the working tree, `/` between parts, empty for the root.

        Raises:
            HarnessError: it is outside.
        """
        real = Path(os.path.realpath(folder))
        root = Path(os.path.realpath(self.root))
        if not real.is_relative_to(root):
            raise HarnessError(f"{folder.name}/ lies outside of the git repository {self.root.name}/")
        name = real.relative_to(root).as_posix()
        return "" if name == "." else name

    def _shortened(self, branch: str) -> str:
        """The short name of a branch, unless something else bears it: git takes a tag `origin/main` for that branch."""
        short = branch.removeprefix("refs/remotes/").removeprefix("refs/heads/")
        return short if self._has(short) and self.commit(short) == self.commit(branch) else branch

    def _has(self, reference: str) -> bool:
        try:
            _git(self.root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{reference}^{{commit}}")
        except _GitError:
            return False
        return True

    def _shallow_hint(self) -> str:
        return " (this clone is shallow; in CI, check out with fetch-depth: 0)" if self.is_shallow else ""

    def _ask(self, *arguments: str, data: bytes | None = None) -> bytes:
        try:
            return _git(self.root, *arguments, data=data)
        except _GitError as error:
            raise HarnessError(f"git {arguments[0]} failed: {error}") from None


def path_names(folder: Path, default: Path) -> Callable[[Path], str]:
    """Names paths as git and CI do: relative to the repository around a folder, `/` between parts.

    Args:
        folder: inside the repository, if there is one.
        default: what paths are relative to where there is no repository.
    """
    try:
        root = Repository.around(folder).root
    except HarnessError:
        root = default
    real = os.path.realpath(root)
    return lambda path: Path(os.path.relpath(Path(os.path.realpath(path.parent), path.name), real)).as_posix()


class _GitError(Exception):
    """Git said no; the message is its own first line."""


def _revisions(tokens: list[str], prefix: str) -> Iterator[Revision]:
    """What `git log --raw -z` says; a word is known by its place, so that nobody's subject is taken for structure."""
    place = 0
    while place + 4 <= len(tokens):
        commit, time, author, subject = tokens[place : place + 4]
        place += 4
        files: dict[str, tuple[str | None, str | None]] = {}
        while place < len(tokens) and (not tokens[place].strip() or tokens[place].lstrip().startswith(":")):
            facts = tokens[place].strip()
            place += 1
            if facts:
                files[_below(tokens[place], prefix)] = _contents_changed(facts)
                place += 1
        if files:
            yield Revision(commit.strip(), int(time), author, subject, files)


def _contents_changed(facts: str) -> tuple[str | None, str | None]:
    """Ids before and after, of `:100644 100644 1234… 5678… M`; of a merge each parent has its colon, mode and id."""
    parents = len(facts) - len(facts.lstrip(":"))
    words = facts.lstrip(":").split()
    modes, ids = words[: parents + 1], words[parents + 1 : 2 * parents + 2]
    before, after = (
        one if mode in _REGULAR else None for mode, one in ((modes[0], ids[0]), (modes[parents], ids[parents]))
    )
    return before, after


def _below(name: str, prefix: str) -> str:
    return name.removeprefix(prefix).removeprefix("/") if prefix else name


def _git(folder: Path, *arguments: str, data: bytes | None = None) -> bytes:
    if any("\0" in one for one in arguments):
        raise _GitError("a name holds a NUL")
    settings = [word for setting in _PLAIN for word in ("-c", setting)]
    environment = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    try:
        done = subprocess.run(  # noqa: S603 (no shell; what users name stands behind --end-of-options or --)
            ["git", "--no-optional-locks", *settings, "-C", str(folder), *arguments],  # noqa: S607
            input=data,
            stdin=subprocess.DEVNULL if data is None else None,
            capture_output=True,
            timeout=_LIMIT,
            check=False,
            env=environment | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_LITERAL_PATHSPECS": "1"},
        )
    except FileNotFoundError:
        raise _GitError("there is no git command") from None
    except OSError as error:
        raise _GitError(f"git cannot be started: {error.strerror or error}") from None
    except subprocess.TimeoutExpired:
        raise _GitError(f"no answer in {_LIMIT} s") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise _GitError(said[0] if said else f"exit code {done.returncode}")
    return done.stdout
