"""The pytest plugin: cases are tests, `--update-golden` accepts what they do now.

Loaded in every project that has the package installed, so nothing but pytest is imported until a project turns out to
have cases.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest
from _pytest._code.code import TerminalRepr

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from _pytest._code.code import ExceptionInfo
    from _pytest._io import TerminalWriter
    from _pytest.terminal import TerminalReporter

    from harness.case.load import Case
    from harness.errors import CaseError
    from harness.gate import Gate, Verdict
    from harness.golden_fixture import GoldenTrace
    from harness.project import Project
    from harness.report.lines import Line

__all__ = ["BrokenCase", "CaseFile", "CaseItem"]

_SUFFIXES: Final = (".yaml", ".yml")
_FOLDERS: Final = ("cases", "golden_traces", "artifacts")
_PROPERTY: Final = "harness."
_MARKUP: Final[dict[str, dict[str, bool]]] = {
    "added": {"green": True},
    "changed": {"yellow": True},
    "faint": {"light": True},
    "moved": {"cyan": True},
    "removed": {"red": True},
    "title": {"bold": True},
}

PROJECT = pytest.StashKey["Project | None"]()
GATE = pytest.StashKey["Gate"]()


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
    for folder in _FOLDERS:
        parser.addini(
            f"harness_{folder}",
            f"folder of the harness's {folder}, relative to this file (default: {folder!r}, or [tool.harness])",
            type="string",
            default=None,
        )


def pytest_configure(config: pytest.Config) -> None:
    """Find the project, and fail at once when its settings are wrong."""
    config.addinivalue_line("markers", "harness: a trajectory case")
    config.stash[PROJECT] = _project(config)
    if hasattr(config, "workerinput"):
        return
    config.pluginmanager.register(Trajectories(config), "harness-trajectories")
    project = config.stash[PROJECT]
    if project is not None and config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        _add_cases(config, project)


def _project(config: pytest.Config) -> Project | None:
    """The project around the configuration file; None when nothing says that there is one."""
    root = config.inipath.parent if config.inipath else config.rootpath
    settings = {folder: config.getini(f"harness_{folder}") or None for folder in _FOLDERS}
    pyproject = root / "pyproject.toml"
    if not any(settings.values()) and not (root / "cases").is_dir() and not _mentions_harness(pyproject):
        return None
    from harness.errors import ConfigError
    from harness.project import Project

    try:
        return Project.at(root, file=pyproject, **settings)
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from None


def _mentions_harness(pyproject: Path) -> bool:
    try:
        return b"tool.harness" in pyproject.read_bytes()
    except OSError:
        return False


def _add_cases(config: pytest.Config, project: Project) -> None:
    """A `testpaths` that leaves out the cases must not make the gate vanish from a plain `pytest`."""
    if not project.cases.is_dir():
        return
    paths = [(config.invocation_params.dir / arg).absolute() for arg in config.args]
    if not any(project.cases.is_relative_to(path) or path.is_relative_to(project.cases) for path in paths):
        config.args.append(str(project.cases))


def _gate(config: pytest.Config) -> Gate:
    if GATE not in config.stash:
        from harness.gate import Gate

        project = config.stash[PROJECT]
        if project is None:
            raise pytest.UsageError("this project has no [tool.harness] settings and no folder 'cases'")
        config.stash[GATE] = Gate(project, update=config.getoption("harness_update_golden"))
    return config.stash[GATE]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Folders of cases are collected whatever they are called: `build` is a fine name for one."""
    project = config.stash.get(PROJECT, None)
    if project is None or not collection_path.is_relative_to(project.cases) or not collection_path.is_dir():
        return None
    ignored = [Path(path).absolute() for path in config.getoption("ignore") or ()]
    if collection_path in ignored or config.getoption("ignore_glob") or collection_path.name.startswith((".", "__")):
        return None
    return False


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A YAML file below the case folder is a case.  Called for every file of every project: decide fast."""
    if file_path.suffix not in _SUFFIXES:
        return None
    project = parent.config.stash.get(PROJECT, None)
    if project is None or not file_path.is_relative_to(project.cases):
        return None
    return CaseFile.from_parent(parent, path=file_path)


class CaseFile(pytest.File):
    """A case file; its one item is the case, or the reason why it is none."""

    def collect(self) -> Iterator[pytest.Item]:
        """Load the case.  A broken file is one failing item, so that a typo does not stop all other cases."""
        from harness.case.load import load_case
        from harness.errors import CaseError

        project = self.config.stash[PROJECT]
        if project is None:
            return
        try:
            case = load_case(self.path, project.cases)
        except CaseError as error:
            yield BrokenCase.from_parent(self, name=self.path.stem, error=error)
            return
        yield CaseItem.from_parent(self, name=case.id.rpartition("/")[2], case=case)


class BrokenCase(pytest.Item):
    """A case file that cannot be run."""

    def __init__(self, *, error: CaseError, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.error = error

    def runtest(self) -> None:
        """Fail with all that is wrong in the file."""
        raise self.error

    def repr_failure(self, excinfo: ExceptionInfo[BaseException], style: Any = None) -> str | TerminalRepr:
        """The problems, each with its line and column."""
        from harness.errors import CaseError

        return str(excinfo.value) if isinstance(excinfo.value, CaseError) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the file is, and that it is broken."""
        line = self.error.problems[0].line if self.error.problems else None
        return self.path, None if line is None else line - 1, f"case file {self.path.name}"


class CaseFailedError(Exception):
    """A case did not pass; carries the verdict for the report."""

    def __init__(self, verdict: Verdict, cause: BaseException | None = None) -> None:
        super().__init__(verdict.headline)
        self.verdict = verdict
        self.cause = cause


