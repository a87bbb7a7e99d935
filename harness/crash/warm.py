"""What is done once, before any fork, so that no life has to: imports, and the schemas that the SDK builds when used.

Importing the SDK takes 1 to 3 s, and its first answer of each kind another 40 ms; a life takes a few.  Only our own
code runs here: what a user's loop keeps in its modules must not be there before its first life.
"""

from __future__ import annotations

import asyncio
import functools
from typing import Any, Final

__all__ = ["warm_up"]

_SCRIPT: Final = [{"think": "Hm.", "say": "So.", "call": {"look": {"at": "x"}}}, {"say": "Done."}]


@functools.cache
def warm_up() -> None:
    """Do it, once a process."""
    import harness.agent.json_store
    import harness.case.run
    import harness.model.server  # noqa: F401
    from harness.agent import run, tool
    from harness.model.local import LocalModel
    from harness.model.script import Script
    from harness.model.transport import async_client, sync_client
    from harness.recorder import Recorder

    script = Script.parse(_SCRIPT)

    @tool(effect="read_only")
    def look(at: str) -> str:
        return at

    client = sync_client(LocalModel(script), middleware=[Recorder().middleware])
    for stream in (False, True):
        run("Warm up.", model="m", client=client, toolset=[look], stream=stream, handle_signals=False)
    request: dict[str, Any] = {
        "model": "m",
        "max_tokens": 99,
        "tools": [look.definition()],
        "messages": [{"role": "user", "content": "Warm up."}],
    }
    client.messages.create(**request).model_dump()
    with client.messages.stream(**request) as streamed:
        streamed.get_final_message()
    client.close()

    async def ask() -> None:
        other = async_client(LocalModel(script), middleware=[Recorder().middleware])
        await other.messages.create(**request)
        async with other.messages.stream(**request) as streamed:
            await streamed.get_final_message()
        await other.close()

    asyncio.run(ask())
