"""What git knows, asked of real repositories."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.changes import Side, commit_side
from harness.errors import HarnessError
from harness.repository import Repository, Revision
from tests.changes.repositories import START, GitFolder

STRANGE = ("with space.json", "ünï/código.json", 'a "quote".json', "two\nlines.json", "tab\there.json", "-dash.json",
           ":(glob)*.json", "back\\slash.json")  # fmt: skip


SETTINGS = ("color.ui=always", "log.showSignature=true", "log.showRoot=false", "log.follow=true", "log.decorate=full",
            "log.diffMerges=off", "diff.relative=true", "diff.renames=copies", "diff.external=false",
            "i18n.logOutputEncoding=latin1", "format.pretty=oneline")  # fmt: skip


def traces(shop: GitFolder) -> Path:
    return shop.root / "golden_traces"


def files(shop: GitFolder, commit: str, folder: str = "golden_traces") -> dict[str, bytes]:
    return Repository.around(shop.root).files(commit, shop.root / folder)


def history(shop: GitFolder, folder: str = "golden_traces", limit: int | None = None) -> list[Revision]:
    return list(Repository.around(shop.root).history(shop.root / folder, limit))


# --- where the repository is


def test_the_repository_of_a_folder_is_the_one_around_it(shop: GitFolder) -> None:
    """From the root, from below, and from a folder that is still to be made."""
    (shop.root / "a/b").mkdir(parents=True)
    for folder in (shop.root, shop.root / "a/b", shop.root / "a/b/golden_traces/deep"):
        assert Repository.around(folder) == Repository(shop.root)


def test_a_folder_outside_of_git_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With git's own reason."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(HarnessError, match=r"^plain/ is in no git repository \(fatal: not a git repository"):
        Repository.around(tmp_path / "plain")


def test_without_a_git_command_the_message_says_so(shop: GitFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container without git is no traceback."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(HarnessError, match="there is no git command"):
        Repository.around(shop.root)


def test_a_hook_s_variables_do_not_choose_the_repository(
    shop: GitFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder says which repository is meant, not what git told the hook that we were called from."""
    commit = shop.commit("one", {"golden_traces/a.json": "1"})
    other = GitFolder.new(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.root))
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index")
    monkeypatch.setenv("GIT_PREFIX", "golden_traces/")
    monkeypatch.setenv("GIT_ICASE_PATHSPECS", "1")
    repository = Repository.around(traces(shop))
    assert repository == Repository(shop.root)
    assert repository.files(commit, traces(shop)) == {"a.json": b"1"}
    assert repository.describe() == commit[:7]
    assert [one.commit for one in repository.history(traces(shop))] == [commit]


def test_it_works_from_a_real_hook(shop: GitFolder) -> None:
    """A pre-commit hook in a folder below the root, where git sets its variables relative to another folder."""
    shop.commit("one", {"agents/golden_traces/a.json": "1"})
    hook = shop.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        "#!/bin/sh\ncd agents && exec python -c 'from pathlib import Path\n"
        "from harness.repository import Repository\n"
        'found = Repository.around(Path("golden_traces").absolute())\n'
        'print("hook", found.files(found.commit("HEAD"), Path("golden_traces").absolute()))\'\n'
    )
    hook.chmod(0o755)
    shop.write({"agents/golden_traces/a.json": "2"})
    said = shop.git("commit", "-a", "-m", "two", env={"PYTHONPATH": str(Path(__file__).parents[2])})
    assert "hook {'a.json': b'1'}" in said


def test_a_linked_working_tree_and_a_submodule_are_repositories_of_their_own(shop: GitFolder, tmp_path: Path) -> None:
    """Each with the commit that it has checked out."""
    first = shop.commit("one", {"golden_traces/a.json": "1"})
    shop.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    linked = Repository.around(tmp_path / "linked/golden_traces")
    assert linked.root == tmp_path / "linked"
    assert linked.files(linked.commit("side"), tmp_path / "linked/golden_traces") == {"a.json": b"1"}

    around = GitFolder.new(tmp_path / "around")
    around.git("submodule", "add", "-q", shop.root.as_uri(), "vendored shop")
    around.commit("pin")
    inner = Repository.around(around.root / "vendored shop/golden_traces")
    assert inner.root == around.root / "vendored shop"
    assert inner.commit("HEAD") == first
    outer = Repository.around(around.root)
    assert set(outer.files(outer.commit("HEAD"), around.root)) == {".gitmodules"}


