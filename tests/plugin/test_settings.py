"""Where a project says that its cases are, and what happens when it says something wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.testing import MiniProject

CONFIGURATIONS = {
    "[tool.harness]": {
        "pyproject.toml": """\
            [tool.pytest]
            addopts = ["-p", "no:randomly"]
            [tool.harness]
            cases = "evals/paths"
            golden_traces = "evals/golden"
            artifacts = "evals/.harness"
            """
    },
    "native [tool.pytest]": {
        "pyproject.toml": """\
            [tool.pytest]
            addopts = ["-p", "no:randomly"]
            harness_cases = "evals/paths"
            harness_golden_traces = "evals/golden"
            harness_artifacts = "evals/.harness"
            """
    },
    "[tool.pytest.ini_options]": {
        "pyproject.toml": """\
            [tool.pytest.ini_options]
            addopts = "-p no:randomly"
            harness_cases = "evals/paths"
            harness_golden_traces = "evals/golden"
            harness_artifacts = "evals/.harness"
            """
    },
    "pytest.ini": {
        "pytest.ini": """\
            [pytest]
            addopts = -p no:randomly
            harness_cases = evals/paths
            harness_golden_traces = evals/golden
            harness_artifacts = evals/.harness
            """
    },
    "pytest.ini beside [tool.harness]": {
        "pytest.ini": "[pytest]\naddopts = -p no:randomly\n",
        "pyproject.toml": """\
            [tool.harness]
            cases = "evals/paths"
            golden_traces = "evals/golden"
            artifacts = "evals/.harness"
            """,
    },
}


def configured(project: MiniProject, files: dict[str, str]) -> MiniProject:
    """The shop with its case elsewhere, and only these configuration files."""
    case = project.read("cases/refund.yaml")
    (project.root / "cases/refund.yaml").unlink()
    (project.root / "cases").rmdir()
    (project.root / "pyproject.toml").unlink()
    project.write({"evals/paths/refund.yaml": case, **files})
    return project


@pytest.mark.parametrize("files", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_every_way_to_configure_folders_works(shop: MiniProject, files: dict[str, str]) -> None:
    """Cases, goldens and artifacts are where the configuration says, seen from its own folder."""
    configured(shop, files)
    outcome = shop.pytest("--update-golden")
    assert (outcome.exit_code, outcome.changed) == (0, {"evals/golden/refund.json": "added"})
    assert outcome.summary == ["1 case: 1 new golden", "new       evals/golden/refund.json  3 calls, 4 turns"]
    shop.edit("evals/paths/refund.yaml", "returns: 30 days", "raises: gone")
    outcome = shop.pytest()
    assert outcome.summary == ["1 case: 1 drifted"]
    assert (shop.root / "evals/.harness/pending/refund.json").is_file()


@pytest.mark.parametrize("files", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_paths_do_not_depend_on_the_working_directory(shop: MiniProject, files: dict[str, str]) -> None:
    """From a folder below the same case finds the same golden."""
    configured(shop, {**files, "docs/here.txt": ""})
    outcome = shop.pytest("--update-golden", "--rootdir", str(shop.root), str(shop.root / "evals"), folder="docs")
    assert outcome.changed == {"evals/golden/refund.json": "added"}, outcome.output
    outcome = shop.pytest("../evals/paths/refund.yaml::refund", folder="docs")
    assert (outcome.exit_code, outcome.summary) == (0, ["1 case: 1 same as golden"])


def test_a_setting_can_be_overridden_for_one_run(shop: MiniProject) -> None:
    """`-o` reaches the folders like any setting of pytest."""
    outcome = shop.pytest("--update-golden", "-o", "harness_golden_traces=elsewhere")
    assert outcome.changed == {"elsewhere/refund.json": "added"}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            '[tool.harness]\ncase = "x"\n',
            "[tool.harness] in pyproject.toml: unknown setting 'case'; "
            "there are: artifacts, cases, compare, detail, golden_traces, normalize",
        ),
        ("[tool.harness]\ncases = 1\n", "[tool.harness] in pyproject.toml: 'cases' takes a folder, not 1"),
        ('[tool.harness]\ncases = "evals"\n', "[tool.harness] in pyproject.toml: 'cases': there is no folder 'evals'"),
        ('[tool.pytest]\nharness_cases = "evals"\n', "harness_cases: there is no folder 'evals'"),
        (
            '[tool.harness]\ndetail = "all"\n',
            "[tool.harness] in pyproject.toml: 'detail' takes 'args' or 'digest' or 'plain', not 'all'",
        ),
        (
            '[tool.harness.compare]\nturns = "some"\n',
            "[tool.harness] in pyproject.toml: compare.turns: 'turns' takes 'exact' or 'ignore', not 'some'",
        ),
        (
            "[tool.harness.normalize.patterns]\nbuild = '('\n",
            "[tool.harness] in pyproject.toml: normalize.patterns.build: ",
        ),
    ],
)
def test_a_wrong_setting_stops_the_run_and_is_named(shop: MiniProject, setting: str, message: str) -> None:
    """Nothing runs under settings that are not understood: exit code 4, also for a run without cases."""
    shop.write({"pyproject.toml": setting, "test_it.py": "def test_it(): pass\n"})
    for arguments in ((), ("test_it.py",), ("--collect-only",)):
        outcome = shop.pytest(*arguments)
        assert outcome.exit_code == pytest.ExitCode.USAGE_ERROR
        assert outcome.errors.strip().splitlines()[-1].startswith(f"ERROR: {message}")
        assert "1 passed" not in outcome.output


@pytest.mark.parametrize("cases", ["cases", ".agents/cases", "build/cases"])
def test_testpaths_cannot_leave_the_cases_out(shop: MiniProject, cases: str) -> None:
    """A plain `pytest` runs the cases, whatever `testpaths` holds and however their folder is called."""
    configured(shop, {"pyproject.toml": f'[tool.pytest]\ntestpaths = ["tests"]\n[tool.harness]\ncases = "{cases}"\n'})
    shop.write(
        {"tests/test_it.py": "def test_it(): pass\n", f"{cases}/refund.yaml": shop.read("evals/paths/refund.yaml")}
    )
    assert shop.pytest("--update-golden").summary[0] == "1 case: 1 new golden"
    hidden = cases.partition("/")[0]
    if hidden != cases:
        shop.write({f"{hidden}/test_stray.py": "def test_stray(): assert False"})
    assert shop.pytest("tests").summary == [], "who names paths gets those"
    assert shop.pytest(cases).summary == ["1 case: 1 same as golden"]
    shop.edit("pyproject.toml", 'testpaths = ["tests"]', "")
    outcome = shop.pytest()
    assert (outcome.exit_code, outcome.summary) == (0, ["1 case: 1 same as golden"]), "without testpaths as well"
    if hidden != cases:
        assert "1 failed" in shop.pytest(hidden).output


def test_a_setting_of_the_wrong_type_is_named(shop: MiniProject) -> None:
    """What pytest itself refuses names the setting as well."""
    shop.write({"pyproject.toml": '[tool.pytest]\nharness_cases = ["cases"]\n'})
    outcome = shop.pytest()
    assert outcome.exit_code == pytest.ExitCode.USAGE_ERROR
    assert "cases'" in outcome.errors


def test_testpaths_may_name_some_cases(shop: MiniProject) -> None:
    """Who names a part of the cases gets that part, once."""
    shop.write({
        "pyproject.toml": '[tool.pytest]\ntestpaths = ["cases/a", "."]\n',
        "cases/a/one.yaml": shop.read("cases/refund.yaml"),
    })  # fmt: skip
    assert shop.pytest().summary == ["2 cases: 2 without golden"]
    shop.edit("pyproject.toml", ', "."', "")
    assert shop.pytest().summary == ["1 case: 1 without golden"]


def test_no_configuration_at_all(shop: MiniProject) -> None:
    """A folder `cases` is enough; asking pytest for no configuration file is no reason to look elsewhere."""
    (shop.root / "pyproject.toml").unlink()
    assert shop.pytest("--update-golden").changed == {"golden_traces/refund.json": "added"}
    assert shop.pytest("-c", "/dev/null", "--rootdir", ".").summary == ["1 case: 1 same as golden"]


def test_a_project_without_cases_is_left_alone(mini_project: MiniProject) -> None:
    """Where nothing says that there are cases, the plugin imports nothing and says nothing."""
    mini_project.write({
        "pyproject.toml": "[tool.pytest]\nstrict = true\n",
        "data/some.yaml": "- 1\n",
        "test_it.py": """\
            import sys

            def test_it():
                ours = {name for name in sys.modules if name.partition(".")[0] == "harness"}
                assert ours == {"harness", "harness.pytest_plugin"}
                heavy = {"anthropic", "deepdiff", "httpx2", "pydantic", "rapidfuzz", "rich", "starlette", "yaml"}
                assert not heavy & sys.modules.keys()
            """,
    })  # fmt: skip
    outcome = mini_project.pytest_apart("-p", "no:randomly", "-p", "no:hypothesispytest")
    assert outcome.exit_code == 0, outcome.output
    assert "trajectories" not in outcome.output
    assert not (mini_project.root / ".harness").exists()


def test_autoload_off_and_the_plugin_by_name(shop: MiniProject) -> None:
    """`-p harness` loads the plugin where entry points are switched off."""
    off = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    shop.write({"pyproject.toml": "[tool.pytest]\n"})
    outcome = shop.pytest("-p", "harness", env=off)
    assert outcome.summary == ["1 case: 1 without golden"]


def test_a_gate_that_was_switched_off_is_found_out(accepted: MiniProject) -> None:
    """Without the plugin pytest is green; `harness run --verify` is not, and says why."""
    accepted.write({"test_it.py": "def test_it(): pass\n"})
    assert accepted.pytest("-p", "no:harness").exit_code == 0
    verified = accepted.harness("run", "--verify")
    assert (verified.exit_code, verified.errors) == (
        2,
        "error: the last pytest run has left no record here: none has run, it ran no case (each run begins a new "
        "record), or it ran without the harness plugin (-p no:harness, PYTEST_DISABLE_PLUGIN_AUTOLOAD); "
        "run pytest with the cases last\n",
    )
    assert accepted.pytest().exit_code == 0
    verified = accepted.harness("run", "--verify")
    assert (verified.exit_code, verified.errors) == (0, "every case file was run and passed\n")


def test_the_record_knows_what_did_not_run(accepted: MiniProject) -> None:
    """A case that was left out, changed since, or did not pass is named by `harness run --verify`."""
    text = accepted.read("cases/refund.yaml")
    accepted.write({"cases/changed.yaml": text, "cases/drifting.yaml": text, "cases/left_out.yaml": text})
    accepted.pytest("--update-golden")
    accepted.edit("cases/drifting.yaml", "returns: 30 days", "raises: gone")
    accepted.write({"cases/typo.yaml": "agent: 1\n"})
    assert accepted.pytest("-k", "not left_out").exit_code == 1
    accepted.edit("cases/changed.yaml", "Refund order 7.", "Refund order 8.")
    verified = accepted.harness("run", "--verify")
    assert (verified.exit_code, verified.output.splitlines()) == (
        1,
        [
            "changed: its file changed after it ran",
            "drifting: drift",
            "left_out: was not run",
            "typo: broken",
        ],
    )


def test_a_record_that_is_no_record_counts_as_none(accepted: MiniProject) -> None:
    """A damaged record proves nothing."""
    for text in ("", "[]", '{"cases": []}', '{"cases": {"refund": 1}}'):
        accepted.write({".harness/last_run.json": text})
        verified = accepted.harness("run", "--verify")
        assert verified.exit_code == 2
        assert verified.errors.startswith("error: the last pytest run has left no record here: ")
