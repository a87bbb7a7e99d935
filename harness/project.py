"""Where a project keeps its cases, goldens and artifacts, and its defaults: `[tool.harness]` in pyproject.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from harness.errors import ConfigError, NormalizeError, PolicyError
from harness.normalize import Normalizer
from harness.policy import Policy

__all__ = ["DETAILS", "Project"]

DETAILS: Final = ("args", "digest", "plain")

_KEYS: Final = ("artifacts", "cases", "compare", "detail", "golden_traces", "normalize", "stuck")


@dataclass(frozen=True, slots=True)
class Project:
    """The folders (absolute) and the defaults that a case builds on."""

    root: Path
    cases: Path
    golden_traces: Path
    artifacts: Path
    detail: str = "args"
    compare: Mapping[str, Any] = field(default_factory=dict)
    normalize: Mapping[str, Any] = field(default_factory=dict)
    stuck: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pending(self) -> Path:
        """Where the observed traces of failing cases wait for a decision."""
        return self.artifacts / "pending"

    @classmethod
    def at(cls, root: Path, *, file: Path | None = None, **overrides: Any) -> Project:
        """The project whose settings stand in `file` (default: `root/pyproject.toml`, which may be absent).

        `overrides` are values as in `[tool.harness]`; None counts as not given.

        Raises:
            ConfigError: a setting is unknown or of the wrong kind, or the file is not TOML.
        """
        root = root.absolute()
        file = file or root / "pyproject.toml"
        settings = _read(file) | {key: value for key, value in overrides.items() if value is not None}
        where = f"[tool.harness] in {file.name}"
        for key in settings:
            if key not in _KEYS:
                raise ConfigError(f"{where}: unknown setting {key!r}; there are: {', '.join(_KEYS)}")
        project = cls(
            root=root,
            cases=_folder(root, settings.get("cases", "cases"), "cases", where),
            golden_traces=_folder(root, settings.get("golden_traces", "golden_traces"), "golden_traces", where),
            artifacts=_folder(root, settings.get("artifacts", ".harness"), "artifacts", where),
            detail=settings.get("detail", "args"),
            compare=settings.get("compare", {}),
            normalize=settings.get("normalize", {}),
            stuck=settings.get("stuck", {}),
        )
        if project.detail not in DETAILS:
            raise ConfigError(f"{where}: 'detail' takes {' or '.join(map(repr, DETAILS))}, not {project.detail!r}")
        try:
            Policy.parse(project.compare)
            Normalizer.parse(project.normalize)
        except PolicyError as error:
            raise ConfigError(f"{where}: compare{_dotted(error.path)}: {error}") from None
        except NormalizeError as error:
            raise ConfigError(f"{where}: normalize{_dotted(error.path)}: {error}") from None
        return project

    @classmethod
    def find(cls, start: Path | None = None) -> Project:
        """The project around a folder: the nearest one above it that has a `[tool.harness]` table or a `cases` folder.

        Falls back to `start` itself.

        Raises:
            ConfigError: as `at`.
        """
        start = (start or Path.cwd()).absolute()
        for folder in (start, *start.parents):
            if "harness" in _tool_table(folder / "pyproject.toml") or (folder / "cases").is_dir():
                return cls.at(folder)
        return cls.at(start)

    def with_cases(self, cases: Path) -> Project:
        """The same project looking for its cases elsewhere."""
        return replace(self, cases=cases.absolute())


def _tool_table(file: Path) -> Mapping[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError:
        return {}
    except UnicodeDecodeError:
        raise ConfigError(f"{file.name} is not UTF-8") from None
    try:
        table = tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file.name} is not valid TOML: {error}") from None
    return table if isinstance(table, Mapping) else {}


def _read(file: Path) -> dict[str, Any]:
    table = _tool_table(file).get("harness", {})
    if not isinstance(table, Mapping):
        raise ConfigError(f"{file.name}: 'tool.harness' is a table, not {table!r}")
    return dict(table)


def _folder(root: Path, value: object, key: str, where: str) -> Path:
    if not isinstance(value, str | Path) or not str(value):
        raise ConfigError(f"{where}: {key!r} takes a folder, not {value!r}")
    return root / value


def _dotted(path: tuple[str | int, ...]) -> str:
    return "".join(f".{part}" for part in path)
