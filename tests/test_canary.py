"""What a run was about stays in it: a secret is in no file, report or log afterwards.

What may show what, by decision:

- The values of arguments and results are nowhere, with one exception: `detail: plain` writes those of arguments, by the
  user's choice.  The names of top-level arguments are no secret; keys further inside are.
- The key of the API and the key of the digests are nowhere, whatever the detail.
- What a loop prints, and the text of the exception that ends it, are the program's own words.  They are shown to
  whoever runs it, on the terminal and in the body of JUnit's failure, which is pytest's copy of it.  They are in
  nothing that stays: no golden, no pending trace, no property, no headline.  A text that the loop catches is a result.
- A case file holds what its author wrote there; so does a log of the SDK's that somebody turned on (`ANTHROPIC_LOG`).
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Final
from urllib.parse import quote
from xml.etree import ElementTree

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.testing import MiniProject, Outcome

SECRET: Final = "canary-Zq7µ-9f3e1c77"  # not ASCII, so that it has more than one form in JSON
API_KEY: Final = "sk-ant-canary-api-5d1e"
DIGEST_KEY: Final = "canary-digest-key-77ac"

ENVIRONMENT: Final = {"ANTHROPIC_API_KEY": API_KEY, "HARNESS_DIGEST_KEY": DIGEST_KEY, "SECRET": SECRET}

LOOPS = '''
    import os
    import anthropic
    from tools import search

    MODE = os.environ.get("MODE")

    def chat(prompt, client, tools, dispatch, workspace):
        """Sends the secret on in every form that an argument may have, and whatever key it finds."""
        def execute(name, sent):
            secret = sent["query"]
            (workspace / "note.txt").write_text(secret)
            inner = {"list": [{"deep": secret}], secret: {"keys": {secret}}}
            given = {**sent, "raw": secret.encode(), "inner": [inner] if MODE == "drift" else inner}
            given["keys"] = [os.environ["ANTHROPIC_API_KEY"], client.api_key]
            for _ in range(2 if MODE == "drift" else 1):
                result = dispatch(name, given)
            return result
        return converse(prompt, client, tools, execute)

    def own(prompt):
        """Builds its client by itself, from the environment."""
        definition = {"name": "search", "input_schema": {"type": "object"}}
        with anthropic.Anthropic() as client:
            return converse(prompt, client, [definition], lambda name, sent: search(**sent))

    def converse(prompt, client, tools, execute):
        messages = [{"role": "user", "content": prompt}]
        while True:
            response = client.messages.create(model="m", max_tokens=99, tools=tools, messages=messages)
            content = [block.to_dict() for block in response.content]
            calls = [block for block in content if block["type"] == "tool_use"]
            if not calls:
                return content[-1]["text"]
            results = []
            for call in calls:
                result = {"type": "tool_result", "tool_use_id": call["id"]}
                try:
                    results.append({**result, "content": str(execute(call["name"], call["input"]))})
                except LookupError as error:
                    if MODE == "raise":
                        raise
                    results.append({**result, "content": str(error), "is_error": True})
                if MODE == "rewrite":
                    call["input"]["query"] += "?"
            messages += [{"role": "assistant", "content": content}, {"role": "user", "content": results}]
'''

TOOLS = """
    import os

    def search(query, **_):
        if os.environ.get("MODE") in ("fail", "raise"):
            raise LookupError(f"nothing is called {query}")
        return {"found": [query]}

    def save(query, **_):
        return query

    TOOLS = [search, save]
