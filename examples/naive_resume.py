"""A loop that can be resumed, and must not be: it saves its messages, and after a restart runs every pending call.

It looks right, and almost always is.  Killed between a mail and the save after it, it mails again.
`harness crash examples/naive_resume` finds that; see docs/crash.md.
"""

import json
import os
from pathlib import Path


def run_agent(prompt, client, tools, dispatch, state_dir, model="claude-sonnet-5"):
    messages = load(state_dir) or [{"role": "user", "content": prompt}]
    while True:
        if messages[-1]["role"] == "user":
            response = client.messages.create(model=model, max_tokens=4096, tools=tools, messages=messages)
            messages.append({"role": "assistant", "content": response.to_dict()["content"]})
            save(state_dir, messages)
        calls = [block for block in messages[-1]["content"] if block["type"] == "tool_use"]
        if not calls:
            return messages[-1]["content"][-1]["text"]
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": str(dispatch(call["name"], call["input"]))}
            for call in calls
        ]
        messages.append({"role": "user", "content": results})
        save(state_dir, messages)


def load(state_dir):
    path = Path(state_dir, "messages.json")
    return json.loads(path.read_text()) if path.exists() else None


def save(state_dir, messages):
    """Whole or not at all: this part is right."""
    draft = Path(state_dir, "messages.tmp")
    with draft.open("w") as file:
        json.dump(messages, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(Path(state_dir, "messages.json"))
