"""Checked by mypy, never run: the public interface has the types that users see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

from harness import Drift, Policy, Recorder, Trace, compare, load_golden
from harness.agent import Tool, tool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def dispatch(name: str, tool_input: dict[str, Any]) -> str:
    return name


async def dispatch_async(name: str, tool_input: dict[str, Any]) -> int:
    return len(name)


recorder = Recorder(case="nightly", writes={"publish"})
# Instrumenting keeps the type of what is instrumented.
sync_dispatch: Callable[[str, dict[str, Any]], str] = recorder.instrument(dispatch)
async_dispatch: Callable[[str, dict[str, Any]], Awaitable[int]] = recorder.instrument(dispatch_async)
assert_type(recorder.trace(), Trace)
assert_type(compare(load_golden("nightly"), recorder.trace(), Policy.parse({"order": "unordered"})), Drift)
assert_type(compare(recorder.trace(), recorder.trace()).headline, str)


@tool(effect="read_only")
def read_file(path: str) -> str:
    return path


# A tool is still the function that it was.
assert_type(read_file("a.md"), str)
as_contract: Tool = read_file
