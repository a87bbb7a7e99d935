"""A durable loop in one file, right as it stands, and wrong in one of many ways when `BUG` says so.

Not a test: the tests write it into a project, with another `BUG` each time, and sweep it.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from harness.agent import Tool, tool

BUG = ""


@tool(effect="read_only")
def look(at: str) -> str:
    return f"saw {at}"


@tool(effect="idempotent")
def put(name: str, idempotency_key: str | None = None) -> str:
    return f"put {name}"


@tool
def mail(to: str) -> str:
    return f"mailed {to}"


TOOLS = [look, put, mail]


class Saved:
    """The state, in one file: messages, counters, and a ledger of the calls by tool_use id."""

    def __init__(self, directory: Path, prompt: str) -> None:
        self.path = directory / "run.json"
        self.draft = directory / "run.tmp"
        self.data: dict[str, Any] = {
            "run": uuid.uuid4().hex,
            "messages": [{"role": "user", "content": prompt}],
            "turns": 0,
            "tokens": [],
            "ledger": {},
            "finished": False,
        }
        found = self.path
        if BUG == "take a stray draft for the state" and self.draft.exists():
            found = self.draft
        self.resumed = found.exists()
        if self.resumed:
            self.data = json.loads(found.read_text())
            self.on_resume()

    def on_resume(self) -> None:
        if BUG == "drop the dangling assistant message" and self.pending():
            self.data["messages"].pop()
            self.data["tokens"].pop()
            self.data["turns"] -= 1
            self.data["ledger"].clear()
        if BUG == "reset turns on resume":
            self.data["turns"] = 0
        if BUG == "count tokens from zero":
            self.data["tokens"].clear()

    def pending(self) -> list[dict[str, Any]]:
        last = self.data["messages"][-1]
        if last["role"] != "assistant":
            return []
        return [block for block in last["content"] if block["type"] == "tool_use"]

    def save(self) -> None:
        if BUG == "keep state only in a finally":
            return
        self.write()

    def write(self) -> None:
        text = json.dumps(self.data)
        if BUG == "write the checkpoint in place":
            self.path.write_text(text)
            return
        self.draft.write_text(text)
        self.draft.replace(self.path)


def run(
    prompt: str, client: Any, toolset: list[Tool], model: str, state_dir: str, max_turns: int = 9
) -> dict[str, Any]:
    saved = Saved(Path(state_dir), prompt)
    tools = {one.name: one for one in toolset}
    try:
        while not saved.data["finished"] and (saved.pending() or saved.data["turns"] < max_turns):
            if saved.pending():
                answer_calls(saved, tools)
            else:
                ask(saved, client, model, tools)
    finally:
        if BUG == "keep state only in a finally":
            saved.write()
    return {"turns": saved.data["turns"], "tokens": sum(saved.data["tokens"])}


def ask(saved: Saved, client: Any, model: str, tools: dict[str, Tool]) -> None:
    response = client.messages.create(
        model=model,
        max_tokens=99,
        tools=[one.definition() for one in tools.values()],
        messages=saved.data["messages"],
    )
    saved.data["messages"].append({"role": "assistant", "content": response.to_dict()["content"]})
    saved.data["turns"] += 1
    saved.data["tokens"].append(response.usage.output_tokens)
    saved.data["finished"] = not saved.pending()
    saved.save()


def answer_calls(saved: Saved, tools: dict[str, Tool]) -> None:
    if BUG == "checkpoint before the effect":
        uses = saved.pending()
        give(saved, [result(use["id"], "ok") for use in uses])
        for use in uses:
            execute(saved, tools[use["name"]], use)
        return
    results = [settle(saved, tools[use["name"]], use) for use in saved.pending()]
    if BUG == "answer only the first of several" and saved.resumed:
        results = results[:1]
    if BUG == "save before the result is appended":
        saved.data["ledger"].clear()
        saved.save()
        saved.data["messages"].append({"role": "user", "content": results})
        return
    give(saved, results)


def give(saved: Saved, results: list[dict[str, Any]]) -> None:
    saved.data["messages"].append({"role": "user", "content": results})
    saved.save()


def settle(saved: Saved, tool: Tool, use: dict[str, Any]) -> dict[str, Any]:
    """What the ledger says of a call, or what running it gives."""
    ledger = saved.data["ledger"]
    entry = None if BUG == "run every pending call again" else ledger.get(use["id"])
    if BUG == "reuse the recorded result of another call" and saved.resumed:
        entry = next((one for one in ledger.values() if one["state"] == "done"), entry)
        if entry is not None and entry["state"] == "done":
            return {**entry["result"], "tool_use_id": use["id"]}
    if entry is not None and entry["state"] == "done":
        return entry["result"]
    never_again = entry is not None and tool.effect == "irreversible"
    if BUG == "say unknown for calls that never started" and saved.resumed and tool.effect == "irreversible":
        never_again = True
    if never_again:
        return record(saved, use, "execution status unknown", is_error=True)
    if BUG != "record no intent":
        ledger[use["id"]] = {"state": "started"}
        saved.save()
    if BUG == "record completion before execution":
        recorded = record(saved, use, execute_text(tool, use))
        execute(saved, tool, use)
        return recorded
    return record(saved, use, execute(saved, tool, use))


def record(saved: Saved, use: dict[str, Any], text: str, *, is_error: bool = False) -> dict[str, Any]:
    found = result(use["id"], text, is_error=is_error)
    saved.data["ledger"][use["id"]] = {"state": "done", "result": found}
    saved.save()
    return found


def execute(saved: Saved, tool: Tool, use: dict[str, Any]) -> str:
    key: str | None = f"{saved.data['run']}-{use['id']}"
    if BUG == "make a new idempotency key on retry":
        key = uuid.uuid4().hex
    if BUG == "have effects without any key":
        key = None
    return str(tool.function(**tool.arguments(use["input"], key)))


def execute_text(tool: Tool, use: dict[str, Any]) -> str:
    return {"look": "saw {at}", "put": "put {name}", "mail": "mailed {to}"}[tool.name].format(**use["input"])


def result(tool_use_id: str, text: str, *, is_error: bool = False) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": tool_use_id, "content": text, "is_error": is_error}
