"""`harness review` in a real terminal: single keys, resumed another time."""

from __future__ import annotations

import os
import pty
import re
import select
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.testing import MiniProject

LIMIT = 30
"""Seconds for one review."""


def review(project: MiniProject, keys: str, *arguments: str) -> tuple[int, str]:
    """Press each key once the prompt is there; returns the exit code and what the terminal showed."""
    child, terminal = pty.fork()
    if child == 0:
        try:
            os.chdir(project.root)
            os.environ |= {"TERM": "xterm", "NO_COLOR": "1", "PAGER": "cat"}
            os.execv(sys.executable, [sys.executable, "-m", "harness", "review", *arguments])
        finally:
            os._exit(99)
    shown = ""
    deadline = time.monotonic() + LIMIT
    try:
        while time.monotonic() < deadline:
            if not select.select([terminal], [], [], 0.2)[0]:
                # A key that comes before the terminal is ready for single ones is dropped: then it is pressed again.
                asked = len(re.findall(r"(?:q quit|f back)", shown))
                if asked:
                    os.write(terminal, keys[min(asked, len(keys)) - 1].encode())
                continue
            try:
                data = os.read(terminal, 65536)
            except OSError:  # the other end is closed
                break
            if not data:
                break
            shown += data.decode("utf-8", "replace")
        else:
            os.kill(child, 9)
    finally:
        os.close(terminal)
        _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), re.sub(r"\x1b\[[0-9;]*m", "", shown).replace("\r\n", "\n")


def test_a_review_is_left_and_taken_up_again(waiting: MiniProject) -> None:
    """What was decided is kept, what was rejected is not asked again, and the commit message is there."""
    code, shown = review(waiting, "wrq")
    assert code == 0
    assert "1/6  dear  changes writes" in shown
    assert "accepted  dear" in shown
    assert "rejected  notes/mail" in shown
    assert "1 accepted, 1 rejected, 4 left\n" in shown
    assert "commit with: git commit -eF .harness/commit-message.txt" in shown

    code, shown = review(waiting, "Aq")
    assert code == 0
    assert shown.startswith("1 rejected before (--all shows them)\n\n1/4  grown\n")
    assert "3 accepted, 1 left" in shown
    assert waiting.read(".harness/commit-message.txt").startswith("Accept the paths of 4 cases\n\nChanges in writes:\n")


def test_ctrl_c_leaves_the_review_in_good_order(waiting: MiniProject) -> None:
    """What was decided before is kept, and said."""
    code, shown = review(waiting, "w\x03")
    assert code == 0
    assert "1 accepted, 5 left" in shown
    assert "Traceback" not in shown


def test_without_a_terminal_it_says_what_to_use(waiting: MiniProject) -> None:
    """In CI nobody presses keys."""
    outcome = waiting.harness("review")
    assert (outcome.exit_code, outcome.errors) == (
        2,
        "error: 6 to decide on, and review asks for single keys: it needs a terminal. Without one: "
        "harness diff golden pending, then harness accept CASE\n",
    )


def test_with_nothing_to_decide_it_says_so(mini_project: MiniProject) -> None:
    """Exit code 0."""
    mini_project.write({"cases/.keep": ""})
    outcome = mini_project.harness("review")
    assert (outcome.exit_code, outcome.errors) == (0, "nothing waits for a decision\n")
    outcome = mini_project.harness("review", "--message")
    assert (outcome.exit_code, outcome.errors) == (2, "error: nothing was accepted since the last commit\n")
