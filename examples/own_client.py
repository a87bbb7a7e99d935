"""A loop that nobody prepared for testing: it builds its own client at import and keeps its tools to itself."""

import anthropic

client = anthropic.Anthropic()


def lookup(city):
    return {"Oslo": "-4 degrees, snow", "Rome": "16 degrees, clear"}.get(city, "no such city")


TOOLS = [
    {
        "name": "lookup",
        "description": "The weather in a city.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }
]


def main(prompt):
    messages = [{"role": "user", "content": prompt}]
    while True:
        response = client.messages.create(model="claude-sonnet-5", max_tokens=1024, tools=TOOLS, messages=messages)
        messages.append({"role": "assistant", "content": response.content})
        if response.stop_reason != "tool_use":
            return response.content[0].text
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": lookup(**block.input)}
            for block in response.content
            if block.type == "tool_use"
        ]
        messages.append({"role": "user", "content": results})
