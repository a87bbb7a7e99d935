"""Which files are cases, what they are called, and how they are selected."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.testing import MiniProject, Outcome


def collected(project: MiniProject, *arguments: str) -> list[str]:
    """The node ids that a run would have."""
    outcome = project.pytest("--collect-only", "-q", *arguments)
    return [line for line in outcome.output.splitlines() if "::" in line]


def results(outcome: Outcome) -> dict[str, str]:
    """The outcome of each test of a run with `-v`, by node id."""
    return dict(re.findall(r"^(\S+::\S+) ([A-Z]+)", outcome.output, re.MULTILINE))


def with_cases(project: MiniProject, *ids: str, extra: str = "") -> None:
    """More cases like the first one, with more keys at the top."""
    text = project.read("cases/refund.yaml")
    project.write({f"cases/{name}.yaml": extra + text for name in ids})


def test_node_ids_mirror_the_case_folder(shop: MiniProject) -> None:
    """A case is selected by file, by folder, and by node id, beside ordinary tests."""
    with_cases(shop, "returns/late", "returns/v1.2_b")
    shop.write({"test_sum.py": "def test_sum():\n    assert 1 + 1 == 2\n", "cases/README.md": "# Cases\n"})
    late, dotted, refund = (
        "cases/returns/late.yaml::late",
        "cases/returns/v1.2_b.yaml::v1.2_b",
        "cases/refund.yaml::refund",
    )
    assert collected(shop) == [refund, late, dotted, "test_sum.py::test_sum"]
    assert collected(shop, "cases/returns") == [late, dotted]
    assert collected(shop, "cases/returns/late.yaml") == [late]
    assert collected(shop, dotted) == [dotted]
    assert collected(shop, "--deselect", late, "cases") == [refund, dotted]


def test_words_select_by_id_and_tag(shop: MiniProject) -> None:
    """`-k` knows the parts of a case's id and its tags; `-m harness` means all cases."""
    with_cases(shop, "returns/late", extra="tags: [postage, eu-only]\n")
    shop.write({"test_late.py": "def test_late():\n    pass\n"})
    late = "cases/returns/late.yaml::late"
    assert collected(shop, "-k", "returns") == [late]
    assert collected(shop, "-k", "returns/late") == [late]
    assert collected(shop, "-k", "postage") == [late]
    assert collected(shop, "-k", "eu-only") == [late]
    assert collected(shop, "-k", "late") == [late, "test_late.py::test_late"]
    assert collected(shop, "-k", "refund and not returns") == ["cases/refund.yaml::refund"]
    assert collected(shop, "-m", "harness") == ["cases/refund.yaml::refund", late]


def test_marks_from_yaml_need_no_registration(shop: MiniProject) -> None:
    """`-m` selects by the marks of a case, in a strict project that has never heard of them."""
    with_cases(shop, "slow_one", "slow_two", extra="marks: [slow, flaky_network]\n")
    slow = ["cases/slow_one.yaml::slow_one", "cases/slow_two.yaml::slow_two"]
    assert collected(shop, "-m", "slow") == slow
    assert collected(shop, "-m", "slow and flaky_network") == slow
    assert collected(shop, "-m", "not slow") == ["cases/refund.yaml::refund"]
    assert shop.pytest("--update-golden").exit_code == 0


def test_a_mark_is_registered_once(shop: MiniProject) -> None:
    """However many cases carry a mark, `--markers` lists it once, and a mark of the project keeps its own words."""
    with_cases(shop, "one", "two", extra="marks: [slow, skip]\n")
    shop.edit("pyproject.toml", "strict = true", 'strict = true\nmarkers = ["slow(seconds): takes its time"]')
    shop.write({
        "conftest.py": """\
            def pytest_collection_finish(session):
                names = [line for line in session.config.getini("markers") if line.startswith(("slow", "skip("))]
                print("registered", *names, sep="|")
            """
    })  # fmt: skip
    outcome = shop.pytest("-s")
    registered = next(line for line in outcome.output.splitlines() if "registered|" in line)
    assert registered.partition("registered|")[2].split("|") == [
        "slow(seconds): takes its time",
        "skip(reason=None): skip the given test function with an optional reason. "
        'Example: skip(reason="no way of currently testing this") skips the test.',
    ]


def test_the_last_failures_are_cases_too(accepted: MiniProject) -> None:
    """`--lf` runs the cases that drifted, and `--ff` runs them first."""
    with_cases(accepted, "drifting", "steady")
    assert accepted.pytest("--update-golden").exit_code == 0
    accepted.edit("cases/drifting.yaml", 'id: "7"}}\n    - call: {read', 'id: "8"}}\n    - call: {read')
    assert accepted.pytest().summary == ["3 cases: 2 same as golden, 1 drifted"]
    outcome = accepted.pytest("--lf", "-v")
    assert results(outcome) == {"cases/drifting.yaml::drifting": "FAILED"}
    assert outcome.summary == ["1 case: 1 drifted"]
    assert next(iter(results(accepted.pytest("--ff", "-v")))) == "cases/drifting.yaml::drifting"


