"""An async loop that runs the calls of one response concurrently."""

import asyncio


async def run_agent(prompt, async_client, tools, async_dispatch, model="claude-sonnet-5", max_turns=24):
    messages = [{"role": "user", "content": prompt}]
    for _ in range(max_turns):
        response = await async_client.messages.create(model=model, max_tokens=4096, tools=tools, messages=messages)
        messages.append({"role": "assistant", "content": response.content})
        uses = [block for block in response.content if block.type == "tool_use"]
        if not uses:
            return "".join(block.text for block in response.content if block.type == "text")
        outcomes = await asyncio.gather(*(async_dispatch(use.name, use.input) for use in uses), return_exceptions=True)
        results = [
            {
                "type": "tool_result",
                "tool_use_id": use.id,
                "content": str(outcome),
                "is_error": isinstance(outcome, Exception),
            }
            for use, outcome in zip(uses, outcomes, strict=True)
        ]
        messages.append({"role": "user", "content": results})
    return "Stopped: too many turns."
