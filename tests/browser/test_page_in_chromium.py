"""The page in a real Chromium: it opens from a file, filters, expands, loads nothing, and no name does anything."""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from harness.changes import Change
from harness.drift import compare
from harness.report.entries import Counts, Entry, Report
from harness.report.page import render_page
from harness.report.wording import headline
from tests.report.drifts import FIND, GOLDEN, at, call, drifted, run_of_everything, trace

api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install -e '.[test]'")

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium")

LIMIT = 8_000
"""Milliseconds that anything may take before it counts as not happening."""

EVERYTHING = run_of_everything()
SENTENCE = f"{headline(EVERYTHING)}."
HOSTILE = next(one.case for one in EVERYTHING.entries if one.case.startswith("hostile/"))

Visit = Callable[..., Any]


LINES = """cells => cells.map(cell => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return range.getClientRects().length;
})"""
"""How many lines the text of each element takes."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for all tests, each of which has a profile of its own; it ends with them."""
    # It talks to nobody by itself, so that what goes out was the page's doing.
    quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    quiet += ["--disable-component-update", "--disable-sync"]
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=quiet, timeout=4 * LIMIT)
        try:
            yield chromium
        finally:
            chromium.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Report], Path]:
    """Writes the page of a report, once."""
    folder = tmp_path_factory.mktemp("a folder with spaces & signs #1")
    numbers = count()

    def write(report: Report) -> Path:
        path = folder / f"{next(numbers)}.html"
        path.write_text(render_page(report), encoding="utf-8")
        return path

    everything = write(EVERYTHING)
    return lambda report: everything if report is EVERYTHING else write(report)


@pytest.fixture
def visit(browser: Any, pages: Callable[[Report], Path]) -> Iterator[Visit]:
    """Opens the page of a report; at the end nothing may have been loaded, logged or asked but the page itself."""
    contexts: list[Any] = []
    unwanted: list[str] = []

    def open_page(report: Report = EVERYTHING, address: str = "", **settings: Any) -> Any:
        url = pages(report).as_uri()
        settings.setdefault("viewport", {"width": 1280, "height": 900})
        context = browser.new_context(offline=True, **settings)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(LIMIT)

        def request(sent: Any) -> None:
            if sent.url.partition("#")[0] != url and not sent.url.startswith("data:image/svg+xml,"):
                unwanted.append(f"request: {sent.url}")

        def dialog(shown: Any) -> None:
            unwanted.append(f"dialog: {shown.message}")
            shown.dismiss()

        context.on("request", request)
        page.on("dialog", dialog)
        page.on("console", lambda message: unwanted.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: unwanted.append(f"error: {error}"))
        page.goto(url + address)
        return page

    try:
        yield open_page
    finally:
        for context in contexts:
            context.close()
    assert unwanted == []


def visible(page: Any) -> list[str]:
    """The ids of the cases that are shown."""
    return page.eval_on_selector_all(".case:not([hidden]) .id", "all => all.map((one) => one.textContent)")


def address(page: Any) -> str:
    return page.evaluate("location.hash")


def opened(page: Any) -> list[str]:
    """The ids of the cases that are open, and whose details can be seen."""
    return page.eval_on_selector_all(".opener[aria-expanded='true'] .id", "all => all.map((one) => one.textContent)")


def focused(page: Any) -> str:
    return page.evaluate("document.activeElement.querySelector?.('.id')?.textContent ?? document.activeElement.id")


def matches(page: Any) -> str:
    return page.inner_text("#matches")


