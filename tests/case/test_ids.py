"""The ids of cases, where cases are found, and which names are refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.case.ids import case_id, find_cases, find_collisions
from harness.errors import CaseError


def test_the_id_is_the_path_without_suffix(tmp_path: Path) -> None:
    """An id is the path below the case folder, dots inside a name included."""
    assert case_id(tmp_path / "notes" / "weekly_v1.2.yaml", tmp_path) == "notes/weekly_v1.2"
    assert case_id(tmp_path / "a.yml", tmp_path) == "a"


ALLOWED = "letters, digits, '.', '_', '-'; the first a letter or digit"
REFUSED = {
    "a b.yaml": f"'a b' cannot be part of a case id ({ALLOWED}); rename it to 'a-b'",
    "a::b.yaml": f"'a::b' cannot be part of a case id ({ALLOWED}); rename it to 'a-b'",
    "a[0].yaml": f"'a[0]' cannot be part of a case id ({ALLOWED}); rename it to 'a-0'",
    "_a.yaml": f"'_a' cannot be part of a case id ({ALLOWED}); rename it to 'a'",
    "é.yaml": f"'é' cannot be part of a case id ({ALLOWED}); rename it to 'case'",
    "a\nb.yaml": f"'a\\nb' cannot be part of a case id ({ALLOWED}); rename it to 'a-b'",
    "a..yaml": "'a.' ends with a dot, which Windows drops; rename it to 'a'",
    "con.yaml": "'con' is the name of a device on Windows; rename it to 'con-case'",
    "LPT1.x.yaml": "'LPT1.x' is the name of a device on Windows; rename it to 'LPT1-case.x'",
    "x" * 101 + ".yaml": f"{'x' * 20!r}... has 101 characters and may have 100; rename it to {'x' * 100!r}",
    "a.crash.yaml": "'a.crash' would share its golden with the crash sweep of 'a'; rename it to 'a-crash'",
}


@pytest.mark.parametrize(("name", "said"), REFUSED.items(), ids=map(ascii, REFUSED))
def test_a_name_that_would_not_work_everywhere_is_refused(name: str, said: str, tmp_path: Path) -> None:
    """A component that a node id, Windows or a golden cannot carry is refused with a name that works."""
    with pytest.raises(CaseError) as caught:
        case_id(tmp_path / name, tmp_path)
    assert [problem.message for problem in caught.value.problems] == [said]


def test_every_component_is_checked(tmp_path: Path) -> None:
    """Folders count as the file does, and all faults are named at once."""
    with pytest.raises(CaseError) as caught:
        case_id(tmp_path / "a b" / "nul" / "c d.yaml", tmp_path)
    assert [problem.message.partition(";")[0].split(" ")[0:2] for problem in caught.value.problems] == [
        ["'a", "b'"],
        ["'nul'", "is"],
        ["'c", "d'"],
    ]


@given(st.text(min_size=1, max_size=130))
def test_a_suggestion_is_legal(name: str) -> None:
    """The name that a refusal suggests is never refused itself."""
    root = Path("/cases")
    if "/" in name or "\0" in name or Path(f"{name}.yaml").name != f"{name}.yaml":
        return
    try:
        case_id(root / f"{name}.yaml", root)
    except CaseError as error:
        suggested = re.search(r"rename it to '([^']*)'$", error.problems[0].message)
        assert suggested
        assert case_id(root / f"{suggested[1]}.yaml", root) == suggested[1]


def test_a_file_outside_the_folder_has_no_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is not below the case folder is refused by name."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CaseError) as caught:
        case_id(Path("other/a.yaml"), Path("cases"))
    assert str(caught.value) == "other/a.yaml: this file is not in the folder of the cases, cases"


def test_cases_are_found_in_order(tmp_path: Path) -> None:
    """Both suffixes in any case are found, sorted by id; hidden files, hidden folders and other files are not."""
    for name in (
        "b.yaml",
        "a.yml",
        "n/c.YAML",
        "n/readme.md",
        ".hidden.yaml",
        ".git/x.yaml",
        "n/.y/z.yml",
        "b.yaml.bak",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "dangling.yaml").symlink_to("nowhere")
    assert find_cases(tmp_path) == [tmp_path / name for name in ("a.yml", "b.yaml", "dangling.yaml", "n/c.YAML")]


def test_a_missing_folder_holds_no_cases(tmp_path: Path) -> None:
    """A project without a case folder has no cases, and that is no error."""
    assert find_cases(tmp_path / "cases") == []


def test_linked_folders_are_entered_once(tmp_path: Path) -> None:
    """Links to folders are followed, those that lead back are not followed for ever, real names come first."""
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "s.yaml").touch()
    cases = tmp_path / "cases"
    (cases / "z").mkdir(parents=True)
    (cases / "z" / "c.yaml").touch()
    (cases / "z" / "up").symlink_to(cases)
    (cases / "a").symlink_to(cases / "z")
    (cases / "linked").symlink_to(shared)
    (shared / "back").symlink_to(cases)
    assert find_cases(cases) == [cases / "linked" / "s.yaml", cases / "z" / "c.yaml"]


def test_an_unreadable_folder_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder whose cases cannot be listed is reported, since they would be skipped without a word."""
    monkeypatch.chdir(tmp_path)
    Path("cases/secret").mkdir(parents=True)

    def refuse(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr("harness.case.ids.os.scandir", refuse)
    with pytest.raises(CaseError) as caught:
        find_cases(Path("cases"))
    assert str(caught.value) == "cases: the folder cannot be read: Permission denied"


def test_collisions_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two suffixes of one name and names that differ by case collide; each file says with which."""
    monkeypatch.chdir(tmp_path)
    root = Path("cases")
    paths = [root / name for name in ("a.yaml", "a.yml", "n/B.yaml", "n/b.yaml", "N/b.yml", "c.yaml", "n/c.yaml")]
    said = {path.as_posix(): problem.message for path, problem in find_collisions(paths, root).items()}
    start = "the golden trace of this case would also be that of "
    assert said == {
        "cases/a.yaml": f"{start}cases/a.yml; rename one",
        "cases/a.yml": f"{start}cases/a.yaml; rename one",
        "cases/n/B.yaml": f"{start}cases/n/b.yaml, cases/N/b.yml; rename one",
        "cases/n/b.yaml": f"{start}cases/n/B.yaml, cases/N/b.yml; rename one",
        "cases/N/b.yml": f"{start}cases/n/B.yaml, cases/n/b.yaml; rename one",
    }
