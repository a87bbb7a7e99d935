"""Goldens on disk: their text, the ways in which one can be unusable, and writes that never leave half a file."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import Call, HarnessError, Trace, load_golden
from harness.atomic import remove_strays, write_atomically
from harness.errors import GoldenError
from harness.golden import GoldenStore, dump_trace, load_trace, parse_trace
from harness.project import Project
from harness.trace import Context, Intervention

TRACE = Trace(
    case="notes/weekly_summary",
    calls=(
        Call(1, "list_dir", "3f2a9c11d0e4", True, {"path": "91ab03cd"}, "aaaaaaaaaaaa"),
        Call(2, "read_file", "77e0aa120b5f", True, {"path": "0c5d77aa"}),
        Call(2, "read_file", "77e0aa120b5f", False, {"path": "0c5d77aa"}),
        Call(3, "send_email", "e19b6c02a7d3", True, {"to": "b80f9d3e", "subject": "5ac0e1f2"}),
    ),
    turns=4,
    stop_reasons=("tool_use", "tool_use", "tool_use", "end_turn"),
    interventions=(Intervention(3, "nudge", "ExactDuplicate"),),
    writes=frozenset({"send_email"}),
    model="claude-sonnet-5",
    context=Context("6b7d21fa", None, {"list_dir": "0a1f77c2"}),
)
TEXT = """\
{
  "schema": "harness.trace/1",
  "case": "notes/weekly_summary",
  "model": "claude-sonnet-5",
  "context": {"prompt": "6b7d21fa", "system": null, "tools": {"list_dir": "0a1f77c2"}},
  "turns": 4,
  "stop_reasons": ["tool_use", "tool_use", "tool_use", "end_turn"],
  "calls": [
    {"turn": 1, "tool": "list_dir", "digest": "3f2a9c11d0e4", "args": {"path": "91ab03cd"}, "ok": true},
    {"turn": 2, "tool": "read_file", "digest": "77e0aa120b5f", "args": {"path": "0c5d77aa"}, "ok": true},
    {"turn": 2, "tool": "read_file", "digest": "77e0aa120b5f", "args": {"path": "0c5d77aa"}, "ok": false},
    {"turn": 3, "tool": "send_email", "digest": "e19b6c02a7d3", "args": {"subject": "5ac0e1f2", "to": "b80f9d3e"}, "ok": true}
  ],
  "interventions": [{"turn": 3, "verdict": "nudge", "detector": "ExactDuplicate"}],
  "summary": {"calls": 4, "duplicates": {"read_file": 1}, "writes": {"send_email": 1}}
}
"""  # noqa: E501 (one call is one line, whatever its length)


def test_a_golden_reads_well_in_a_diff() -> None:
    """One call a line, keys in order, nothing volatile, a final newline."""
    assert dump_trace(TRACE, results=False) == TEXT


def test_an_observed_trace_also_holds_results_and_problems() -> None:
    """What waits for a decision says what was answered, and why it must not be accepted as it is."""
    observed = dataclasses.replace(TRACE, problems=("25 turns, limit 24",))
    text = dump_trace(observed)
    assert '"ok": true, "result": "aaaaaaaaaaaa"}' in text
    assert text.endswith('"writes": {"send_email": 1}},\n  "problems": ["25 turns, limit 24"]\n}\n')
    assert parse_trace(text, "x") == observed


names = st.text(min_size=1, max_size=6)
digests = st.text("0123456789abcdef", min_size=12, max_size=12)
calls = st.builds(
    Call,
    st.integers(0, 5),
    names,
    digests,
    st.booleans(),
    st.none() | st.dictionaries(names, digests, max_size=2),
    digests,
    st.booleans(),
)


@given(st.lists(calls, max_size=5), st.lists(st.none() | names, max_size=3), st.none() | names, st.data())
def test_what_is_written_is_read_back(
    ones: list[Call], reasons: list[str | None], model: str | None, data: st.DataObject
) -> None:
    """Any trace survives the way through its file, lone surrogates and all."""
    tools = sorted({one.tool for one in ones})
    writes = frozenset(data.draw(st.lists(st.sampled_from(tools)))) if tools else frozenset()
    trace = Trace("a/b", tuple(ones), len(reasons), tuple(reasons), writes=writes, model=model)
    text = dump_trace(trace)
    text.encode("utf-8")
    assert parse_trace(text, "x") == trace


def edited(**changes: object) -> str:
    return json.dumps(json.loads(TEXT) | changes)


UNUSABLE = {
    "not JSON": ("{", "not_json", "g.json is not JSON: "),
    "empty": ("", "not_json", "g.json is not JSON: "),
    "a list": ("[]", "invalid", "g.json is not a trace: its top level is no object"),
    "conflict": (
        TEXT.replace('  "turns": 4,\n', '<<<<<<< HEAD\n  "turns": 4,\n=======\n  "turns": 5,\n>>>>>>> topic\n'),
        "conflict",
        "g.json holds unresolved merge conflict markers; finish merging the code, run the case, ",
    ),
    "later schema": (
        edited(schema="harness.trace/2"),
        "newer",
        "g.json has the later schema 'harness.trace/2', this version reads 'harness.trace/1'; upgrade ",
    ),
    "older schema": (
        edited(schema="harness.trace/0"),
        "older",
        "g.json has the older schema 'harness.trace/0'; accept ",
    ),
    "other schema": (edited(schema="x"), "invalid", "g.json is not a trace: its schema is 'x', not 'harness.trace/1'"),
    "a call removed by hand": (
        edited(calls=json.loads(TEXT)["calls"][:-1]),
        "edited",
        """g.json was edited by hand: its summary says """
        """{"calls": 4, "duplicates": {"read_file": 1}, "writes": {"send_email": 1}}, its calls give """
        """{"calls": 3, "duplicates": {"read_file": 1}, "writes": {}}; restore it from git or accept a new run""",
    ),
    "a key twice": (
        TEXT.replace('  "turns": 4,', '  "turns": 5,\n  "turns": 4,'),
        "edited",
        "g.json was edited by hand: the key 'turns' stands twice; restore it from git",
    ),
    "a key that nobody writes": (edited(note="fine"), "edited", "g.json was edited by hand: 'note' cannot have been "),
    "turns without stop_reasons": (
        edited(turns=5),
        "edited",
        "g.json was edited by hand: it has not as many stop_reasons",
    ),
    "no calls": ('{"schema": "harness.trace/1"}', "invalid", "g.json is not a trace of schema harness.trace/1: "),
    "turns as text": (edited(turns="4"), "invalid", "g.json is not a trace of schema harness.trace/1: turns is '4'"),
    "ok as text": (
        edited(calls=[{"turn": 1, "tool": "x", "digest": "d", "ok": "yes"}]),
        "invalid",
        "g.json is not a trace of schema harness.trace/1: calls[0].ok is 'yes'",
    ),
    "nested without end": ("[" * 100_000, "not_json", "g.json is not JSON: "),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_an_unusable_golden_says_why_and_what_to_do(name: str) -> None:
    """Each way in which a golden can be wrong has its own message."""
    text, kind, message = UNUSABLE[name]
    with pytest.raises(GoldenError) as error:
        parse_trace(text, "g.json")
    assert (error.value.kind, str(error.value)[: len(message)]) == (kind, message)


def test_output_that_looks_like_conflict_markers_is_no_conflict() -> None:
    """A plain argument that holds `=======` on a line of its own is just a value."""
    call = Call(1, "x", "d", True, {"text": "<<<<<<< HEAD\n=======\n>>>>>>> x"})
    trace = Trace("c", (call,), detail="plain")
    assert parse_trace(dump_trace(trace), "x") == trace


def test_a_golden_is_found_by_its_case_and_refused_for_another(tmp_path: Path) -> None:
    """Missing and foreign goldens name the file and the next command."""
    project = Project.at(tmp_path)
    with pytest.raises(GoldenError) as missing:
        load_golden("notes/weekly_summary", project)
    assert str(missing.value) == (
        "no golden yet: golden_traces/notes/weekly_summary.json does not exist; look at the trace, "
        "then accept it with: pytest --update-golden, or: harness accept notes/weekly_summary"
    )
    GoldenStore.of(project).save(TRACE)
    assert load_golden("notes/weekly_summary", project) == dataclasses.replace(
        TRACE, calls=tuple(dataclasses.replace(call, result=None) for call in TRACE.calls)
    )
    (tmp_path / "golden_traces/notes/renamed.json").write_text(TEXT)
    with pytest.raises(GoldenError) as foreign:
        load_golden("notes/renamed", project)
    assert foreign.value.kind == "foreign"
    assert "belongs to another case, 'notes/weekly_summary'" in str(foreign.value)


def test_a_wrong_digest_key_is_an_error_and_no_drift(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Digests under different keys cannot be compared, and the message says which key is which."""
    monkeypatch.setenv("HARNESS_DIGEST_KEY", "one")
    store = GoldenStore.of(Project.at(tmp_path))
    store.save(dataclasses.replace(TRACE, digest_key=store.fingerprint))
    assert store.load(TRACE.case).digest_key == store.fingerprint
    for value, reason in (("two", "but HARNESS_DIGEST_KEY is "), ("", "but HARNESS_DIGEST_KEY is not set")):
        monkeypatch.setenv("HARNESS_DIGEST_KEY", value)
        with pytest.raises(GoldenError, match=reason) as error:
            load_golden(TRACE.case, Project.at(tmp_path))
        assert error.value.kind == "wrong_key"