def toggle(page: Any, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def test_it_opens_from_a_file(visit: Visit) -> None:
    """The verdict first, then all cases in the order of the report; nothing is open, and no details are drawn yet."""
    page = visit()
    assert page.title() == f"shop – {SENTENCE}"
    assert page.inner_text("h1") == f"✗ {SENTENCE}"
    assert visible(page) == [one.case for one in EVERYTHING.entries]
    assert (opened(page), matches(page), address(page)) == ([], "21 cases", "")
    assert page.locator(".lanes").count() == 0
    assert page.locator("#growth-list li").first.inner_text().startswith("hostile/")


def test_filters_narrow_the_list(visit: Visit) -> None:
    """Within one filter any of the pressed, across filters all; the counts and the address follow."""
    page = visit()
    toggle(page, "drifted 10")
    assert matches(page) == "10 of 21 cases"
    toggle(page, "touches writes 3")
    assert visible(page) == ["drifts/argument", "drifts/write", HOSTILE]
    toggle(page, "no golden 1")
    assert [*visible(page)[3:], address(page)] == ["first_run", "#verdict=drifted%2Cno+golden&writes=1"]
    assert page.get_by_role("button", name="touches writes 4").get_attribute("aria-pressed") == "true"
    page.click("#clear")
    assert (matches(page), address(page), focused(page)) == ("21 cases", "", "query")
    toggle(page, "accepted anew 1")
    assert visible(page) == ["blessed"]
    page.click("#clear")
    page.select_option("#tool", "<script>alert(1)</script>|`x`")
    assert visible(page) == [HOSTILE]
    page.select_option("#tool", "")
    page.fill("#query", "no such case")
    assert (visible(page), page.is_visible("#nothing"), matches(page)) == ([], True, "0 of 21 cases")


def test_a_case_opens_by_mouse(visit: Visit) -> None:
    """Facets, lanes, costs and the command are there; a second click closes it."""
    page = visit()
    opener = page.locator(".opener", has_text="drifts/argument")
    opener.click()
    assert (opened(page), address(page)) == (["drifts/argument"], "#case=drifts%2Fargument")
    details = page.locator(".details")
    assert details.locator(".facets").inner_text() == (
        "One verdict a facet, writes first\narguments\trefund (call 5): cents changed writes"
    )
    assert details.locator(".op-changed .changes").inner_text() == "cents 15197cf7 → c5d1866a"
    assert [one.inner_text() for one in details.locator("h4").all()] == [
        "What changed", "What it costs", "How to accept it",
    ]  # fmt: skip
    assert details.locator(".command code").inner_text() == "harness accept drifts/argument"
    details.locator(".copy").click()
    api.expect(details.locator(".copy")).to_have_text(re.compile("Copied|Selected"))
    opener.click()
    assert (opened(page), address(page), details.is_visible()) == ([], "", False)


def test_a_case_opens_by_keyboard(visit: Visit) -> None:
    """j and k move over what is shown, Enter and o open and close, / searches, Esc goes back, ? helps."""
    page = visit()
    press(page, "j", "j", "j", "k", "Enter")
    assert (focused(page), opened(page)) == ("drifts/write", ["drifts/write"])
    press(page, "o", "o", "Escape")
    assert (focused(page), opened(page)) == ("drifts/write", [])
    press(page, "/")
    page.keyboard.type("grown j k o ?")
    assert page.input_value("#query") == "grown j k o ?"
    press(page, "Escape")
    page.keyboard.type("drifts/g")
    assert visible(page) == ["drifts/grown"]
    press(page, "ArrowDown", "o")
    assert opened(page) == ["drifts/grown"]
    press(page, "?")
    assert page.is_visible("#help")
    press(page, "j", "Escape")
    assert (page.is_visible("#help"), focused(page)) == (False, "drifts/grown")


def test_a_link_opens_one_case(visit: Visit) -> None:
    """With the filters as they were; also of a case whose name is hostile, and while the page is open."""
    page = visit(address="#case=drifts%2Fswapped&verdict=drifted&q=drifts")
    assert (opened(page), matches(page), page.input_value("#query")) == (["drifts/swapped"], "9 of 21 cases", "drifts")
    assert focused(page) == "drifts/swapped"
    page.evaluate("(id) => { location.hash = new URLSearchParams({ case: id }); }", HOSTILE)
    api.expect(page.locator(".opener[aria-expanded=true]")).to_have_count(2)
    assert (focused(page), matches(page)) == (HOSTILE, "21 cases")
    page.click("#growth-list a >> text=drifts/grown")
    assert focused(page) == "drifts/grown"
    unknown = visit(address="#case=gone%20for%20good&verdict=nonsense")
    assert (opened(unknown), matches(unknown)) == ([], "0 of 21 cases")


def test_it_is_dark_and_light(visit: Visit) -> None:
    """As the system wishes, or as the reader does, also after it was loaded again."""
    brightness = "parseInt(getComputedStyle(document.body).backgroundColor.slice(4)) > 128"
    assert visit(color_scheme="light").evaluate(brightness) is True
    page = visit(color_scheme="dark")
    assert page.evaluate(brightness) is False
    page.click("text=Theme: system")
    page.click("text=Theme: dark")
    assert page.evaluate(brightness) is True
    page.reload()
    assert (page.inner_text("#theme"), page.evaluate(brightness)) == ("Theme: light", True)


def test_hostile_names_are_inert(visit: Visit) -> None:
    """Every case open: names are read as text, no element was made of any, and nothing ran."""
    page = visit()
    before = page.locator("script").count()
    page.eval_on_selector_all(".opener", "all => all.forEach((one) => one.click())")
    assert len(opened(page)) == 21
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == before
    tools = page.locator(".lanes b").all_inner_texts()
    assert "<script>alert(1)</script>|`x`" in tools
    assert (
        "\\n::error::a" in page.locator(".lanes .args").all_inner_texts()[tools.index("<script>alert(1)</script>|`x`")]
    )
    assert page.evaluate("document.querySelectorAll('[style],[onclick],[onerror]').length") == 0


def test_a_moved_call_leads_to_its_partner(visit: Visit) -> None:
    """A line joins both places, and each names the other."""
    page = visit(address="#case=drifts%2Fswapped")
    api.expect(page.locator(".links path")).to_have_count(2)
    page.click("text=now call 4 in turn 3")
    assert page.evaluate("document.activeElement.textContent") == "was call 1 in turn 1"
    assert page.locator("tr.lit").count() == 2


def test_what_nobody_asked_for_is_marked_and_makes_no_parallel_group(visit: Visit) -> None:
    """A refund that the loop executed twice is not two that the model asked for together."""
    now = trace(*GOLDEN.calls[:5], dataclasses.replace(GOLDEN.calls[4], asked=False), GOLDEN.calls[5])
    page = visit(Report.of("shop", "golden", "now", [drifted("retried", now)], ran=True), "#case=retried")
    assert page.locator(".parallel").all_inner_texts() == ["2 in parallel", "2 in parallel"]
    assert page.locator(".note", has_text="not asked for").count() == 1


def test_equal_stretches_are_folded(visit: Visit) -> None:
    """One line for many turns, and a button that shows them."""
    calls = [call(turn, "look", n=turn) for turn in range(1, 61)]
    changed = [*calls[:30], call(31, "look", n="other"), *calls[31:]]
    report = Report.of("s", "golden", "now", [_against("long", trace(*calls), trace(*changed))], ran=True)
    page = visit(report, "#case=long")
    folds = page.locator(".fold button")
    assert folds.all_inner_texts() == ["⋯ 29 equal calls in 29 turns", "⋯ 28 equal calls in 29 turns"]
    assert page.locator(".turn").count() == 3
    folds.first.click()
    assert (page.locator(".turn").count(), folds.count()) == (32, 1)


def test_crash_points_and_history_are_drawn(visit: Visit) -> None:
    """A square a point, ringed where it is not as in the golden; a dot a version."""
    page = visit(address="#case=crashing")
    assert page.locator(".point").count() == 18
    golden = "golden: same; refund ×1, send_email ×1; 6 turns"
    assert [one.get_attribute("title") for one in page.locator(".point.ringed").all()] == [
        f"turn5.request.after: executed_twice; refund ×1, send_email ×2; 7 turns; {golden}",
        f"turn5.save_a: unknown; refund ×1, send_email ×1; 1 given up as unknown; 8 turns; {golden}",
    ]
    page = visit(address="#case=drifts%2Fgrown")
    assert page.locator(".history .dot.calls").count() == 3


def test_the_history_breaks_no_word(visit: Visit) -> None:
    """Headers and dates stand on one line each, however long the subjects of the commits beside them are."""
    page = visit(address="#case=drifts%2Fgrown", viewport={"width": 500, "height": 800})
    cells = page.locator(".plain thead th, .plain .when")
    assert cells.count() == 10
    assert set(cells.evaluate_all(LINES)) == {1}


def test_a_golden_accepted_anew_shows_what_the_branch_did(visit: Visit) -> None:
    """Before anything else, between the base and now; it is not marked as the cases that simply match."""
    page = visit(address="#case=blessed")
    item = page.locator(".case.open")
    assert item.locator(".verdict").inner_text() == "◆ accepted anew"
    assert item.locator("h4").first.inner_text() == "◆ The golden: accepted anew in this branch"
    assert item.locator(".lanes thead").first.inner_text().split() == [
        "main",
        "what",
        "became",
        "of",
        "it",
        "golden",
        "now",
    ]


CHECKS = Path(__file__).with_name("checks.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_has_a_name_and_can_be_read(visit: Visit, scheme: str) -> None:
    """With every case open: a name for all that can be used, headings in order, landmarks, contrast as WCAG AA asks."""
    page = visit(color_scheme=scheme)
    page.eval_on_selector_all(".opener", "all => all.forEach((one) => one.click())")
    toggle(page, "drifted 10")
    assert page.evaluate(CHECKS) == []


def test_it_fits_a_phone(visit: Visit) -> None:
    """With every case open nothing makes the page wider than the screen."""
    page = visit(viewport={"width": 360, "height": 740})
    page.eval_on_selector_all(".opener", "all => all.forEach((one) => one.click())")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_on_paper_there_is_nothing_to_press(visit: Visit) -> None:
    """And it is light, whatever the screen was."""
    page = visit(address="#case=drifts%2Fgrown", color_scheme="dark")
    page.emulate_media(media="print")
    assert not page.is_visible("#filters")
    assert page.is_visible(".lanes")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_without_javascript_it_is_a_table(visit: Visit) -> None:
    """Every case with its verdict; nothing is offered that would not work."""
    page = visit(java_script_enabled=False)
    assert page.locator("noscript tbody tr").count() == 21
    assert page.is_visible("noscript table")
    assert not page.is_visible("#filters")
    assert not page.is_visible("#theme")
    assert page.inner_text("h1").endswith(SENTENCE)


def test_a_thousand_cases_stay_light(visit: Visit) -> None:
    """Of 1,000 cases of 50 calls only the list is built; what is opened is built then."""
    golden = trace(*(call(turn, f"tool_{turn % 7}", n=turn) for turn in range(1, 51)))
    grown = trace(*golden.calls, at(51, FIND))
    drift = compare(golden, grown)
    one = Entry("", Change("", "changed", golden, grown, drift), "drift", drift.headline, counts=Counts.of(grown))
    entries = [dataclasses.replace(one, case=f"group_{number % 10}/case_{number:04}") for number in range(1000)]
    page = visit(Report.of("big", "golden", "now", entries, ran=True))
    assert (matches(page), page.evaluate("document.querySelectorAll('*').length") < 30_000) == ("1,000 cases", True)
    page.fill("#query", "case_0777")
    assert visible(page) == ["group_7/case_0777"]
    press(page, "Enter", "Enter")
    assert opened(page) == ["group_7/case_0777"]
    assert page.locator(".fold button").all_inner_texts() == ["⋯ 49 equal calls in 49 turns"]


def _against(case: str, golden: Any, now: Any) -> Entry:
    drift = compare(golden, now)
    return Entry(case, Change(case, "changed", golden, now, drift), "drift", drift.headline, counts=Counts.of(now))
