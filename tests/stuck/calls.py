"""Calls for the tests of the stuck guard, in few words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.stuck import Config, Record, record_of
from harness.stuck.digests import digest_of
from harness.stuck.labelled_check import outcome_of

CONFIG = Config()


def call(tool: str, arguments: object, result: object = None, **how: Any) -> Record:
    """A call as a dispatcher sees it, with what is declared about its tool by default."""
    return record_of(tool, arguments, result, profile=CONFIG.profile(tool), **how)


def read(path: str, result: object = "same", turn: int | None = None) -> Record:
    """A successful read of a file."""
    return call("read_file", {"path": path}, result, read_only=True, turn=turn)


def edit(number: int, result: object = None) -> Record:
    """A successful edit that has not been made before."""
    return call("edit_file", {"path": "src", "change": number}, result or f"src@{number}")


def send(body: str, result: object, turn: int | None = None) -> Record:
    """A message that goes out; the result is its id."""
    return call("send_message", {"to": "bo", "body": body}, result, turn=turn)


def fail(
    tool: str, arguments: object, error: str = "no such thing", kind: Any = "other", turn: int | None = None
) -> Record:
    """A call that failed."""
    return call(tool, arguments, error, ok=False, error_class=kind, turn=turn)


def ask(tool: str, arguments: object, result: object, *traits: Any) -> Record:
    """A read by a tool of other people, with the traits that they declare."""
    return replace(call(tool, arguments, result, read_only=True), traits=frozenset(traits))


def grep(pattern: str, found: str = "") -> Record:
    """A search in files."""
    return call("grep", {"pattern": pattern}, found, read_only=True)


def think(thought: object = None, turn: int | None = None) -> Record:
    """A thought; None is none."""
    return call("think", {} if thought is None else {"thought": thought}, "noted", turn=turn)


def shot(result: object = "p") -> Record:
    """A screenshot."""
    return call("screenshot", {"target": "screen"}, result, read_only=True)


def script(source: str, result: object = "done", **how: Any) -> Record:
    """A user interface driven by a script, which answers with data."""
    return call("applescript", {"src": source}, result, **how)


def web(query: str, sources: list[str] | None = None, topic: str | None = None, turn: int | None = None) -> Record:
    """A web search about a topic, with what it found."""
    record = call(
        "web_search",
        {"query": query},
        [f"https://{one}/" for one in sources or [query.replace(" ", "-")]],
        read_only=True,
        turn=turn,
    )
    return record if topic is None else replace(record, topic_digest=digest_of("topic", topic))


def verdicts(*items: Any, config: Config | None = None) -> list[tuple[int, str, str]]:
    """What the guard says, up to the stop: call, verdict, detector."""
    return list(outcome_of(items, config)[0].trace)


def via(*items: Any, config: Config | None = None) -> str | None:
    """What made the verdict that decides."""
    return outcome_of(items, config)[0].via
