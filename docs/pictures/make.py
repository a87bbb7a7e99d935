"""Makes the pictures of the README anew: `python docs/pictures/make.py`.

A small shop is set up in a temporary folder and its paths are accepted.  Then its loop becomes "more careful" in a
branch, one golden is accepted anew, and the cases run again.  What is photographed is that run: its page in Chromium,
and what the command printed.  Needs git, playwright and Chromium.
"""

from __future__ import annotations

import contextlib
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
COLUMNS = 118

LOOP = """\
def run(prompt, client, tools, dispatch):
    messages = [{"role": "user", "content": prompt}]
    while True:
        answer = client.messages.create(model="claude-sonnet-5", max_tokens=1024, tools=tools, messages=messages)
        messages.append({"role": "assistant", "content": answer.content})
        uses = [block for block in answer.content if block.type == "tool_use"]
        if not uses:
            return
        messages.append({"role": "user", "content": [perform(use, dispatch) for use in uses]})


def perform(use, dispatch):
    result = dispatch(use.name, use.input)
    return {"type": "tool_result", "tool_use_id": use.id, "content": str(result)}
"""
PLAIN = "    result = dispatch(use.name, use.input)\n"
CAREFUL = """\
    if use.name in ("refund", "cancel_order"):
        dispatch("find_order", {"id": use.input["id"]})  # it may have changed in the meantime
    result = dispatch(use.name, use.input)
    if "pending" in str(result):
        result = dispatch(use.name, use.input)  # make sure that it went through
"""

TOOLS = """\
tools:
  find_order: {effect: read_only, input: {id: string}, returns: {cents: 1200, status: paid}}
  get_customer: {effect: read_only, input: {id: integer}, returns: {name: Ada}}
  read_policy: {effect: read_only, input: {name: string}, returns: 30 days}
  search: {effect: read_only, input: {query: string}, returns: [late parcels]}
  refund: {effect: irreversible, input: {id: string, cents: integer}, returns: {status: REFUND}}
  cancel_order: {effect: irreversible, input: {id: string}, returns: {status: cancelled}}
  send_email: {effect: irreversible, input: {to: string, subject: string}, returns: sent}
"""
LOOK = """\
    - call: {find_order: {id: "7"}}
    - call:
        - get_customer: {id: 12}
        - read_policy: {name: refunds}
"""
REFUND = '    - call: {refund: {id: "7", cents: 1200}}\n'
MAIL = "    - call: {send_email: {to: ada@example.com, subject: Your refund}}\n"
SEARCH = "    - call: {search: {query: late parcels}}\n"
CANCEL = '    - call: {cancel_order: {id: "7"}}\n'
STEPS = {
    "answers/opening_hours": SEARCH,
    "answers/policy": "    - call: {read_policy: {name: refunds}}\n",
    "orders/cancel": LOOK + CANCEL,
    "orders/cancel_and_tell": LOOK + CANCEL + MAIL,
    "orders/status": '    - call: {find_order: {id: "7"}}\n',
    "refunds/damaged": LOOK + SEARCH + REFUND,
    "refunds/late_parcel": LOOK + SEARCH + REFUND + MAIL,
    "refunds/refused": LOOK + SEARCH,
}
SLOW = "refunds/late_parcel"
"""The case whose bank answers that the refund is pending."""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="harness-pictures-") as folder:
        shop = Path(folder, "shop")
        shop.mkdir()
        set_up(shop)
        printed = drifted(shop)
        draw_terminal(printed)
        photograph(shop / "page.html")
    for path in sorted([*HERE.glob("*.png"), *HERE.glob("*.svg")]):
        print(f"{path.name:<16} {path.stat().st_size / 1000:6.0f} kB")
    return 0


def set_up(shop: Path) -> None:
    """The shop on its main branch, all paths accepted."""
    (shop / "shop_loop.py").write_text(LOOP)
    (shop / "pyproject.toml").write_text("[tool.harness]\n")
    (shop / ".gitignore").write_text(".harness/\n__pycache__/\n")
    for case, steps in STEPS.items():
        path = shop / "cases" / f"{case}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        status = "pending" if case == SLOW else "done"
        text = f"agent: shop_loop:run\nprompt: Help the customer of order 7.\n{TOOLS}"
        text += f"model:\n  name: claude-sonnet-5\n  script:\n{steps}    - say: Done.\n"
        path.write_text(text.replace("REFUND", status))
    run(shop, "git", "init", "-qb", "main")
    harness(shop, "run", "--update-golden")
    commit(shop, "Refund late parcels")


def drifted(shop: Path) -> str:
    """A branch makes the loop more careful and accepts one of the paths; what the command prints of another."""
    run(shop, "git", "checkout", "-qb", "more-careful")
    loop = shop / "shop_loop.py"
    loop.write_text(loop.read_text().replace(PLAIN, CAREFUL))
    harness(shop, "run", "orders/cancel", "--update-golden")
    commit(shop, "Look again before anything is written")
    harness(shop, "run", expect=1)
    harness(shop, "report", "--base", "main", "-o", "page.html")
    return on_a_terminal(shop, "run", SLOW)


def draw_terminal(printed: str) -> None:
    """What a terminal showed, as a picture that needs no font from anywhere."""
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True)
        console.print(Text.assemble(("$ ", "dim"), f"harness run {SLOW}"))
        console.print(Text.from_ansi(printed.strip()))
        svg = console.export_svg(title="harness", unique_id="drift")
    (HERE / "drift.svg").write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL), encoding="utf-8")


def photograph(page_file: Path) -> None:
    """The page from its top in the light, and a case that touches writes in the dark."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        raise SystemExit("there is no Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--disable-gpu"], timeout=30_000)
        try:
            for name, scheme, height, address in (
                ("page-light", "light", 1450, ""),
                ("page-dark", "dark", 860, f"#case={SLOW.replace('/', '%2F')}"),
            ):
                viewport = {"width": 1160, "height": height}
                context = browser.new_context(
                    offline=True, viewport=viewport, color_scheme=scheme, device_scale_factor=1.25
                )
                page = context.new_page()
                page.goto(page_file.as_uri() + address, timeout=30_000)
                page.evaluate("document.activeElement.blur()")
                page.wait_for_timeout(300)  # lines between moved calls are drawn with the next frame
                page.screenshot(path=HERE / f"{name}.png")
                context.close()
        finally:
            browser.close()


def harness(shop: Path, *arguments: str, expect: int = 0) -> None:
    run(shop, sys.executable, "-m", "harness", *arguments, expect=expect)


def commit(shop: Path, subject: str) -> None:
    run(shop, "git", "add", "-A")
    run(shop, "git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "-qm", subject)


def run(shop: Path, *command: str, expect: int = 0) -> None:
    done = subprocess.run(command, cwd=shop, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != expect:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def on_a_terminal(shop: Path, *arguments: str) -> str:
    """What the command prints where it is watched: with colours, in a window of a certain width."""
    here, there = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", *arguments],
        cwd=shop,
        stdin=there,
        stdout=there,
        stderr=there,
        env=environment,
    )
    os.close(there)
    pieces = []
    try:
        # Linux says that nobody is at the other end, where others say that it is the end.
        with contextlib.suppress(OSError):
            while piece := os.read(here, 65_536):
                pieces.append(piece)
    finally:
        os.close(here)
        process.wait(timeout=60)
    return b"".join(pieces).decode("utf-8").replace("\r\n", "\n")


if __name__ == "__main__":
    sys.exit(main())
