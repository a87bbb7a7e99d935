"""What the YAML parser complains about, said for people.

Both parsers of PyYAML are covered, since the one in C is not in every build; they agree on positions and differ in
wording.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness.errors import Problem

if TYPE_CHECKING:
    import yaml

__all__ = ["explain"]


def explain(error: yaml.MarkedYAMLError, text: str) -> Problem:
    """One problem for one syntax error.

    Args:
        error: as PyYAML raised it; its positions count from 0.
        text: what was parsed.
    """
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    start = error.context_mark
    since = f"at line {start.line + 1}, column {start.column + 1}" if start else "above"
    said = error.problem or ""
    context = error.context or ""

    tab = _tab_in_indentation(text, line)
    if tab is not None:
        return Problem("a tab in the indentation; YAML takes spaces only", "", line, tab)
    if "cannot start any token" in said:
        found = text.splitlines()[line - 1][column - 1 : column]
        if found == "\t":
            return Problem("a tab in the indentation; YAML takes spaces only", "", line, column)
        return Problem(f"a value cannot start with {found!r}; quote it", "", line, column)
    if "mapping values are not allowed" in said:
        message = "a ':' where no key can stand; quote a text that holds ': ', or correct the indentation"
        return Problem(message, "", line, column)
    if "quoted scalar" in context and "end of stream" in said and start:
        return Problem("a quoted text that never ends", "", start.line + 1, start.column + 1)
    if "unknown escape" in said:
        message = "an unknown escape in double quotes; write \\\\ for a backslash, or use single quotes"
        return Problem(message, "", line, column)
    if "escape" in said:  # half of a pair of \\u escapes, which is JSON's way of writing an emoji
        return Problem("an escape in double quotes that is no character; write the character itself", "", line, column)
    if "could not find expected ':'" in said and start:
        return Problem("a key without ':'; write 'key: value'", "", start.line + 1, start.column + 1)
    closing = re.search(r"expected ',' or '([\]}])'", said)
    if closing:
        kind = "list" if closing[1] == "]" else "mapping"
        message = f"',' or '{closing[1]}' is missing before this, in the {kind} that starts {since}"
        return Problem(message, "", line, column)
    if "block collection" in context or "block mapping" in context:
        kind = "list" if "collection" in context else "mapping"
        message = f"this does not continue the {kind} that starts {since}; check quotes and indentation"
        return Problem(message, "", line, column)
    if "document start" in said:
        return Problem("a second document starts here; a case file holds one", "", line, column)
    detail = f"{said} ({context} {since})" if context else said
    return Problem(f"not valid YAML: {detail}", "", line, column)


def _tab_in_indentation(text: str, line: int) -> int | None:
    """The column of a tab among the leading white space of a line, from 1."""
    lines = text.splitlines()
    if line > len(lines):
        return None
    content = lines[line - 1]
    indentation = content[: len(content) - len(content.lstrip(" \t"))]
    return indentation.index("\t") + 1 if "\t" in indentation else None
