"""What the durable state of a run costs: bytes written over a long run, and the latency of a save at its end.

    python benchmarks/store.py   # 400 turns of one call with a 10 kB result, both stores

Bytes are what the process hands to the system (`wchar` of /proc/self/io, Linux), so that the log, the folding in of the
log and every rewritten page count.  The final state is what lies on the disk when the store is closed.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from harness.agent.json_store import JsonStore
from harness.agent.results import ToolResult
from harness.agent.sqlite_store import SqliteStore
from harness.agent.state import Answered, Asked, Call, Change, Prompted, Returned, Settled, Started, State


def turn(number: int, size: int, random_source: random.Random) -> list[Change]:
    """The changes of one turn: ask, A, intent, completion, B."""
    tool_use_id = f"toolu_{number:022d}"
    call = Call(tool_use_id, number, 0, "read_file", {"path": f"notes/{number}.md"}, "read_only")
    block = {"type": "tool_use", "id": tool_use_id, "name": "read_file", "input": call.input}
    about = {
        "id": f"msg_{number:022d}",
        "model": "claude-test",
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 5000},
    }
    text = "".join(random_source.choices("abcdefghijklmnopqrstuvwxyz \n", k=size))
    return [
        Asked(),
        Answered([{"type": "text", "text": "Reading the next one."}, block], about, 5000, (call,)),
        Started(tool_use_id, 0.0),
        Settled(tool_use_id, "done", ToolResult(text), 0.0),
        Returned(),
    ]


def written() -> int:
    """Bytes that this process has handed to write calls so far."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text("ascii").splitlines())
    return int(fields["wchar"])


def measure(make: Any, turns: int, size: int, directory: Path) -> dict[str, Any]:
    """Write a run of that many turns and read it back."""
    source = random.Random(0)
    changes = [turn(number, size, source) for number in range(1, turns + 1)]
    store = make(directory)
    assert store.load() is None
    state = State("run")
    state.apply(Prompted("Read everything."))
    before = written()
    store.create(state)
    seconds: dict[str, list[float]] = {}
    for number, group in enumerate(changes, 1):
        for change in group:
            begin = time.perf_counter()
            store.commit(change)
            if number > turns - 20:
                seconds.setdefault(type(change).__name__, []).append(time.perf_counter() - begin)
    store.close()
    total = written() - before
    final = sum(path.stat().st_size for path in directory.iterdir())
    again = make(directory)
    begin = time.perf_counter()
    loaded = again.load()
    load = time.perf_counter() - begin
    again.close()
    assert loaded is not None
    assert loaded.turns == turns
    return {
        "store": make.__name__,
        "turns": turns,
        "result_bytes": size,
        "written_MB": round(total / 1e6, 2),
        "final_MB": round(final / 1e6, 2),
        "written_per_final": round(total / final, 2),
        "save_ms_at_the_end": {
            name: {"p50": round(statistics.median(times) * 1e3, 2), "max": round(max(times) * 1e3, 2)}
            for name, times in seconds.items()
        },
        "load_ms": round(load * 1e3, 1),
    }


def main() -> None:
    """Measure both stores and print one JSON line each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=400)
    parser.add_argument("--size", type=int, default=10_000, help="characters of one result")
    parser.add_argument("--directory", type=Path, default=None, help="where to write; a real disk, not a tmpfs")
    parser.add_argument("--no-json", action="store_true", help="leave out JsonStore, whose cost is quadratic")
    chosen = parser.parse_args()
    for make in [SqliteStore] if chosen.no_json else [SqliteStore, JsonStore]:
        directory = Path(tempfile.mkdtemp(dir=chosen.directory))
        try:
            print(json.dumps(measure(make, chosen.turns, chosen.size, directory)))
        finally:
            shutil.rmtree(directory)


if __name__ == "__main__":
    main()
