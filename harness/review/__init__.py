"""Deciding on the traces of the last run: what waits, what may be accepted, what was decided."""
