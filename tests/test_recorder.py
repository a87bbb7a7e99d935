"""The recorder hears everything and changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import inspect
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import anthropic
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import Recorder
from harness.errors import StuckLoop
from harness.golden import dump_trace
from harness.normalize import Normalizer
from harness.stuck import Guard
from harness.trace import Intervention
from harness.wire import encode_event, stream_events

DIGEST = Normalizer().digest


def calls(recorder: Recorder) -> list[tuple[int, str, str, bool]]:
    return [(one.turn, one.tool, one.digest, one.ok) for one in recorder.trace().calls]


class Hostile:
    """An argument that objects to everything a recorder might do with it."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    def __hash__(self) -> int:
        raise RuntimeError("no hash")

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("no attributes")


def recursive() -> list[object]:
    value: list[object] = [1]
    value.append(value)
    return value


values = st.recursive(
    st.none() | st.integers() | st.floats() | st.text() | st.binary() | st.builds(Hostile) | st.builds(recursive),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
outcomes = st.one_of(
    values.map(lambda value: ("return", value)),
    st.sampled_from(
        [ValueError("x"), KeyboardInterrupt(), SystemExit(3), GeneratorExit(), asyncio.CancelledError()]
    ).map(lambda error: ("raise", error)),
)


@given(st.dictionaries(st.text(max_size=4), values, max_size=3), outcomes, st.booleans())
def test_recording_is_invisible_to_the_loop(
    arguments: dict[str, Any], outcome: tuple[str, Any], is_async: bool
) -> None:
    """The tool gets the very objects that the loop sent, the loop the very result or exception, sync or async."""
    seen: list[Any] = []

    def behave(name: str, tool_input: dict[str, Any]) -> Any:
        seen.append((name, tool_input))
        if outcome[0] == "raise":
            raise outcome[1]
        return outcome[1]

    async def behave_async(name: str, tool_input: dict[str, Any]) -> Any:
        return behave(name, tool_input)

    recorder = Recorder(writes=())
    dispatch = recorder.instrument(behave_async if is_async else behave)

    def run() -> Any:
        if not is_async:
            return dispatch("tool", arguments)
        coroutine = dispatch("tool", arguments)
        try:
            coroutine.send(None)
        except StopIteration as stop:
            return stop.value
        raise AssertionError("the coroutine did not end")

    if outcome[0] == "raise":
        with pytest.raises(BaseException) as caught:  # noqa: PT011 (any exception must be the very one)
            run()
        assert caught.value is outcome[1]
    else:
        assert run() is outcome[1]
    assert [(name, one is arguments) for name, one in seen] == [("tool", True)]
    [call] = recorder.trace().calls
    assert call.digest == DIGEST(arguments)
    assert recorder.trace().problems == ()


def test_arguments_are_taken_as_they_were_sent() -> None:
    """A tool that empties its arguments does not change what the trace says it was called with."""
    recorder = Recorder()

    def dispatch(name: str, tool_input: dict[str, Any]) -> None:
        tool_input.clear()

    sent = {"items": [1, 2]}
    recorder.instrument(dispatch)("x", sent)
    assert sent == {}
    assert calls(recorder) == [(0, "x", DIGEST({"items": [1, 2]}), True)]


def test_the_dispatcher_keeps_its_signature_and_its_kind() -> None:
    """Whoever inspects the instrumented callable finds what was there before."""

    def dispatch(name: str, tool_input: dict[str, Any], *, dry: bool = False) -> str:
        """Run a tool."""
        return name

    async def adispatch(name: str, tool_input: dict[str, Any]) -> str:
        return name

    class Tools:
        async def __call__(self, name: str, tool_input: dict[str, Any]) -> str:
            return name

    recorder = Recorder()
    assert inspect.signature(recorder.instrument(dispatch)) == inspect.signature(dispatch)
    assert recorder.instrument(dispatch).__doc__ == "Run a tool."
    assert not inspect.iscoroutinefunction(recorder.instrument(dispatch))
    assert inspect.iscoroutinefunction(recorder.instrument(adispatch))
    assert inspect.iscoroutinefunction(recorder.instrument(Tools()))


@pytest.mark.parametrize(
    "call",
    [
        lambda d: d("search", {"q": 1}),
        lambda d: d("search", tool_input={"q": 1}),
        lambda d: d(name="search", tool_input={"q": 1}),
        lambda d: d(tool_input={"q": 1}, name="search"),
    ],
    ids=["positional", "mixed", "keyword", "keyword in another order"],
)
def test_however_a_dispatcher_is_called_the_tool_is_found(call: Callable[[Any], Any]) -> None:
    """By position, by keyword, in any order."""
    recorder = Recorder()
    call(recorder.instrument(lambda name, tool_input: None))
    assert calls(recorder) == [(0, "search", DIGEST({"q": 1}), True)]


@pytest.mark.parametrize(
    "call",
    [
        lambda recorder: recorder.instrument(lambda arguments, name: None)({"q": 1}, "search"),
        lambda recorder: recorder.instrument(lambda *, input, name: None)(input={"q": 1}, name="search"),
        lambda recorder: recorder.instrument(lambda id, name, input: None)("toolu_1", "search", {"q": 1}),
        lambda recorder: recorder.instrument(lambda tool, args: None)("search", {"q": 1}),
    ],
    ids=["arguments first", "keywords only", "id first", "tool and args"],
)
def test_parameters_that_say_what_they_are_decide(call: Callable[[Recorder], Any]) -> None:
    """Wherever name and input stand, neither is taken for the other."""
    recorder = Recorder()
    call(recorder)
    assert calls(recorder) == [(0, "search", DIGEST({"q": 1}), True)]


def test_arguments_never_become_a_name() -> None:
    """A trace holds names in clear, so what is no name is not written down as one."""
    recorder = Recorder()
    recorder.instrument(lambda what, where: None)({"secret": "s3cr3t"}, 5)
    trace = recorder.trace()
    assert [call.tool for call in trace.calls] == ["unknown"]
    assert trace.problems == ("a dispatcher was called in a way that does not tell which tool it is to run",)
    assert "s3cr3t" not in dump_trace(trace)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool_use", "id": "t", "name": "search", "input": {"q": 1}},
        SimpleNamespace(name="search", input={"q": 1}),
    ],
)
def test_a_dispatcher_may_take_a_tool_use_block(block: object) -> None:
    """Loops that hand the whole block on are recorded like the others."""
    recorder = Recorder()
    recorder.instrument(lambda block: None)(block)
    assert calls(recorder) == [(0, "search", DIGEST({"q": 1}), True)]


