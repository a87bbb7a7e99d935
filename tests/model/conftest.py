"""A correct loop, small enough to be seen through, that plays scripts to their end over raw HTTP replies."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from harness.wire import MessageReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.model.local import LocalModel
    from harness.model.reply import Reply

UNKNOWN = "The process ended before this was answered: execution status unknown."


@dataclass
class Run:
    """What a loop did: the conversation, the whole answers, and the first refusal, which ended it."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)
    refusal: str | None = None
    failed: int = 0


def read(reply: Reply) -> MessageReader:
    """Reads a reply as a client would, chunk by chunk."""
    reader = MessageReader()
    if "event-stream" in reply.headers.get("content-type", ""):
        for chunk in reply.chunks:
            reader.feed(chunk)
    else:
        reader.take_body(b"".join(reply.chunks))
    return reader


def send(model: LocalModel, body: dict[str, Any]) -> Reply:
    """One request to `/v1/messages`."""
    return model.handle("POST", "/v1/messages", {}, json.dumps(body, separators=(",", ":")).encode())


def request(messages: list[dict[str, Any]], *tools: str, **fields: Any) -> dict[str, Any]:
    """A well-formed request that defines these tools."""
    schema = {"type": "object", "properties": {}}
    defined = [{"name": name, "input_schema": schema} for name in tools]
    return {"model": "claude-sonnet-5", "max_tokens": 4096, "messages": messages, "tools": defined} | fields


def play(
    model: LocalModel,
    tools: list[str],
    outcome: Callable[[int], str] = lambda _number: "ok",
    *,
    stream: bool = False,
    most: int = 80,
) -> Run:
    """A loop that does everything right and goes on until the model refuses.

    `outcome` says for the n-th call of the run whether it went `ok`, was an `error`, or is `unknown`.
    """
    run = Run(messages=[{"role": "user", "content": "Begin."}])
    calls = 0
    for _ in range(most):
        reply = send(model, request(run.messages, *tools, stream=stream))
        reader = read(reply)
        if not reader.complete or reader.message is None:
            if reply.status == 400 and reader.error:
                run.refusal = reader.error["message"]
                return run
            run.failed += 1
            continue
        run.answers.append(reader.message)
        content = [block for block in reader.message["content"] if block["type"] != "text" or block["text"].strip()]
        if content:
            run.messages.append({"role": "assistant", "content": content})
        results = []
        for block in content:
            if block["type"] == "tool_use":
                result = {"type": "tool_result", "tool_use_id": block["id"], "content": "fine"}
                match outcome(calls):
                    case "error":
                        result |= {"content": [{"type": "text", "text": "it broke"}], "is_error": True}
                    case "unknown":
                        result |= {"content": UNKNOWN, "is_error": True}
                results.append(result)
                calls += 1
        if results:
            run.messages.append({"role": "user", "content": results})
        elif reader.message["stop_reason"] != "pause_turn" or not content:
            run.messages.append({"role": "user", "content": "Go on."})
    raise AssertionError("the script did not end")


@pytest.fixture(scope="session")
def loop() -> Callable[..., Run]:
    return play


@pytest.fixture(scope="session")
def post() -> Callable[..., Reply]:
    return send


@pytest.fixture(scope="session")
def reading() -> Callable[[Reply], MessageReader]:
    return read


@pytest.fixture(scope="session")
def asking() -> Callable[..., dict[str, Any]]:
    return request
