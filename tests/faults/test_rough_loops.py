"""Loops that do not behave: each is bounded, reported and cleaned up after."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.faults.sweep import Plan, Sweep, sweep

CASE = """\
agent: loop:run
prompt: Go.
tools:
  look: {effect: read_only, input: {at: string}, returns: ok}
model:
  name: claude-test
  script:
    - call: {look: {at: a}}
    - say: Done.
"""

LOOP = """\
import os, signal, subprocess, sys, time
from pathlib import Path

def run(client, tools, dispatch, state_dir):
    mark = Path(state_dir, "mark")
    resumed = mark.exists()
    mark.touch()
    messages = [{{"role": "user", "content": "Go."}}]
    {before}
    while True:
        response = client.messages.create(model="m", max_tokens=9, tools=tools, messages=messages)
        messages.append({{"role": "assistant", "content": response.content}})
        uses = [block for block in response.content if block.type == "tool_use"]
        if not uses:
            return
        results = [
            {{"type": "tool_result", "tool_use_id": use.id, "content": str(dispatch(use.name, use.input))}}
            for use in uses
        ]
        messages.append({{"role": "user", "content": results}})
"""

IGNORES = "signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGINT, signal.SIG_IGN)"


def loop(before: str) -> str:
    return LOOP.format(before=before)


def descendants_named(mark: str) -> list[int]:
    """Processes of this machine whose command line holds a mark."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("stubborn", ["", IGNORES])
def test_a_loop_that_hangs_when_it_resumes_is_ended_and_reported(swept: Callable[..., Sweep], stubborn: str) -> None:
    """It is killed at its time limit, whatever signals it ignores, and after a few of those the rest is left out."""
    begin = time.monotonic()
    found = swept(loop(f"{stubborn or 'pass'}\n    if resumed: time.sleep(3600)"), CASE, jobs=1, least=0.3, limit=0.3)
    assert time.monotonic() - begin < 20
    tried = [one for one in found.crashes if one.outcome != "not_tried"]
    assert [one.outcome for one in tried] == ["liveness"] * 3
    assert "resuming the finished run did not end within" in tried[0].breaches[0].message
    assert "life 2 did not end within" in tried[1].breaches[0].message
    assert found.not_tried == len(found.points) - 3
    assert len(found.broken) == 3


def test_a_run_that_never_ends_is_not_swept(swept: Callable[..., Sweep]) -> None:
    """Nothing can be said about kills when the run does not end without one."""
    with pytest.raises(HarnessError, match=r"the run did not end within 0\.3 s, and nobody had killed it"):
        swept(loop("time.sleep(3600)"), CASE, limit=0.3)


def test_processes_that_a_loop_leaves_are_ended(swept: Callable[..., Sweep]) -> None:
    """A child in a session of its own outlives the kill, as it would in earnest; the sweep ends and counts it."""
    mark = f"4{os.getpid()}1"
    start = f"subprocess.Popen(['sleep', '{mark}'], start_new_session=True)"
    found = swept(loop(start), CASE, points=("turn1.model.*",))
    # Two of each history: the killed life's, the resumed one's; and one of the look at the finished run.
    assert [one.left for one in found.crashes] == [3, 3]
    assert descendants_named(mark) == []


def test_a_flood_of_output_is_read_on_and_forgotten(swept: Callable[..., Sweep]) -> None:
    """A loop that writes without end neither blocks nor fills anybody's memory; what is shown is the first part."""
    found = swept(
        loop("os.write(1, b'first words ' * 3)\n    for _ in range(300): os.write(1, b'x' * 65536)\n"
             "    if resumed: raise RuntimeError('broken')"),
        CASE, points=("turn1.model.before",),
    )  # fmt: skip
    (crash,) = found.crashes
    assert crash.outcome == "world"
    assert crash.breaches[0].message == "life 2 failed: the loop raised RuntimeError at loop.py:11"
    assert len(crash.output) <= 4000


def test_a_loop_that_leaves_by_itself_is_reported(swept: Callable[..., Sweep]) -> None:
    """`os._exit` in a resumed life is no end of the run."""
    found = swept(loop("if resumed: os._exit(7)"), CASE, points=("turn1.model.before",))
    assert [breach.message for breach in found.crashes[0].breaches] == [
        "life 2 was not killed, and did not come to its end: exit code 7"
    ]


def test_another_workspace_is_another_world(swept: Callable[..., Sweep]) -> None:
    """Files that a resumed life leaves otherwise than the smooth run are named."""
    notes = (
        "open('log', 'a').write('begun\\n'); resumed and Path('stray').touch(); Path('gone').unlink(missing_ok=resumed)"
    )
    found = swept(loop(notes), CASE + "workspace: {gone: '', kept: ''}\n", points=("turn1.model.before",))
    (message,) = (one.message for one in found.crashes[0].breaches if one.invariant == "world")
    assert message == "the workspace is another one: file added: ['stray']; changed: ['log']"


def test_a_life_that_does_not_come_to_its_point_is_a_failure(swept: Callable[..., Sweep]) -> None:
    """A run that goes another way each time cannot be swept in good faith."""
    once = loop(
        "seen = Path(__file__).with_name('seen')\n"
        "    if not seen.exists(): Path(state_dir, 'extra').touch()\n"
        "    seen.touch()"
    )
    (crash,) = swept(once, CASE, points=("start.save2.open.before",)).crashes
    assert crash.outcome == "not_reached"
    assert crash.breaches[0].message == "life 1 did not die at start.save2.open.before: it ended with exit code 0"


def test_nothing_is_left_behind(subject: Callable[..., object], tmp_path: Path) -> None:
    """No process, no lock, no temporary file, no change of this process's directory or environment; and what a sweep
    has left that was killed itself is removed by the next one.
    """
    ended = subprocess.Popen(["true"])
    ended.wait()
    place = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path(tempfile.gettempdir())
    stray = place / f"harness-crash-{ended.pid}-killed"
    stray.mkdir()
    directory, environment = Path.cwd(), dict(os.environ)
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    own = children.read_text() if children.exists() else ""
    leaves = loop("import tempfile; tempfile.mkdtemp(); tempfile.NamedTemporaryFile(delete=False)")
    found = sweep(subject(leaves, CASE), Plan(points=("turn1.*",)))  # type: ignore[arg-type]
    assert len(found.crashes) == 4
    assert sorted(place.glob(f"harness-crash-{os.getpid()}-*")) == []
    assert not stray.exists()
    assert (Path.cwd(), dict(os.environ)) == (directory, environment)
    assert (children.read_text() if children.exists() else "") == own
