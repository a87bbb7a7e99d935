"""What people see of goldens in `git diff`, `git log` and `git show`, with the real command behind it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from harness.changes.conflict import whole_sides
from harness.crash_golden import dump_rows
from harness.drift import compare
from harness.drivers.semantic import golden_diff
from harness.golden import dump_trace
from harness.report.lines import drift_lines, plain_text
from tests.report.drifts import BROKEN_ROWS, GOLDEN, GROWN, HOSTILE, ROWS, SEVEN

if TYPE_CHECKING:
    from harness.trace import Trace
    from tests.changes.repositories import GitFolder

FILE = "golden_traces/notes/ä refund.json"


def text(trace: Trace, case: str = "notes/ä refund") -> str:
    return dump_trace(dataclasses.replace(trace, case=case))


@pytest.fixture
def changed(shop: GitFolder) -> GitFolder:
    """A golden was accepted; now its mail goes to another address, and nobody committed that yet."""
    shop.commit("Accept", {FILE: text(GOLDEN)})
    shop.write({FILE: text(SEVEN["argument"])})
    return shop


def test_git_diff_tells_what_changed_on_the_path(changed: GitFolder) -> None:
    """Not which characters of the JSON."""
    drift = compare(GOLDEN, SEVEN["argument"])
    assert drift.headline == "`refund` (call 5): `cents` changed"
    assert changed.git("diff") == f"golden {FILE}\n{plain_text(drift_lines(drift))}\n"


def test_log_and_show_compare_the_readable_text(changed: GitFolder) -> None:
    """They call no external diff unless asked; a line is a call there, and the hunk is the change."""
    changed.commit("Send more")
    for command in (("show", "--format="), ("log", "-p", "-1", "--format="), ("diff", "--no-ext-diff", "HEAD~1")):
        lines = changed.git(*command).splitlines()
        assert [line[:40] for line in lines if line.startswith(("+ ", "- "))] == [
            "-    refund(cents=15197cf7, id=266aa588)",
            "+    refund(cents=c5d1866a, id=266aa588)",
        ]
        assert '"digest"' not in "".join(lines)
    assert "`refund` (call 5): `cents` changed" in changed.git("log", "-p", "-1", "--ext-diff")


def test_a_patch_is_still_a_patch(changed: GitFolder) -> None:
    """What machines read is the file itself: it can be applied."""
    before = changed.root.joinpath(FILE).read_text(encoding="utf-8")
    patch = changed.git("diff", "--no-ext-diff", "--no-textconv", "--binary")
    changed.git("checkout", "-q", "--", FILE)
    assert changed.run("apply", "-", data=patch).returncode == 0
    assert changed.root.joinpath(FILE).read_text(encoding="utf-8") == before
    changed.commit("Send more")
    assert '"digest"' in changed.git("format-patch", "--stdout", "-1")


def test_staging_by_hunks_works_on_the_file(changed: GitFolder) -> None:
    """`git add -p` offers lines of JSON and stages them; a diff for people cannot be staged."""
    done = changed.run("add", "-p", data="y\n")
    assert done.returncode == 0, done.stderr
    assert '"digest"' in done.stdout
    assert changed.git("status", "--porcelain", "-z").startswith("M  ")
    assert changed.run("stash", "-q").returncode == 0
    assert changed.run("stash", "pop", "-q").returncode == 0


def test_statistics_and_status_do_not_ask_the_drivers(changed: GitFolder) -> None:
    """They stay as quick as they were."""
    changed.git("config", "diff.harness.textconv", "false")
    changed.git("config", "diff.harness.command", "false")
    assert "1 file changed, 2 insertions(+), 2 deletions(-)" not in changed.git("status")
    assert "1 file changed, 1 insertion(+), 1 deletion(-)" in changed.git("diff", "--stat")


def test_goldens_that_come_go_and_move_are_said_to(shop: GitFolder) -> None:
    """In one line and what one needs to see of it."""
    shop.commit("Accept", {FILE: text(GOLDEN), "golden_traces/gone.json": text(SEVEN["dropped"], "gone")})
    shop.git("mv", FILE, "golden_traces/moved.json")
    shop.write(
        {
            "golden_traces/moved.json": text(SEVEN["argument"], "moved"),
            "golden_traces/gone.json": None,
            "golden_traces/new.json": text(HOSTILE, "new"),
        }
    )
    shop.git("add", "-A")
    lines = shop.git("diff", "--cached", "-M").splitlines()
    titles = [line for line in lines if "golden_traces/" in line]
    assert titles == [
        "deleted golden golden_traces/gone.json",
        f"golden golden_traces/moved.json, was {FILE}",
        "new golden golden_traces/new.json",
    ]
    assert lines[1] == "5 calls, 5 turns, writes: `refund` 1, `send_email` 1"
    assert "`refund` (call 5): `cents` changed" in "\n".join(lines)
    assert r"  1  find_order(id=266aa588)" in "\n".join(lines)
    assert "2 calls, 3 turns" in lines


def test_a_change_that_is_no_drift_is_shown_as_lines(shop: GitFolder) -> None:
    """The path is the same; what else differs is not hidden."""
    sent = dataclasses.replace(GOLDEN, model="claude-opus-5")
    shop.commit("Accept", {FILE: text(GOLDEN)})
    shop.write({FILE: text(sent)})
    shop.root.joinpath(FILE).chmod(0o755)
    assert shop.git("diff").splitlines() == [
        f"golden {FILE}: the path is the same",
        ' case       "notes/ä refund"',
        "-model      claude-sonnet-5",
        "+model      claude-opus-5",
        " prompt     6b7d21fa",
        "mode 100644 → 100755",
        "",
    ]


def test_crash_goldens_are_compared_point_by_point(shop: GitFolder) -> None:
    """The outcomes that changed are counted, their lines shown."""
    name = "golden_traces/refund.crash.json"
    shop.commit("Accept", {name: dump_rows("refund", ROWS)})
    shop.write({name: dump_rows("refund", BROKEN_ROWS[1:])})
    lines = shop.git("diff").splitlines()
    assert lines[0] == f"crash golden {name}: 1 point fewer, 2 other outcomes"
    assert "+turn5.request.after  executed_twice  refund 1  send_email 2  7 turns" in lines
    assert "+turn5.save_a  unknown" in shop.git("diff", "--no-ext-diff")
    assert shop.git("diff", "-R").splitlines()[0] == f"crash golden {name}: 1 point more, 2 other outcomes"
    shop.git("rm", "-q", "-f", name)
    assert shop.git("diff", "--cached").splitlines()[0] == f"deleted crash golden {name}: 18 crash points"


@pytest.mark.parametrize(
    "other", ['{"a": 2}\n', "", "\x00\x01 binary", text(GOLDEN).replace('"turns": 6', '"turns": 7'), "<<<<<<< HEAD\n"]
)
def test_what_is_no_golden_is_compared_as_text(shop: GitFolder, other: str) -> None:
    """With git's own diff, under its own name, and never an error."""
    shop.commit("Accept", {FILE: text(GOLDEN)})
    shop.write({FILE: other})
    done = shop.run("diff", "--color=never")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:3] == [f"diff --git a/{FILE} b/{FILE}", f"--- a/{FILE}", f"+++ b/{FILE}"]
    assert "/tmp" not in done.stdout
    for command in ("diff --no-ext-diff", "diff --stat", "show", "log -p", "blame -- " + FILE.replace(" ", "\0")):
        done = shop.run(*(word.replace("\0", " ") for word in command.split()))
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("python", ["/nowhere/python", "false"])
def test_without_the_harness_git_shows_the_files(changed: GitFolder, python: str) -> None:
    """A virtual environment that was removed must not take `git diff` with it."""
    from harness.drivers.setup import settings

    for name, value in settings(python).items():
        changed.git("config", name, value)
    done = changed.run("diff")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"+++ b/{FILE}" in done.stdout
    assert '+    {"turn": 4, "tool": "refund", ' in done.stdout
    done = changed.run("diff", "--no-ext-diff")
    assert (done.returncode, done.stderr) == (0, "")
    assert '+    {"turn": 4, "tool": "refund", ' in done.stdout


