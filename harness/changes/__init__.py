"""What became of traces between two sides: two folders, two commits, a branch and the working tree."""

from harness.changes.change import Change, CrashChange, Kind, changes_between
from harness.changes.renames import find_renames
from harness.changes.side import (
    Side,
    case_of,
    commit_side,
    file_side,
    folder_side,
    golden_side,
    is_golden,
    side_of,
    with_whole_conflicts,
)

__all__ = [
    "Change",
    "CrashChange",
    "Kind",
    "Side",
    "case_of",
    "changes_between",
    "commit_side",
    "file_side",
    "find_renames",
    "folder_side",
    "golden_side",
    "is_golden",
    "side_of",
    "with_whole_conflicts",
]
