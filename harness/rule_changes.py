"""How strict the gate is, against how strict it was where the branch began: a lax rule passes what no golden would."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from harness.case.ids import is_case_file
from harness.case.source import parse_source
from harness.errors import CaseError, PolicyError
from harness.policy import FACETS, Policy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.project import Project
    from harness.repository import Repository

__all__ = ["rule_changes"]

_RULES: Final = ("limits", "writes", "normalize", "stuck", "faults", "marks")
"""What else in a case decides whether it fails, beside `compare`."""

_SHOWN: Final = 60


def rule_changes(project: Project, repository: Repository, commit: str) -> tuple[str, ...]:
    """One sentence a rule that changed since a commit, of the project and of the cases that are on both sides.

    Args:
        project: as it is now.
        repository: that it is in.
        commit: the id of the commit where the branch began.

    Raises:
        HarnessError: git cannot tell.
    """
    file = project.root / "pyproject.toml"
    ids = list(repository.ids(commit, file).values())
    before = _settings(next(iter(repository.contents(ids).values()), b""))
    now = _settings(_bytes(file))
    said = [f"[tool.harness] {text}" for text in _differences(before, now, {}, {})]
    defaults = before.get("compare"), now.get("compare")
    for name, data in sorted(repository.files(commit, project.cases).items()):
        path = project.cases / name
        content = _bytes(path) if is_case_file(path) else b""
        if content and content != data:
            case = path.relative_to(project.cases).with_suffix("").as_posix()
            said += [f"{case}: {text}" for text in _differences(_case(data), _case(content), *defaults)]
    return tuple(said)


def _differences(before: Mapping[str, Any], now: Mapping[str, Any], *defaults: object) -> Iterator[str]:
    sides = zip((before, now), defaults, strict=True)
    first, second = (_policy(side.get("compare"), default) for side, default in sides)
    # What only the project's default changed is said once, of the project.
    own = {*_mapping(before.get("compare")), *_mapping(now.get("compare"))}
    for facet in FACETS:
        if facet in own and first[facet] != second[facet]:
            yield f"compare {facet}: {first[facet]} → {second[facet]}"
    for rule in _RULES:
        if before.get(rule) != now.get(rule):
            yield f"{rule}: {_text(before.get(rule))} → {_text(now.get(rule))}"


def _policy(rules: object, default: object) -> Policy:
    try:
        return Policy.parse(_mapping(rules), Policy.parse(_mapping(default)))
    except PolicyError:  # then the case, or the project, is an error of its own
        return Policy()


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _case(data: bytes) -> Mapping[str, Any]:
    try:
        return parse_source(data, "").data
    except CaseError:
        return {}


def _settings(data: bytes) -> Mapping[str, Any]:
    try:
        tool = tomllib.loads(data.decode("utf-8")).get("tool", {})
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}
    return _mapping(_mapping(tool).get("harness"))


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _text(value: object) -> str:
    text = "not given" if value is None else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
