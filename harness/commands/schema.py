"""`harness schema`: the JSON Schema of case files, for editors."""

from __future__ import annotations

import json

import click

__all__ = ["command"]


@click.command(short_help="Print the JSON Schema of case files.")
def command() -> None:
    """Print the JSON Schema of case files.

    Editors complete and check cases with it.  For the YAML language server:

    \b
      harness schema > .harness/case.schema.json
      # yaml-language-server: $schema=../.harness/case.schema.json     (first line of a case)
    """
    from harness.case.schema import json_schema

    click.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
