"""`harness audit`: exit codes, then the whole output."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.audit.report import exit_code, render
from harness.testing import MiniProject

TOOLS = '''\
    from pathlib import Path
    from harness.agent import tool

    @tool(effect="read_only")
    def look(at: str) -> str:
        """Look."""
        return at

    def empty_file(path: str, text: str) -> str:
        Path(path).write_text(text or "")
        return "ok | done"

    READING = [look]
    ALL = [look, empty_file]
    DEFINITIONS = [look.definition()]
    '''


@pytest.fixture
def project(mini_project: MiniProject) -> MiniProject:
    mini_project.write({"kit.py": TOOLS})
    return mini_project


def test_findings_are_shown_with_what_they_destroyed(project: MiniProject) -> None:
    """Exit code 1, and for people: tool, field, flaw, outcome, change, input, answer."""
    done = project.harness("audit", "kit:ALL", "--disposable", "--draws", "0", "--limit", "30")
    assert (done.exit_code, done.errors) == (1, "")
    assert done.output == (
        "look (read_only): 3 calls: 3 refused by the contract\n"
        "empty_file (effect unknown): 6 calls: 2 said ok, 4 refused by the tool\n"
        "  text  null     said ok: notes.txt emptied (36 → 0 bytes)\n"
        """                 {"path": "notes.txt", "text": null} → 'ok | done'\n"""
        "  text  empty    said ok: notes.txt emptied (36 → 0 bytes)\n"
        """                 {"path": "notes.txt", "text": ""} → 'ok | done'\n"""
        "2 tools, 9 forbidden calls, 2 findings\n"
    )


def test_tools_that_refuse_all_give_zero(project: MiniProject) -> None:
    """Nothing found in tools that were all audited."""
    done = project.harness("audit", "kit:READING", "--draws", "0")
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, "1 tool, 3 forbidden calls, no findings")


def test_tools_that_were_not_called_give_two(project: MiniProject) -> None:
    """A gate that has looked at nothing is not green."""
    done = project.harness("audit", "kit:ALL", "--draws", "0")
    assert done.exit_code == 2
    assert done.output.splitlines()[1:] == [
        "empty_file (effect unknown): NOT AUDITED: 6 of 6 calls would reach it, and nobody has declared what it does; "
        "say --disposable",
        "2 tools, 3 forbidden calls, no findings; 1 tool NOT AUDITED",
    ]


def test_json_has_the_evidence_of_every_finding(project: MiniProject) -> None:
    """Whole inputs and sizes in bytes, for other programs."""
    done = project.harness("audit", "kit:ALL", "--disposable", "--draws", "0", "--limit", "30", "--format", "json")
    data = json.loads(done.output)
    assert (data["schema"], data["exit_code"], done.exit_code) == ("harness.audit/1", 1, 1)
    look, empty_file = data["tools"]
    assert (look["contract"], look["status"], look["outcomes"]) == (True, "refuses", {"refused_by_contract": 3})
    assert empty_file["findings"][0] == {
        "field": "text",
        "flaw": "null",
        "input": {"path": "notes.txt", "text": None},
        "outcome": "said_ok",
        "answer": "ok | done",
        "changes": [{"path": "notes.txt", "change": "emptied", "bytes_before": 36, "bytes_after": 0}],
    }


def test_annotations_point_at_the_tool(project: MiniProject) -> None:
    """One workflow command a finding, at file and line of the function."""
    done = project.harness("audit", "kit:ALL", "--disposable", "--draws", "0", "--limit", "30", "--format", "github")
    assert done.output.splitlines() == [
        f"::error file=kit.py,line=9,title=empty_file%3A text {flaw}::said ok: notes.txt emptied (36 → 0 bytes): "
        f"""{{"path": "notes.txt", "text": {value}}} → 'ok | done'"""
        for flaw, value in (("null", "null"), ("empty", '""'))
    ]


def test_markdown_is_a_table_that_foreign_text_cannot_break(project: MiniProject) -> None:
    """A bar in an answer stays inside its cell; tools without findings take no room."""
    done = project.harness("audit", "kit:ALL", "--disposable", "--draws", "0", "--limit", "30", "--format", "markdown")
    assert done.output == (
        "**Tool audit:** 2 tools, 9 forbidden calls, 2 findings\n\n"
        "<details><summary>empty&#95;file: 6 calls: 2 said ok, 4 refused by the tool</summary>\n\n"
        "| field | flaw | finding | input | answer |\n| --- | --- | --- | --- | --- |\n"
        "| text | null | said ok: notes.txt emptied (36 → 0 bytes) "
        '| {"path": "notes.txt", "text": null} | ok &#124; done |\n'
        "| text | empty | said ok: notes.txt emptied (36 → 0 bytes) "
        '| {"path": "notes.txt", "text": ""} | ok &#124; done |\n'
        "\n\n</details>\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["kit:NONE"], "'kit' has no 'NONE' (named as 'kit:NONE')"),
        (
            ["kit:DEFINITIONS"],
            "'kit:DEFINITIONS' holds definitions; name the function that executes them: --dispatch module:name",
        ),
        (
            ["kit:DEFINITIONS", "--dispatch", "kit:ALL"],
            "'kit:ALL' is of type list; name a function (name, input) -> result",
        ),
        (
            ["kit:ALL", "--allow-empty", "lok.at"],
            "--allow-empty lok.at: there is no tool 'lok'; there are: look, empty_file",
        ),
        (["kit:ALL", "--allow-empty", "look.it"], "--allow-empty look.it: 'look' requires 'at'"),
        (["kit:ALL", "--refusal", "("], "--refusal '(' is no regular expression: missing ), unterminated subpattern"),
        (["kit:ALL", "--example", "list.json"], "--example list.json: give an input by name of tool, as"),
        (["kit:ALL", "--example", "wrong.json"], "--example wrong.json: there is no tool 'loook'"),
        (
            ["kit:ALL", "--example", "empty.json"],
            "the example for 'look' is no valid input: `at` is required and missing",
        ),
    ],
)
def test_a_mistake_is_one_clear_line(project: MiniProject, arguments: list[str], message: str) -> None:
    """Exit code 2, nothing on stdout, no traceback."""
    project.write({"list.json": "[]", "wrong.json": '{"loook": {}}', "empty.json": '{"look": {}}'})
    done = project.harness("audit", *arguments, "--draws", "0")
    assert (done.exit_code, done.output, done.errors.count("\n")) == (2, "", 1)
    assert done.errors.startswith(f"error: {message}")


def test_no_tools_is_no_finding() -> None:
    """An empty list renders in each form."""
    assert (exit_code([]), render([])) == (0, "0 tools, 0 forbidden calls, no findings\n")


def test_the_document_shows_what_the_command_prints() -> None:
    """Both samples of docs/audit.md, to the letter, from the repository's own folder."""
    root = Path(__file__).parents[2]
    samples = re.findall(
        r"```text\n\$ harness (audit .*)\n((?:.*\n)*?)```", (root / "docs/audit.md").read_text("utf-8")
    )
    assert len(samples) == 2
    for arguments, shown in samples:
        command = [sys.executable, "-m", "harness", *arguments.split(), "--limit", "30"]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        assert done.stdout == shown
