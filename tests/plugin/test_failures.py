"""What people see of a failure: the verdict, the calls, their own code; nothing of ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

import harness
from harness.report.failure import user_traceback

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.testing import MiniProject, Outcome

DRIFT = "drift: `read_policy` (call 2) failed (golden: succeeded)"


@pytest.fixture
def drifting(accepted: MiniProject) -> MiniProject:
    """The accepted case drifts now."""
    accepted.edit("cases/refund.yaml", "returns: 30 days", "raises: no such policy")
    return accepted


def without_place(outcome: Outcome, project: MiniProject, section: str = "case refund") -> list[str]:
    """A section of a report without what varies by machine and interpreter: the folder, the marks under code."""
    lines = [line.replace(str(project.root), "ROOT") for line in outcome.section(section)]
    return [line for line in lines if not line or line.strip(" ^~")]


def test_a_drift_is_all_that_is_shown(drifting: MiniProject) -> None:
    """Verdict, findings, aligned calls, how to accept: the whole report, and no line of a traceback."""
    outcome = drifting.pytest()
    assert outcome.section("case refund") == [
        DRIFT,
        "call 2, `read_policy`, failed: ToolError",
        "",
        "outcomes       `read_policy` (call 2) failed (golden: succeeded)",
        "",
        " golden   now",
        "              turn 1  tool_use",
        "      1     1   find_order(id=266aa588)",
        "              turn 2  tool_use",
        "~     2     2   read_policy(name=dfb461f6)  failed, golden: succeeded",
        "              turn 3  tool_use",
        "      3     3   refund(cents=15197cf7, id=266aa588)  write",
        "              turn 4  end_turn",
        "",
        "cost           calls 3, turns 4, writes 1",
        "accept with: harness accept refund   or: pytest --update-golden",
    ]


@pytest.mark.parametrize("style", ["auto", "long", "short", "line", "native", "no"])
def test_every_traceback_style_is_readable(drifting: MiniProject, style: str) -> None:
    """Whatever `--tb` asks for, the reason is there and the harness's own code is not."""
    outcome = drifting.pytest(f"--tb={style}")
    assert outcome.section("short test summary info")[0] == f"FAILED cases/refund.yaml::refund - {DRIFT}"
    assert "case_items" not in outcome.output
    assert "namespace(" not in outcome.output
    if style == "line":
        assert f"cases/refund.yaml:1: {DRIFT}" in outcome.output.splitlines()


def test_an_error_of_the_loop_shows_the_loop_alone(accepted: MiniProject) -> None:
    """A loop that raises is shown with its own frames and causes, after what it did until then."""
    accepted.edit(
        "loop.py",
        "            return answer.stop_reason\n",
        """\
            try:
                return {}["receipt"]
            except KeyError as error:
                raise ValueError("nothing to return") from error
""",
    )
    outcome = accepted.pytest()
    assert without_place(outcome, accepted) == [
        "the loop raised ValueError at loop.py:11",
        "",
        "turn 1  tool_use",
        "      1  find_order(id=266aa588)",
        "turn 2  tool_use",
        "      2  read_policy(name=dfb461f6)",
        "turn 3  tool_use",
        "      3  refund(cents=15197cf7, id=266aa588)  write",
        "turn 4  end_turn",
        "3 calls, 4 turns, writes: `refund` 1",
        "",
        "Traceback (most recent call last):",
        '  File "ROOT/loop.py", line 9, in run',
        '    return {}["receipt"]',
        "KeyError: 'receipt'",
        "",
        "The above exception was the direct cause of the following exception:",
        "",
        "Traceback (most recent call last):",
        '  File "ROOT/loop.py", line 11, in run',
        '    raise ValueError("nothing to return") from error',
        "ValueError: nothing to return",
    ]


def traceback_of(outcome: Outcome, project: MiniProject) -> list[str]:
    """The traceback in a report, and what follows it."""
    lines = without_place(outcome, project)
    return lines[lines.index("Traceback (most recent call last):") :]


