"""Runs one case: the real loop, against a model that is not, with everything that it does recorded."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from harness.case.bounds import DEFAULT_CALLS, DEFAULT_TURNS, BoundedModel, Bounds, RunawayError, ServedModel
from harness.case.endpoint import endpoint
from harness.case.loops import bind, call, parameters
from harness.case.offline import REAL_API, offline
from harness.case.references import load_callable
from harness.case.tools import Toolset, load_tools, stub_tools
from harness.case.verdict import error_line, fault_lines, limit_lines, unfinished, unknown_tools
from harness.case.workspace import fresh_directory, lasting_workspace, workspace
from harness.errors import HarnessError, LoopError, PolicyError, ToolError
from harness.normalize import Normalizer, digest_key
from harness.recorder import Recorder
from harness.stuck import Config, Guard, TurnDetector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import anthropic

    from harness.case.load import Case
    from harness.case.loops import Binding
    from harness.faults.probe import Probe
    from harness.model.script import Script
    from harness.project import Project
    from harness.trace import Trace

__all__ = ["Run", "normalizer_of", "run_case"]


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of a case gave.

    Args:
        case: the case.
        trace: what the loop did, with digests of results; it carries the problems as well.
        value: what the loop returned; for a generator the list of what it yielded; None when it raised.
        error: what the loop raised, or None.
        problems: why this run must not become a golden, one line each.
        failures: how the calls that failed did so, by index into the calls of the trace; for the reader of a report.
    """

    case: Case
    trace: Trace
    value: Any
    error: BaseException | None
    problems: tuple[str, ...]
    failures: Mapping[int, str] = field(default_factory=dict)


def run_case(case: Case, project: Project, probe: Probe | None = None) -> Run:
    """Runs a case once, in this process.

    Environment, working directory and network guard belong to the process, so one case runs at a time.
    `KeyboardInterrupt`, `SystemExit` and the outcomes of pytest pass through.

    Args:
        case: the case.
        project: whose code the loop is, and whose defaults hold.
        probe: for one life of a run that is killed and resumed: its directories, and what watches it.

    Raises:
        CaseError: the case cannot be run: its loop or tools cannot be found or called, or it asks for what this version
            cannot do.  What goes wrong during the run is in the result instead.
        HarnessError: another case is running in this process.
    """
    script = _script(case)
    with _alone(), ExitStack() as stack:
        address = endpoint()
        blocked = stack.enter_context(offline(address.url))
        # The loop is imported under the guard: its module may build a client, or call somebody, when it is imported.
        resuming = probe is not None and probe.resuming
        stale = _imported_elsewhere(case)
        loop = _loop(case, project, resuming=resuming)
        toolset = _tools(case, project, probe)
        directory = None
        if case.workspace is not None:
            directory = stack.enter_context(_workspace(case.workspace, probe))
        session = _Session(case, script, project, toolset, directory, stack, probe)
        binding = session.bind(loop)
        if session.serves and stale:
            # A test has imported the module before, and a client that it made then would talk to the real API.
            importlib.reload(sys.modules[stale])
            loop = _loop(case, project, resuming=resuming)
            binding = session.bind(loop)
        if session.serves:
            stack.enter_context(address.serving(session.model))
        else:
            # The loop has its client.  Another one that it builds now would find nobody: let it be blocked by name.
            os.environ["ANTHROPIC_BASE_URL"] = REAL_API
        value, error = session.execute(loop, binding)
        return session.result(value, error, blocked)


