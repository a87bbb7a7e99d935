"""The local model: what it answers, what it remembers, and that it remembers nothing else."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.attempts import FileAttempts
from harness.model.local import LocalModel, ModelFault
from harness.model.script import Script

HI = [{"role": "user", "content": "Hi"}]
SCRIPT = Script.parse([{"fail": 529}, {"call": {"read_file": {"path": "a"}}}, {"say": "Done."}])


def said(*steps: dict[str, Any], **options: Any) -> LocalModel:
    return LocalModel(Script.parse(list(steps)), **options)


def test_an_answer_has_the_form_of_the_api(post: Any, asking: Any, reading: Any) -> None:
    """Id, type, role, model, content, how it stopped, usage; headers with the request's id."""
    model = said({"say": "Hello."})
    reply = post(model, asking(HI))
    message = reading(reply).message
    size = len(json.dumps(asking(HI), separators=(",", ":")))
    assert message == {
        "id": message["id"],
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": [{"type": "text", "text": "Hello."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "stop_details": None,
        "usage": {
            "input_tokens": size // 4,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 8,
            "service_tier": "standard",
        },
    }
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["request-id"].startswith("req_01")
    assert post(model, asking(HI)) == reply


def test_what_a_script_says_of_an_answer(post: Any, asking: Any, reading: Any) -> None:
    """Usage, refusal details and stop sequences reach the message; a name of the model replaces the one asked for."""
    model = said(
        {"say": "No.", "stop_details": {"category": "cyber"}, "usage": {"output_tokens": 3, "speed": "fast"}},
        name="claude-haiku-5",
    )
    message = reading(post(model, asking(HI))).message
    assert (message["model"], message["stop_reason"]) == ("claude-haiku-5", "refusal")
    assert message["stop_details"] == {"type": "refusal", "category": "cyber"}
    assert (message["usage"]["output_tokens"], message["usage"]["speed"]) == (3, "fast")


def test_a_parsed_request_is_answered_like_its_body(post: Any, asking: Any, reading: Any) -> None:
    """`respond` gives for a parsed request what `handle` gives for its bytes."""
    model = said({"say": "Hello."})
    assert model.respond(asking(HI), {}) == post(model, asking(HI))
    assert reading(model.respond(asking(HI, context_management={}), {"anthropic-beta": "x"})).complete
    assert model.faults == []


def test_the_observer_sees_every_request(post: Any, asking: Any) -> None:
    """It is given the message of each whole answer, and None for what was refused or failed."""
    seen: list[Any] = []
    model = LocalModel(SCRIPT, observer=lambda request, message: seen.append((request["messages"], message)))
    for tools in (["read_file"], ["read_file"], []):
        post(model, asking(HI, *tools))
    assert [(messages, message and message["stop_reason"]) for messages, message in seen] == [
        (HI, None),
        (HI, "tool_use"),
        (HI, None),
    ]


