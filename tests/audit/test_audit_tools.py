"""The audit of tools: what is found, what is not called, and what ends nothing else."""

from __future__ import annotations

import fcntl
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from harness.agent import Tool
from harness.audit import Plan, Target, ToolAudit, audit_tools, exit_code, load_targets
from harness.errors import HarnessError, ToolError

HERE = str(Path(__file__).parent)
UNDRAWN = Plan(disposable=True, examples=0, limit=30)


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HERE)


def audit(name: str, plan: Plan = UNDRAWN, dispatch: str | None = None) -> ToolAudit:
    import careless

    careless.ONE = [getattr(careless, name)] if dispatch is None else None  # type: ignore[attr-defined]
    reference = "careless:ONE" if dispatch is None else f"careless:{name}"
    return audit_tools(load_targets(reference, dispatch), plan)[0]


def found(audited: ToolAudit) -> list[tuple[str, str, str, list[str]]]:
    return [
        (one.probe.field, one.probe.flaw, one.answer.outcome, [str(change) for change in one.answer.changes])
        for one in audited.findings
    ]


def test_the_write_of_zero_bytes_is_found() -> None:
    """A dispatcher that fills in what is missing is shown to empty the file in each of its ways."""
    (audited,) = audit_tools(
        load_targets("examples.notes.dishonest:DEFINITIONS", "examples.notes.dishonest:dispatch"), UNDRAWN
    )
    emptied = ["notes.txt emptied (36 → 0 bytes)"]
    assert found(audited) == [
        ("path", "missing", "said_ok", ["untitled.txt created (4 bytes)"]),
        ("content", "missing", "said_ok", emptied),
        ("content", "null", "said_ok", emptied),
        ("content", "empty", "said_ok", emptied),
    ]


def test_the_same_function_behind_a_contract_is_safe_and_never_called() -> None:
    """No call reaches it, so that it needs no --disposable either, whatever values are drawn."""
    (audited,) = audit_tools(load_targets("examples.notes.dishonest:CONTRACT"), Plan())
    assert (audited.status, audited.findings) == ("refuses", ())
    assert audited.count("refused_by_contract") == len(audited.calls) > 6


def test_destroying_before_refusing_is_a_finding() -> None:
    """An error that comes after the file was emptied does not bring the file back."""
    assert found(audit("truncates")) == [
        ("content", "null", "refused_too_late", ["notes.txt emptied (36 → 0 bytes)"]),
        ("content", "empty", "said_ok", ["notes.txt emptied (36 → 0 bytes)"]),
    ]


def test_what_was_removed_is_the_evidence() -> None:
    """Files and folders that are gone are named with their sizes."""
    removed = ["folder removed", "folder/inside.txt removed (10 bytes)", "notes.txt removed (36 bytes)"]
    assert found(audit("empties_workspace")) == [("folder", "empty", "said_ok", removed)]


@pytest.mark.parametrize(
    ("name", "outcome", "why"),
    [
        ("exits", "died", "raised SystemExit(3), which would end the loop"),
        ("is_killed", "died", "ended its process with SIGKILL"),
        ("sleeps", "hung", "no answer within 2 s"),
    ],
)
def test_a_tool_that_ends_or_hangs_its_process_ends_nothing_else(name: str, outcome: str, why: str) -> None:
    """It is reported with how it ended, and the audit goes on to the other calls."""
    limit = 2 if outcome == "hung" else 30
    audited = audit(name, Plan(disposable=True, examples=0, limit=limit))
    last = audited.calls[-1]
    assert (last.probe.flaw, last.answer.outcome, last.answer.text) == ("empty", outcome, why)
    assert last in audited.findings


