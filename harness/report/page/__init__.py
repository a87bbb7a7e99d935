"""The report as one HTML page: everything in one file, nothing from the network."""

from harness.report.page.rendering import render_page

__all__ = ["render_page"]