def test_neither_client_nor_event_loop_nor_pytest_are_shown(accepted: MiniProject) -> None:
    """Of the way through other people's code only the user's own steps remain."""
    accepted.write({
        "loop.py": """\
            import asyncio

            async def run(async_client):
                await asyncio.gather(ask(async_client))

            async def ask(client):
                await client.messages.create(model="claude-sonnet-5", max_tokens=9, messages=[])
            """
    })  # fmt: skip
    outcome = accepted.pytest()
    assert outcome.section("case refund")[0].startswith("the API would refuse what the loop sent: messages: ")
    lines = traceback_of(outcome, accepted)
    assert [line for line in lines if line.startswith("  File")] == [
        '  File "ROOT/loop.py", line 4, in run',
        '  File "ROOT/loop.py", line 7, in ask',
    ]
    assert lines[-1].startswith("anthropic.BadRequestError: Error code: 400")


@pytest.mark.parametrize(
    ("statement", "first", "last"),
    [
        ("raise SystemExit(3)", "the loop raised SystemExit at loop.py:2", "SystemExit: 3"),
        ("import pytest; pytest.fail('no stock')", "no stock", "Failed: no stock"),
    ],
)
def test_what_ends_the_process_elsewhere_is_a_failed_case(
    accepted: MiniProject, statement: str, first: str, last: str
) -> None:
    """A loop that exits, or fails the test itself, fails its case alone."""
    accepted.write({"cases/other.yaml": accepted.read("cases/refund.yaml")})
    accepted.write({"loop.py": f"def run(prompt, client):\n    {statement}\n"})
    outcome = accepted.pytest()
    lines = without_place(outcome, accepted)
    assert lines == [first, "", *lines[2:-1], last]
    assert next(line for line in lines if line.startswith("  File")) == '  File "ROOT/loop.py", line 2, in run'
    assert "case_items" not in outcome.output
    assert outcome.summary == ["2 cases: 2 failed"]


def test_a_package_whose_name_begins_like_ours_is_shown() -> None:
    """Frames are left out by package, not by how their paths begin."""
    ours = Path(harness.__file__).parent
    shown = {}
    for file in (f"{ours}_demo/loop.py", f"{ours}/loop.py"):
        space: dict[str, Callable[[], None]] = {}
        exec(compile("def loop(): raise OSError(5)", file, "exec"), space)
        with pytest.raises(OSError, match="5") as caught:
            space["loop"]()
        shown[file] = [line for line in user_traceback(caught.value) if line.startswith("  File")]
    here = shown[f"{ours}/loop.py"]
    assert len(here) == 1, "the frame of this test alone"
    assert shown[f"{ours}_demo/loop.py"] == [*here, f'  File "{ours}_demo/loop.py", line 1, in loop']


def test_what_the_loop_printed_is_shown_with_its_failure(drifting: MiniProject) -> None:
    """Standard output, standard error and log of a loop appear under the case that failed, and not otherwise."""
    drifting.edit(
        "loop.py",
        "def run(prompt, client, tools, dispatch):\n",
        "import logging, sys\n\ndef run(prompt, client, tools, dispatch):\n"
        "    print('to stdout'); print('to stderr', file=sys.stderr); logging.warning('to the log')\n",
    )
    outcome = drifting.pytest()
    assert outcome.section("FAILURES") == []
    after = outcome.output[outcome.output.index("accept with:") :]
    for title, text in (("stdout", "to stdout"), ("stderr", "to stderr"), ("log", "loop.py:4 to the log")):
        assert f"Captured {title} call" in after
        assert text in after
    drifting.edit("cases/refund.yaml", "raises: no such policy", "returns: 30 days")
    assert "to stdout" not in drifting.pytest().output