def test_what_a_tool_has_started_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process of a call outlives it: each holds a lock, for which the next call, and then the test, would wait."""
    monkeypatch.setenv("AUDIT_TEST_LOCK", str(tmp_path / "lock"))
    assert audit("leaves_a_process").status == "refuses"
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


def test_refusals_of_a_tool_that_fails_anyway_prove_nothing() -> None:
    """It counts as not audited, with what its valid call said; a valid example that works makes the difference."""
    audited = audit("always_fails")
    assert (audited.status, audited.findings) == ("not_audited", ())
    assert audited.reason.startswith("its valid call failed as well (KeyError: 'text')")
    assert exit_code([audited]) == 2


def test_a_path_may_have_to_be_new() -> None:
    """Where an existing file is refused, the valid call is made with one that does not exist."""
    assert audit("creates").status == "refuses"


def test_tools_with_effects_are_not_called_unless_told() -> None:
    """What nobody declared harmless is listed as not audited, and the exit code is not 0."""
    audited = audit("truncates", Plan(examples=0))
    assert (audited.status, audited.calls) == ("not_audited", ())
    assert audited.reason == "6 of 6 calls would reach it, and nobody has declared what it does; say --disposable"
    assert exit_code([audited]) == 2


def test_a_contract_with_a_gap_is_called_only_when_told() -> None:
    """`{}` passes a contract: the call is made when the workspace is disposable, and what it destroyed is found."""
    without = audit("replaces", Plan(examples=0))
    assert (without.status, without.count("refused_by_contract")) == ("not_audited", 2)
    assert found(audit("replaces")) == [("settings", "empty", "said_ok", ["notes.txt emptied (36 → 0 bytes)"])]


def test_refusals_are_known_in_every_form() -> None:
    """An error block is a refusal; words alone are one only when the user says so."""
    assert audit("blocks").status == "refuses"
    assert [flaw for _, flaw, _, _ in found(audit("says_it_in_words"))] == ["null", "empty"]
    told = Plan(disposable=True, examples=0, limit=30, refusal="^Error:")
    assert audit("says_it_in_words", told).status == "refuses"


@pytest.mark.parametrize("name", ["async_echo", "sdk_tool"])
def test_other_kinds_of_tools_are_audited(name: str) -> None:
    """Coroutine functions and tools of the SDK are called as a loop would call them."""
    assert ("empty", "said_ok") in [(flaw, outcome) for _, flaw, outcome, _ in found(audit(name))]


def test_an_async_dispatcher_is_audited_and_a_tool_of_the_api_is_not() -> None:
    """Definitions of both kinds may stand in one list."""
    write, bash = audit_tools(load_targets("careless:DEFINITIONS", "careless:dispatch"), UNDRAWN)
    assert [(field, flaw) for field, flaw, _, _ in found(write)] == [
        ("content", "missing"), ("content", "null"), ("content", "empty"),
    ]  # fmt: skip
    assert (bash.status, bash.reason) == ("not_audited", "it has no input_schema: the API defines this tool")


def test_nested_fields_are_tried() -> None:
    """Required fields of the objects in a list count like those at the top."""
    assert [(one.probe.field, one.probe.flaw) for one in audit("nested").calls] == [
        ("rows", "missing"), ("rows", "null"), ("rows", "empty"),
        ("rows[].note", "missing"), ("rows[].note", "null"), ("rows[].note", "empty"),
        ("mode", "missing"), ("mode", "null"), ("mode", "empty"),
    ]  # fmt: skip


def test_what_may_be_empty_is_not_tried() -> None:
    """`allow_empty`, of the contract or of the plan, takes the empty value out, and nothing else."""
    assert [one.probe.flaw for one in audit("annotate").calls] == ["missing"]
    allowed = Plan(disposable=True, examples=0, limit=30, allow_empty={"says_it_in_words": frozenset({"text"})})
    assert [one.probe.flaw for one in audit("says_it_in_words", allowed).calls] == ["missing"]


def test_zeros_are_values_unless_the_user_says_otherwise() -> None:
    """0 and False are tried with `zeros` alone."""
    schema = {
        "type": "object",
        "properties": {"count": {"type": "integer"}, "force": {"type": "boolean"}},
        "required": ["count", "force"],
    }

    def call(sent: Any) -> str:
        return f"{sent['count'] + 0} {sent['force'] + 0}"

    target = Target("t", schema, call, effect="read_only")
    plain, zeros = (audit_tools([target], Plan(examples=0, limit=30, zeros=zeros))[0] for zeros in (False, True))
    assert (plain.status, plain.findings) == ("refuses", ())
    assert found(zeros) == [("count", "zero", "said_ok", []), ("force", "zero", "said_ok", [])]


def test_a_tool_that_requires_nothing_has_nothing_to_try() -> None:
    """It is listed, and no reason to fail."""
    audited = audit("nothing_required")
    assert (audited.status, audited.calls, exit_code([audited])) == ("nothing_required", (), 0)


def test_drawn_values_break_the_schema_and_are_the_same_each_time() -> None:
    """Near misses and other types, none of which a tool could take for a path out of its workspace."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "size": {"type": "integer", "minimum": 3, "maximum": 9},
            "mode": {"enum": ["fast", "slow"], "type": "string"},
            "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
            "part": {"$ref": "#/$defs/Part"},
            "odd": {"type": "oddity", "default": "x"},
        },
        "required": ["size", "mode", "code", "part", "odd"],
        "$defs": {"Part": {"type": "object", "properties": {"of": {"$ref": "#/$defs/Part"}}}},
    }
    contract = Tool(name="t", description="", input_schema=schema, function=lambda **_: "ok")
    calls = []
    for _ in range(2):
        (audited,) = audit_tools([Target("t", schema, contract, contract=contract)])
        calls.append([(one.probe.field, one.probe.flaw, one.probe.input) for one in audited.calls])
    assert calls[0] == calls[1]
    drawn = {name: [sent[name] for field, flaw, sent in calls[0] if (field, flaw) == (name, "invalid")] for name in
             ("size", "mode", "code", "part")}  # fmt: skip
    assert any(type(one) is int and one < 3 for one in drawn["size"])
    assert any(type(one) is int and one > 9 for one in drawn["size"])
    assert any(isinstance(one, str) for one in drawn["mode"])
    assert any(isinstance(one, str) for one in drawn["code"])
    assert {len(values) <= 8 for values in drawn.values()} == {True}
    assert not [text for values in drawn.values() for one in values for text in [str(one)] if set(text) & set("/\\~$")]
    assert drawn["part"] != []
    assert not [one for one in drawn["part"] if isinstance(one, dict)]
    assert [note.split(":")[0] for note in audited.notes] == ["`odd`"]