@dataclass(slots=True)
class _Session:
    """The parts of one run: its bounds, its model, its recorder, and what its loop may ask for."""

    case: Case
    script: Script
    project: Project
    toolset: Toolset | None
    directory: Path | None
    stack: ExitStack
    probe: Probe | None
    bounds: Bounds = field(init=False)
    serves: bool = field(init=False)
    model: BoundedModel = field(init=False)
    recorder: Recorder = field(init=False)
    last: tuple[Mapping[str, Any], Mapping[str, Any]] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        limits = self.case.limits
        self.bounds = Bounds(limits.turns or DEFAULT_TURNS, limits.calls or DEFAULT_CALLS)

    def bind(self, loop: Callable[..., Any]) -> Binding:
        """What the loop is called with; how it reaches the model and where its calls are seen follow from it."""
        try:
            taken = parameters(loop).keys()
            self.serves = not taken & {"client", "async_client"}
            hands_over = self.toolset is not None and bool(taken & {"dispatch", "async_dispatch", "toolset"})
            self.recorder = Recorder(
                self.case.id,
                writes=self._writes(),
                normalizer=normalizer_of(self.project, self.case, self.directory),
                detail=self.case.detail or self.project.detail,
                calls_from="dispatch" if hands_over else "wire",
            )
            kind = ServedModel if self.serves else BoundedModel
            if self.case.stuck is not None and "detector" not in taken:
                self.recorder.guard(Guard(self.guard_settings()))
            self.model = kind(
                self.bounds,
                self.script,
                name=self.case.model.name,
                observer=self._observe,
                attempts=None if self.probe is None else self.probe.attempts,
                probe=self.probe,
            )
            return bind(loop, self._offers(), {"max_turns": lambda: self.bounds.turns})
        except LoopError as error:
            raise self.case.error(str(error), ("agent",)) from None

    def execute(self, loop: Callable[..., Any], binding: Binding) -> tuple[Any, BaseException | None]:
        """Runs the loop: what it returned, and what it raised."""
        if self.probe is not None:
            self.probe.enter()
        try:
            return call(loop, binding, self.bounds.running), None
        except RunawayError:
            return None, None  # said by the bounds
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - whatever ends a loop belongs to the run
            return None, error

    def result(self, value: Any, error: BaseException | None, blocked: list[str]) -> Run:
        """The run, judged."""
        for one in _interventions(value):
            self.recorder.intervened(one["verdict"], one["detector"], turn=one["turn"])
        trace = self.recorder.trace()
        causes = [f"the run tried to reach {target}, and may not leave this machine" for target in blocked]
        causes += fault_lines(self.model.faults)
        causes += [self.bounds.stopped] if self.bounds.stopped else []
        causes += limit_lines(trace, self.case.limits)
        causes += [error_line(error, self.project.root)] if error is not None else []
        if not causes:
            causes += self._left_out(trace)
        trace = self.recorder.trace(causes)
        known = set(self.toolset.names) if self.toolset else set()
        if self.toolset is not None and self.case.writes is None:
            # Tools that nobody told us about count as writes, so that nothing is overlooked.
            trace = replace(trace, writes=trace.writes | ({one.tool for one in trace.calls} - known))
        trace = replace(trace, model=trace.model or self.case.model.name)
        return Run(self.case, trace, value, error, trace.problems, self.recorder.failures())

    def _left_out(self, trace: Trace) -> list[str]:
        """What a run without any fault may still lack."""
        if self.probe is not None and self.probe.resuming:
            return []  # an earlier life may have done all of it
        if not trace.turns and not trace.calls:
            way = "through ANTHROPIC_BASE_URL" if self.serves else "with the client that it was given"
            return [f"nothing was recorded: the loop made no model request {way}"]
        line = unfinished(self.script, *self.last) if self.last else None
        known = {*trace.context.tools, *(call.tool for call in trace.calls)}
        return [line] if line else unknown_tools(self.case, known)

    def _offers(self) -> dict[str, Callable[[], Any]]:
        """Everything that a loop may name, made when it is named."""
        case, toolset = self.case, self.toolset
        offers: dict[str, Callable[[], Any]] = {
            "prompt": lambda: case.prompt,
            "task": lambda: case.prompt,
            "client": self._client,
            "async_client": self._async_client,
            "model": lambda: case.model.name,
            "case": lambda: case,
            "workspace": lambda: self.directory or self._directory("workspace"),
            "state_dir": lambda: self._directory("state"),
        }
        if case.stuck is not None:
            offers["detector"] = lambda: TurnDetector(self.guard_settings())
        if case.max_turns is not None:
            offers["max_turns"] = lambda: case.max_turns
        if toolset is not None:
            offers |= {
                "tools": toolset.definitions,
                "toolset": lambda: list(toolset.instrumented(self._instrument).tools),
                "dispatch": lambda: self.recorder.instrument(self.bounds.watch(toolset.dispatch)),
                "async_dispatch": lambda: self.recorder.instrument(self.bounds.watch(toolset.async_dispatch)),
            }
        return offers

    def guard_settings(self) -> Config:
        """The case's settings of the guard on top of the project's."""
        return Config.parse(self.case.stuck, Config.parse(self.project.stuck))

    def _directory(self, purpose: str) -> Path:
        if self.probe is None:
            return self.stack.enter_context(fresh_directory(purpose))
        return self.probe.state_dir if purpose == "state" else self.probe.workspace

    # The SDK takes most of a second to import, and a loop that talks HTTP by other means never needs it.
    def _client(self) -> anthropic.Anthropic:
        from harness.model.transport import sync_client

        return sync_client(self.model, middleware=[self.recorder.middleware])

    def _async_client(self) -> anthropic.AsyncAnthropic:
        from harness.model.transport import async_client

        return async_client(self.model, middleware=[self.recorder.middleware])

    def _instrument(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        return self.recorder.instrument_tool(name, self.bounds.watch(function))

    def _writes(self) -> frozenset[str] | None:
        if self.toolset is None:
            return self.case.writes
        writes = self.toolset.writes(self.case.writes)
        try:
            self.case.policy().check_writes(writes)
        except PolicyError as error:
            raise self.case.error(str(error), ("compare", *error.path)) from None
        return writes

    def _observe(self, request: dict[str, Any], message: dict[str, Any] | None) -> None:
        """Hears every request at the model itself: the only place where those over HTTP can be heard."""
        if self.probe is not None:
            self.probe.answered(request, message)
        if message is not None:
            self.bounds.answered()
            self.last = (request, message)
        if self.serves:
            self.recorder.exchange(request, message)


def _interventions(value: Any) -> list[Mapping[str, Any]]:
    """What the guard did, as the durable loop's result has it, or any result with the same attribute."""
    given = getattr(value, "interventions", None)
    entries = [one for one in given if isinstance(one, Mapping)] if isinstance(given, list | tuple) else []
    return [one for one in entries if {"turn", "verdict", "detector"} <= one.keys()]


def normalizer_of(project: Project, case: Case, directory: Path | None = None) -> Normalizer:
    """The project's rules, with the case's and its workspace's where it has any.

    Args:
        project: whose defaults hold; its rules are compiled once for the cases that follow one another.
        case: whose rules come on top.
        directory: its workspace, where it has one.
    """
    key = digest_key()
    if _last_rules.get("project") is not project or _last_rules.get("key") != key:
        # Compiling the rules takes a twentieth of a run, and nearly all cases of a session share them.
        _last_rules.update(project=project, key=key, normalizer=Normalizer.parse(project.normalize, key=key))
    normalizer: Normalizer = _last_rules["normalizer"]
    if directory is None and not case.normalize:
        return normalizer
    return normalizer.extended(case.normalize, workspace=directory)


_last_rules: dict[str, Any] = {}
_running_in: int | None = None


@contextmanager
def _alone() -> Iterator[None]:
    global _running_in  # noqa: PLW0603 - what is guarded belongs to the process as well
    if _running_in == os.getpid():
        raise HarnessError(
            "a case is already running in this process, and cases share its environment and working directory: "
            "run them one after another, or in processes (pytest -n)"
        )
    _running_in = os.getpid()
    try:
        yield
    finally:
        _running_in = None


def _script(case: Case) -> Script:
    """The script to run by, or why this version cannot run the case."""
    later = "comes with a later version of the harness; this one runs"
    if case.command is not None:
        raise case.error(f"a loop as a command {later} Python loops ('agent')", ("command",))
    if case.script is None:
        key = "cassette" if case.model.cassette is not None else "live"
        raise case.error(f"a model of kind {key!r} {later} scripts ('script')", ("model", key))
    return case.script


def _workspace(files: Mapping[str, bytes], probe: Probe | None) -> AbstractContextManager[Path]:
    if probe is None:
        return workspace(files)
    if probe.resuming:
        return lasting_workspace(probe.workspace, {})
    probe.site.empty_workspace()  # an earlier life may have been killed while it was filled
    return lasting_workspace(probe.workspace, files)


_imported_here: set[str] = set()


def _imported_elsewhere(case: Case) -> str | None:
    """The loop's module, if somebody else than a case has imported it in this process."""
    name = (case.agent or "").partition(":")[0]
    elsewhere = name in sys.modules and name not in _imported_here
    _imported_here.add(name)
    return name if elsewhere else None


def _loop(case: Case, project: Project, *, resuming: bool) -> Callable[..., Any]:
    key = "resume" if resuming and case.resume is not None else "agent"
    try:
        return load_callable((case.resume if key == "resume" else case.agent) or "", project.root)
    except LoopError as error:
        raise case.error(str(error), (key,)) from error.__cause__


def _tools(case: Case, project: Project, probe: Probe | None) -> Toolset | None:
    if case.tools is None:
        return None
    try:
        if isinstance(case.tools, str):
            toolset = load_tools(case.tools, project.root)
        else:
            toolset = stub_tools(case.tools, None if probe is None else probe.place)
        return toolset if probe is None else toolset.changed(probe.tool)
    except ToolError as error:
        raise case.error(str(error), ("tools",)) from error.__cause__
