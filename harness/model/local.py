"""The local model: one brain behind every way in, which answers each request from the conversation in it alone."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from harness.model.attempts import Attempts
from harness.model.conversation import turns_of
from harness.model.protocol import Facts, Violation, check_pairs, check_shape, parse_body
from harness.model.reply import error_reply, failed_reply, json_reply, message_reply
from harness.model.steps import Answer, Fail, identifier
from harness.model.walk import locate, place_name
from harness.wire import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from harness.model.conversation import Turn
    from harness.model.reply import Reply
    from harness.model.script import Script
    from harness.model.steps import Step
    from harness.model.walk import Place

__all__ = ["FaultKind", "LocalModel", "ModelFault", "Observer"]

FaultKind: TypeAlias = Literal["exhausted", "network", "off_script", "path", "protocol"]
Request: TypeAlias = dict[str, Any]
Observer: TypeAlias = "Callable[[Request, dict[str, Any] | None], None]"

_CHARACTERS: Final = 4  # a token, in the mean of English text
_NOTHING: Final = Answer((), identifier("msg_"), (), "end_turn")


@dataclass(frozen=True, slots=True)
class ModelFault:
    """Something that the model refused, and that no script asked it to refuse.

    `kind` is `protocol` (the API would have refused it too), `off_script` (the conversation is not the script's),
    `exhausted` (the script has no step left), `path` (an endpoint that the model does not have) or `network` (a host
    other than the model's).
    """

    kind: FaultKind
    message: str


class LocalModel:
    """Answers requests to the Messages API from a script.  Safe to call from several threads.

    What it answers depends on the request, on the script, and on how many failures of the script were spent; on
    nothing else.

    Args:
        script: what it says.
        name: the model that the answers name; None repeats the one that was asked for.
        attempts: where the spent failures are counted; by default in memory.  Give a `FileAttempts` to go on counting
            after the process was killed.
        observer: called with each request and the message that answers it whole, before its first byte is sent; with
            None when it is not answered whole: refused, off the script, or scripted to fail.
        context_window: how many tokens input and output may have together (estimated); None for no limit.
        prefill: takes a final assistant message as the beginning of its answer, as models before Claude 4.6 did.

    Attributes:
        faults: what it refused, in order, for the harness to report even when the loop swallows the error.
    """

    def __init__(
        self,
        script: Script,
        *,
        name: str | None = None,
        attempts: Attempts | None = None,
        observer: Observer | None = None,
        context_window: int | None = None,
        prefill: bool = False,
    ) -> None:
        self.faults: list[ModelFault] = []
        self._script = script
        self._name = name
        self._attempts = attempts or Attempts()
        self._observer = observer
        self._context_window = context_window
        self._prefill = prefill
        self._signatures = script.signatures()
        self._lock = threading.Lock()

    def handle(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answers one HTTP request.

        Args:
            method: the HTTP method.
            target: path and query, e.g. `/v1/messages?beta=true`.
            headers: by lower-case name.
            body: as it was sent.
        """
        path, _, query = target.partition("?")
        if method != "POST" or path not in {"/v1/messages", "/v1/messages/count_tokens"}:
            missing = f"{method} {path}"
            self.report("path", f"the local model does not have {missing}")
            return error_reply(404, f"Not found: {missing}", identifier("req_", missing))
        request = parse_body(body)
        if isinstance(request, Violation):
            return self._refuse(None, request)
        beta = "anthropic-beta" in headers or "beta=true" in query.split("&")
        if path.endswith("/count_tokens"):
            return self._count(request, beta=beta, size=len(body))
        return self._respond(request, beta=beta, size=len(body))

    def respond(self, request: Request, headers: Mapping[str, str]) -> Reply:
        """Answers one request to `/v1/messages` whose body is parsed already."""
        return self._respond(request, beta="anthropic-beta" in headers, size=len(to_json(request)))

    def report(self, kind: FaultKind, message: str) -> None:
        """Remembers a fault."""
        with self._lock:
            self.faults.append(ModelFault(kind, message))

    def _respond(self, request: Request, *, beta: bool, size: int) -> Reply:
        if violation := check_shape(request, beta=beta):
            return self._refuse(request, violation)
        turns = turns_of(request["messages"])
        place = locate(self._script, turns)
        tokens = _tokens(request, size)
        facts = Facts(
            paused=place.paused,
            prefill=self._prefill,
            thinking=place.thinking,
            signatures=self._signatures,
            context_window=self._context_window,
            input_tokens=tokens,
        )
        if violation := check_pairs(request, facts, turns):
            return self._refuse(request, violation)
        if place.problem is not None:
            return self._lost(request, "off_script", str(place.problem))
        return self._play(request, place, turns, tokens)

    def _play(self, request: Request, place: Place, turns: Sequence[Turn], tokens: int) -> Reply:
        stream = request.get("stream") is True
        steps = list(place.steps())
        for step, later in self._unspent(steps, turns):
            if isinstance(step, Fail):
                self._observe(request, None)
                ahead = next((one for one in later if isinstance(one, Answer)), _NOTHING)
                message = self._message(ahead, request, tokens)
                return failed_reply(step, message, self._request_id(step, place), stream=stream)
            answer = step
            if answer.calls and (request.get("tool_choice") or {}).get("type") == "none":
                answer = answer.silenced()
            if undefined := _undefined(answer, request):
                return self._lost(request, "off_script", undefined)
            message = self._message(answer, request, tokens)
            self._observe(request, message)
            return message_reply(message, self._request_id(step, place), stream=stream)
        count = f"{place.answered} answer{'' if place.answered == 1 else 's'}"
        return self._lost(
            request,
            "exhausted",
            f"the script has no step left: the conversation of {len(request['messages'])} messages holds {count}, all"
            " that was scripted, and the loop asks for one more",
        )

    def _unspent(self, steps: Sequence[Step], turns: Sequence[Turn]) -> Iterator[tuple[Step, Sequence[Step]]]:
        """The next step whose turn it is, and what follows it.

        A failure is played as often as it says.  So is, once, an answer that leaves no mark in a conversation (an empty
        one), if anything follows it: no conversation could tell whether it was given.
        """
        for index, step in enumerate(steps):
            later = steps[index + 1 :]
            counted = isinstance(step, Fail) or (not step.shown and later)
            if not counted or self._attempts.spend(self._attempt(step, turns), getattr(step, "times", 1)):
                yield step, later
                return

    def _attempt(self, step: Step, turns: Sequence[Turn]) -> str:
        """What attempts are counted by: the place in the script, and the conversation, known by how it began.

        Not by all of it: a loop may add to its last message when it asks again, which can be the first one.
        """
        first = json.dumps(turns[0].placed[0].block, sort_keys=True)
        return hashlib.sha256(f"{self._script.digest} {place_name(step.path)} {first}".encode()).hexdigest()[:24]

    def _message(self, answer: Answer, request: Request, tokens: int) -> dict[str, Any]:
        usage = {
            "input_tokens": tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": max(1, len(to_json(answer.content)) // _CHARACTERS),
            "service_tier": "standard",
        }
        return {
            "id": answer.message_id,
            "type": "message",
            "role": "assistant",
            "model": self._name or request["model"],
            "content": list(answer.content),
            "stop_reason": answer.stop_reason,
            "stop_sequence": answer.stop_sequence,
            "stop_details": answer.stop_details,
            "usage": {**usage, **answer.usage},
        }

    def _count(self, request: Request, *, beta: bool, size: int) -> Reply:
        violation = check_shape(request, beta=beta, counting=True)
        if violation:
            return self._refuse(request, violation)
        tokens = _tokens(request, size)
        return json_reply(200, {"input_tokens": tokens}, identifier("req_", self._script.digest, "count", tokens))

    def _refuse(self, request: Request | None, violation: Violation) -> Reply:
        self.report("protocol", violation.message)
        self._observe(request, None)
        request_id = identifier("req_", self._script.digest, violation.message)
        return error_reply(violation.status, violation.message, request_id, kind=violation.type)

    def _lost(self, request: Request, kind: FaultKind, message: str) -> Reply:
        self.report(kind, message)
        self._observe(request, None)
        return error_reply(400, message, identifier("req_", self._script.digest, message))

    def _observe(self, request: Request | None, message: dict[str, Any] | None) -> None:
        if self._observer is not None and request is not None:
            self._observer(request, message)

    def _request_id(self, step: Step, place: Place) -> str:
        return identifier("req_", self._script.digest, step.path, place.answered)


def _tokens(request: Request, size: int) -> int:
    """An estimate from the size of the (compact) body in bytes, the same whether or not the answer is streamed."""
    if "stream" in request:
        size -= len('"stream":true,') if request["stream"] else len('"stream":false,')
    return max(1, size // _CHARACTERS)


def _undefined(answer: Answer, request: Request) -> str | None:
    """What to say when the script calls a tool that the request does not define."""
    defined = [tool.get("name") for tool in request.get("tools") or ()]
    if None in defined:
        return None  # a toolset: the names in it are not to be seen
    for call in answer.calls:
        if call["name"] not in defined:
            known = f"it defines {', '.join(f'`{name}`' for name in defined)}" if defined else "it defines no tools"
            return (
                f"{place_name(answer.path)} calls `{call['name']}`, a tool that the request does not define: {known}."
                " Add the tool to the case, or correct its name in the script"
            )
    return None