"""

CASE = f'''
    agent: loops:chat
    prompt: "Find {SECRET}"
    tools: tools:TOOLS
    workspace: {{}}
    model:
      name: claude-sonnet-5
      script:
        - call: {{search: {{query: "{SECRET}"}}}}
        - call:
            - search: {{query: "{SECRET}", page: {{token: "{SECRET}"}}}}
            - save: {{query: "{SECRET}"}}
        - say: "Found {SECRET}"
'''

OWN_CASE = f'''
    agent: loops:own
    prompt: "Find {SECRET}"
    model:
      name: claude-sonnet-5
      script:
        - call: {{search: {{query: "{SECRET}"}}}}
        - say: "Found {SECRET}"
'''

PLAIN_TEST = """
    import os
    from harness import Recorder

    def test_nightly(golden_trace):
        secret = os.environ["SECRET"]
        recorder = Recorder(case="nightly", detail="{detail}")
        dispatch = recorder.instrument(lambda name, tool_input: secret)
        dispatch("search", {{"query": secret, "again": os.environ.get("MODE") == "drift"}})
        golden_trace(recorder)
"""


def project(mini_project: MiniProject, detail: str = "args") -> MiniProject:
    mini_project.write(
        {
            "pyproject.toml": f'[tool.harness]\ndetail = "{detail}"\n[tool.pytest]\ntestpaths = ["cases", "tests"]\n',
            "loops.py": LOOPS,
            "tools.py": TOOLS,
            "cases/chat.yaml": CASE,
            "cases/own.yaml": OWN_CASE,
            "tests/test_nightly.py": PLAIN_TEST.format(detail=detail),
            "tmp/.keep": "",
        }
    )
    return mini_project


# The search -----------------------------------------------------------------------------------------------------------


def forms(secret: str) -> dict[str, str]:
    """The forms in which a secret may come to light, by name."""
    data = secret.encode()
    found = {
        "as it is": secret,
        "escaped for JSON": json.dumps(secret)[1:-1],
        "escaped as bytes": repr(data)[2:-1],
        "for a URL": quote(secret),
        "hexadecimal": data.hex(),
        "backwards": secret[::-1],
    }
    for shift in range(3):
        # What stands before it decides how base64 cuts it; the characters that neighbours have a share in are left out.
        text = base64.b64encode(bytes(shift) + data).decode().rstrip("=")
        found[f"base64, shifted by {shift}"] = text[-(-shift * 8 // 6) : len(data + bytes(shift)) * 8 // 6]
    return found


def found_in(text: str, *secrets: str) -> list[str]:
    return sorted(
        {f"{secret[:10]} {name}" for secret in secrets for name, form in forms(secret).items() if form in text}
    )


def written(folder: Path, given: set[Path]) -> Iterator[tuple[str, str]]:
    """The files that appeared, hidden ones and caches included, with their names and what is in them."""
    for path in sorted(folder.rglob("*")):
        if path not in given:
            text = path.read_bytes().decode(errors="replace") if path.is_file() else ""
            yield path.relative_to(folder).as_posix(), f"{path.name}\n{text}"


class Watch:
    """Runs commands in a project, and looks for secrets in all that comes of them."""

    def __init__(self, mini_project: MiniProject, *secrets: str) -> None:
        self.project = mini_project
        self.secrets = secrets
        self.given = set(mini_project.root.rglob("*"))

    def environment(self, mode: str) -> dict[str, str]:
        return {**ENVIRONMENT, "MODE": mode, "TMPDIR": str(self.project.root / "tmp")}

    def pytest(self, *arguments: str, mode: str = "") -> Outcome:
        return self.seen(self.project.pytest(*arguments, env=self.environment(mode)))

    def pytest_apart(self, *arguments: str, mode: str = "") -> Outcome:
        return self.seen(self.project.pytest_apart(*arguments, env=self.environment(mode)))

    def harness(self, *arguments: str, mode: str = "") -> Outcome:
        return self.seen(self.project.harness(*arguments, env=self.environment(mode)))

    def seen(self, outcome: Outcome) -> Outcome:
        assert found_in(outcome.output + outcome.errors, *self.secrets) == []
        assert self.in_files() == {}
        return outcome

    def in_files(self) -> dict[str, list[str]]:
        found = {name: found_in(text, *self.secrets) for name, text in written(self.project.root, self.given)}
        return {name: forms for name, forms in found.items() if forms}


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_the_search_finds_what_it_is_to_find(before: str) -> None:
    """Every form is found wherever it stands; else the tests below could not fail."""
    text = f"{before}{SECRET}zz"
    for name, hidden in {
        "as it is": text,
        "escaped for JSON": json.dumps(text),
        "escaped as bytes": repr(text.encode()),
        "for a URL": quote(text),
        "hexadecimal": text.encode().hex(),
        "backwards": text[::-1],
        f"base64, shifted by {len(before) % 3}": base64.b64encode(text.encode()).decode(),
    }.items():
        assert f"canary-Zq7 {name}" in found_in(hidden, SECRET), name
    assert found_in("canary", SECRET) == []


# The runs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("detail", ["args", "digest"])
def test_values_are_in_no_file_report_or_log(mini_project: MiniProject, detail: str) -> None:
    """Accepted, compared, drifted, failed and shown, by pytest and by the command line: the secret is nowhere."""
    watch = Watch(project(mini_project, detail), SECRET, API_KEY, DIGEST_KEY)
    assert watch.pytest("--update-golden").exit_code == 0
    assert watch.pytest("-v", "--junitxml=same.xml").exit_code == 0
    drifted = watch.pytest("-v", "--junitxml=drift.xml", mode="drift")
    assert drifted.exit_code == 1
    assert "2 drifted" in drifted.output
    assert watch.pytest("-vv", "--junitxml=fail.xml", mode="fail").exit_code == 1
    assert watch.harness("run", "-v", mode="drift").exit_code == 1
    assert watch.harness("show", "chat").exit_code == 0
    assert watch.harness("show", "--pending", "chat").exit_code == 0
    assert watch.harness("accept", "chat").exit_code == 0
    kept = {name for name, _ in written(mini_project.root, watch.given)}
    assert kept >= {"golden_traces/chat.json", "golden_traces/own.json", "golden_traces/nightly.json", "drift.xml"}
    assert kept >= {".harness/last_run.json"}


def test_plain_values_are_kept_by_choice_and_keys_never(mini_project: MiniProject) -> None:
    """`detail: plain` writes what the arguments are; who called the API is nobody's business even then."""
    watch = Watch(project(mini_project, "plain"), API_KEY, DIGEST_KEY)
    assert watch.pytest("--update-golden").exit_code == 0
    assert watch.pytest("-v", "--junitxml=drift.xml", mode="drift").exit_code == 1
    assert watch.harness("run", mode="drift").exit_code == 1
    assert watch.harness("show", "--pending", "chat").exit_code == 0
    for golden in ("golden_traces/chat.json", "golden_traces/nightly.json"):
        assert found_in(mini_project.read(golden), SECRET) == ["canary-Zq7 as it is"]


