"""The pytest plugin: cases are tests, `--update-golden` accepts what they do now.

Loaded in every project that has the package installed, so nothing but pytest is imported until a project turns out to
have cases.
"""

from __future__ import annotations

import json
import os
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from _pytest.terminal import TerminalReporter

    from harness.case_items import ProjectRun
    from harness.gate import Verdict
    from harness.golden_fixture import GoldenTrace
    from harness.project import Project
    from harness.session_results import SessionResults

__all__ = ["golden_trace"]

_SUFFIXES: Final = (".yaml", ".yml")
_FOLDERS: Final = {"cases": "cases", "golden_traces": "golden_traces", "artifacts": ".harness"}
_FAILURE: Final = "harness_failure"

# Folders that pytest passes over by their names alone, hidden ones apart.  Each is a fine name for a folder of cases.
_PASSED_OVER: Final = ("*.egg", "CVS", "_darcs", "build", "dist", "node_modules", "venv", "{arch}")

PROJECT = pytest.StashKey["Project | None"]()
OPENED = pytest.StashKey["Path | None"]()
RUN = pytest.StashKey["ProjectRun"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options and ini settings; everything else stands in `[tool.harness]`."""
    group = parser.getgroup("harness", "trajectory regression tests")
    group.addoption(
        "--update-golden",
        dest="harness_update_golden",
        action="store_true",
        default=False,
        help="accept what the selected cases do now: write their golden traces and list what changed; "
        "never touches others, never deletes",
    )
    group.addoption(
        "--harness-report",
        dest="harness_report",
        metavar="FILE",
        default=None,
        help="write what the cases did as one HTML page, also when some failed",
    )
    for folder, default in _FOLDERS.items():
        parser.addini(
            f"harness_{folder}",
            f"folder of the harness's {folder}, relative to this file (default: {default!r}, or [tool.harness])",
            type="string",
            default=None,
        )


def pytest_configure(config: pytest.Config) -> None:
    """Find the project, and fail at once when its settings are wrong."""
    config.addinivalue_line("markers", "harness: a trajectory case")
    project = config.stash[PROJECT] = _project(config)
    if not hasattr(config, "workerinput"):  # a worker of xdist is told what to run, and reports to its controller
        config.pluginmanager.register(_Reporter(config), "harness-reporter")
        _register_page(config)
        if project is not None and config.args_source is pytest.Config.ArgsSource.TESTPATHS:
            _add_cases(config, project)
    config.stash[OPENED] = _opened_folder(config, project) if project is not None else None


def _register_page(config: pytest.Config) -> None:
    given = config.getoption("harness_report")
    if given is None or config.getoption("collectonly"):
        return
    from harness.pytest_page import PagePlugin

    page = PagePlugin(given, config.invocation_params.dir, lambda: _project_or_root(config))
    config.pluginmanager.register(page, "harness-page")


def _root(config: pytest.Config) -> Path:
    """The folder of the configuration file.  `-c /dev/null` is how to ask for none."""
    return config.inipath.parent if config.inipath and config.inipath.is_file() else config.rootpath


def _project(config: pytest.Config) -> Project | None:
    """The project around the configuration file; None when nothing says that there is one."""
    root = _root(config)
    settings = {folder: config.getini(f"harness_{folder}") or None for folder in _FOLDERS}
    pyproject = root / "pyproject.toml"
    if not any(settings.values()) and not (root / "cases").is_dir() and not _mentions_harness(pyproject):
        return None
    from harness.errors import ConfigError
    from harness.project import Project

    try:
        project = Project.at(root, file=pyproject, **settings)
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from None
    if project.cases != root / "cases" and not project.cases.is_dir():
        where = "harness_cases" if settings["cases"] else "[tool.harness] in pyproject.toml: 'cases'"
        raise pytest.UsageError(f"{where}: there is no folder {os.path.relpath(project.cases, root)!r}")
    return project


def _mentions_harness(pyproject: Path) -> bool:
    try:
        return b"tool.harness" in pyproject.read_bytes()
    except OSError:
        return False


def _add_cases(config: pytest.Config, project: Project) -> None:
    """A `testpaths` that leaves out the cases must not make the gate vanish from a plain `pytest`."""
    paths = _paths(config)
    if project.cases.is_dir() and not any(
        project.cases.is_relative_to(path) or path.is_relative_to(project.cases) for path in paths
    ):
        config.args.append(str(project.cases))


def _paths(config: pytest.Config) -> list[Path]:
    """What is to be collected; a node id is as good as its path here."""
    return [(config.invocation_params.dir / argument).absolute() for argument in config.args]


def _opened_folder(config: pytest.Config, project: Project) -> Path | None:
    """The folder that pytest would pass over on its way to the cases, if the way leads through one.

    It is opened for the cases alone.  Who names something in it, the cases or anything else, needs no way.
    """
    above = [folder for folder in reversed(project.cases.parents) if folder.is_relative_to(config.rootpath)][1:]
    passed_over = config.getini("norecursedirs")
    for folder in (*above, project.cases):
        if any(fnmatch(folder.name, name) for name in passed_over):
            return None if any(path.is_relative_to(folder) for path in _paths(config)) else folder
    return None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Cases are collected whatever their folders are called: `build` is a fine name for one."""
    project = config.stash.get(PROJECT, None)
    if project is None:
        return None
    opened, cases = config.stash[OPENED], project.cases
    if opened is not None and collection_path.is_relative_to(opened):
        on_the_way = cases.is_relative_to(collection_path)
        if not on_the_way and not collection_path.is_relative_to(cases):
            return True
    else:
        on_the_way = False
    if not on_the_way and not _is_passed_over(collection_path, cases):
        return None
    # Who answers False here overrules all other reasons; but who asked for it means it.
    asked = [*(config.getoption("ignore") or ()), *(config.getoption("ignore_glob") or ())]
    refused = any(fnmatch(str(collection_path), str(config.invocation_params.dir / one)) for one in asked)
    return None if refused else False


def _is_passed_over(path: Path, cases: Path) -> bool:
    """Whether a path is a folder of cases that pytest would pass over for its name alone."""
    by_name = any(fnmatch(path.name, name) for name in _PASSED_OVER)
    return by_name and path.is_relative_to(cases) and path.is_dir()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A YAML file below the case folder is a case.  Called for every file of every project: decide fast."""
    if file_path.suffix.lower() not in _SUFFIXES:
        return None
    project = parent.config.stash.get(PROJECT, None)
    if project is None or not file_path.is_relative_to(project.cases):
        return None
    from harness.case.ids import is_case_file
    from harness.case_items import CaseFile

    if not is_case_file(file_path):
        return None
    return CaseFile.from_parent(parent, path=file_path, run=_run(parent.config, project))


def _run(config: pytest.Config, project: Project) -> ProjectRun:
    if RUN not in config.stash:
        from harness.case_items import ProjectRun

        config.stash[RUN] = ProjectRun(project, update=config.getoption("harness_update_golden"))
    return config.stash[RUN]


@pytest.fixture
def golden_trace(request: pytest.FixtureRequest) -> GoldenTrace:
    """Compare a recorded run with its golden: `golden_trace(recorder)`; `--update-golden` accepts it.

    The golden is `golden_traces/<case of the recorder>.json`.
    """
    from harness.case_items import is_expected_to_fail
    from harness.golden_fixture import GoldenTrace
    from harness.session_results import RESULT, verdict_facts

    item: pytest.Item = request.node
    gate = _run(request.config, _project_or_root(request.config)).gate
    expected = is_expected_to_fail(item)

    def publish(verdict: Verdict) -> None:
        facts = json.dumps(verdict_facts(verdict, expected_to_fail=expected))
        item.user_properties.append((RESULT, facts))

    owner = Path(os.path.relpath(request.path, gate.project.root)).as_posix()
    return GoldenTrace(gate, owner, item.nodeid, publish, expected_to_fail=expected)


def _project_or_root(config: pytest.Config) -> Project:
    """A project that only uses the fixture needs neither cases nor settings."""
    project = config.stash[PROJECT]
    if project is None:
        from harness.project import Project

        project = config.stash[PROJECT] = Project.at(_root(config))
    return project


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable(report: Any) -> Generator[None, dict[str, Any] | None, dict[str, Any] | None]:
    """On its way from a worker a failure keeps its first line and its colours."""
    data = yield
    to_data = getattr(getattr(report, "longrepr", None), "to_data", None)
    if data is not None and to_data is not None:
        data[_FAILURE] = to_data()
    return data


@pytest.hookimpl(wrapper=True)
def pytest_report_from_serializable(data: dict[str, Any]) -> Generator[None, Any, Any]:
    """The other end of that way."""
    failure = data.pop(_FAILURE, None)
    report = yield
    if report is not None and failure is not None:
        from harness.case_items import FailureRepr

        report.longrepr = FailureRepr.from_data(failure)
    return report


class _Reporter:
    """Gathers what the cases of this session said, in the process that reports: not in xdist's workers."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self._results: SessionResults | None = None

    def _opened(self) -> SessionResults:
        if self._results is None:
            from harness.session_results import SessionResults

            update = self.config.getoption("harness_update_golden")
            self._results = SessionResults(_project_or_root(self.config), self.config.rootpath, update=update)
        return self._results

    def pytest_sessionstart(self) -> None:
        """What an earlier run covered is no longer what the last one did, however this one ends."""
        project = self.config.stash[PROJECT]
        if project is not None and not self.config.getoption("collectonly"):
            from harness.last_run import forget_last_run
            from harness.results_record import forget_results

            forget_last_run(project)
            forget_results(project)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Read what a test published; under xdist the reports of all workers come by here."""
        if self.config.stash[PROJECT] or any(str(name).startswith("harness.") for name, _ in report.user_properties):
            self._opened().take(report)

    def pytest_sessionfinish(self) -> None:
        """Leave a record of what ran, for `harness run --verify`."""
        if self._results:
            self._results.write_record()

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """How many cases passed, what an update changed, which goldens have no case."""
        if self.config.stash[PROJECT] is None or self.config.getoption("collectonly"):
            return
        lines = self._opened().summary()
        if lines:
            from harness.case_items import MARKUP

            terminalreporter.write_sep("=", "trajectories")
            for line in lines:
                terminalreporter.write_line(line.text, **MARKUP[line.style])
