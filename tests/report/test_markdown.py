"""The comment in a pull request: what it shows, that it is never too long, and that names stay names in it."""

from __future__ import annotations

import dataclasses
import re
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from harness.escaping import markdown_code, markdown_fence, markdown_text
from harness.report.entries import Report
from harness.report.markdown import COMMENT_LIMIT, MARKER, render_markdown
from tests.report.drifts import GROWN, SEVEN, drifted, run_of_everything
from tests.report.hostile import NASTY, names, reports
from tests.report.snapshot import check_snapshot

RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])

OURS = {"details", "summary", "code"}


class Tags(HTMLParser):
    """The tags and comments in HTML that a report brings itself, and its text outside of code."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[object] = []
        self.comments: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def prose(html: str) -> str:
    """What is left of rendered HTML when code is taken out: where a forge looks for mentions."""
    return re.sub(r"<pre>.*?</pre>|<code.*?</code>", "", html, flags=re.DOTALL)


def test_a_run_of_everything() -> None:
    """Headline, table, details, in this order; a golden accepted anew with its diff against the base branch."""
    check_snapshot("report.md", render_markdown(run_of_everything()))


def test_the_first_line_is_the_marker() -> None:
    """By it the comment is found again."""
    assert render_markdown(run_of_everything()).splitlines()[0] == MARKER == "<!-- harness-report -->"


@pytest.mark.parametrize("name", [*SEVEN, "grown"])
def test_each_drift_has_its_verdicts_its_calls_its_cost_and_its_command(name: str) -> None:
    """All facets with their verdicts, the aligned calls as a diff, how to accept."""
    entry = drifted("case", {**SEVEN, "grown": GROWN}[name])
    assert entry.change.drift
    text = render_markdown(Report.of("shop", "golden", "now", [entry], ran=True))
    for facet, verdict in entry.change.drift.verdicts.items():
        assert f"- **{facet}**: {markdown_text(verdict)}" in text
    assert re.search(r"^[-+!] ", text, re.MULTILINE)
    assert "**cost**: calls " in text
    assert "**accept**: <code>harness accept case</code>" in text


def test_what_passes_is_only_counted() -> None:
    """Unless its golden is not what it was."""
    text = render_markdown(run_of_everything())
    assert "1 matches" in text
    assert "quiet" not in text
    assert "<details><summary><code>blessed</code>: matches, golden accepted anew in this branch" in text
    assert "accepted anew in this branch" in text


def test_a_run_in_which_all_is_well() -> None:
    """One sentence."""
    everything = run_of_everything()
    text = render_markdown(dataclasses.replace(everything, entries=everything.entries[-1:]))
    assert text == (
        "<!-- harness-report -->\n## Trajectories: No path changed\n\n1 matches. "
        "Goldens are compared with <code>main</code> as well. Commit <code>3464efe+</code>.\n"
    )


def many(count: int) -> Report:
    grown = drifted("x", GROWN)
    cases = [dataclasses.replace(grown, case=f"folder/case_{number:04}") for number in range(count)]
    return Report.of("shop", "golden", "now", cases, ran=True)


def test_a_thousand_drifts_fit_and_those_left_out_are_counted() -> None:
    """Below the limit, with as many details as there is room for, and the number of those without."""
    text = render_markdown(many(1_000), whole="https://ci.example/runs/1")
    assert 50_000 < len(text.encode()) < COMMENT_LIMIT
    rows, details = text.count("\n| <code>"), text.count("<details>")
    assert rows > 50
    assert details > 5
    assert text.endswith(
        f"The table leaves out {1_000 - rows} cases; details of {1_000 - details} more cases did not fit. "
        "Whole report: <https://ci.example/runs/1>\n"
    )


def test_one_huge_trace_leaves_room_for_the_others() -> None:
    """The calls of one case are cut, with the number of differences that are missing."""
    everything = render_markdown(many(3))
    assert everything.count("<details>") == 3


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(reports(), st.sampled_from([4_000, COMMENT_LIMIT]), names)
def test_no_name_is_markup_and_no_report_is_too_long(report: Report, limit: int, whole: str) -> None:
    """Rendered, a report has our tags and no others: no link, no image, no mention, no comment but the marker."""
    text = render_markdown(report, limit, whole)
    assert len(text.encode("utf-8", "backslashreplace")) < limit
    tokens = RENDERER.parse(text)
    html, kinds = Tags(), set()
    for token in tokens:
        kinds.add(token.type)
        inner = token.children or []
        kinds |= {child.type for child in inner}
        html.feed("".join(one.content for one in [token, *inner] if one.type in ("html_block", "html_inline")))
    assert html.tags <= OURS
    assert html.attributes == []
    assert html.comments == [" harness-report "]
    assert not kinds & {"link_open", "image", "em_open", "s_open", "blockquote_open", "hr", "code_block", "heading"}
    assert sum(token.type == "heading_open" for token in tokens) == 1
    assert sum(token.type == "table_open" for token in tokens) <= 1
    outside = unescape(prose(RENDERER.render(text)))
    assert not re.search(r"[@#]\w|https?://|www\.\w", outside)
    cells = {line.count(" | ") for line in text.split("\n") if line.startswith("| ")}
    assert len(cells) <= 1  # every row has as many cells as the head


@given(names)
def test_escaped_text_renders_as_itself(name: str) -> None:
    """Escaping is not censoring: a reader sees the name, but for spaces of no width."""
    line = " ".join(name.split("\n")).replace("\r", " ").replace("\x00", "")
    if "`" in line or line != line.strip() or not line.isprintable():
        return
    for rendered in (RENDERER.renderInline(markdown_text(line)), RENDERER.renderInline(markdown_code(line))):
        text = re.sub(r"</?code>", "", rendered).replace("\u200b", "")
        text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")
        assert text == line or not line


@pytest.mark.parametrize("name", NASTY)
def test_a_fence_ends_where_it_should(name: str) -> None:
    """However many backticks a call has in its name."""
    (token,) = RENDERER.parse(markdown_fence(f"+ {name}".replace("\n", " ").replace("\r", " "), "diff"))
    assert token.type == "fence"
