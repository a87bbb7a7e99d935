"""The changes that people make by hand: each is found, named in one line, shown in place, accepted, and then quiet."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from harness.testing import MiniProject


class Change(NamedTuple):
    """An edit of one file, the reason to be given for the drift, the aligned calls, and the lines of the diff."""

    file: str
    old: str
    new: str
    reason: str
    calls: str
    golden_lines: tuple[int, int]


CASE, LOOP = "cases/refund.yaml", "loop.py"
FIND = '    - call: {find_order: {id: "7"}}\n'
READ = "    - call: {read_policy: {name: refunds}}\n"
REFUND = '    - call: {refund: {id: "7", cents: 1200}}\n'

CHANGES = {
    "two calls swapped": Change(
        CASE,
        FIND + READ,
        READ + FIND,
        "drift: `find_order` moved from call 1 to call 2",
        """\
              turn 1  tool_use
      2     1   read_policy(name=dfb461f6)
              turn 2  tool_use
>     1     2   find_order(id=266aa588)  moved 1 → 2
              turn 3  tool_use
      3     3   refund(cents=15197cf7, id=266aa588)  write
              turn 4  end_turn

cost           calls 3, turns 4, writes 1
""",
        (2, 2),
    ),
    "another argument": Change(
        CASE,
        "cents: 1200}}\n    - say",
        "cents: 12000}}\n    - say",
        "drift: `refund` (call 3): `cents` changed",
        """\
              turn 1  tool_use
      1     1   find_order(id=266aa588)
              turn 2  tool_use
      2     2   read_policy(name=dfb461f6)
              turn 3  tool_use
~     3     3   refund(cents=c5d1866a, id=266aa588)  write
~                   cents: 15197cf7 → c5d1866a
              turn 4  end_turn

cost           calls 3, turns 4, writes 1
""",
        (1, 1),
    ),
    "a call repeated": Change(
        LOOP,
        "        content, is_error = str(dispatch(use.name, use.input)), False\n",
        "        content, is_error = str(dispatch(use.name, use.input)), False\n"
        "        if use.name == 'find_order':  # to be sure\n"
        "            dispatch(use.name, use.input)\n",
        "drift: 1 more call (3 → 4, +33%): `find_order` (not asked for by the model); "
        "`find_order` repeated with the same arguments once (golden: never)",
        """\
              turn 1  tool_use
      1     1   find_order(id=266aa588)
+           2   find_order(id=266aa588)  not asked for
              turn 2  tool_use
      2     3   read_policy(name=dfb461f6)
              turn 3  tool_use
      3     4   refund(cents=15197cf7, id=266aa588)  write
              turn 4  end_turn

cost           calls 3 → 4 (+33%), turns 4, writes 1
""",
        (1, 2),
    ),
    "a turn dropped": Change(
        CASE,
        READ,
        "",
        "drift: 1 call fewer (3 → 2, -33%): `read_policy`; turns 4 → 3 (-25%); stop_reasons: 1 fewer `tool_use`",
        """\
              turn 1  tool_use
      1     1   find_order(id=266aa588)
-             turn 2  tool_use
-     2         read_policy(name=dfb461f6)
              turn 2 (was 3)  tool_use
      3     2   refund(cents=15197cf7, id=266aa588)  write
              turn 3 (was 4)  end_turn

cost           calls 3 → 2 (-33%), turns 4 → 3 (-25%), writes 1
""",
        (5, 4),
    ),
    "another stop_reason": Change(
        CASE,
        "    - say: Done.\n",
        "    - say: Done.\n      stop_reason: max_tokens\n",
        "drift: stop_reason of turn 4: `end_turn` → `max_tokens`",
        """\
              turn 1  tool_use
      1     1   find_order(id=266aa588)
              turn 2  tool_use
      2     2   read_policy(name=dfb461f6)
              turn 3  tool_use
      3     3   refund(cents=15197cf7, id=266aa588)  write
~             turn 4  end_turn → max_tokens

cost           calls 3, turns 4, writes 1
""",
        (1, 1),
    ),
    "a second write": Change(
        LOOP,
        "        content, is_error = str(dispatch(use.name, use.input)), False\n",
        "        content, is_error = str(dispatch(use.name, use.input)), False\n"
        "        if use.name == 'refund':  # and the postage\n"
        "            dispatch('refund', {'id': '7', 'cents': 300})\n",
        "drift: 1 more write: `refund` (1 → 2); 1 more call (3 → 4, +33%): `refund` (not asked for by the model)",
        """\
              turn 1  tool_use
      1     1   find_order(id=266aa588)
              turn 2  tool_use
      2     2   read_policy(name=dfb461f6)
              turn 3  tool_use
      3     3   refund(cents=15197cf7, id=266aa588)  write
+           4   refund(cents=983bd614, id=266aa588)  write  not asked for
              turn 4  end_turn

