"""Puts the page together: template, style, script and data in one text, under a policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from harness.report.lines import printable
from harness.report.page.details import entry_details
from harness.report.page.overview import index_row, overview_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinja2 import Template

    from harness.report.entries import Report

__all__ = ["embedded_json", "render_page"]

SCRIPTS: Final = (
    "elements.js",
    "address.js",
    "charts.js",
    "lanes.js",
    "crashes.js",
    "details.js",
    "filters.js",
    "list.js",
    "keys.js",
    "start.js",
)
"""In the order in which they need each other; on the page they are one function."""

_UNSAFE: Final = re.compile("[<>&]")


def render_page(report: Report, step: Callable[[], object] | None = None) -> str:
    """The report as one HTML page.

    Nothing in it comes from a network, and its policy (CSP) forbids all but its own style and script.  Names and
    messages are data: made printable, escaped in JSON and in the template, and put into the page as text only.

    Args:
        report: of a run, or of a diff.
        step: called after each case, for a progress bar.
    """
    tools: dict[str, int] = {}
    index = [index_row(entry, report, tools) for entry in report.entries]
    details = []
    for entry in report.entries:
        details.append(embedded_json(entry_details(entry, report)))
        if step is not None:
            step()
    style, script = _style(), _script()
    return _template().render(
        title=printable(report.title),
        commit=printable(report.commit),
        before=printable(report.before),
        after=printable(report.after),
        base=printable(report.base),
        unbased=printable(report.unbased),
        ran=report.ran,
        overview=overview_of(report),
        index=index,
        data=embedded_json({"cases": index, "tools": list(tools), "base": printable(report.base), "ran": report.ran}),
        details=details,
        style=style,
        script=script,
        policy=_policy(style, script),
    )


def embedded_json(data: Any) -> str:
    """JSON that is safe inside of a script element: plain ASCII, without `<`, `>` and `&`."""
    text = json.dumps(data, separators=(",", ":"))
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _policy(style: str, script: str) -> str:
    return "; ".join((
        "default-src 'none'",
        f"script-src '{_hash(script)}'",
        f"style-src '{_hash(style)}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ))  # fmt: skip


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _read(name: str) -> str:
    return resources.files("harness.report.page").joinpath(name).read_text(encoding="utf-8")


@cache
def _style() -> str:
    return _read("page.css")


@cache
def _script() -> str:
    parts = "\n".join(_read(f"script/{name}") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_read("page.html.jinja"))
