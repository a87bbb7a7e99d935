"""The loop that most people write first: at most 24 turns of `messages.create`, and a dispatcher for the tools."""

MAX_TURNS = 24


def run_agent(prompt, client, tools, dispatch, model="claude-sonnet-5"):
    messages = [{"role": "user", "content": prompt}]
    for _ in range(MAX_TURNS):
        response = client.messages.create(model=model, max_tokens=4096, tools=tools, messages=messages)
        messages.append({"role": "assistant", "content": response.content})
        if response.stop_reason != "tool_use":
            return "".join(block.text for block in response.content if block.type == "text")
        results = []
        for block in response.content:
            if block.type == "tool_use":
                try:
                    content, is_error = str(dispatch(block.name, block.input)), False
                except Exception as error:
                    content, is_error = str(error), True
                results.append(
                    {"type": "tool_result", "tool_use_id": block.id, "content": content, "is_error": is_error}
                )
        messages.append({"role": "user", "content": results})
    return "Stopped: too many turns."
