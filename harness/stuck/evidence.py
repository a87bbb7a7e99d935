"""What the detectors know of one call, and the events between calls that concern them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, TypeAlias, cast, get_args

from harness.stuck.digests import arguments_digest, digest_of, result_digest
from harness.stuck.profiles import Family, Modality, Profile, Trait
from harness.stuck.reading import sources_of, topic_of, useful_of

__all__ = ["ERROR_CLASSES", "ErrorClass", "Event", "Key", "Record", "error_class_of", "record_of"]

ErrorClass: TypeAlias = Literal[
    "validation", "permission", "not_found", "conflict", "timeout", "rate_limit", "unavailable", "internal", "other"
]
ERROR_CLASSES: Final[tuple[str, ...]] = get_args(ErrorClass)

Key: TypeAlias = tuple[str, str]
"""What makes two calls the same call: tool and digest of the arguments."""

_MARKED: Final = re.compile(r"\s*\[([a-z_]+) error\]")
_RAISED: Final = re.compile(r"\s*(?:\w+\.)*([A-Z]\w*)(?::|\Z)")
# What an exception's type says for certain.  Prose after it is not read: "please retry" is no class.
_BY_TYPE: Final[Mapping[str, ErrorClass]] = {
    "ConnectionAbortedError": "unavailable",
    "ConnectionError": "unavailable",
    "ConnectionRefusedError": "unavailable",
    "ConnectionResetError": "unavailable",
    "FileExistsError": "conflict",
    "FileNotFoundError": "not_found",
    "PermissionError": "permission",
    "RateLimitError": "rate_limit",
    "TimeoutError": "timeout",
}


class Event(Enum):
    """Something between two calls.

    `USER_MESSAGE`: a person said something; everything so far is forgiven.  A message that a guard or a loop injected
    is none (OpenHands#13954).  `COMPACTION`: results left the model's context; reading each once more is free.
    """

    USER_MESSAGE = "user_message"
    COMPACTION = "compaction"


@dataclass(frozen=True, slots=True)
class Record:
    """The evidence of one executed call.  It holds digests and no arguments, so that it may be kept and shown.

    Args:
        tool: its name as executed, a server's prefix included.
        args_digest: over all arguments, canonical.
        ok: whether the tool says that it did what it was asked.
        error_class: what kind of failure; None when ok.
        result_digest: over the whole result, or the text of the error; None is no evidence.
        read_only: whether this call changed nothing; what is not known counts as a write.
        family: the kind of work in which calls are judged together.
        modality: `visual` for a picture, `structured_ui` for a user interface that answers with data.
        topic_digest: what a web call is about, whatever the wording.
        sources_digest: what a web search found, as a set of addresses.
        useful: whether a search found anything; None counts as yes.
        traits: what the tool's owner declares.
        blank_thought: whether the input can be read and holds no `thought`.
        turn: the model response that asked for the call; calls of one turn are one step.  None: a step of its own.
        call_id: the id of the tool_use, for evidence that people can follow.
    """

    tool: str
    args_digest: str
    ok: bool = True
    error_class: ErrorClass | None = None
    result_digest: str | None = None
    read_only: bool = False
    family: Family | None = None
    modality: Modality | None = None
    topic_digest: str | None = None
    sources_digest: str | None = None
    useful: bool | None = None
    traits: frozenset[Trait] = frozenset()
    blank_thought: bool = False
    turn: int | None = None
    call_id: str = ""

    @property
    def key(self) -> Key:
        """What makes two calls the same call."""
        return (self.tool, self.args_digest)


def record_of(
    tool: str,
    arguments: object,
    result: object = None,
    *,
    ok: bool = True,
    error_class: ErrorClass | None = None,
    read_only: bool = False,
    turn: int | None = None,
    call_id: str = "",
    profile: Profile | None = None,
) -> Record:
    """Make the evidence of one call from what a dispatcher sees.

    Args:
        tool: the tool's name.
        arguments: its input; text when the model's JSON could not be parsed.
        result: what it gave, or the text of its error; None is no evidence.
        ok: whether it did what it was asked.
        error_class: what kind of failure, if the tool says so; otherwise read from the beginning of the text.
        read_only: whether this call changed nothing.
        turn: the model response that asked for it.
        call_id: the id of the tool_use.
        profile: what is declared about the tool (`Config.profile`).
    """
    profile = profile or Profile()
    family = profile.family
    topic = topic_of(arguments) if family == "web" else None
    sources = sources_of(result, topic) if family == "web" and ok else None
    return Record(
        tool=tool,
        args_digest=arguments_digest(arguments, profile.volatile_args),
        ok=ok,
        error_class=None if ok else error_class or error_class_of(result),
        result_digest=result_digest(result, profile.mask),
        read_only=read_only,
        family=family,
        modality=profile.modality,
        topic_digest=None if topic is None else digest_of("topic", topic),
        sources_digest=None if sources is None else digest_of("sources", "\n".join(sources)),
        useful=useful_of(result) if family == "search" and ok else None,
        traits=profile.traits,
        blank_thought=is_blank_thought(arguments),
        turn=turn,
        call_id=call_id,
    )


def error_class_of(text: object) -> ErrorClass:
    """The class of an error that its tool did not type: a marker such as `[validation error]`, or an exception's name.

    Nothing else is read out of the text: in cline#9276 the word "retry" in a message was taken literally.
    """
    if isinstance(text, str):
        if (marked := _MARKED.match(text)) and marked[1] in ERROR_CLASSES:
            return cast("ErrorClass", marked[1])
        if raised := _RAISED.match(text):
            return _BY_TYPE.get(raised[1], "other")
    return "other"


def is_blank_thought(arguments: object) -> bool:
    """Whether an input that could be read has no `thought`, or a blank one."""
    if not isinstance(arguments, Mapping):
        return False
    thought = arguments.get("thought")
    return not thought.strip() if isinstance(thought, str) else not thought