class FailureRepr(TerminalRepr):
    """Why a case failed.  Its first line is what the short summary and JUnit show."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines
        self.reprcrash = SimpleNamespace(message=lines[0].text)

    def __str__(self) -> str:
        return "\n".join(line.text for line in self.lines)

    def toterminal(self, tw: TerminalWriter) -> None:
        """Write the lines in the colours of a diff."""
        for line in self.lines:
            tw.line(line.text, **_MARKUP.get(line.style, {}))


class CaseItem(pytest.Item):
    """One case: drive the loop, then let the gate judge its trace."""

    def __init__(self, *, case: Case, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case = case
        self.extra_keyword_matches.update((case.id, *case.id.split("/"), *case.tags))
        self.add_marker("harness")
        for mark in case.marks:
            # A mark from YAML has no place in the project's `markers`; strict runs would refuse the whole file.
            self.config.addinivalue_line("markers", f"{mark}: used by a case")
            self.add_marker(mark)

    def runtest(self) -> None:
        """Run the case and raise when its verdict does not let the build go on."""
        from harness.case.run import run_case

        gate = _gate(self.config)
        run = run_case(self.case, gate.project)
        # An expected failure that drifts is still expected to fail: its golden stays.
        update = gate.update and self.get_closest_marker("xfail") is None
        verdict = gate.judge(run.trace, self.case.policy(gate.policy), update=update)
        self._publish(verdict)
        if not verdict.passed:
            raise CaseFailedError(verdict, run.error)

    def _publish(self, verdict: Verdict) -> None:
        """Plain data for JUnit and, from a worker, for the controller."""
        trace = verdict.trace
        facts = {"case": self.case.id, "verdict": verdict.status, "headline": verdict.headline}
        if trace is not None:
            facts |= {"calls": str(len(trace.calls)), "turns": str(trace.turns), "writes": str(trace.write_counts)}
        # What an earlier attempt of a rerun published no longer holds.
        self.user_properties[:] = [pair for pair in self.user_properties if not str(pair[0]).startswith(_PROPERTY)]
        self.user_properties += [(f"{_PROPERTY}{name}", value) for name, value in facts.items()]

    def repr_failure(self, excinfo: ExceptionInfo[BaseException], style: Any = None) -> str | TerminalRepr:
        """Verdict and first difference in the first line, then the aligned calls; no frames of the harness."""
        from harness.errors import HarnessError

        if isinstance(excinfo.value, CaseFailedError):
            from harness.report.failure import failure_lines

            return FailureRepr(failure_lines(excinfo.value.verdict, excinfo.value.cause))
        if isinstance(excinfo.value, HarnessError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The case file, and the id of the case."""
        return self.path, 0, f"case {self.case.id}"


@pytest.fixture
def golden_trace(request: pytest.FixtureRequest) -> GoldenTrace:
    """Compare a recorded run with its golden: `golden_trace(recorder)`; `--update-golden` accepts it.

    The golden is `golden_traces/<case of the recorder>.json`.
    """
    from harness.golden_fixture import GoldenTrace

    gate = _gate(request.config) if request.config.stash[PROJECT] else _gate_at_root(request.config)
    xfail = request.node.get_closest_marker("xfail") is not None
    owner = request.path.relative_to(gate.project.root) if request.path.is_relative_to(gate.project.root) else None

    def publish(verdict: Verdict) -> None:
        facts = {"case": verdict.case, "verdict": verdict.status, "headline": verdict.headline}
        request.node.user_properties.append((f"{_PROPERTY}result", json.dumps(facts)))

    return GoldenTrace(gate, owner.as_posix() if owner else None, publish, update=gate.update and not xfail)


def _gate_at_root(config: pytest.Config) -> Gate:
    """A project that only uses the fixture needs neither cases nor settings."""
    from harness.project import Project

    config.stash[PROJECT] = Project.at(config.inipath.parent if config.inipath else config.rootpath)
    return _gate(config)


class Trajectories:
    """What the cases of this session said, collected in the process that reports: not in xdist's workers."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.results: dict[str, dict[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Read what a case published; under xdist the reports of all workers come by here."""
        if report.when != "call":
            return
        facts: dict[str, str] = {}
        for name, value in report.user_properties:
            if name == f"{_PROPERTY}result":  # of the fixture, which may compare several runs in one test
                result = json.loads(str(value))
                self.results[result["case"]] = result
            elif isinstance(name, str) and name.startswith(_PROPERTY):
                facts[name.removeprefix(_PROPERTY)] = str(value)
        if "case" in facts:
            self.results[facts["case"]] = facts

    def pytest_sessionfinish(self) -> None:
        """Leave a record of what ran, for `harness run --verify`; clear what killed updates left behind."""
        project = self.config.stash[PROJECT]
        if project is None:
            return
        if self.config.getoption("harness_update_golden"):
            from harness.atomic import remove_strays

            remove_strays(project.golden_traces)
        if self.results:
            from harness.last_run import write_last_run

            write_last_run(project, {case: facts["verdict"] for case, facts in self.results.items()})

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """How many cases passed, what an update changed, which goldens have no case."""
        project = self.config.stash[PROJECT]
        if project is None:
            return
        from harness.report.summary import summary_lines

        update = self.config.getoption("harness_update_golden")
        lines = summary_lines(list(self.results.values()), project, update=update)
        if lines:
            terminalreporter.section("trajectories")
            for line in lines:
                terminalreporter.write_line(line.text, **_MARKUP.get(line.style, {}))
