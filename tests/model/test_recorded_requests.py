"""Traffic of the real API, from other people's tests: what it took our rules take, what it said our scripts say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.model.local import LocalModel
from harness.model.protocol import check
from harness.model.script import Script
from tests.recordings.reading import ABSENT, FOLDER, Exchange, read_exchanges, recordings

FILES = recordings()

if not FILES:
    pytest.skip(f"there are no recordings: {ABSENT}", allow_module_level=True)


def exchanges(name: str) -> list[Exchange]:
    return read_exchanges(name, (FOLDER / name).read_bytes())


def requests(name: str) -> list[tuple[dict[str, Any], bool]]:
    """What was asked of the Messages API itself and answered, and whether it was its beta form."""
    return [
        (dict(one.request), one.beta)
        for one in exchanges(name)
        if one.request is not None and one.kind == "message" and one.url.startswith("https://api.anthropic.com/")
    ]


def answers(name: str) -> list[dict[str, Any]]:
    """The messages of answers that were not streamed."""
    return [json.loads(one.text) for one in exchanges(name) if one.kind == "message" and not one.streams]


ASKING, ANSWERING = ([name for name in FILES if found(name)] for found in (requests, answers))


@pytest.mark.parametrize("name", ASKING)
def test_what_the_api_took_breaks_no_rule_of_ours(name: str) -> None:
    """No request that was answered is one that the local model would refuse."""
    assert [check(request, beta=beta) for request, beta in requests(name)] == [None] * len(requests(name))


@pytest.mark.parametrize("name", ANSWERING)
def test_what_the_api_answered_can_be_scripted(post: Any, asking: Any, reading: Any, name: str) -> None:
    """Any recorded content, in the `blocks` of a script, is answered as it was recorded, streamed or not."""
    for message in answers(name):
        script = Script.parse([{"blocks": message["content"], "stop_reason": message["stop_reason"]}])
        toolset = [{"type": "browser_toolset_20260801"}]  # a toolset hides its names, so any tool may be called
        for stream in (False, True):
            body = asking([{"role": "user", "content": "Hi"}], tools=toolset, stream=stream)
            reader = reading(post(LocalModel(script), body))
            assert (reader.message["content"], reader.complete) == (message["content"], True)
