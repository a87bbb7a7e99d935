"""A loop that streams: text is shown as it arrives, tools run when the response is whole."""

import sys


def run_agent(prompt, client, tools, dispatch, model="claude-sonnet-5", max_turns=24):
    messages = [{"role": "user", "content": prompt}]
    for _ in range(max_turns):
        with client.messages.stream(model=model, max_tokens=4096, tools=tools, messages=messages) as stream:
            for text in stream.text_stream:
                sys.stdout.write(text)
            response = stream.get_final_message()
        messages.append({"role": "assistant", "content": response.content})
        uses = [block for block in response.content if block.type == "tool_use"]
        if not uses:
            return response.stop_reason
        messages.append(
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": use.id, "content": str(dispatch(use.name, use.input))}
                    for use in uses
                ],
            }
        )
    return "too many turns"
