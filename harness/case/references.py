"""`package.module:name` in a case file becomes the object in the user's code."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
import traceback
from importlib.machinery import FileFinder, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import HarnessError, LoopError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["load_callable", "load_object", "missing_module"]


def load_callable(reference: str, root: Path | None = None) -> Callable[..., Any]:
    """The loop that a case names.

    Args:
        reference: `package.module:name`; the name may have dots.
        root: the project's folder, which is put on `sys.path` as running a script there would.

    Raises:
        LoopError: module or name do not exist, the module cannot be imported, or what it names cannot be called.
    """
    found = load_object(reference, root, LoopError)
    if not callable(found):
        raise LoopError(
            f"{reference!r} is of type {type(found).__name__} and cannot be called; name the loop's function"
        )
    return found  # type: ignore[no-any-return]  # whatever the user's code holds


def load_object(reference: str, root: Path | None = None, kind: type[HarnessError] = HarnessError) -> Any:
    """What a reference of a case names.

    Args:
        reference: `package.module:name`; the name may have dots.
        root: the project's folder, which is put on `sys.path` as running a script there would.
        kind: the class of errors to raise.

    Raises:
        HarnessError: of class `kind`, when the module or the name does not exist, or the module cannot be imported.
    """
    module_name, colon, name = reference.partition(":")
    if not (colon and module_name and name):
        raise kind(f"{reference!r} does not name an object; write 'package.module:name'")
    if root is not None and str(root) not in sys.path:
        sys.path.insert(0, str(root))
        _look_again(root, module_name)
    found = _import(module_name, reference, kind)
    for index, part in enumerate(parts := name.split(".")):
        try:
            found = getattr(found, part)
        except AttributeError:
            holder = ".".join([module_name, *parts[:index]])
            near = difflib.get_close_matches(part, [one for one in dir(found) if not one.startswith("__")], n=1)
            remedy = f"; did you mean {near[0]!r}?" if near else ""
            raise kind(f"{holder!r} has no {part!r}{remedy} (named as {reference!r})") from None
    return found


def missing_module(module_name: str, root: Path) -> str | None:
    """The first part of a module's name that cannot be found, looked up without importing anything; None if all can.

    Args:
        module_name: `package.module`.
        root: the project's folder, which is searched before `sys.path`.
    """
    first, *below = module_name.split(".")
    try:
        spec = PathFinder.find_spec(first, [str(root.absolute())]) or importlib.util.find_spec(first)
    except ValueError:  # imported already, from no place that it names: `__main__`
        return None
    name = first
    for part in below:
        if spec is None:
            break
        # By its last part alone: to look for `a.b` by its whole name is to import `a`.
        spec = PathFinder.find_spec(part, list(spec.submodule_search_locations or ()))
        name = f"{name}.{part}"
    return name if spec is None else None


def _look_again(root: Path, module_name: str) -> None:
    """Forget what an earlier import has seen in the folders of a module: it may have been written since.

    `importlib.invalidate_caches` would do it for all folders that anything was ever imported from, which takes 2 ms in
    a process that was just forked: it writes into the memory of every finder.
    """
    folder = root
    for part in ["", *module_name.split(".")[:-1]]:
        folder = folder / part
        finder = sys.path_importer_cache.get(str(folder))
        if isinstance(finder, FileFinder):
            finder.invalidate_caches()


def _import(module_name: str, reference: str, kind: type[HarnessError]) -> Any:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # Only when the name itself, or a package above it, is missing is the reference wrong; any other missing module
        # is missing inside the user's code.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise kind(_broken(module_name, reference, error)) from error
        above, _, last = error.name.rpartition(".")
        siblings = _siblings(above)
        near = difflib.get_close_matches(last, siblings, n=1)
        meant = ".".join([*filter(None, [above]), *near])
        remedy = (
            f"did you mean {meant!r}?" if near else "modules are looked for in the project's folder and on sys.path"
        )
        raise kind(f"there is no module {error.name!r} (named as {reference!r}); {remedy}") from None
    except Exception as error:  # an import runs any code, so any error can come out of it
        raise kind(_broken(module_name, reference, error)) from error


def _broken(module_name: str, reference: str, error: Exception) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    inner = frames[-1] if frames and frames[-1].filename != __file__ else None
    where = f" at {Path(inner.filename).name}:{inner.lineno}" if inner else ""
    if isinstance(error, SyntaxError) and error.filename:
        where = f" at {Path(error.filename).name}:{error.lineno}"
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"importing {module_name!r} (named as {reference!r}) failed{where}: {type(error).__name__}: {said}"


def _siblings(package: str) -> list[str]:
    """The modules beside a missing one, for a suggestion."""
    import pkgutil

    # Outside a package only the project itself is searched: the whole of site-packages would suggest the absurd.
    paths = getattr(sys.modules.get(package), "__path__", []) if package else sys.path[:1]
    return [module.name for module in pkgutil.iter_modules(paths)]