@pytest.mark.parametrize(
    ("result", "ok"),
    [
        ({"is_error": True}, False),
        (SimpleNamespace(is_error=True), False),
        ({"is_error": False}, True),
        ("is_error", True),
    ],
)
def test_a_result_that_says_is_error_is_a_failure(result: object, ok: bool) -> None:
    """`ok` is false when the tool raised or its result said so."""
    recorder = Recorder()
    recorder.instrument(lambda name, tool_input: result)("x", {})
    assert [call.ok for call in recorder.trace().calls] == [ok]


def test_generators_are_handed_on_unread() -> None:
    """A tool that streams its result still streams it, lazily."""
    produced: list[int] = []

    def dispatch(name: str, tool_input: dict[str, Any]) -> Iterator[int]:
        for number in range(2):
            produced.append(number)
            yield number

    async def stream(name: str, tool_input: dict[str, Any]) -> AsyncIterator[int]:
        yield 1

    recorder = Recorder()
    result = recorder.instrument(dispatch)("x", {})
    assert produced == []
    assert list(result) == [0, 1]
    assert inspect.isasyncgen(recorder.instrument(stream)("y", {}))
    assert [(call.tool, call.ok) for call in recorder.trace().calls] == [("x", True), ("y", True)]


def test_coroutines_and_futures_of_plain_functions_are_followed_to_their_end() -> None:
    """A sync dispatcher that returns something to await is recorded by what comes of it."""

    async def work(ok: bool) -> str:
        await asyncio.sleep(0)
        if not ok:
            raise ValueError("no")
        return "done"

    async def main() -> list[bool]:
        recorder = Recorder()
        dispatch = recorder.instrument(lambda name, tool_input: work(tool_input["ok"]))
        assert await dispatch("a", {"ok": True}) == "done"
        with pytest.raises(ValueError, match="no"):
            await dispatch("b", {"ok": False})
        task = recorder.instrument(lambda name, tool_input: asyncio.ensure_future(work(True)))("c", {})
        assert isinstance(task, asyncio.Task)
        assert await task == "done"
        cancelled = recorder.instrument(lambda name, tool_input: asyncio.ensure_future(asyncio.sleep(60)))("d", {})
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        await asyncio.sleep(0)
        return [call.ok for call in recorder.trace().calls]

    assert asyncio.run(main()) == [True, False, True, False]


