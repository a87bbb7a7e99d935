"""A loop that knows every stop_reason: it goes on after a pause, and never runs a call that may be cut short."""

MAX_TURNS = 24


def run_agent(prompt, client, tools, dispatch, model="claude-sonnet-5"):
    messages = [{"role": "user", "content": prompt}]
    for _ in range(MAX_TURNS):
        response = client.messages.create(model=model, max_tokens=4096, tools=tools, messages=messages)
        if response.stop_reason in ("max_tokens", "model_context_window_exceeded", "refusal"):
            return response.stop_reason
        messages.append({"role": "assistant", "content": response.content})
        if response.stop_reason == "pause_turn":
            continue
        uses = [block for block in response.content if block.type == "tool_use"]
        if not uses:
            return "".join(block.text for block in response.content if block.type == "text")
        messages.append({"role": "user", "content": [answer(use, dispatch) for use in uses]})
    return "too many turns"


def answer(use, dispatch):
    try:
        content, is_error = str(dispatch(use.name, use.input)), False
    except Exception as error:
        content, is_error = f"{type(error).__name__}: {error}", True
    return {"type": "tool_result", "tool_use_id": use.id, "content": content, "is_error": is_error}
