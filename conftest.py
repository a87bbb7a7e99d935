"""Fixtures and plugins of this repository's own tests."""

pytest_plugins = ["pytester", "harness.testing"]
