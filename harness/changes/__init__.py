"""What became of traces between two sides: two folders, two commits, a branch and the working tree."""

from harness.changes.change import Change, CrashChange, Kind, changes_between
from harness.changes.side import Side, commit_side, file_side, folder_side, side_of

__all__ = [
    "Change",
    "CrashChange",
    "Kind",
    "Side",
    "changes_between",
    "commit_side",
    "file_side",
    "folder_side",
    "side_of",
]
