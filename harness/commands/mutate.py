"""`harness mutate`: which drifts the policies of the cases would let pass."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING

import click

from harness.commands.common import complete_case, echo_lines, project_option, select
from harness.commands.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from harness.mutation import Gap, Proof
    from harness.report.lines import Line

__all__ = ["command"]

_KINDS = ("write", "swap", "drop", "repeat", "argument", "outcome", "stop_reason", "turn")


@click.command(short_help="Apply drifts to the goldens; list those that a policy would let pass.")
@click.argument("cases", nargs=-1, shell_complete=complete_case)
@click.option("--kind", "kinds", type=click.Choice(_KINDS), multiple=True, help="Try this kind of drift only.")
@click.option("--strict", is_flag=True, help="Exit with 1 when anything would pass.")
@click.option("--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True,
              help="How to report.")  # fmt: skip
@project_option
def command(cases: tuple[str, ...], kinds: tuple[str, ...], strict: bool, form: str, root: Path | None) -> None:
    """Apply each kind of drift to the goldens of CASES (ids or globs; all by default), in memory, and compare the
    result under the `compare:` policy of its case: a lax policy is seen before it lets something through.

    Nothing is run and nothing is written. Calls of tools that write are compared exactly by every policy.

    \b
      harness mutate
      harness mutate 'research/*' --kind argument --kind repeat
      harness mutate --strict          exit code 1 when anything would pass
    """
    from harness.gate import Gate
    from harness.mutation import prove
    from harness.project import Project

    gate = Gate(Project.find(root))
    chosen = select(cases, gate.store.cases(), gate.project, "golden")
    proofs: list[Proof] = []
    with Progress(len(chosen)) as progress:
        for case in chosen:
            proofs.append(prove(gate.store.load(case), gate.policy_of(case), kinds or None))
            progress.advance(case)
    if form == "json":
        click.echo(json.dumps({"schema": "harness.mutate/1", "cases": [_data(one) for one in proofs]}, indent=2))
    else:
        echo_lines(_lines(proofs))
    sys.exit(int(strict and any(proof.gaps for proof in proofs)))


def _lines(proofs: Sequence[Proof]) -> Iterator[Line]:
    """What each policy lets pass, then what was tried in all, kind by kind."""
    from harness.mutation import KINDS
    from harness.report.lines import Line

    tried: Counter[str] = Counter()
    caught: Counter[str] = Counter()
    for proof in proofs:
        tried.update(proof.tried)
        caught.update(proof.caught)
        if proof.gaps:
            missed = sum(proof.tried.values()) - sum(proof.caught.values())
            yield Line(f"{proof.case}: {missed} of {sum(proof.tried.values())} drifts would pass", "title")
            yield from (Line(f"  {_told(gap)}", "removed" if gap.write else "changed") for gap in proof.gaps)
            yield Line("")
    width = max(map(len, KINDS.values()))
    for kind, name in KINDS.items():
        if tried[kind]:
            missed = tried[kind] - caught[kind]
            result = "all caught" if not missed else f"{missed} would pass"
            yield Line(f"{name:<{width}}  {tried[kind]:>6,} tried  {result}", "changed" if missed else "plain")
    lax = sum(bool(proof.gaps) for proof in proofs)
    spread = sum(bool(proof.places) for proof in proofs)
    if spread:
        yield Line(f"long goldens were tried at places spread over them: {spread} of {len(proofs)}", "faint")
    cases = f"{len(proofs)} golden{'s' * (len(proofs) != 1)}"
    policies = f"; {lax} polic{'y lets' if lax == 1 else 'ies let'} something pass" if lax else ""
    yield Line(f"{cases}: {sum(caught.values()):,} of {sum(tried.values()):,} drifts caught{policies}", "title")


def _told(gap: Gap) -> str:
    from harness.mutation import KINDS

    count = "each" if gap.passed == gap.tried else f"{gap.passed} of {gap.tried}"
    blame = "; ".join(f"{facet}: {policy}" for facet, policy in gap.because.items())
    what = f": {gap.what}" if gap.what else ""
    return f"{KINDS[gap.kind]}{what} ({count})  because of compare: {blame}"


def _data(proof: Proof) -> dict[str, object]:
    return {
        "case": proof.case,
        "tried": dict(proof.tried),
        "caught": dict(proof.caught),
        "gaps": [
            {
                "kind": gap.kind,
                "what": gap.what,
                "write": gap.write,
                "passed": gap.passed,
                "tried": gap.tried,
                "because": dict(gap.because),
            }
            for gap in proof.gaps
        ],
        "places": dict(proof.places),
    }