def test_cancellation_passes_through() -> None:
    """A tool that is cancelled is cancelled, and the trace says that it did not succeed."""

    async def main() -> list[bool]:
        recorder = Recorder()

        async def dispatch(name: str, tool_input: dict[str, Any]) -> None:
            await asyncio.sleep(60)

        task = asyncio.create_task(recorder.instrument(dispatch)("slow", {}))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return [call.ok for call in recorder.trace().calls]

    assert asyncio.run(main()) == [False]


# With a model ---------------------------------------------------------------------------------------------------------


def tool_use(name: str, number: int = 0, **tool_input: object) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{name}{number}", "name": name, "input": tool_input}


def message(*content: dict[str, Any], stop_reason: str | None = None) -> dict[str, Any]:
    reason = stop_reason or ("tool_use" if any(one["type"] == "tool_use" for one in content) else "end_turn")
    usage = {"input_tokens": 10, "output_tokens": 5}
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": list(content),
        "stop_reason": reason, "stop_sequence": None, "usage": usage,
    }  # fmt: skip


class Chunks(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    def __init__(self, chunks: list[bytes]) -> None:
        self.chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        yield from self.chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks:
            yield chunk


def answers(*messages: dict[str, Any] | int, cut: int | None = None, zipped: bool = False) -> httpx2.MockTransport:
    """A model that says these messages, one a request; a number is an error status.  `cut` drops the last events."""
    left = list(messages)

    def respond(request: httpx2.Request) -> httpx2.Response:
        answer = left.pop(0)
        if isinstance(answer, int):
            body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
            return httpx2.Response(answer, json=body, headers={"retry-after-ms": "1"})
        if not json.loads(request.content).get("stream"):
            body = json.dumps(answer).encode()
            headers = {"content-type": "application/json"}
            if zipped:
                return httpx2.Response(
                    200, content=gzip.compress(body), headers={**headers, "content-encoding": "gzip"}
                )
            return httpx2.Response(200, content=body, headers=headers)
        chunks = [encode_event(event, data) for event, data in stream_events(answer)][:cut]
        headers = {"content-type": "text/event-stream"}
        if zipped:
            chunks = [gzip.compress(b"".join(chunks))]
            headers["content-encoding"] = "gzip"
        return httpx2.Response(200, stream=Chunks(chunks), headers=headers)

    return httpx2.MockTransport(respond)


def client_for(transport: httpx2.MockTransport, recorder: Recorder) -> anthropic.Anthropic:
    http_client = httpx2.Client(transport=transport)
    return anthropic.Anthropic(api_key="k", http_client=http_client, middleware=[recorder.middleware])


def async_client_for(transport: httpx2.MockTransport, recorder: Recorder) -> anthropic.AsyncAnthropic:
    http_client = httpx2.AsyncClient(transport=transport)
    return anthropic.AsyncAnthropic(api_key="k", http_client=http_client, middleware=[recorder.middleware])


REQUEST: dict[str, Any] = {
    "model": "claude-sonnet-5",
    "max_tokens": 100,
    "system": "Be brief.",
    "tools": [
        {"name": "search", "input_schema": {"type": "object"}},
        {"name": "mail", "input_schema": {"type": "object"}},
    ],
}


def loop(create: Callable[..., Any], dispatch: Callable[..., Any]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
    while True:
        response = create(messages=messages, **REQUEST)
        messages.append({"role": "assistant", "content": [block.to_dict() for block in response.content]})
        uses = [block for block in response.content if block.type == "tool_use"]
        if not uses:
            return messages
        results = [
            {"type": "tool_result", "tool_use_id": use.id, "content": str(dispatch(use.name, use.input))}
            for use in uses
        ]
        messages.append({"role": "user", "content": results})


async def aloop(create: Callable[..., Any], dispatch: Callable[..., Any]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
    while True:
        response = await create(messages=messages, **REQUEST)
        messages.append({"role": "assistant", "content": [block.to_dict() for block in response.content]})
        uses = [block for block in response.content if block.type == "tool_use"]
        if not uses:
            return messages
        results = await asyncio.gather(*(dispatch(use.name, use.input) for use in uses))
        messages.append(
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": use.id, "content": str(result)}
                    for use, result in zip(uses, results, strict=True)
                ],
            }
        )


SAID = (
    message({"type": "text", "text": "Let me see."}, tool_use("search", 0, q="a"), tool_use("search", 1, q="b")),
    message(tool_use("mail", 2, to="x")),
    message({"type": "text", "text": "Done."}),
)
EXPECTED = [
    (1, "search", DIGEST({"q": "a"}), True),
    (1, "search", DIGEST({"q": "b"}), True),
    (2, "mail", DIGEST({"to": "x"}), True),
]


def stream_of(client: anthropic.Anthropic) -> Callable[..., Any]:
    def create(**request: Any) -> Any:
        with client.messages.stream(**request) as stream:
            return stream.get_final_message()

    return create


def raw_of(client: anthropic.Anthropic) -> Callable[..., Any]:
    return lambda **request: client.messages.with_raw_response.create(**request).parse()


def unread_of(client: anthropic.Anthropic) -> Callable[..., Any]:
    def create(**request: Any) -> Any:
        with client.messages.with_streaming_response.create(**request) as response:
            return response.parse()

    return create


WAYS = {
    "create": lambda client: client.messages.create,
    "stream": stream_of,
    "with_raw_response": raw_of,
    "with_streaming_response": unread_of,
    "beta": lambda client: client.beta.messages.create,
}


@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("way", WAYS)
def test_one_golden_for_every_way_to_ask(way: str, zipped: bool) -> None:
    """Streaming or not, raw or parsed, compressed or not: the trace is the same, and the loop got all it needs."""
    recorder = Recorder(writes={"mail"})
    client = client_for(answers(*SAID, zipped=zipped), recorder)
    messages = loop(WAYS[way](client), recorder.instrument(lambda name, tool_input: "ok"))
    trace = recorder.trace()
    assert messages[-1]["content"] == [{"type": "text", "text": "Done."}]
    assert calls(recorder) == EXPECTED
    assert (trace.turns, trace.stop_reasons) == (3, ("tool_use", "tool_use", "end_turn"))
    assert (trace.model, trace.writes, trace.problems) == ("claude-sonnet-5", frozenset({"mail"}), ())
    assert trace.context.prompt == DIGEST("Go.")[:8]
    assert trace.context.system == DIGEST("Be brief.")[:8]
    assert list(trace.context.tools) == ["mail", "search"]


@pytest.mark.parametrize("streaming", [False, True])
def test_async_and_concurrent_loops_have_the_same_trace(streaming: bool) -> None:
    """Calls of one response end in any order; the trace keeps the order of the response."""

    async def main() -> Recorder:
        recorder = Recorder(writes={"mail"})
        client = async_client_for(answers(*SAID), recorder)

        async def dispatch(name: str, tool_input: dict[str, Any]) -> str:
            await asyncio.sleep(0.02 if tool_input.get("q") == "a" else 0)
            return "ok"

        async def create(**request: Any) -> Any:
            if not streaming:
                return await client.messages.create(**request)
            async with client.messages.stream(**request) as stream:
                return await stream.get_final_message()

        await aloop(create, recorder.instrument(dispatch))
        return recorder

    recorder = asyncio.run(main())
    assert calls(recorder) == EXPECTED
    assert recorder.trace().stop_reasons == ("tool_use", "tool_use", "end_turn")


def test_threads_have_the_same_trace() -> None:
    """Calls that start in any order are put in the order of the response, too."""
    recorder = Recorder()
    client = client_for(answers(*SAID), recorder)
    second_began = threading.Event()

    def tool(name: str, tool_input: dict[str, Any]) -> str:
        if tool_input.get("q") == "b":
            second_began.set()
        return "ok"

    dispatch = recorder.instrument(tool)

    def first_last(name: str, tool_input: dict[str, Any]) -> str:
        if tool_input.get("q") == "a":
            second_began.wait(10)
        return dispatch(name, tool_input)

    response = client.messages.create(messages=[{"role": "user", "content": "Go."}], **REQUEST)
    with ThreadPoolExecutor(2) as pool:
        uses = [block for block in response.content if block.type == "tool_use"]
        list(pool.map(lambda use: first_last(use.name, use.input), uses))
    assert calls(recorder) == EXPECTED[:2]


def test_agents_that_share_a_recorder_keep_their_calls_apart() -> None:
    """Two agents answer their responses in any order; no call of one becomes a parallel call of the other."""
    recorder = Recorder()
    dispatch = recorder.instrument(lambda name, tool_input: "ok")
    for number in range(2):
        recorder.exchange(
            {"messages": [{"role": "user", "content": "Go."}]},
            message(tool_use("search", 2 * number, q=number), tool_use("read", 2 * number + 1, q=number)),
        )
    for number, tool in ((0, "search"), (1, "search"), (1, "read"), (0, "read")):
        dispatch(tool, {"q": number})
    assert [(call.turn, call.tool) for call in recorder.trace().calls] == [
        (1, "search"),
        (1, "read"),
        (2, "search"),
        (2, "read"),
    ]


def test_without_a_dispatcher_the_calls_come_from_the_wire() -> None:
    """A loop whose tools nobody can wrap is recorded by the results that it sends back."""
    recorder = Recorder(writes={"mail"})
    client = client_for(answers(*SAID), recorder)
    loop(client.messages.create, lambda name, tool_input: "ok")
    assert calls(recorder) == EXPECTED


def test_a_failed_result_on_the_wire_is_a_failed_call() -> None:
    """`is_error` in a tool_result is what a raising tool is to a dispatcher."""
    recorder = Recorder(calls_from="wire")
    use = tool_use("search", 0, q="a")
    recorder.exchange({"messages": [{"role": "user", "content": "Go."}]}, message(use))
    result = {"type": "tool_result", "tool_use_id": use["id"], "content": "no", "is_error": True}
    history = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    recorder.exchange({"messages": history}, message({"type": "text", "text": "Sorry."}))
    recorder.exchange({"messages": history}, message({"type": "text", "text": "Sorry."}))
    assert calls(recorder) == [(1, "search", DIGEST({"q": "a"}), False)]
    assert recorder.trace().calls[0].result == DIGEST("no")


@pytest.mark.parametrize(
    "more",
    [
        [{"role": "system", "content": "Be quick."}],
        [
            {"role": "assistant", "content": [tool_use("load", 9)]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_load9", "content": "loaded"}]},
        ],
    ],
    ids=["a system message", "a call of the loop's own"],
)
def test_what_a_loop_puts_behind_its_results_does_not_hide_them(more: list[dict[str, Any]]) -> None:
    """Results are looked for from the end of the conversation back to the answer that asked for them."""
    recorder = Recorder(calls_from="wire")
    use = tool_use("search", 0, q="a")
    asked = [{"role": "user", "content": "Go."}]
    recorder.exchange({"messages": asked}, message(use))
    answered = [
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use["id"], "content": "yes"}]},
    ]
    recorder.exchange({"messages": [*asked, *answered, *more]}, message({"type": "text", "text": "Done."}))
    assert calls(recorder) == [(1, "search", DIGEST({"q": "a"}), True)]