def test_workers_say_as_little(mini_project: MiniProject) -> None:
    """What goes from a worker to the controller ends in the same reports."""
    watch = Watch(project(mini_project), SECRET, API_KEY, DIGEST_KEY)
    assert watch.pytest("--update-golden").exit_code == 0
    drifted = watch.pytest_apart("-n", "2", "-v", "--junitxml=drift.xml", mode="drift")
    assert drifted.exit_code == 1
    assert "2 drifted" in drifted.output


@pytest.mark.parametrize("mode", ["raise", "rewrite"])
def test_what_ends_a_run_is_shown_and_not_kept(mini_project: MiniProject, mode: str) -> None:
    """The text of an exception, or of a refusal, is on the terminal and nowhere else."""
    watch = Watch(project(mini_project), SECRET, API_KEY, DIGEST_KEY)
    assert watch.pytest("--update-golden").exit_code == 0
    outcome = mini_project.pytest("-v", "--junitxml=end.xml", env=watch.environment(mode))
    assert outcome.exit_code == 1
    assert watch.in_files().keys() <= {"end.xml"}
    for case in ElementTree.parse(mini_project.root / "end.xml").iter("testcase"):
        for failure in case.iter("failure"):
            failure.text = None
        assert found_in(ElementTree.tostring(case, "unicode"), SECRET) == []
    (mini_project.root / "end.xml").unlink()
    assert watch.harness("show", "--pending", "chat").exit_code == 0
