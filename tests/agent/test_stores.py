"""The two stores, and what they say when disk, file or neighbour are not as they should be."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.agent import Call, JsonStore, SqliteStore, StateError, StateLockedError, Store, run
from harness.agent.results import ToolResult
from harness.agent.sqlite_rows import count_changes
from harness.agent.state import (
    Answered,
    Asked,
    GaveUp,
    OwnProcess,
    ProcessBegan,
    Prompted,
    Returned,
    Settled,
    Started,
    State,
)
from harness.agent.store import open_store

BOTH = pytest.mark.parametrize("make", [SqliteStore, JsonStore])

CALL = Call("toolu_1", 1, 0, "read_file", {"path": "a"}, "read_only")
BLOCK = {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a"}}
ABOUT = {"id": "msg_1", "stop_reason": "tool_use", "usage": {"input_tokens": 3}}


def begin(store: Store) -> State:
    """A run that has just begun."""
    assert store.load() is None
    state = State("run-1")
    state.apply(Prompted("Do it."))
    store.create(state)
    return state


def fill(store: Store, result: str = "content of a") -> State:
    """A run of one turn."""
    state = begin(store)
    for change in (
        Asked(),
        Answered([BLOCK], ABOUT, 3, (CALL,)),
        Started("toolu_1", 1.5),
        Settled("toolu_1", "done", ToolResult(result), 2.5),
        Returned(),
    ):
        store.commit(change)
        state.apply(change)
    return state


def kind_of(make: Any, directory: Path) -> str:
    """The kind of error that loading gives."""
    with pytest.raises(StateError) as caught:
        make(directory).load()
    return caught.value.kind


@BOTH
class TestBoth:
    def test_what_was_committed_is_loaded(self, make: Any, tmp_path: Path) -> None:
        """A closed state opens as it was, and so does one whose process never closed it."""
        store = make(tmp_path)
        state = fill(store)
        assert make is JsonStore or SqliteStore(tmp_path)._path.with_name("state.sqlite-wal").exists()
        store._lock.release()  # a kill releases the lock and closes nothing
        again = make(tmp_path)
        loaded = again.load()
        assert (loaded.messages, loaded.turns, loaded.attempts) == (state.messages, 1, 1)
        again.close()
        store.close()

    def test_a_second_opener_is_refused(self, make: Any, tmp_path: Path) -> None:
        """The refusal names the process that holds the state, and leaves everything as it is."""
        store = make(tmp_path)
        fill(store)
        with pytest.raises(StateLockedError, match=f"process {os.getpid()} is running on") as caught:
            make(tmp_path).load()
        assert caught.value.pid == os.getpid()
        store.commit(Asked())
        store.close()
        again = make(tmp_path)
        assert again.load() is not None
        again.close()

    def test_a_change_of_the_working_directory_changes_nothing(
        self, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A tool may go elsewhere; a state given by a relative path stays where it was opened."""
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path)
        store = make("state")
        begin(store)
        monkeypatch.chdir("elsewhere")
        store.commit(Asked())
        store.close()
        again = make(tmp_path / "state")
        assert again.load().attempts == 1
        again.close()
        assert list((tmp_path / "elsewhere").iterdir()) == []

    def test_a_paused_process_is_fenced(self, make: Any, tmp_path: Path) -> None:
        """A process that lost its lock without knowing writes nothing once another one has taken over."""
        old = make(tmp_path)
        fill(old)
        (tmp_path / "lock").unlink()
        new = make(tmp_path)
        assert new.load() is not None
        new.commit(Asked())
        for _ in range(2):
            with pytest.raises(StateError) as caught:
                old.commit(Asked())
            assert caught.value.kind in ("fenced", "io")
        new.commit(Asked())
        new.close()
        old.close()
        reader = make(tmp_path)
        assert reader.load().attempts == 3
        reader.close()

    def test_a_file_that_was_cut_short_is_no_new_conversation(self, make: Any, tmp_path: Path) -> None:
        """Truncated anywhere, or emptied: an error, and the file is left as it is for whoever can mend it."""
        store = make(tmp_path)
        fill(store, "x" * 5000)
        store.close()
        path = tmp_path / make.FILE_NAME
        whole = path.read_bytes()
        for length in (0, 50, len(whole) // 2, len(whole) - 700):
            path.write_bytes(whole[:length])
            assert kind_of(make, tmp_path) == "damaged"
            assert path.read_bytes() == whole[:length]
        path.write_bytes(whole)
        again = make(tmp_path)
        assert again.load().turns == 1
        again.close()

    def test_somebody_elses_file_is_left_alone(self, make: Any, tmp_path: Path) -> None:
        """A file of that name that is not ours is refused, unchanged."""
        path = tmp_path / make.FILE_NAME
        foreign = b'{"name": "package"}' * 10 if make is SqliteStore else b'{"name": "package"}'
        path.write_bytes(foreign)
        assert kind_of(make, tmp_path) == "foreign"
        assert path.read_bytes() == foreign

    def test_a_directory_that_cannot_be_written_is_refused(self, make: Any) -> None:
        """Read-only: a typed error before the first request, not a run without memory."""
        with tmpfs("size=1m") as directory:
            store = make(directory)
            fill(store)
            store.close()
            subprocess.run(["mount", "-o", "remount,ro", directory], check=True)
            assert kind_of(make, directory) == "read_only"
            with pytest.raises(StateError) as caught:
                run(
                    "Do it.",
                    model="m",
                    client=object_that_fails(),
                    state_dir=directory / "new",
                    ledger=make is SqliteStore,
                )
            assert caught.value.kind == "read_only"

    def test_a_full_disk_stops_the_run_and_loses_nothing(self, make: Any) -> None:
        """What was acknowledged is still there, nothing is half-written, and with room the run goes on."""
        with tmpfs("size=160k") as directory:
            store = make(directory)
            state = begin(store)
            written: list[int] = []
            with pytest.raises(StateError) as caught:
                write_until_it_fails(store, written)
            assert caught.value.kind == "full"
            assert "the disk is full; make room" in str(caught.value)
            store.close()
            again = make(directory)
            loaded = again.load()
            assert loaded is not None
            assert len(loaded.messages) == len(state.messages) + len(written)
            subprocess.run(["mount", "-o", "remount,size=1m", directory], check=True)
            again.commit(Asked())
            again.close()

    def test_a_full_disk_in_the_middle_of_a_run(self, make: Any, play: Any, world: Any) -> None:
        """The run stops with a typed error, its effects are not repeated, and with room it comes to its end."""
        script = [{"call": {"send_email": {"to": "a"}}}, {"say": "x" * 170_000}]
        with tmpfs("size=160k") as directory:
            for _ in range(2):
                with pytest.raises(StateError) as caught:
                    play(script, state_dir=directory, ledger=make is SqliteStore)
                assert caught.value.kind == "full"
            subprocess.run(["mount", "-o", "remount,size=4m", directory], check=True)
            result = play(script, state_dir=directory, ledger=make is SqliteStore)
            assert (result.status, result.turns, world.done) == ("completed", 2, ["mail a"])

    def test_a_file_that_may_not_be_read_is_said_to_be_so(self, make: Any, tmp_path: Path) -> None:
        """Another user's state is an error of permission, for a process that is not root."""
        fill_and_close(make(tmp_path))
        for path in tmp_path.iterdir():
            path.chmod(0o000)
        assert as_nobody(lambda: kind_of(make, tmp_path)) == "read_only"

    def test_a_disk_that_is_full_from_the_start_leaves_no_state(self, make: Any) -> None:
        """No half-made file is left that a later process would take for a conversation."""
        with tmpfs("size=160k") as directory:
            ballast = directory / "ballast"
            with contextlib.suppress(OSError):
                ballast.write_bytes(b"x" * 156_000)
            store = make(directory)
            assert store.load() is None
            state = State("run-1")
            state.apply(Prompted("x" * 50_000))
            with pytest.raises(StateError) as caught:
                store.create(state)
            store.close()
            assert caught.value.kind == "full"
            assert not (directory / make.FILE_NAME).exists()
            ballast.unlink()
            again = make(directory)
            assert again.load() is None
            again.create(state)
            again.close()

    def test_a_stray_draft_is_never_taken_for_a_state(self, make: Any, tmp_path: Path) -> None:
        """What a killed process left half-written is passed over and written over."""
        for name in ("checkpoint.json.tmp", "state.sqlite.new", "state.sqlite.new-wal"):
            (tmp_path / name).write_bytes(b"half")
        store = make(tmp_path)
        fill(store)
        store.close()
        again = make(tmp_path)
        assert again.load().turns == 1
        again.close()

    def test_the_other_stores_state_is_not_passed_over(self, make: Any, tmp_path: Path) -> None:
        """Asking for the wrong store gives no empty conversation beside a full one."""
        fill_and_close(make(tmp_path))
        with pytest.raises(StateError, match=r"pass ledger=(True|False) to go on with it") as caught:
            open_store(tmp_path, ledger=make is JsonStore)
        assert caught.value.kind == "other_store"


def write_until_it_fails(store: Store, written: list[int]) -> None:
    """Commit until the store refuses; counts what it has acknowledged."""
    for number in range(1000):
        store.commit(Prompted(f"{number} " + "x" * 3000))
        written.append(number)


def fill_and_close(store: Store) -> None:
    fill(store)
    store.close()


def object_that_fails() -> Any:
    """A client whose every use is a failure of the test."""

    class Messages:
        def create(self, **_: Any) -> None:
            raise AssertionError("the model was asked")

    client = type("Client", (), {"messages": Messages()})
    return client()


def as_nobody(function: Any) -> str:
    """What a function returns in a process without root's rights."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setegid(65534)
                os.seteuid(65534)
            os.write(writer, str(function()).encode())
        except BaseException as error:
            os.write(writer, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as pipe:
        return pipe.read()


@contextlib.contextmanager
def tmpfs(options: str) -> Iterator[Path]:
    """A small file system of its own, where the machine lets us make one."""
    import tempfile

    directory = Path(tempfile.mkdtemp())
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", directory], check=False, capture_output=True)
    try:
        if made.returncode != 0:
            pytest.skip("only root can mount a tmpfs")
        yield directory
    finally:
        if made.returncode == 0:
            subprocess.run(["umount", "-l", directory], check=True)
        directory.rmdir()


class TestSqlite:
    def test_another_version_is_refused_before_anything_is_written(self, tmp_path: Path) -> None:
        """By name of the version, and the bytes of the file are as they were."""
        fill_and_close(SqliteStore(tmp_path))
        path = tmp_path / "state.sqlite"
        with sqlite3.connect(path) as database:
            database.execute("PRAGMA user_version = 7")
        database.close()
        before = path.read_bytes()
        with pytest.raises(StateError, match="has format version 7; this harness reads and writes 2") as caught:
            SqliteStore(tmp_path).load()
        assert (caught.value.kind, path.read_bytes()) == ("version", before)

    def test_another_programs_database_is_foreign(self, tmp_path: Path) -> None:
        """An SQLite file without our mark is somebody else's."""
        with sqlite3.connect(tmp_path / "state.sqlite") as database:
            database.execute("CREATE TABLE mine (x)")
        database.close()
        assert kind_of(SqliteStore, tmp_path) == "foreign"

    def test_a_changed_message_is_noticed(self, tmp_path: Path) -> None:
        """One flipped byte in a signature would fail every later request; it is found on loading."""
        fill_and_close(SqliteStore(tmp_path))
        with sqlite3.connect(tmp_path / "state.sqlite") as database:
            database.execute("UPDATE message SET content = replace(content, 'toolu_1', 'toolu_2') WHERE seq = 2")
        database.close()
        assert kind_of(SqliteStore, tmp_path) == "damaged"

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE call SET state = 'failed'",
            "UPDATE call SET effect = 'idempotent'",
            "UPDATE call SET tool = 'other'",
            "UPDATE call SET starts = 2",
            "UPDATE call SET started_at = 1.25",
            "UPDATE call SET is_error = 1",
            "UPDATE call SET result = replace(result, 'content', 'contend')",
            "UPDATE process SET pid = pid + 1",
            "UPDATE process SET began = 'another boot'",
        ],
    )
    def test_a_changed_record_of_the_ledger_is_noticed(self, tmp_path: Path, change: str) -> None:
        """One bit of a state, and a mail is sent again or another result believed; it is found on loading."""
        store = SqliteStore(tmp_path)
        begin(store)
        process = ProcessBegan("toolu_1", OwnProcess(7, "boot:1"))
        result = Settled("toolu_1", "done", ToolResult("content"), 2.5)
        for made in (Asked(), Answered([BLOCK], ABOUT, 3, (CALL,)), Started("toolu_1", 1.5), process, result):
            store.commit(made)
        store.close()
        with sqlite3.connect(tmp_path / "state.sqlite") as database:
            assert database.execute(change).rowcount == 1
        database.close()
        assert kind_of(SqliteStore, tmp_path) == "damaged"

    def test_the_settings_that_durability_rests_on_are_in_force(self, tmp_path: Path) -> None:
        """Write-ahead log with full synchronisation, read back and not only asked for."""
        store = SqliteStore(tmp_path)
        fill(store)
        assert store._database is not None
        assert store._database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert store._database.execute("PRAGMA synchronous").fetchone() == (2,)
        store.close()

    def test_a_log_without_its_file_is_no_new_conversation(self, tmp_path: Path) -> None:
        """A run whose main file was lost is not begun anew over a log that belongs to it."""
        store = SqliteStore(tmp_path / "a")
        fill(store)
        (tmp_path / "b").mkdir()
        (tmp_path / "b/state.sqlite-wal").write_bytes((tmp_path / "a/state.sqlite-wal").read_bytes())
        store.close()
        with pytest.raises(StateError, match=r"is missing, and its log 'state\.sqlite-wal' is there") as caught:
            SqliteStore(tmp_path / "b").load()
        assert caught.value.kind == "damaged"

    def test_a_busy_database_is_said_to_be_busy(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Somebody who holds the file open for writing in another program is named as the cause."""
        store = SqliteStore(tmp_path)
        fill(store)
        assert store._database is not None
        store._database.execute("PRAGMA busy_timeout = 10")
        other = sqlite3.connect(tmp_path / "state.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StateError, match="another program has it open for writing") as caught:
            store.commit(Asked())
        assert caught.value.kind == "locked"
        other.execute("ROLLBACK")
        other.close()
        store.commit(Asked())
        store.close()


OLD = {
    "version": 1,
    "task": "Do it.",
    "turns": 3,
    "tokensUsed": 4321,
    "messages": [
        {"role": "user", "content": "Do it."},
        {"role": "assistant", "content": [{"type": "text", "text": "Reading."}, BLOCK]},
    ],
    "pendingToolUse": {"id": "toolu_1", "name": "read_file", "input": {"path": "a"}},
}


class TestJson:
    def write(self, directory: Path, value: Any) -> bytes:
        data = json.dumps(value).encode()
        (directory / "checkpoint.json").write_bytes(data)
        return data

    def test_version_1_is_read_and_becomes_version_2_with_the_next_save(self, tmp_path: Path) -> None:
        """The published first layout goes on where it stood; reading it changes nothing."""
        data = self.write(tmp_path, OLD)
        store = JsonStore(tmp_path)
        state = store.load()
        assert state is not None
        assert (state.task, state.turns, state.tokens_used, state.messages) == ("Do it.", 3, 4321, OLD["messages"])
        assert [(call.tool_use_id, call.state) for call in state.pending] == [("toolu_1", "unrecorded")]
        assert (tmp_path / "checkpoint.json").read_bytes() == data
        store.commit(Asked())
        saved = json.loads((tmp_path / "checkpoint.json").read_bytes())
        assert (saved["version"], saved["turns"], saved["tokens_used"]) == (2, 3, 4321)
        assert saved["pending_tool_uses"] == [OLD["pendingToolUse"]]
        assert saved.keys().isdisjoint({"tokensUsed", "pendingToolUse"})
        assert saved["run_id"] == state.run_id
        store.close()

    def test_version_1_gives_every_process_the_same_keys(self, tmp_path: Path) -> None:
        """Two processes that die before the first save must not pay under two idempotency keys."""
        self.write(tmp_path, OLD)
        ids = set()
        for _ in range(2):
            store = JsonStore(tmp_path)
            state = store.load()
            assert state is not None
            ids.add(state.run_id)
            store.close()
        assert len(ids) == 1

    @pytest.mark.parametrize("version", [3, 0, "2", 2.0, None, True])
    def test_another_version_is_refused_before_anything_is_written(self, tmp_path: Path, version: Any) -> None:
        """By name of the version, and the file is as it was."""
        data = self.write(tmp_path, {**OLD, "version": version})
        with pytest.raises(StateError, match=f"has version {version!r}; this harness reads 1 and 2") as caught:
            JsonStore(tmp_path).load()
        assert (caught.value.kind, (tmp_path / "checkpoint.json").read_bytes()) == ("version", data)

    @pytest.mark.parametrize(
        "change",
        [
            {"messages": []},
            {"messages": None},
            {"turns": "many"},
            {"pendingToolUse": {"id": "toolu_9"}},
            {"task": None, "messages": [3]},
        ],
        ids=str,
    )
    def test_a_file_that_contradicts_itself_is_damaged(self, tmp_path: Path, change: dict[str, Any]) -> None:
        """Nothing is guessed: a pending call that no message asks for is an error, not a repair."""
        self.write(tmp_path, {**OLD, **change})
        assert kind_of(JsonStore, tmp_path) == "damaged"

    def test_people_can_read_the_file(self, tmp_path: Path) -> None:
        """One key a line, one message a line, in the published order."""
        fill_and_close(JsonStore(tmp_path))
        text = (tmp_path / "checkpoint.json").read_text()
        assert text.startswith(
            '{\n  "version": 2,\n  "task": "Do it.",\n  "turns": 1,\n  "tokens_used": 3,\n  "messages": [\n'
        )
        assert '    {"role":"user","content":"Do it."},\n' in text


def test_a_file_where_the_directory_should_be_is_refused(tmp_path: Path) -> None:
    """A state_dir that is a file is the user's mistake, and said so."""
    (tmp_path / "state").write_text("notes")
    with pytest.raises(StateError, match="cannot make"):
        SqliteStore(tmp_path / "state").load()


def cut(log: bytes) -> bytes:
    return log[: len(log) // 2]


def flipped(log: bytes) -> bytes:
    return log[: len(log) // 2] + bytes([log[len(log) // 2] ^ 1]) + log[len(log) // 2 + 1 :]


class TestLostCommits:
    def copy(self, source: Path, target: Path, *names: str) -> Path:
        """What a killed process leaves, or a part of it: its files while it still has them open."""
        target.mkdir()
        for name in names:
            (target / name).write_bytes((source / name).read_bytes())
        return target

    @pytest.mark.parametrize("harm", [None, bytes, cut, flipped], ids=["removed", "emptied", "cut", "flipped"])
    def test_a_log_that_lost_commits_is_no_older_conversation(self, harm: Any, tmp_path: Path) -> None:
        """A mail that was sent after the older state would be sent again; what is left of the log stays as it is."""
        store = SqliteStore(tmp_path / "a")
        fill(store)
        copy = self.copy(tmp_path / "a", tmp_path / "b", "state.sqlite", "lock")
        if harm is not None:
            log = (tmp_path / "a/state.sqlite-wal").read_bytes()
            log = b"" if harm is bytes else harm(log)
            (copy / "state.sqlite-wal").write_bytes(log)
        store.close()
        before = (copy / "state.sqlite").read_bytes()
        with pytest.raises(
            StateError, match=r"holds \d changes, and 6 were saved: its log 'state\.sqlite-wal'"
        ) as caught:
            SqliteStore(copy).load()
        assert caught.value.kind == "damaged"
        assert (copy / "state.sqlite").read_bytes() == before
        if harm is not None:
            assert (copy / "state.sqlite-wal").read_bytes() == log
        (copy / "lock").unlink()  # as the message says, for whoever wants the older state all the same
        again = SqliteStore(copy)
        assert again.load() is not None
        again.close()

    def test_a_killed_process_leaves_what_its_successor_takes(self, tmp_path: Path) -> None:
        """File, log and lock as they stood are a whole state, also when death came between commit and note."""
        store = SqliteStore(tmp_path / "a")
        fill(store)
        names = ("state.sqlite", "state.sqlite-wal", "lock")
        whole = self.copy(tmp_path / "a", tmp_path / "b", *names)
        note = (tmp_path / "a/lock").read_bytes()
        store.commit(Asked())
        behind = self.copy(tmp_path / "a", tmp_path / "c", *names)
        (behind / "lock").write_bytes(note)
        store.close()
        for directory, attempts in ((whole, 1), (behind, 2)):
            again = SqliteStore(directory)
            loaded = again.load()
            assert loaded is not None
            assert loaded.attempts == attempts
            again.close()

    def test_every_commit_counts_one(self, tmp_path: Path) -> None:
        """Whatever the change, the file counts what the note says: one more, never two, never none."""
        refused = Call("toolu_2", 1, 1, "x", {}, "read_only", state="failed", result=ToolResult("no", is_error=True))
        second = {"type": "tool_use", "id": "toolu_2", "name": "x", "input": {}}
        store = SqliteStore(tmp_path)
        begin(store)
        seen = []
        for change in (
            Asked(),
            GaveUp(),
            Asked(),
            Answered([BLOCK, second], ABOUT, 3, (CALL, refused)),
            Started("toolu_1", 1.5),
            ProcessBegan("toolu_1", OwnProcess(1, "x")),
            Started("toolu_1", 2.5),
            Settled("toolu_1", "unknown", ToolResult("?", is_error=True), 2.5),
            Returned(None, "And then?"),
            Prompted("More."),
        ):
            store.commit(change)
            with contextlib.closing(sqlite3.connect(tmp_path / "state.sqlite")) as database:
                counted = count_changes(database)
            assert (tmp_path / "lock").read_text()[16:].split() == [str(counted[1]), counted[0]]
            seen.append(counted)
        store.close()
        assert seen == [("run-1", count) for count in range(2, 12)]

    def test_the_note_of_another_run_counts_for_nothing(self, tmp_path: Path) -> None:
        """A file that was moved away makes room for a new run, shorter than the one before."""
        fill_and_close(SqliteStore(tmp_path))
        (tmp_path / "state.sqlite").rename(tmp_path / "old")
        store = SqliteStore(tmp_path)
        begin(store)
        store.close()
        assert (tmp_path / "lock").read_text()[16:].split() == ["1", "run-1"]
        again = SqliteStore(tmp_path)
        assert again.load() is not None
        again.close()
        (tmp_path / "lock").write_text(f"{'1':<15}\n900 run-2\n")
        assert again.load() is not None
        again.close()
