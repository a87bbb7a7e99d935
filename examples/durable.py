"""The durable loop in other settings than its defaults: streamed answers; a state in one readable file."""

from harness.agent import run


def run_streaming(prompt, client, toolset, model, state_dir):
    return run(prompt, client=client, toolset=toolset, model=model, state_dir=state_dir, stream=True)


def run_in_one_file(prompt, client, toolset, model, state_dir):
    return run(prompt, client=client, toolset=toolset, model=model, state_dir=state_dir, ledger=False)