cost           calls 3 → 4 (+33%), turns 4, writes 1 → 2 (+100%): `refund` 1 → 2
""",
        (2, 3),
    ),
    "a tool that fails": Change(
        CASE,
        "returns: 30 days",
        "raises: no such policy",
        "drift: `read_policy` (call 2) failed (golden: succeeded)",
        """\
              turn 1  tool_use
      1     1   find_order(id=266aa588)
              turn 2  tool_use
~     2     2   read_policy(name=dfb461f6)  failed, golden: succeeded
              turn 3  tool_use
      3     3   refund(cents=15197cf7, id=266aa588)  write
              turn 4  end_turn

cost           calls 3, turns 4, writes 1
""",
        (1, 1),
    ),
    "two turns made one": Change(
        CASE,
        FIND + READ,
        '    - call: [{find_order: {id: "7"}}, {read_policy: {name: refunds}}]\n',
        "drift: calls that came one after another now run in parallel in turn 1: `find_order`, `read_policy`; "
        "turns 4 → 3 (-25%); stop_reasons: 1 fewer `tool_use`",
        """\
              turn 1  tool_use
~     1     1 ┌ find_order(id=266aa588)  was sequential
~     2     2 └ read_policy(name=dfb461f6)  was sequential
-             turn 2  tool_use
              turn 2 (was 3)  tool_use
      3     3   refund(cents=15197cf7, id=266aa588)  write
              turn 3 (was 4)  end_turn

cost           calls 3, turns 4 → 3 (-25%), writes 1
""",
        (4, 4),
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_made_by_hand_is_drift(accepted: MiniProject, change: Change) -> None:
    """The first line gives the reason, and the calls of golden and run are shown side by side."""
    accepted.edit(change.file, change.old, change.new)
    outcome = accepted.pytest()
    assert (outcome.exit_code, outcome.changed) == (1, {})
    report = outcome.section("case refund")
    assert report[0] == change.reason
    assert "\n".join(report).split(" golden   now\n")[1] == (
        change.calls + "accept with: harness accept refund   or: pytest --update-golden"
    )
    assert outcome.section("short test summary info")[0] == f"FAILED cases/refund.yaml::refund - {change.reason}"


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_accepted_change_is_a_small_diff_and_then_quiet(accepted: MiniProject, change: Change) -> None:
    """The golden's diff is a few lines for the reviewer, and the next run is green."""
    before = accepted.read("golden_traces/refund.json").splitlines()
    accepted.edit(change.file, change.old, change.new)
    outcome = accepted.pytest("--update-golden")
    assert (outcome.exit_code, outcome.changed) == (0, {"golden_traces/refund.json": "changed"})
    reason = change.reason.removeprefix("drift: ")
    writes = "changes writes: " if any(one in reason for one in ("more write", "`cents`")) else ""
    assert outcome.summary == ["1 case: 1 accepted", f"accepted  golden_traces/refund.json  {writes}{reason}"]

    diff = list(difflib.ndiff(before, accepted.read("golden_traces/refund.json").splitlines()))
    assert (sum(line.startswith("- ") for line in diff), sum(line.startswith("+ ") for line in diff)) == (
        change.golden_lines
    )
    outcome = accepted.pytest()
    assert (outcome.exit_code, outcome.summary) == (0, ["1 case: 1 same as golden"])


def test_another_prompt_is_no_drift(accepted: MiniProject) -> None:
    """What the loop was told may change as long as it does the same."""
    accepted.edit(CASE, "prompt: Refund order 7.", "prompt: Please refund order 7.")
    assert accepted.pytest().summary == ["1 case: 1 same as golden"]


def test_the_cause_of_a_drift_comes_first(accepted: MiniProject) -> None:
    """When the loop was told something else as well, that is named before the consequences."""
    accepted.edit(CASE, "prompt: Refund order 7.", "prompt: Refund order 7 twice.")
    accepted.edit(CASE, REFUND, REFUND * 2)
    assert accepted.pytest().section("case refund")[:4] == [
        "drift: 1 more write: `refund` (1 → 2); 1 more call (3 → 4, +33%): `refund`; "
        "`refund` repeated with the same arguments once (golden: never); 2 more facets",
        "",
        "cause          the prompt changed",
        "writes         1 more write: `refund` (1 → 2)",
    ]


def test_the_exception_of_a_tool_that_fails_now_is_named(accepted: MiniProject) -> None:
    """Its message, which may hold what the run was about, only where values may be seen; and never in a file."""
    accepted.edit(CASE, "returns: 30 days", "raises: no such policy")
    assert accepted.pytest().section("case refund")[1] == "call 2, `read_policy`, failed: ToolError"
    accepted.edit(CASE, "prompt:", "detail: plain\nprompt:")
    outcome = accepted.pytest()
    assert outcome.section("case refund")[1] == "call 2, `read_policy`, failed: ToolError: no such policy"
    assert "no such policy" not in accepted.read(".harness/pending/refund.json")
    accepted.pytest("--update-golden")
    accepted.edit(CASE, "cents: 1200}}\n    - say", "cents: 12000}}\n    - say")
    assert not any("failed:" in line for line in accepted.pytest().section("case refund"))
