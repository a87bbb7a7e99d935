"""The public surface: a change to it is a change to this file."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

import harness

PUBLIC = ["Call", "Drift", "HarnessError", "Policy", "Recorder", "Trace", "__version__", "compare", "load_golden"]
MODULES = [
    module.name
    for module in pkgutil.walk_packages(harness.__path__, "harness.")
    if not module.name.endswith(".__main__")
]


def test_what_users_import_is_what_was_promised() -> None:
    """Names come and go on purpose only."""
    assert sorted(harness.__all__) == PUBLIC
    assert [name for name in PUBLIC if not hasattr(harness, name)] == []


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_offers(name: str) -> None:
    """Each module has a docstring, and a sorted `__all__` whose names exist."""
    module = importlib.import_module(name)
    assert module.__doc__
    offered = list(getattr(module, "__all__", []))
    assert [one for one in offered if not hasattr(module, one)] == []
    assert offered == sorted(offered, key=lambda one: (not one.isupper(), not one[0].isupper(), one))


def test_importing_the_package_costs_next_to_nothing() -> None:
    """A project that has the package installed does not pay for what it does not use."""
    script = "import sys; before = set(sys.modules); import harness; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True, check=True)
    heavy = {"anthropic", "pydantic", "yaml", "rich", "click", "deepdiff", "httpx2", "rapidfuzz", "json"}
    assert heavy.isdisjoint(eval(done.stdout)), done.stdout


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As for any module."""
    with pytest.raises(AttributeError, match="module 'harness' has no attribute 'Recoder'"):
        harness.Recoder  # noqa: B018 (the access is what is tested)