def test_a_broken_file_is_one_failing_item(accepted: MiniProject) -> None:
    """A typo fails its own case, with file, line and column, and stops no other."""
    with_cases(accepted, "typo")
    accepted.edit("cases/typo.yaml", "prompt:", "promt:")
    message = "cases/typo.yaml:2:1: unknown key 'promt'; did you mean 'prompt'? (at promt)"
    missing = "cases/typo.yaml:1:1: the key 'prompt' is missing"
    outcome = accepted.pytest("-v")
    assert results(outcome) == {"cases/refund.yaml::refund": "PASSED", "cases/typo.yaml::typo": "FAILED"}
    assert outcome.section("case typo") == [missing, message]
    assert outcome.section("short test summary info")[0] == f"FAILED cases/typo.yaml::typo - {missing}"
    assert outcome.summary == ["2 cases: 1 same as golden, 1 with a broken case file"]
    outcome = accepted.pytest("--update-golden")
    assert (outcome.exit_code, outcome.changed) == (1, {})
    assert outcome.summary[1:] == [f"not made  golden_traces/typo.json  {missing}", "no golden was written"]


@pytest.mark.parametrize(
    ("first", "second"),
    [("twin.yaml", "twin.yml"), ("Twin.yaml", "twin.yaml"), ("deep/twin.yaml", "Deep/twin.yaml")],
)
def test_two_files_with_one_golden_both_fail(accepted: MiniProject, first: str, second: str) -> None:
    """Cases whose goldens would be one file, also where case does not count, are refused before either is written."""
    accepted.write(dict.fromkeys((f"cases/{first}", f"cases/{second}"), accepted.read("cases/refund.yaml")))
    outcome = accepted.pytest("--update-golden")
    assert (outcome.exit_code, outcome.changed) == (1, {})
    assert sorted(outcome.section("short test summary info")[:2]) == sorted(
        f"FAILED cases/{one}::{one.rpartition('/')[2].partition('.')[0]} - cases/{one}: "
        f"the golden trace of this case would also be that of cases/{other}; rename one"
        for one, other in ((first, second), (second, first))
    )
    assert outcome.summary[0] == "3 cases: 2 with a broken case file, 1 unchanged"
    alone = accepted.pytest(f"cases/{first}")
    assert alone.exit_code == 1, "a collision is one also when only one of the files is selected"


@pytest.mark.parametrize("name", ["SHOUTED.YAML", "short.yml", "build/late", "dist/late", "node_modules/x", "a.egg/x"])
def test_no_name_makes_a_case_vanish(shop: MiniProject, name: str) -> None:
    """Suffixes in capitals, and folders whose names pytest passes over elsewhere, hold cases like any other."""
    file = f"cases/{name}" if "." in name.rpartition("/")[2] else f"cases/{name}.yaml"
    shop.write({file: shop.read("cases/refund.yaml")})
    stem = name.rpartition("/")[2].partition(".")[0]
    assert f"{file}::{stem}" in collected(shop)


def test_hidden_files_and_what_is_ignored_stay_out(shop: MiniProject) -> None:
    """Editors' swap files are no cases, and whoever ignores a folder means it."""
    with_cases(shop, "build/late", ".refund.swp", ".hidden/x")
    refund, late = "cases/refund.yaml::refund", "cases/build/late.yaml::late"
    assert collected(shop) == [late, refund]
    assert collected(shop, "--ignore", "cases/build") == [refund]
    assert collected(shop, "--ignore", str(shop.root / "cases/build")) == [refund]
    assert collected(shop, "--ignore-glob", "cases/bu*") == [refund]


def test_collecting_runs_and_writes_nothing(shop: MiniProject) -> None:
    """`--collect-only --update-golden` lists the cases and leaves every file as it is."""
    shop.edit("loop.py", "def run(", "raise SystemExit\ndef run(")
    outcome = shop.pytest("--collect-only", "--update-golden")
    assert (outcome.exit_code, outcome.changed, outcome.summary) == (0, {}, [])
    assert not (shop.root / ".harness").exists()


def test_yaml_elsewhere_is_left_alone(shop: MiniProject) -> None:
    """Only the case folder holds cases; YAML files of others are none, even when they are named."""
    shop.write({"config.yaml": "a: [", "data/cases/x.yaml": "b: 1\n", "test_nothing.py": "def test_it(): pass\n"})
    assert collected(shop) == ["cases/refund.yaml::refund", "test_nothing.py::test_it"]


def test_a_case_beside_python_tests_in_one_folder(shop: MiniProject) -> None:
    """A conftest and tests below the case folder work as anywhere."""
    shop.write({"cases/conftest.py": "", "cases/test_here.py": "def test_here(): pass\n"})
    assert collected(shop) == ["cases/refund.yaml::refund", "cases/test_here.py::test_here"]