# --- commits by name


def test_commits_go_by_branch_tag_ancestor_and_short_id(shop: GitFolder) -> None:
    """Whatever git takes for a commit."""
    first = shop.commit("one")
    shop.git("tag", "-a", "-m", "a tag", "v1")
    second = shop.commit("two")
    repository = Repository(shop.root)
    assert [repository.commit(name) for name in ("main", "HEAD", "v1", "HEAD~1", first[:8], "@")] == [
        *(second, second),
        *(first,) * 3,
        second,
    ]


@pytest.mark.parametrize(
    "name", ["nowhere", "--output=x", "-x", "--all", "", "HEAD:golden_traces", "a..b", "nul\0", "new\nline", "\udcff"]
)
def test_what_is_no_commit_is_an_error_and_never_an_option(shop: GitFolder, name: str) -> None:
    """Hostile names reach git as names."""
    shop.commit("one", {"golden_traces/a.json": "1"})
    with pytest.raises(HarnessError) as error:
        Repository(shop.root).commit(name)
    assert str(error.value) == f"git knows no commit {name!r} here; git branch -a lists the branches"
    assert not (shop.root / "x").exists()


def test_a_shallow_clone_says_what_to_do(shop: GitFolder, tmp_path: Path) -> None:
    """CI checks out one commit unless it is told otherwise."""
    shop.commit("one")
    shop.git("branch", "base")
    shop.commit("two")
    shallow = GitFolder.clone(shop, tmp_path / "shallow", "--depth=1", "--no-single-branch")
    repository = Repository(shallow.root)
    hint = r" \(this clone is shallow; in CI, check out with fetch-depth: 0\)"
    assert repository.is_shallow
    assert not Repository(shop.root).is_shallow
    with pytest.raises(HarnessError, match=f"^git knows no commit 'HEAD~1' here{hint}"):
        repository.commit("HEAD~1")
    with pytest.raises(HarnessError, match=f"^HEAD and origin/base have no common commit here{hint}$"):
        repository.merge_base("origin/base")


# --- the other branch


def test_the_target_is_what_the_remote_calls_its_default(shop: GitFolder, tmp_path: Path) -> None:
    """Also where main exists as well."""
    shop.commit("one")
    shop.git("checkout", "-q", "-b", "trunk")
    clone = GitFolder.clone(shop, tmp_path / "clone")
    clone.git("branch", "main")
    assert Repository(clone.root).target() == "origin/HEAD"


@pytest.mark.parametrize(
    ("branches", "target"),
    [(("main", "master"), "main"), (("master", "topic"), "master"), (("main", "origin/main"), "main")],
)
def test_without_a_remote_the_target_is_main_or_master(shop: GitFolder, branches: tuple[str, ...], target: str) -> None:
    """In this order."""
    shop.commit("one")
    shop.git("checkout", "-q", "--detach")
    shop.git("branch", "-D", "main")
    for branch in branches:
        shop.git("branch", branch)
    assert Repository(shop.root).target() in (target, f"origin/{target}")


def test_without_any_the_user_is_asked_for_one(shop: GitFolder) -> None:
    """And told what was looked for."""
    shop.commit("one")
    shop.git("branch", "-m", "work")
    with pytest.raises(HarnessError) as error:
        Repository(shop.root).target()
    assert str(error.value) == "no branch to compare with: neither origin/HEAD, main nor master exists; name one"