def test_without_the_settings_the_attributes_do_no_harm(changed: GitFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another clone sees what git shows of any file."""
    changed.git("config", "--remove-section", "diff.harness")
    changed.git("config", "--remove-section", "merge.harness")
    assert '+    {"turn": 4, "tool": "refund", ' in changed.git("diff")


def test_a_package_of_the_same_name_in_the_repository_is_not_run(changed: GitFolder) -> None:
    """The working directory of a driver is whatever was checked out."""
    changed.write(
        {"harness/__init__.py": "raise SystemExit('taken over')", "json.py": "raise SystemExit('taken over')"}
    )
    assert changed.git("diff", "--", FILE).splitlines()[0] == f"golden {FILE}"


def test_colours_are_those_that_git_would_use(changed: GitFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """None in a file, some in a pager, and NO_COLOR is heard."""
    assert "\033" not in changed.git("diff")
    monkeypatch.delenv("NO_COLOR")
    assert "\033" not in changed.git("diff")
    changed.git("config", "color.ui", "always")
    assert changed.git("diff").startswith(f"\033[1mgolden {FILE}\033[m\n")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\033" not in changed.git("diff")


def test_lines_fit_the_window_that_git_names(changed: GitFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """git tells the width of the terminal to what writes into its pager."""
    monkeypatch.setenv("COLUMNS", "40")
    lines = changed.git("diff").splitlines()
    assert all(len(line) <= 40 for line in lines)
    assert "~     5     5   refund(" in "\n".join(lines)


def test_a_conflict_shows_both_branches(shop: GitFolder) -> None:
    """`git diff` hands over a path without versions then."""
    shop.commit("Accept", {FILE: text(GOLDEN)})
    shop.git("checkout", "-q", "-b", "topic")
    shop.commit("Grow", {FILE: text(GROWN)})
    shop.git("checkout", "-q", "main")
    shop.commit("Send more", {FILE: text(SEVEN["argument"])})
    shop.merge("topic")
    assert f"merge conflict in golden {FILE}: HEAD → topic" in shop.git("diff", "--ours").splitlines()
    shop.write({FILE: "neither\n"})
    assert f"* Unmerged path {FILE}" in shop.git("diff", "--ours").splitlines()


def test_other_keys_say_so() -> None:
    """Digests that were made with two keys differ everywhere."""
    keyed = dataclasses.replace(GOLDEN, digest_key="abcd")
    lines = golden_diff("a.json", text(GOLDEN).encode(), text(keyed).encode())
    assert lines is not None
    assert lines[0].text == (
        "golden a.json: the digests of the two versions were made with different keys (HARNESS_DIGEST_KEY)"
    )


def test_a_long_diff_is_cut_and_says_so() -> None:
    """A terminal is not for ten thousand lines."""
    many = dataclasses.replace(GOLDEN, calls=GOLDEN.calls + (GOLDEN.calls[3],) * 2000)
    lines = golden_diff("a.json", text(GOLDEN).encode(), text(many).encode())
    assert lines is not None
    assert len(lines) < 150
    assert " more differences" in plain_text(lines)
    assert whole_sides(b"a", b"b", "x", "y").count(b"\n") == 5
