"""The shortest loop that answers every call: for tests whose subject is what comes after the run."""

from __future__ import annotations

from typing import Final

LOOP: Final = """\
def run(client, prompt, tools, dispatch):
    messages = [{"role": "user", "content": prompt}]
    while True:
        answer = client.messages.create(model="m", max_tokens=99, messages=messages, tools=tools)
        messages.append({"role": "assistant", "content": answer.content})
        if answer.stop_reason != "tool_use":
            return
        results = [
            {"type": "tool_result", "tool_use_id": use.id, "content": str(dispatch(use.name, use.input))}
            for use in answer.content
            if use.type == "tool_use"
        ]
        messages.append({"role": "user", "content": results})
"""