@pytest.mark.parametrize("variable", ["GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME"])
def test_in_ci_the_target_is_the_one_of_the_pull_request(
    shop: GitFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """As the remote has it; one that was not fetched is an error, since any other would compare with the wrong side."""
    shop.commit("one")
    shop.git("branch", "release/2")
    clone = GitFolder.clone(shop, tmp_path / "clone")
    monkeypatch.setenv(variable, "release/2")
    assert Repository(clone.root).target() == "origin/release/2"
    assert Repository(shop.root).target() == "release/2"
    monkeypatch.setenv(variable, "gone")
    with pytest.raises(HarnessError) as error:
        Repository(clone.root).target()
    assert str(error.value) == (
        "CI names 'gone' as the target branch, but it was not fetched; fetch it with: git fetch origin gone"
    )
    monkeypatch.setenv(variable, "")
    assert Repository(clone.root).target() == "origin/HEAD"


@pytest.mark.parametrize("tag", ["main", "origin/main"])
def test_a_tag_is_never_taken_for_the_target(shop: GitFolder, tmp_path: Path, tag: str) -> None:
    """git prefers a tag to a branch: one that is called as the target would hide all that a branch did."""
    begin = shop.commit("begin", {"one": "1"})
    clone = GitFolder.clone(shop, tmp_path / "clone")
    clone.git("checkout", "-q", "-b", "careful")
    clone.commit("careful", {"more": "1"})
    clone.git("tag", tag)
    for repository in (Repository(clone.root), Repository(shop.root)):
        assert repository.commit(repository.target()) == begin
    assert Repository(clone.root).merge_base() == begin
    clone.git("remote", "remove", "origin")
    assert Repository(clone.root).merge_base() == begin


def test_the_merge_base_is_where_the_branch_began(shop: GitFolder) -> None:
    """Not what the other branch became since."""
    began = shop.commit("one")
    shop.git("checkout", "-q", "-b", "topic")
    shop.commit("mine")
    shop.git("checkout", "-q", "main")
    ahead = shop.commit("theirs")
    repository = Repository(shop.root)
    assert repository.merge_base() == ahead
    shop.git("checkout", "-q", "topic")
    assert repository.merge_base() == began
    assert repository.merge_base("main") == began
    assert repository.merge_base(ahead) == began


def test_unrelated_branches_have_no_merge_base(shop: GitFolder) -> None:
    """Said as such, without a word of shallow clones."""
    shop.commit("one")
    shop.git("checkout", "-q", "--orphan", "island")
    shop.commit("two")
    with pytest.raises(HarnessError, match=r"^HEAD and main have no common commit here$"):
        Repository(shop.root).merge_base("main")


def test_before_the_first_commit_there_is_nothing_to_ask(shop: GitFolder) -> None:
    """An unborn branch has no history, no description, no base, and no crash."""
    repository = Repository(shop.root)
    assert not repository.has_commits
    assert history(shop) == []
    assert repository.describe() == ""
    with pytest.raises(HarnessError, match=r"^no branch to compare with"):
        repository.merge_base()
    shop.commit("one")
    assert repository.has_commits
    shop.git("checkout", "-q", "--orphan", "unborn")
    with pytest.raises(HarnessError) as error:
        repository.merge_base("main")
    assert str(error.value) == "nothing was committed on this branch yet, so it has no commit in common with main"


def test_what_is_checked_out_is_described_with_its_state(shop: GitFolder) -> None:
    """A plus where something is not committed; a tag does not replace the id."""
    commit = shop.commit("one", {"a": "1"})
    shop.git("tag", "v1")
    repository = Repository(shop.root)
    assert repository.describe() == commit[:7]
    shop.write({"a": "2"})
    assert repository.describe() == f"{commit[:7]}+"


# --- files


def test_files_are_those_of_the_commit_with_their_bytes(shop: GitFolder) -> None:
    """Whatever the working tree holds, and only below the folder."""
    first = shop.commit("one", {"golden_traces/a/b.json": "1\r\n", "golden_traces_old/c.json": "2", "top.json": "3"})
    shop.commit("two", {"golden_traces/a/b.json": None, "golden_traces/d.json": ""})
    shop.write({"golden_traces/d.json": "changed"})
    assert files(shop, first) == {"a/b.json": b"1\r\n"}
    assert files(shop, shop.head()) == {"d.json": b""}
    assert files(shop, first, "nowhere") == {}
    assert set(files(shop, first, ".")) == {"golden_traces/a/b.json", "golden_traces_old/c.json", "top.json"}


def test_a_file_can_be_asked_for_like_a_folder(shop: GitFolder) -> None:
    """Its path relative to itself is empty; a folder that was a file once is no golden without a name."""
    first = shop.commit("one", {"golden_traces": "a file\n"})
    shop.commit("two", {"golden_traces": None})
    shop.commit("three", {"golden_traces/a.json": "1"})
    assert files(shop, first) == {"": b"a file\n"}
    assert commit_side(Repository(shop.root), first, traces(shop), "main") == Side("main")
    assert files(shop, shop.head(), "golden_traces/a.json") == {"": b"1"}


def test_names_come_out_as_they_are(shop: GitFolder) -> None:
    """Spaces, quotes, newlines, other scripts, and what git would take for a pattern."""
    wanted = {f"golden_traces/{name}": name for name in STRANGE}
    commit = shop.commit("strange", wanted)
    assert files(shop, commit) == {name: name.encode() for name in STRANGE}
    assert [set(one.files) for one in history(shop)] == [set(STRANGE)]
    odd = "golden_traces/:(glob)*.json"
    assert [set(one.files) for one in history(shop, odd)] == [{""}]


def test_a_folder_whose_name_is_a_pattern_is_only_itself(tmp_path: Path) -> None:
    """A star in a folder's name finds no other folder."""
    shop = GitFolder.new(tmp_path / "the 'shop' *")
    commit = shop.commit("one", {"g*/a.json": "1", "golden/b.json": "2"})
    assert files(shop, commit, "g*") == {"a.json": b"1"}
    assert [set(one.files) for one in history(shop, "g*")] == [{"a.json"}]


def test_links_and_submodules_are_no_files(shop: GitFolder) -> None:
    """Their content is a path or a commit; it must not be read as a trace."""
    shop.write({"golden_traces/a.json": "1"})
    (traces(shop) / "link.json").symlink_to("a.json")
    commit = shop.commit("one")
    assert files(shop, commit) == {"a.json": b"1"}
    (traces(shop) / "link.json").unlink()
    shop.commit("two", {"golden_traces/link.json": "real"})
    assert history(shop)[0].files == {"link.json": (None, shop.blob("real"))}


def test_a_folder_that_is_a_link_is_where_it_leads(shop: GitFolder, tmp_path: Path) -> None:
    """Inside the repository it is known by its real place; outside of it, by the error."""
    commit = shop.commit("one", {"store/a.json": "1"})
    traces(shop).symlink_to("store")
    assert Repository.around(traces(shop)).files(commit, traces(shop)) == {"a.json": b"1"}
    assert [set(one.files) for one in history(shop)] == [{"a.json"}]
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    with pytest.raises(HarnessError, match=r"^elsewhere/ lies outside of the git repository shop/$"):
        Repository(shop.root).files(commit, outside)


def test_a_repository_reached_through_a_link_is_the_same(shop: GitFolder, tmp_path: Path) -> None:
    """As with /tmp on a Mac."""
    commit = shop.commit("one", {"golden_traces/a.json": "1"})
    (tmp_path / "alias").symlink_to(shop.root)
    folder = tmp_path / "alias/golden_traces"
    assert Repository.around(folder).files(commit, folder) == {"a.json": b"1"}


def test_repositories_with_longer_ids_work_as_well(tmp_path: Path) -> None:
    """SHA-256 ids go in and out whole."""
    shop = GitFolder.new(tmp_path / "long", "--object-format=sha256")
    commit = shop.commit("one", {"golden_traces/a.json": "1"})
    assert len(commit) == 64
    assert files(shop, commit) == {"a.json": b"1"}
    assert history(shop) == [Revision(commit, START, "Ada", "one", {"a.json": (None, shop.blob("1"))})]


def test_contents_come_by_id_and_what_is_missing_is_left_out(shop: GitFolder) -> None:
    """Also where one content ends like another begins."""
    shop.commit("one", {"a": "1 blob 3\n", "b": "\0binary\n\n", "c": ""})
    ids = [shop.blob(text) for text in ("1 blob 3\n", "\0binary\n\n", "")]
    absent = "0" * 39 + "1"
    found = Repository(shop.root).contents([ids[0], absent, *ids[1:], ids[0]])
    assert found == dict(zip(ids, (b"1 blob 3\n", b"\0binary\n\n", b""), strict=True))
    assert Repository(shop.root).contents([]) == {}


def test_a_partial_clone_fetches_what_it_needs_and_says_when_it_cannot(shop: GitFolder, tmp_path: Path) -> None:
    """Contents that were left at the remote are no empty files."""
    shop.git("config", "uploadpack.allowFilter", "true")
    first = shop.commit("one", {"golden_traces/a.json": "1"})
    shop.commit("two", {"golden_traces/a.json": "2"})
    partial = GitFolder.clone(shop, tmp_path / "partial", "--filter=blob:none")
    offline = GitFolder.clone(shop, tmp_path / "offline", "--filter=blob:none")
    offline.git("remote", "set-url", "origin", (tmp_path / "gone").as_uri())
    assert files(partial, first) == {"a.json": b"1"}
    try:
        assert files(offline, first) == {}
    except HarnessError as error:
        assert str(error).startswith("git cat-file failed: ")  # noqa: PT017 (which of the two depends on git's version)


# --- history


def test_history_tells_each_commit_s_contents_before_and_after(shop: GitFolder) -> None:
    """Newest first: a change, a deletion, a file that came, and nothing of what happened elsewhere."""
    one = shop.commit("one", {"golden_traces/a.json": "1", "golden_traces/b.json": "b"})
    two = shop.commit("two: änder – it", {"golden_traces/a.json": "2", "README": "x"})
    shop.commit("elsewhere", {"README": "y"})
    three = shop.commit("three", {"golden_traces/a.json": None})
    a1, a2, b = (shop.blob(text) for text in ("1", "2", "b"))
    assert history(shop) == [
        Revision(three, START + 3 * 3600, "Ada", "three", {"a.json": (a2, None)}),
        Revision(two, START + 3600, "Ada", "two: änder – it", {"a.json": (a1, a2)}),
        Revision(one, START, "Ada", "one", {"a.json": (None, a1), "b.json": (None, b)}),
    ]
    assert [one.subject for one in history(shop, limit=2)] == ["three", "two: änder – it"]
    assert [one.files for one in history(shop, "golden_traces/b.json")] == [{"": (None, b)}]


def test_a_merge_counts_by_what_it_has_from_no_parent(shop: GitFolder) -> None:
    """A resolved conflict is the merge's own change; what came whole from a branch is that branch's."""
    shop.commit("base", {"golden_traces/a.json": "0", "golden_traces/b.json": "0"})
    shop.git("checkout", "-q", "-b", "topic")
    shop.commit("topic", {"golden_traces/a.json": "1", "golden_traces/b.json": "1"})
    shop.git("checkout", "-q", "main")
    shop.commit("main", {"golden_traces/a.json": "2"})
    shop.merge("topic")
    shop.commit("merged", {"golden_traces/a.json": "3"})
    ids = [shop.blob(text) for text in "0123"]
    assert [(one.subject, one.files) for one in history(shop)] == [
        ("merged", {"a.json": (ids[2], ids[3])}),
        ("topic", {"a.json": (ids[0], ids[1]), "b.json": (ids[0], ids[1])}),
        ("main", {"a.json": (ids[0], ids[2])}),
        ("base", {"a.json": (None, ids[0]), "b.json": (None, ids[0])}),
    ]


def test_a_commit_comes_before_its_parents_whatever_the_clock_said(shop: GitFolder) -> None:
    """A machine whose clock ran backwards does not turn history round."""
    shop.commit("one", {"golden_traces/a.json": "1"})
    shop._time = START - 86400
    shop.commit("two", {"golden_traces/a.json": "2"})
    assert [one.subject for one in history(shop)] == ["two", "one"]


@pytest.mark.parametrize(
    "subject", ["\x01harness revision\x01a", ":100644 100644 1 2 M", "\x1b[31mred", "--output=x", "trailing :"]
)
def test_no_subject_is_taken_for_structure(shop: GitFolder, subject: str) -> None:
    """Nor an author's name."""
    shop.git("config", "user.name", "A :000000 M")
    shop.commit(subject, {"golden_traces/a.json": "1"})
    assert [(one.author, one.subject, set(one.files)) for one in history(shop)] == [
        ("A :000000 M", subject, {"a.json"})
    ]


def test_no_setting_of_the_user_changes_what_is_read(shop: GitFolder) -> None:
    """Colours, signatures, relative paths, encodings, following and renaming are for people."""
    one = shop.commit("größer", {"golden_traces/a.json": "1" * 200})
    two = shop.commit("moved", {"golden_traces/a.json": None, "golden_traces/b.json": "1" * 200})
    blob = shop.blob("1" * 200)
    plain = [
        Revision(two, START + 3600, "Ada", "moved", {"a.json": (blob, None), "b.json": (None, blob)}),
        Revision(one, START, "Ada", "größer", {"a.json": (None, blob)}),
    ]
    assert history(shop) == plain
    for setting in SETTINGS:
        shop.git("config", *setting.split("="))
    assert history(shop) == plain
    assert [set(one.files) for one in history(shop, "golden_traces/b.json")] == [{""}]


def test_what_a_merge_left_in_conflict_is_known_with_both_contents(shop: GitFolder) -> None:
    """Changed on both sides, added on both, and deleted on one."""
    repository = Repository(shop.root)
    shop.commit("base", {"golden_traces/a.json": "0", "golden_traces/b.json": "0", "c": "0"})
    assert repository.unmerged(traces(shop)) == {}
    shop.git("checkout", "-q", "-b", "topic")
    shop.commit(
        "topic", {"golden_traces/a.json": "1", "golden_traces/b.json": "1", "golden_traces/ä x.json": "1", "c": "1"}
    )
    shop.git("checkout", "-q", "main")
    shop.commit(
        "main", {"golden_traces/a.json": "2", "golden_traces/b.json": None, "golden_traces/ä x.json": "2", "c": "2"}
    )
    shop.merge("topic")
    one, two = shop.blob("1"), shop.blob("2")
    assert repository.unmerged(traces(shop)) == {"a.json": (two, one), "b.json": (None, one), "ä x.json": (two, one)}


def test_settings_are_the_repository_s_own(shop: GitFolder) -> None:
    """Read, written, replaced and removed, whatever the value holds."""
    repository = Repository(shop.root)
    assert repository.setting("merge.harness.driver") is None
    repository.configure("merge.harness.driver", None)
    for value in ("f() { \"a\" 'b' $1; }; f %O\n\n", "ä # ; x"):
        repository.configure("merge.harness.driver", value)
        assert repository.setting("merge.harness.driver") == value
    repository.configure("merge.harness.driver", None)
    assert repository.setting("merge.harness.driver") is None
    with pytest.raises(HarnessError, match=r"^git config failed: "):
        repository.configure("no-section", "x")


def test_a_project_below_the_root_has_its_own_paths(shop: GitFolder) -> None:
    """A monorepo with an agent in a folder, asked from there."""
    commit = shop.commit("one", {"agents/shop/golden_traces/a.json": "1", "golden_traces/b.json": "2"})
    folder = shop.root / "agents/shop/golden_traces"
    repository = Repository.around(folder)
    assert repository.inside(folder) == "agents/shop/golden_traces"
    assert repository.inside(shop.root) == ""
    assert repository.files(commit, folder) == {"a.json": b"1"}
    assert [set(one.files) for one in repository.history(folder)] == [{"a.json"}]


def test_git_is_never_given_a_terminal_or_the_caller_s_input(shop: GitFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver or a hook is called with an input that is git's business."""
    commit = shop.commit("one", {"golden_traces/a.json": "1"})
    reading, writing = os.pipe()
    os.write(writing, b"kept\n")
    os.close(writing)
    saved = os.dup(0)
    try:
        os.dup2(reading, 0)
        assert files(shop, commit) == {"a.json": b"1"}
        assert os.read(0, 10) == b"kept\n"
    finally:
        os.dup2(saved, 0)
        os.close(saved)
        os.close(reading)
