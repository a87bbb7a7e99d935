"""The HTML page of 1,000 cases of 50 calls: time to render it, and until it is open and can be used in Chromium.

    python benchmarks/page.py

Budgets: 3 s to render, 2 s to open.  Every second case drifted (1.6 times the calls), the others match.  The page is
open when the list stands, a case that a link names is drawn, and the browser has painted; the median of five loads is
told.  Fails when a budget is broken; without playwright or Chromium the second half is left out, and says so.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from harness.changes import Change
from harness.drift import compare
from harness.normalize import Normalizer
from harness.report.entries import Counts, Entry, Report
from harness.report.page import render_page
from harness.stuck.audit import audit
from harness.trace import Call, Trace

CASES = 1_000
CALLS = 50
TOOLS = ("search", "read_file", "get_order", "list_dir", "run_tests", "edit_file", "send_email")
NORMALIZER = Normalizer()

# What is waited for: two frames after the last script ran, the details that the link asks for are on the screen.
PAINTED = """() => new Promise((done) => {
  if (!document.querySelector('.details .lanes')) throw new Error('the case is not open');
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
})"""


def call(turn: int, number: int, case: int) -> Call:
    digest, args = NORMALIZER.digest_call({"path": f"src/{case}/{number}.py", "limit": number})
    return Call(turn, TOOLS[(number + case) % len(TOOLS)], digest, True, args)


def entry(case: int) -> Entry:
    name = f"group_{case % 20}/case_{case:04}"
    calls = tuple(call(1 + number // 2, number, case) for number in range(CALLS))
    golden = traced(name, calls)
    if case % 2:
        return Entry(name, Change(name, "same", golden), "same", counts=Counts.of(golden), audit=audit(golden))
    more = tuple(call(2 + CALLS // 2 + number // 2, CALLS + number, case) for number in range(CALLS * 6 // 10))
    now = traced(name, (*calls[: CALLS // 2 - 1], *calls[CALLS // 2 :], *more))
    drift = compare(golden, now)
    change = Change(name, "changed", golden, now, drift)
    return Entry(name, change, "drift", drift.headline, counts=Counts.of(now), audit=audit(now))


def traced(name: str, calls: tuple[Call, ...]) -> Trace:
    turns = calls[-1].turn + 1
    return Trace(
        name, calls, turns, ("tool_use",) * (turns - 1) + ("end_turn",), writes=frozenset({"send_email", "edit_file"})
    )


def opening(path: Path, chromium: str) -> float:
    """Median seconds from the order to open the page until it can be used."""
    from playwright.sync_api import sync_playwright

    quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=quiet, timeout=30_000)
        try:
            times = []
            for _ in range(5):
                context = browser.new_context(offline=True)
                page = context.new_page()
                page.goto(path.as_uri() + "#case=group_0%2Fcase_0500", timeout=30_000)
                times.append(page.evaluate(PAINTED) / 1000)
                context.close()
        finally:
            browser.close()
    return statistics.median(times)


def main() -> int:
    entries = [entry(case) for case in range(CASES)]
    times = []
    for _ in range(3):
        # Rendered anew: what a drift has found out once, it keeps.
        fresh = [entry(case) for case in range(CASES)] if times else entries
        start = time.perf_counter()
        text = render_page(Report.of("shop", "golden", "now", fresh, ran=True))
        times.append(time.perf_counter() - start)
    rendering = statistics.median(times)
    size = len(text.encode()) / 1e6
    print(f"page of {CASES:,} cases of {CALLS} calls     {size:6.1f} MB")
    print(f"rendered                           {rendering:6.2f} s    budget 3 s")
    broken = rendering > 3
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        import playwright  # noqa: F401
    except ImportError:
        chromium = None
    if chromium is None:
        print("opened                             not tried: there is no playwright, or no Chromium")
        return int(broken)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "page.html")
        path.write_text(text, encoding="utf-8")
        opened = opening(path, chromium)
    print(f"opened, a case drawn, painted      {opened:6.2f} s    budget 2 s")
    return int(broken or opened > 2)


if __name__ == "__main__":
    sys.exit(main())