def test_attempts_that_failed_are_no_turns() -> None:
    """The SDK's own retries, and answers that are errors, do not count as model responses."""
    recorder = Recorder()
    client = client_for(answers(529, SAID[2]), recorder)
    client.messages.create(messages=[{"role": "user", "content": "Go."}], **REQUEST)
    assert recorder.trace().stop_reasons == ("end_turn",)


@pytest.mark.parametrize("asks_again", [True, False])
def test_a_truncated_answer_counts_only_when_the_loop_goes_on_with_it(asks_again: bool) -> None:
    """Asked again, it never was a turn; taken for an answer, it is one without a stop_reason."""
    recorder = Recorder()
    transport = answers(message({"type": "text", "text": "Half an answer"}), SAID[2], cut=4)
    client = client_for(transport, recorder)
    history: list[Any] = [{"role": "user", "content": "Go."}]
    first = stream_of(client)(messages=history, **REQUEST)
    assert first.stop_reason is None
    if asks_again:
        with pytest.raises(anthropic.APIStatusError):
            client_for(answers(500, 500, 500), recorder).messages.create(messages=history, **REQUEST)
        assert recorder.trace().stop_reasons == ()
    else:
        assert recorder.trace().stop_reasons == (None,)


@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzip"])
def test_tools_that_run_while_the_answer_still_streams_belong_to_it(zipped: bool) -> None:
    """Eager loops execute a block as soon as it is closed; the real API compresses what it streams."""
    recorder = Recorder()
    client = client_for(answers(SAID[0], zipped=zipped), recorder)
    dispatch = recorder.instrument(lambda name, tool_input: "ok")
    with client.messages.stream(messages=[{"role": "user", "content": "Go."}], **REQUEST) as stream:
        for event in stream:
            if event.type == "content_block_stop" and event.content_block.type == "tool_use":
                dispatch(event.content_block.name, event.content_block.input)
    assert calls(recorder) == EXPECTED[:2]
    assert recorder.trace().stop_reasons == ("tool_use",)


