"""`harness check` and `harness show`: what the stuck-loop detectors say of traces."""

from __future__ import annotations

import json

import pytest

from harness.cli import main
from harness.golden import dump_trace
from harness.testing import MiniProject
from harness.trace import Call, Trace

LOOP = Trace(
    "nightly",
    tuple(Call(turn, "read_file", "69baad0e471d", True, {"path": "db6ec6d9"}, "aaaaaaaaaaaa") for turn in range(1, 5)),
    turns=5,
    stop_reasons=("tool_use",) * 4 + ("end_turn",),
)
LABELLED = """\
- id: three-equal-reads
  about: a read is repeated
  calls:
    - {tool: read_file, args: {path: a}, ok: true, result: x, read_only: true}
    - {tool: read_file, args: {path: a}, ok: true, result: x, read_only: true}
    - {tool: read_file, args: {path: a}, ok: true, result: x, read_only: true}
  expect:
    {verdict: nudge, detector: ConsecutiveDuplicate, at_call: 3, via: threshold,
     trace: [[3, nudge, ConsecutiveDuplicate]]}
  why: nothing new came
"""


@pytest.fixture
def project(mini_project: MiniProject) -> MiniProject:
    (mini_project.root / "cases").mkdir()
    mini_project.write(
        {".harness/pending/nightly.json": dump_trace(LOOP), "golden_traces/nightly.json": dump_trace(LOOP)}
    )
    return mini_project


def run(project: MiniProject, *arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.root)
        with pytest.raises(SystemExit) as exit_:
            main(list(arguments))
    captured = capsys.readouterr()
    return int(exit_.value.code or 0), captured.out, captured.err


def test_a_stuck_trace_fails_with_the_calls_that_prove_it(
    project: MiniProject, capsys: pytest.CaptureFixture[str]
) -> None:
    """Findings name detector, count, threshold, calls, and what would have made them not fire."""
    code, output, _ = run(project, "check", "--pending", capsys=capsys)
    assert code == 1
    assert output.splitlines()[0] == "nightly: force_stop"
    assert "ConsecutiveDuplicate" in output
    assert "calls 1, 2, 3, 4" in output
    assert "would not fire with: " in output


def test_traces_without_a_finding_are_named_when_asked_for(
    project: MiniProject, capsys: pytest.CaptureFixture[str]
) -> None:
    """By name, or with `-v`; otherwise they are counted, so that what was found is not lost among them."""
    project.write({"golden_traces/fine.json": dump_trace(Trace("fine"))})
    assert "fine: continue\n" not in run(project, "check", capsys=capsys)[1]
    assert "fine: continue\n" in run(project, "check", "-v", capsys=capsys)[1]
    summary = "1 trace, 0 stuck, 0 with a nudge only\n"
    assert run(project, "check", "fine", capsys=capsys) == (0, f"fine: continue\n{summary}", "")


def test_what_fails_the_build_can_be_chosen(project: MiniProject, capsys: pytest.CaptureFixture[str]) -> None:
    """`--fail-on never` only reports."""
    assert run(project, "check", "nightly", "--fail-on", "never", capsys=capsys)[0] == 0


@pytest.mark.parametrize("form", ["json", "markdown", "github"])
def test_other_formats_say_the_same(project: MiniProject, capsys: pytest.CaptureFixture[str], form: str) -> None:
    """For machines, for pull requests, for annotations on the file."""
    code, output, _ = run(project, "check", "--pending", "nightly", "--format", form, capsys=capsys)
    assert code == 1
    assert "ConsecutiveDuplicate" in output
    if form == "json":
        assert json.loads(output)["traces"][0]["verdict"] == "force_stop"


def test_labelled_sequences_test_the_thresholds_of_the_project(
    project: MiniProject, capsys: pytest.CaptureFixture[str]
) -> None:
    """All as labelled is 0; a threshold that changes a verdict is 1, with the line of the sequence."""
    project.write({"labelled.yaml": LABELLED})
    assert run(project, "check", "--labelled", "labelled.yaml", capsys=capsys)[:2] == (
        0,
        "1 sequences, 0 of them otherwise than labelled\n",
    )
    settings = "[tool.harness.stuck.detectors]\nConsecutiveDuplicate = {strict = {nudge = 5, stop = 8}}\n"
    project.write({"pyproject.toml": settings})
    code, output, _ = run(project, "check", "--labelled", "labelled.yaml", capsys=capsys)
    assert code == 1
    assert output.startswith("labelled.yaml:1: three-equal-reads\n  verdict: expected nudge, got continue\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check", "nightli"), "error: no golden is called 'nightli'; did you mean 'nightly'?\n"),
        (
            ("check", "x", "--labelled", "labelled.yaml"),
            "error: --labelled takes the place of traces; name one or the other\n",
        ),
    ],
    ids=["unknown", "both"],
)
def test_bad_input_is_one_clear_error(
    project: MiniProject, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    """Exit code 2, and what to do."""
    project.write({"labelled.yaml": LABELLED})
    assert run(project, *arguments, capsys=capsys) == (2, "", message)


def test_a_wrong_setting_of_the_project_is_named(project: MiniProject, capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt detector is an error, not a detector that is silently not tuned."""
    project.write({"pyproject.toml": "[tool.harness.stuck.detectors]\nExactDuplicates = false\n"})
    code, _, message = run(project, "check", capsys=capsys)
    assert code == 2
    assert "ExactDuplicates" in message


def test_show_prints_verdicts_along_the_trace(project: MiniProject, capsys: pytest.CaptureFixture[str]) -> None:
    """Below the call at which each was given, with its evidence."""
    code, output, _ = run(project, "show", "--pending", "nightly", capsys=capsys)
    lines = output.splitlines()
    assert code == 0
    at = lines.index("      3  read_file(path=db6ec6d9)")
    assert lines[at + 1].startswith("       nudge by ConsecutiveDuplicate: read_file: 3 steps ")
