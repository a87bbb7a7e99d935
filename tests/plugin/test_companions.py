"""Beside the plugins that people use: reruns, random order, time limits, coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.testing import MiniProject

GOLDEN = "golden_traces/refund.json"

COUNTING_LOOP = """\
from pathlib import Path

def run(prompt, dispatch):
    file = Path({folder!r}, "attempts")
    attempt = len(file.read_text()) + 1 if file.exists() else 1
    file.write_text("x" * attempt)
    dispatch("find_order", {{"id": str({what})}})
    if attempt < {succeeds}:
        raise OSError("not yet")
"""


def counting(project: MiniProject, what: str, succeeds: int = 0) -> None:
    """A loop that knows which attempt it is, and does something else in each."""
    project.write({"loop.py": COUNTING_LOOP.format(folder=str(project.root.parent), what=what, succeeds=succeeds)})
    (project.root.parent / "attempts").unlink(missing_ok=True)


def attempts(project: MiniProject) -> int:
    return len((project.root.parent / "attempts").read_text())


def test_a_drift_stays_red_after_reruns(shop: MiniProject) -> None:
    """Three attempts that all drift are one failed case."""
    counting(shop, "7")
    shop.pytest("--update-golden")
    counting(shop, "8")
    outcome = shop.pytest("--reruns", "2")
    assert (outcome.exit_code, outcome.summary, attempts(shop)) == (1, ["1 case: 1 drifted"], 3)
    assert "2 rerun" in outcome.output


def test_the_last_attempt_counts(shop: MiniProject) -> None:
    """A case that drifts once and then passes has passed, in summary and record."""
    counting(shop, "7")
    shop.pytest("--update-golden")
    counting(shop, "7 if attempt > 1 else 8")
    outcome = shop.pytest("--reruns", "2")
    assert (outcome.exit_code, outcome.summary, attempts(shop)) == (0, ["1 case: 1 same as golden"], 2)
    assert shop.harness("run", "--verify").exit_code == 0


def test_an_update_writes_the_last_attempt_once(shop: MiniProject) -> None:
    """What failed attempts did is never accepted: one write, of the attempt that passed."""
    counting(shop, "7")
    shop.pytest("--update-golden")
    counting(shop, "10 + attempt", succeeds=3)
    outcome = shop.pytest("--reruns", "2", "--update-golden")
    assert (outcome.exit_code, outcome.changed, attempts(shop)) == (0, {GOLDEN: "changed"}, 3)
    assert outcome.summary == ["1 case: 1 accepted", f"accepted  {GOLDEN}  `find_order` (call 1): `id` changed"]
    counting(shop, "13")
    assert shop.pytest().summary == ["1 case: 1 same as golden"]


def test_an_update_that_never_succeeds_writes_nothing(shop: MiniProject) -> None:
    """All attempts failed: the golden stays."""
    counting(shop, "7")
    shop.pytest("--update-golden")
    counting(shop, "10 + attempt", succeeds=9)
    outcome = shop.pytest("--reruns", "2", "--update-golden")
    assert (outcome.exit_code, outcome.changed, attempts(shop)) == (1, {}, 3)
    assert outcome.summary == [
        "1 case: 1 failed",
        f"kept      {GOLDEN}  the loop raised OSError at loop.py:9",
        "no golden was written",
    ]


def test_what_an_earlier_attempt_said_is_withdrawn(shop: MiniProject) -> None:
    """An attempt that ends without a verdict does not inherit the one before: neither its drift nor its pass."""
    counting(shop, "7")
    shop.pytest("--update-golden")
    counting(shop, "8 if attempt == 1 else __import__('pytest').fail('gave up')")
    outcome = shop.pytest("--reruns", "1")
    assert (outcome.exit_code, outcome.summary, attempts(shop)) == (1, ["1 case: 1 failed"], 2)
    assert shop.harness("run", "--verify").output == "refund: failed\n"


RERUN_TEST = """\
from pathlib import Path
from harness import Recorder

def test_it(golden_trace):
    file = Path({folder!r}, "attempts")
    attempt = len(file.read_text()) + 1 if file.exists() else 1
    file.write_text("x" * attempt)
    recorder = Recorder(case="refund", writes=())
    recorder.instrument(lambda name, input: "ok")("find", {{"attempt": attempt}})
    golden_trace(recorder)
    assert attempt == 3
"""


def test_reruns_of_a_test_with_the_fixture(mini_project: MiniProject) -> None:
    """A rerun may replace what its own earlier attempt accepted; the last one stands."""
    mini_project.write({
        "pyproject.toml": '[tool.pytest]\naddopts = ["-p", "no:randomly"]\n',
        "test_it.py": RERUN_TEST.format(folder=str(mini_project.root.parent)),
    })  # fmt: skip
    outcome = mini_project.pytest("--reruns", "2", "--update-golden")
    assert (outcome.exit_code, outcome.summary[0]) == (0, "1 case: 1 accepted")
    (mini_project.root.parent / "attempts").write_text("xx")
    assert mini_project.pytest().summary == ["1 case: 1 same as golden"]


def test_random_order_gives_the_same_results(shop: MiniProject) -> None:
    """In whatever order the cases run, each gives its own trace and nothing but it."""
    text = shop.read("cases/refund.yaml")
    shop.write({
        "pyproject.toml": "[tool.pytest]\nstrict = true\n",
        **{f"cases/order{number}.yaml": text.replace('"7"', f'"{number}"') for number in range(6)},
    })  # fmt: skip
    assert shop.pytest("--update-golden", "-p", "no:randomly").exit_code == 0
    orders = set()
    for seed in (1, 77, 4242):
        outcome = shop.pytest("-v", "--randomly-seed", str(seed))
        assert (outcome.exit_code, outcome.summary) == (0, ["7 cases: 7 same as golden"])
        orders.add(tuple(line.split("::")[0] for line in outcome.output.splitlines() if " PASSED " in line))
    assert len(orders) > 1
    assert shop.pytest("--randomly-seed", "9", "--update-golden").changed == {}


@pytest.mark.parametrize("where", ["loop", "tool"])
def test_a_time_out_keeps_the_golden(accepted: MiniProject, where: str) -> None:
    """A case that takes too long fails with the limit as its reason, and an update leaves its golden alone."""
    if where == "loop":
        accepted.edit("loop.py", "return answer.stop_reason", "import time; time.sleep(30)")
    else:
        accepted.edit("cases/refund.yaml", "agent:", "limits: {turns: 50}\nagent:")
        accepted.edit("loop.py", "    try:\n", "    import time; time.sleep(30)\n    try:\n")
    outcome = accepted.pytest("--timeout", "3", "--update-golden")
    assert (outcome.exit_code, outcome.changed) == (1, {})
    reason = "Timeout (>3.0s) from pytest-timeout."
    assert outcome.section("case refund")[0] == reason
    assert outcome.summary == ["1 case: 1 failed", f"kept      {GOLDEN}  {reason}", "no golden was written"]
    assert "case_items.py" not in outcome.output


def test_coverage_sees_the_loop(library: MiniProject) -> None:
    """Loops run in the process of pytest, so their lines are counted."""
    outcome = library.pytest_apart("--cov=loop", "cases/shelf1")
    assert (outcome.exit_code, outcome.summary) == (0, ["29 cases: 29 same as golden"]), outcome.output + outcome.errors
    assert any(line.split() == ["loop.py", "4", "0", "100%"] for line in outcome.output.splitlines())