def test_other_endpoints_are_left_alone() -> None:
    """Counting tokens is no turn."""
    recorder = Recorder()
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, json={"input_tokens": 3}))
    client = client_for(transport, recorder)
    assert client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "x"}]).input_tokens == 3
    assert recorder.trace().turns == 0


@pytest.mark.parametrize(
    ("detail", "args"), [("args", {"q": DIGEST("a")[:8]}), ("digest", None), ("plain", {"q": "a"})]
)
def test_a_trace_holds_as_much_of_the_arguments_as_it_should(detail: str, args: object) -> None:
    """Digests per argument by default; none, or the values, where that was chosen."""
    recorder = Recorder(detail=detail)
    recorder.instrument(lambda name, tool_input: None)("search", {"q": "a"})
    assert [call.args for call in recorder.trace().calls] == [args]


def test_functions_of_single_tools_are_recorded_by_what_they_are_called_with() -> None:
    """Toolsets have no dispatcher; the key that the loop adds is not the model's."""
    recorder = Recorder()

    def mail(to: str, subject: str = "", idempotency_key: str = "") -> str:
        return to

    assert recorder.instrument_tool("mail", mail)("x", subject="s", idempotency_key="k1") == "x"
    assert calls(recorder) == [(0, "mail", DIGEST({"to": "x", "subject": "s"}), True)]