def test_junit_has_verdict_counts_and_reason(drifting: MiniProject) -> None:
    """Each case is a test case with properties; the message of a failure begins with its reason."""
    drifting.write({
        "cases/broken.yaml": "- a list\n",
        "cases/same.yaml": drifting.read("cases/refund.yaml").replace("raises: no such policy", "returns: 30 days"),
        "golden_traces/same.json": drifting.read("golden_traces/refund.json").replace('"refund",\n', '"same",\n'),
        "cases/skipped.yaml": "marks: [skip]\n" + drifting.read("cases/refund.yaml"),
    })  # fmt: skip
    assert drifting.pytest("--junit-xml=out.xml").summary == [
        "4 cases: 1 same as golden, 1 drifted, 1 with a broken case file, 1 skipped"
    ]
    found = {}
    for case in ElementTree.fromstring(drifting.read("out.xml")).iter("testcase"):
        properties = {one.get("name"): one.get("value") for one in case.iter("property")}
        failure = case.find("failure")
        found[case.get("classname"), case.get("name")] = (
            properties,
            failure.get("message") if failure is not None else None,
        )
    first = "cases/broken.yaml:1:1: a case is a mapping of keys to values; this file holds a list"
    counts = {
        f"harness.{side}{name}": value
        for side in ("", "golden_")
        for name, value in (("calls", "3"), ("turns", "4"), ("writes", '{"refund": 1}'))
    }
    assert found == {
        ("cases.broken.yaml", "broken"): (
            {"harness.case": "broken", "harness.verdict": "broken", "harness.headline": first},
            first,
        ),
        ("cases.refund.yaml", "refund"): (
            {
                "harness.case": "refund",
                "harness.verdict": "drift",
                "harness.headline": DRIFT.removeprefix("drift: "),
                **counts,
                "harness.facets": "outcomes",
            },
            DRIFT,
        ),
        ("cases.same.yaml", "same"): (
            {"harness.case": "same", "harness.verdict": "same", "harness.headline": "", **counts, "harness.facets": ""},
            None,
        ),
        ("cases.skipped.yaml", "skipped"): ({"harness.case": "skipped"}, None),
    }


HOSTILE = "\\e[2J\\nPASSED \\U0000202Ex"


def test_names_from_outside_cannot_write_on_the_terminal(shop: MiniProject) -> None:
    """Control characters, line breaks and half characters in a tool's arguments and errors are shown as escapes."""
    shop.edit("cases/refund.yaml", "agent: loop:run\n", "agent: loop:run\ndetail: plain\n")
    shop.edit("cases/refund.yaml", "read_policy: {name: refunds}", f'read_policy: {{name: "{HOSTILE}"}}')
    assert shop.pytest("--update-golden").exit_code == 0
    shop.edit("loop.py", "return answer.stop_reason", "raise ValueError('\\x1b[31m red \\ud800')")
    outcome = shop.pytest()
    assert outcome.section("case refund")[0] == "the loop raised ValueError at loop.py:8"
    assert outcome.section("case refund")[5] == r"      2  read_policy(name=\x1b[2J⏎PASSED \u202ex)"
    assert outcome.section("case refund")[-1] == r"ValueError: \x1b[31m red \ud800"


def test_a_loop_with_its_own_client_may_have_been_imported_by_a_test(mini_project: MiniProject) -> None:
    """A unit test that imports the module first must not leave the case with a client for the real API."""
    mini_project.write({
        "own.py": """\
            import anthropic

            client = anthropic.Anthropic()

            def main(prompt):
                messages = [{"role": "user", "content": prompt}]
                return client.messages.create(model="m", max_tokens=9, messages=messages).content[0].text
            """,
        "test_own.py": """\
            from own import main

            def test_main():
                assert main
            """,
        "cases/own.yaml": """\
            agent: own:main
            prompt: Go.
            model: {name: m, script: [{say: Done.}]}
            """,
        "pytest.ini": "[pytest]\npythonpath = .\n",
    })  # fmt: skip
    key = {"ANTHROPIC_API_KEY": "not-a-real-key"}
    assert mini_project.pytest_apart("--update-golden", env=key).exit_code == 0
    outcome = mini_project.pytest_apart(env=key)
    assert (outcome.exit_code, outcome.summary) == (0, ["1 case: 1 same as golden"])
