"""The durable loop with what a case does not say: streaming, an async client, one readable file, your own guard."""

from dataclasses import dataclass

from harness.agent import arun, run


def streaming(prompt, client, toolset, model, state_dir):
    return run(prompt, client=client, toolset=toolset, model=model, state_dir=state_dir, stream=True)


def in_one_file(prompt, client, toolset, model, state_dir):
    return run(prompt, client=client, toolset=toolset, model=model, state_dir=state_dir, ledger=False)


async def asynchronous(prompt, async_client, toolset, model, state_dir):
    return await arun(
        prompt, client=async_client, toolset=toolset, model=model, state_dir=state_dir, stream=True, concurrency=4
    )


@dataclass
class Nudge:
    kind: str
    message: str
    detector: str = "TwiceIsEnough"


def twice_is_enough(calls):
    """A guard for the example: says something when the last call was made before."""
    if not calls:
        return None
    last = calls[-1]
    same = [call for call in calls if (call.tool, call.input) == (last.tool, last.input)]
    return Nudge("nudge", "You have this result already; use it.") if len(same) == 2 else None


def guarded(prompt, client, toolset, model, state_dir):
    return run(prompt, client=client, toolset=toolset, model=model, state_dir=state_dir, detector=twice_is_enough)
