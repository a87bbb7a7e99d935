"""What editors know of the three languages inside a case: script, comparison policy, normalization rules.

Their parsers decide what is right (harness.model, harness.policy, harness.normalize); tests hold these fragments to
them.
"""

from __future__ import annotations

from typing import Any

__all__ = ["with_languages"]


def with_languages(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a case with the fragments of the three languages put in.

    Args:
        schema: as pydantic generated it, with `$defs`; it is left as it is.
    """
    properties, defs = schema["properties"], schema["$defs"]
    choice = defs["ModelChoice"]
    script = {"type": "array", "items": {"$ref": "#/$defs/Step"}, "minItems": 1}
    return schema | {
        "properties": properties
        | {
            "compare": _described(properties["compare"], {"$ref": "#/$defs/Compare"}),
            "normalize": _described(properties["normalize"], {"$ref": "#/$defs/Normalize"}),
        },
        "$defs": defs
        | {
            "ModelChoice": choice
            | {"properties": choice["properties"] | {"script": _described(choice["properties"]["script"], script)}},
            "Step": _STEP,
            "Call": _CALL,
            "Compare": _COMPARE,
            "Normalize": _NORMALIZE,
        },
    }


def _described(generated: dict[str, Any], fragment: dict[str, Any]) -> dict[str, Any]:
    return {"description": generated["description"], **fragment}


def _object(description: str, properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "additionalProperties": False,
        **more,
    }


def _text(description: str, *examples: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **({"examples": list(examples)} if examples else {})}


def _steps(description: str) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": "#/$defs/Step"}, "description": description}


_STOP_REASONS = [
    "compaction",
    "end_turn",
    "max_tokens",
    "model_context_window_exceeded",
    "pause_turn",
    "refusal",
    "stop_sequence",
    "tool_use",
]
_FAILURES = ["disconnect", "mid_stream", "timeout", "truncated", 400, 401, 402, 403, 404, 409, 413, 429, 500, 504, 529]

_STEP: dict[str, Any] = _object(
    "One answer of the model: `call`, `say`, `blocks` or `fail`, and what goes with it.",
    {
        "call": {
            "description": "The tools that the model asks for: one, or a list for one response with parallel calls.",
            "oneOf": [{"$ref": "#/$defs/Call"}, {"type": "array", "items": {"$ref": "#/$defs/Call"}, "minItems": 1}],
        },
        "say": _text("What the model says; alone it ends the turn with stop_reason end_turn.", "Done."),
        "think": _text("A thinking block in front of the answer."),
        "blocks": {
            "type": "array",
            "items": {"type": "object"},
            "description": "The content blocks of the response as the API sends them, for what has no shorthand.",
        },
        "stop_reason": {"enum": _STOP_REASONS, "description": "Overrides the stop_reason of the response."},
        "stop_sequence": _text("The stop sequence that was met."),
        "stop_details": {"type": "object", "description": "Details of a refusal."},
        "usage": {
            "type": "object",
            "description": "Token counts of the response.",
            "examples": [{"output_tokens": 12}],
        },
        "on_unknown": _steps("What follows instead if the model is told that a call's execution status is unknown."),
        "on_error": _steps("What follows instead if a call of this step is answered with is_error."),
        "fail": {
            "description": "The response fails: an HTTP status, or how the connection breaks.",
            "enum": _FAILURES,
        },
        "retry_after": {"type": "number", "minimum": 0, "description": "Seconds in the retry-after header."},
        "message": _text("The text of the failure.", "Overloaded"),
        "times": {"type": "integer", "minimum": 1, "description": "How many attempts fail before the script goes on."},
    },
)

_CALL: dict[str, Any] = {
    "type": "object",
    "description": "One tool call: the tool's name with its input.",
    "additionalProperties": {"type": ["object", "null"]},
    "minProperties": 1,
    "maxProperties": 1,
    "examples": [{"read_file": {"path": "notes/mon.md"}}],
}


def _facet(description: str, modes: list[str], **keys: Any) -> dict[str, Any]:
    mode = {"enum": modes}
    options = _object(description, {"policy": {"enum": modes, "description": "The mode."}, **keys})
    return {"description": description, "oneOf": [mode, options]}


_AT_MOST: dict[str, Any] = {
    "type": ["integer", "string"],
    "description": "An upper bound: absolute (12), or above the golden's ('+2', '+20%').",
    "examples": ["+20%", "+2", 12],
}


def _names(description: str, *examples: str) -> dict[str, Any]:
    either = [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
    return {"description": description, "oneOf": either, "examples": [list(examples)]}


_IGNORED_TOOLS = _names("Tools that are left out.", "web_search")
_SEQUENCES = ["exact", "unordered", "subsequence", "ignore"]
_SWITCH = ["exact", "ignore"]

_COMPARE: dict[str, Any] = _object(
    "How strictly each facet is compared; calls of write tools always are, exactly.",
    {
        "writes": _facet("Calls of tools that change the world: always exact.", ["exact"]),
        "order": _facet(
            "The order of the tools.",
            _SEQUENCES,
            at_most=_AT_MOST,
            ignore=_IGNORED_TOOLS,
            parallel={"enum": ["ordered", "unordered"], "description": "Whether order in one response counts."},
        ),
        "arguments": _facet(
            "The arguments of the calls.",
            _SWITCH,
            ignore=_names("Tools, or arguments as tool.argument.", "web_search.query"),
        ),
        "outcomes": _facet("Whether calls succeed.", _SWITCH, ignore=_IGNORED_TOOLS),
        "duplicates": _facet("Calls repeated with equal arguments.", _SWITCH, at_most=_AT_MOST, ignore=_IGNORED_TOOLS),
        "turns": _facet("The number of model responses.", _SWITCH, at_most=_AT_MOST),
        "stop_reasons": _facet("The stop_reason of each response.", _SEQUENCES),
        "interventions": _facet("Verdicts of the stuck-loop guard.", _SEQUENCES, at_most=_AT_MOST),
        "results": _facet("The results of the calls; not compared by default.", _SWITCH, ignore=_IGNORED_TOOLS),
    },
)

_NORMALIZE: dict[str, Any] = _object(
    "What varies from run to run.",
    {
        "keys": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Keys dropped at any depth; the camelCase form as well.",
            "examples": [["session"]],
        },
        "patterns": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "Name to regular expression; each match inside a text becomes <name>.",
            "examples": [{"build": "build-\\d+"}],
        },
        "keep": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Default keys or placeholders that do not vary here.",
            "examples": [["cursor"]],
        },
    },
)