@pytest.mark.parametrize("kind", ["folder", "latin-1", "unreadable"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, kind: str) -> None:
    """A folder in its place, another encoding, no permission: one message, no traceback."""
    path = tmp_path / "g.json"
    if kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(TEXT.encode() + (b"\xe9" if kind == "latin-1" else b""))
    if kind == "unreadable":
        if os.geteuid() == 0:
            pytest.skip("root may read anything")
        path.chmod(0)
    with pytest.raises(HarnessError) as error:
        load_trace(path, "g.json")
    assert str(error.value).startswith(("g.json cannot be read: ", "g.json is not UTF-8 (byte "))


def test_orphans_are_the_goldens_without_a_case(tmp_path: Path) -> None:
    """A crash golden belongs to its case, the golden of a test to its file; hidden files are nobody's business."""
    store = GoldenStore(tmp_path, tmp_path)
    (tmp_path / "test_it.py").touch()
    store.save(Trace("of_a_test", owner="test_it.py"))
    store.save(Trace("of_a_lost_test", owner="test_lost.py"))
    for name in ("a.json", "a.crash.json", "b/c.json", "b/d.json", ".hidden.json", "b/e.crash.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    orphans = [path.relative_to(tmp_path).as_posix() for path in store.orphans({"a", "b/c"})]
    assert orphans == ["b/d.json", "b/e.crash.json", "of_a_lost_test.json"]


def test_equal_bytes_are_not_written_again(tmp_path: Path) -> None:
    """A second update is a no-op: same inode, same time."""
    store = GoldenStore(tmp_path, tmp_path)
    assert store.save(TRACE)
    before = store.path(TRACE.case).stat()
    assert not store.save(TRACE)
    assert store.path(TRACE.case).stat() == before


def test_a_folder_that_cannot_be_written_leaves_the_old_golden(tmp_path: Path) -> None:
    """The message names the file and the reason; what was there is unchanged and nothing lies beside it."""
    store = GoldenStore(tmp_path / "golden_traces", tmp_path)
    store.save(TRACE)
    path = store.path(TRACE.case)
    before = path.read_bytes()
    in_the_way = dataclasses.replace(TRACE, case="notes/weekly_summary.json/inner")
    with pytest.raises(GoldenError, match=r"could not be written: .*; what was there is unchanged"):
        store.save(in_the_way)
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    """A write that fails in the middle (here: a file size limit) keeps the old file and leaves no other."""
    script = textwrap.dedent("""
        import resource, signal, sys
        from pathlib import Path
        from harness.atomic import write_atomically
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            write_atomically(Path(sys.argv[1]), b"n" * 5000)
        except OSError as error:
            print(error.errno)
    """)
    path = tmp_path / "g.json"
    path.write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "27"
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["g.json"]


def test_a_kill_at_any_moment_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    """SIGKILL in the middle of many writes: the file is whole, and nothing that looks like a golden lies about."""
    script = textwrap.dedent("""
        import sys
        from pathlib import Path
        from harness.atomic import write_atomically
        print("ready", flush=True)
        while True:
            for letter in b"ab":
                write_atomically(Path(sys.argv[1]), bytes([letter]) * 200_000)
    """)
    path = tmp_path / "g.json"
    write_atomically(path, b"a" * 200_000)
    for delay in (0.0, 0.004, 0.009, 0.013, 0.02, 0.03):
        child = subprocess.Popen([sys.executable, "-c", script, path], stdout=subprocess.PIPE)
        try:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(delay)
        finally:
            child.send_signal(signal.SIGKILL)
            child.communicate(timeout=60)
        assert path.read_bytes() in (b"a" * 200_000, b"b" * 200_000)
        remove_strays(tmp_path)
        assert [one.name for one in tmp_path.iterdir()] == ["g.json"]


def test_strays_of_living_writers_stay(tmp_path: Path) -> None:
    """Only what a dead writer left is removed."""
    mine, dead = tmp_path / f".g.json.{os.getpid()}.tmp", tmp_path / ".g.json.4194303.tmp"
    other = tmp_path / ".notes.tmp"
    for path in (mine, dead, other):
        path.write_text("")
    assert remove_strays(tmp_path) == [dead]
    assert sorted(tmp_path.iterdir()) == sorted([mine, other])
