"""`package.module:name` is found, or the error says what is missing and where."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.case.references import load_callable, load_object
from harness.errors import LoopError, ToolError

FILES = {
    "acme_pkg/__init__.py": "",
    "acme_pkg/agent.py": "class Loop:\n    def run(self): return 'ran'\nloop = Loop()\nTOOLS = []\n"
    "def start(): return 1\n",
    "acme_pkg/needs_missing.py": "import acme_not_installed\n",
    "acme_pkg/needs_sibling.py": "from acme_pkg import gone\n",
    "acme_pkg/needs_submodule.py": "\nimport acme_pkg.gone\n",
    "acme_pkg/raises.py": "\n\nraise ValueError('no settings')\n",
    "acme_pkg/typo.py": "def f(:\n",
    "acme_pkg/leaves.py": "raise SystemExit(3)\n",
    "acme_flat.py": "def start(): return 2\n",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with an agent's code, which is forgotten afterwards."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("acme_")]:
        del sys.modules[name]


def test_functions_and_attributes_of_attributes_are_found(root: Path) -> None:
    """The project's folder is importable, and names may have dots."""
    assert load_callable("acme_flat:start", root)() == 2
    assert load_callable("acme_pkg.agent:start", root)() == 1
    assert load_callable("acme_pkg.agent:loop.run", root)() == "ran"
    assert load_object("acme_pkg.agent:TOOLS", root) == []


def test_the_project_is_on_the_path_once(root: Path) -> None:
    """Loading a hundred cases does not grow `sys.path` by a hundred entries."""
    load_callable("acme_flat:start", root)
    load_callable("acme_pkg.agent:start", root)
    assert sys.path.count(str(root)) == 1


WRONG = {
    "acme_flat": "'acme_flat' does not name an object; write 'package.module:name'",
    "acme_flat:": "'acme_flat:' does not name an object; write 'package.module:name'",
    "acme_falt:start": "there is no module 'acme_falt' (named as 'acme_falt:start'); did you mean 'acme_flat'?",
    "acme_pkg.agnet:start": "there is no module 'acme_pkg.agnet' (named as 'acme_pkg.agnet:start'); "
    "did you mean 'acme_pkg.agent'?",
    "acme_flat.inner:start": "there is no module 'acme_flat.inner' (named as 'acme_flat.inner:start'); "
    "modules are looked for in the project's folder and on sys.path",
    "zz_nothing:start": "there is no module 'zz_nothing' (named as 'zz_nothing:start'); "
    "modules are looked for in the project's folder and on sys.path",
    "acme_pkg.agent:strat": "'acme_pkg.agent' has no 'strat'; did you mean 'start'? (named as 'acme_pkg.agent:strat')",
    "acme_pkg.agent:loop.rum": "'acme_pkg.agent.loop' has no 'rum'; did you mean 'run'? "
    "(named as 'acme_pkg.agent:loop.rum')",
    "acme_pkg.agent:zzz": "'acme_pkg.agent' has no 'zzz' (named as 'acme_pkg.agent:zzz')",
    "acme_pkg.agent:TOOLS": "'acme_pkg.agent:TOOLS' is of type list and cannot be called; name the loop's function",
    "acme_pkg.needs_missing:f": "importing 'acme_pkg.needs_missing' (named as 'acme_pkg.needs_missing:f') failed "
    "at needs_missing.py:1: ModuleNotFoundError: No module named 'acme_not_installed'",
    "acme_pkg.needs_submodule:f": "importing 'acme_pkg.needs_submodule' (named as 'acme_pkg.needs_submodule:f') failed "
    "at needs_submodule.py:2: ModuleNotFoundError: No module named 'acme_pkg.gone'",
    "acme_pkg.raises:f": "importing 'acme_pkg.raises' (named as 'acme_pkg.raises:f') failed at raises.py:3: "
    "ValueError: no settings",
    "acme_pkg.typo:f": "importing 'acme_pkg.typo' (named as 'acme_pkg.typo:f') failed at typo.py:1: "
    "SyntaxError: invalid syntax",
}


@pytest.mark.parametrize(("reference", "said"), WRONG.items(), ids=WRONG.keys())
def test_a_wrong_reference_says_what_is_wrong(reference: str, said: str, root: Path) -> None:
    """A missing module is told from a module that fails inside, and a near name is suggested."""
    with pytest.raises(LoopError) as caught:
        load_callable(reference, root)
    assert str(caught.value) == said


def test_an_import_error_inside_is_not_taken_for_a_missing_module(root: Path) -> None:
    """`from package import name` that fails inside the user's code names its own place."""
    with pytest.raises(LoopError) as caught:
        load_callable("acme_pkg.needs_sibling:f", root)
    start = "importing 'acme_pkg.needs_sibling' (named as 'acme_pkg.needs_sibling:f') failed at needs_sibling.py:1: "
    assert str(caught.value).startswith(f"{start}ImportError: cannot import name 'gone'")


def test_the_class_of_the_error_is_the_callers(root: Path) -> None:
    """Tools that cannot be found are an error of the tools."""
    with pytest.raises(ToolError, match="has no 'zzz'"):
        load_object("acme_flat:zzz", root, ToolError)


def test_leaving_the_process_passes_through(root: Path) -> None:
    """A module that exits on import is not turned into an error of the harness."""
    with pytest.raises(SystemExit):
        load_callable("acme_pkg.leaves:f", root)
