"""Crash sweeps of cases: from a case file to a matrix that is compared with its crash golden."""