def test_a_fault_of_the_recorder_is_reported_and_never_raised() -> None:
    """The run goes on; the trace says that it cannot be trusted."""
    recorder = Recorder(normalizer=Normalizer())

    class Bad(dict[str, Any]):
        def get(self, *args: Any) -> Any:
            raise RuntimeError("broken request")

    recorder.exchange(Bad(), None)
    assert recorder.trace().problems == ("the recorder failed: RuntimeError: broken request",)


def test_an_answer_that_cannot_be_read_makes_the_trace_incomplete() -> None:
    """A form that nobody can listen to must not pass for a run without that turn."""
    recorder = Recorder()
    headers = {"content-type": "application/vnd.amazon.eventstream"}
    client = client_for(httpx2.MockTransport(lambda _: httpx2.Response(200, content=b"..", headers=headers)), recorder)
    client.messages.with_raw_response.create(messages=[{"role": "user", "content": "Go."}], **REQUEST)
    assert recorder.trace().problems == (
        "an answer of the model came as 'application/vnd.amazon.eventstream', which cannot be read: "
        "its turn is missing",
    )


def test_interventions_and_undeclared_writes() -> None:
    """What the guard did is part of the trace; a tool that nobody declared counts as a write."""
    recorder = Recorder()
    recorder.instrument(lambda name, tool_input: None)("anything", {})
    recorder.intervened("nudge", "ExactDuplicate")
    trace = recorder.trace(problems=["25 turns, limit 24"])
    assert trace.writes == frozenset({"anything"})
    assert trace.interventions == (Intervention(0, "nudge", "ExactDuplicate"),)
    assert trace.problems == ("25 turns, limit 24",)