def test_counting_tokens(asking: Any) -> None:
    """`count_tokens` estimates without any step being played, and needs no max_tokens."""
    model = said({"say": "Hello."})
    body = {key: value for key, value in asking(HI).items() if key != "max_tokens"}
    sent = json.dumps(body, separators=(",", ":")).encode()
    reply = model.handle("POST", "/v1/messages/count_tokens", {}, sent)
    assert (reply.status, json.loads(reply.chunks[0])) == (200, {"input_tokens": len(sent) // 4})
    refused = model.handle("POST", "/v1/messages/count_tokens", {}, b"{}")
    assert (refused.status, model.faults) == (400, [ModelFault("protocol", "model: Field required")])


@pytest.mark.parametrize(
    ("method", "target"), [("GET", "/v1/models"), ("GET", "/v1/messages"), ("POST", "/v1/files"), ("HEAD", "/")]
)
def test_other_paths_are_not_found(method: str, target: str) -> None:
    """What the local model does not have is a 404 in the API's form, and is remembered."""
    model = said({"say": "Hello."})
    reply = model.handle(method, f"{target}?limit=5", {}, b"")
    error = json.loads(reply.chunks[0])
    assert (reply.status, error["error"]) == (
        404,
        {"type": "not_found_error", "message": f"Not found: {method} {target}"},
    )
    assert error["request_id"] == reply.headers["request-id"]
    assert model.faults == [ModelFault("path", f"the local model does not have {method} {target}")]


def test_the_beta_api(asking: Any, reading: Any) -> None:
    """`?beta=true` and the beta header open the beta API's fields; without them they are refused."""
    body = json.dumps(asking(HI, context_management={"edits": []})).encode()
    model = said({"say": "Hello."})
    assert reading(model.handle("POST", "/v1/messages?beta=true", {}, body)).complete
    assert reading(model.handle("POST", "/v1/messages", {"anthropic-beta": "context-management"}, body)).complete
    assert model.faults == []
    assert model.handle("POST", "/v1/messages?beta=false", {}, body).status == 400


def test_the_context_window_is_the_models(post: Any, asking: Any) -> None:
    """With a context window, a conversation that outgrows it is refused as too long."""
    model = said({"say": "Hello."}, context_window=5_000)
    assert post(model, asking(HI)).status == 200
    post(model, asking([{"role": "user", "content": "x" * 30_000}]))
    assert [fault.message for fault in model.faults] == ["prompt is too long: 7524 tokens > 5000 maximum"]


def test_prefill_is_for_models_that_take_it(post: Any, asking: Any) -> None:
    """A final assistant message is refused, unless the model is said to take it; then the script must know it."""
    prefilled = [*HI, {"role": "assistant", "content": "Hello."}]
    newer, older = (said({"say": "Hello."}, {"say": "Bye."}, prefill=prefill) for prefill in (False, True))
    body = {key: value for key, value in asking(prefilled).items() if key != "tools"}
    assert [post(model, body).status for model in (newer, older)] == [400, 200]


def test_another_process_goes_on_where_the_first_was_killed(tmp_path: Any, post: Any, asking: Any) -> None:
    """A new model over the same file knows the failures that were spent, and the place from the conversation."""
    first = LocalModel(SCRIPT, attempts=FileAttempts(tmp_path / "attempts"))
    assert post(first, asking(HI, "read_file")).status == 529
    second = LocalModel(SCRIPT, attempts=FileAttempts(tmp_path / "attempts"))
    assert post(second, asking(HI, "read_file")).status == 200
    assert post(LocalModel(SCRIPT), asking(HI, "read_file")).status == 529


def test_concurrent_conversations_do_not_disturb_each_other(loop: Any) -> None:
    """Several threads may run conversations with one model at once; each is led through the script."""
    steps = [{"call": [{"read_file": {"n": n}}, {"read_file": {"n": -n}}]} for n in range(8)]
    model = said(*steps, {"say": "Done."})
    runs: list[Any] = []
    threads = [threading.Thread(target=lambda: runs.append(loop(model, ["read_file"]))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(run.answers) for run in runs] == [9] * 6
    assert [fault.kind for fault in model.faults] == ["exhausted"] * 6


def test_a_toolset_hides_its_names(post: Any, asking: Any) -> None:
    """Where the request offers a toolset, a scripted call is not held against the tools that have names."""
    model = said({"call": {"click": {}}})
    toolset = [{"type": "browser_toolset_20260801"}]
    assert post(model, asking(HI, tools=toolset)).status == 200


junk = st.recursive(
    st.sampled_from(
        [None, True, 0, -1, 1.5, "", " ", "x", "user", "assistant", "system", "text", "tool_use", "toolu_1"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "role", "content", "text", "id", "name", "input", "tool_use_id", "is_error"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_no_request_breaks_the_model(post: Any, asking: Any, loop: Any, data: st.DataObject) -> None:
    """Whatever stands in the place of one value of a good conversation, the model answers it or refuses it."""
    script = Script.parse([{"think": "Hm.", "say": "a", "call": {"read_file": {"path": "a"}}}, {"say": "Done."}])
    body = asking(loop(LocalModel(script), ["read_file"]).messages[:-2], "read_file", system="Be brief.", thinking=None)
    body |= {"tool_choice": None, "stream": False}
    parent, key = body, data.draw(st.sampled_from(sorted(body)))
    while isinstance(parent[key], dict | list) and parent[key] and data.draw(st.booleans()):
        parent = parent[key]
        key = data.draw(st.sampled_from(sorted(parent) if isinstance(parent, dict) else range(len(parent))))
    parent[key] = data.draw(junk)
    assert post(LocalModel(script), body).status in {200, 400}
