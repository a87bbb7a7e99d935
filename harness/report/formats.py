"""The formats of a report that are one text, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.report.entries import Report

__all__ = ["render"]


def render(report: Report, form: str, whole: str = "") -> str:
    """The report in a format.

    Args:
        report: of a run or a diff.
        form: `markdown`, `html`, `json`, `github` or `gitlab`.
        whole: where the whole report is, for a format that has to leave something out.
    """
    match form:
        case "markdown":
            from harness.report.markdown import render_markdown

            return render_markdown(report, whole=whole)
        case "html":
            from harness.report.page import render_page

            return render_page(report)
        case "json":
            from harness.report.json_report import render_json

            return render_json(report)
        case "github":
            from harness.report.github import render_annotations

            return render_annotations(report)
        case "gitlab":
            from harness.report.gitlab import render_code_quality

            return render_code_quality(report)
    raise ValueError(f"there is no format {form!r}")