def test_a_guard_judges_a_loop_of_ones_own_without_changing_it() -> None:
    """The callback hears the nudge at the third equal call; the loop gets what it would get without a guard."""
    recorder = Recorder(writes=())
    heard: list[Any] = []
    recorder.guard(Guard(), heard.append)
    dispatch = recorder.instrument(lambda name, tool_input: tool_input.clear() or "the same")
    assert [dispatch("read_file", {"path": "a"}) for _ in range(4)] == ["the same"] * 4
    assert [(one.kind, one.detector, one.at_call) for one in heard] == [
        ("nudge", "ConsecutiveDuplicate", 3),
        ("force_stop", "ConsecutiveDuplicate", 4),
    ]
    assert recorder.trace().interventions == (
        Intervention(0, "nudge", "ConsecutiveDuplicate"),
        Intervention(0, "force_stop", "ConsecutiveDuplicate"),
    )


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_guard_can_end_a_loop_that_swallows_every_exception(is_async: bool) -> None:
    """`StuckLoop` leaves the loop with the verdict and its evidence; the call that it came with did run."""
    recorder = Recorder(writes=())
    recorder.guard(Guard(), raising=True)
    ran: list[str] = []

    def tool(name: str, tool_input: dict[str, Any]) -> str:
        ran.append(name)
        return "the same"

    async def atool(name: str, tool_input: dict[str, Any]) -> str:
        return tool(name, tool_input)

    async def loop_async() -> None:
        dispatch = recorder.instrument(atool)
        for _ in range(10):
            try:
                await dispatch("read_file", {"path": "a"})
            except Exception:
                continue

    def loop_sync() -> None:
        dispatch = recorder.instrument(tool)
        for _ in range(10):
            try:
                dispatch("read_file", {"path": "a"})
            except Exception:
                continue

    with pytest.raises(StuckLoop, match="the run is stuck: ConsecutiveDuplicate at call 4") as stuck:
        asyncio.run(loop_async()) if is_async else loop_sync()
    assert stuck.value.verdict.evidence.calls == (1, 2, 3, 4)
    assert len(ran) == 4
    assert [call.ok for call in recorder.trace().calls] == [True] * 4


def test_how_calls_failed_is_kept_for_the_reader() -> None:
    """By index into the trace's calls; messages only where values may be seen, and never in the trace."""
    recorders = {detail: Recorder(case="c", detail=detail) for detail in ("args", "plain")}

    def dispatch(name: str, input: object) -> object:
        if name == "raises":
            raise LookupError("no such\n  file")
        if name == "reports":
            return {"is_error": True, "content": [{"type": "text", "text": "too " + "long " * 99}]}
        return "fine" if name == "works" else SimpleNamespace(is_error=True, content=Hostile())

    for recorder in recorders.values():
        observed = recorder.instrument(dispatch)
        for name in ("works", "raises", "reports", "hostile"):
            with contextlib.suppress(LookupError):
                observed(name, {})
        assert "no such" not in dump_trace(recorder.trace())
    assert recorders["args"].failures() == {1: "LookupError", 2: "", 3: ""}
    assert recorders["plain"].failures() == {
        1: "LookupError: no such file",
        2: f"{('too ' + 'long ' * 99)[:299]}…",
        3: "",
    }


def test_a_call_that_no_block_asked_for_is_told_from_one_that_was_asked_for() -> None:
    """A retry of the loop, and a check of its own: they stand where they ran, and the trace says what they are."""
    recorder = Recorder()
    dispatch = recorder.instrument(lambda name, tool_input: "ok")
    dispatch("warm_up", {})
    recorder.exchange(
        {"messages": [{"role": "user", "content": "Go."}]},
        message(tool_use("read", 0, q=1), tool_use("pay", 1, cents=5)),
    )
    for name, sent in (("check", {}), ("pay", {"cents": 5}), ("pay", {"cents": 5}), ("read", {"q": 1}), ("log", {})):
        dispatch(name, sent)
    assert [(one.turn, one.tool, one.asked) for one in recorder.trace().calls] == [
        (0, "warm_up", True),
        (1, "check", False),
        (1, "read", True),
        (1, "log", False),
        (1, "pay", True),
        (1, "pay", False),
    ]
