"""What git calls for goldens: readable text for its diffs, a diff of what a run did, merges that no run contradicts.

git starts one process a file, so `python -m harness.drivers` imports nothing that its task does not need.
"""