def test_the_workspace_given_is_copied(tmp_path: Path) -> None:
    """Calls find the user's files, and the folder itself is untouched, also behind a link."""
    outside, given = tmp_path / "outside.md", tmp_path / "given"
    outside.write_text("precious")
    given.mkdir()
    (given / "linked.md").symlink_to(outside)
    audited = audit("truncates", Plan(disposable=True, examples=0, limit=30, workspace=given))
    assert found(audited)[0][3] == ["linked.md emptied (8 → 0 bytes)"]
    assert outside.read_text() == "precious"


def test_a_wrong_example_is_refused() -> None:
    """An example that breaks the schema itself would make every finding worthless."""
    with pytest.raises(ToolError, match=r"the example for 'truncates' is no valid input: `content` is required"):
        audit("truncates", Plan(examples=0, inputs={"truncates": {"path": "a"}}))


def test_an_example_names_files_that_then_exist() -> None:
    """What an example calls by a path is put into the workspace."""
    plan = Plan(disposable=True, examples=0, limit=30, inputs={"truncates": {"path": "docs/plan.md", "content": "x"}})
    assert found(audit("truncates", plan))[-1][3] == ["docs/plan.md emptied (36 → 0 bytes)"]


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install, and how to go without."""
    monkeypatch.setattr("harness.audit.draws.find_spec", lambda name: None if "json" in name else importlib.util)
    with pytest.raises(HarnessError, match=r"needs hypothesis-jsonschema.*trajectory-harness\[audit\].*--draws 0"):
        audit("truncates", Plan(disposable=True))
