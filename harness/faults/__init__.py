"""Fault injection: kill the real process at every point, resume it, and prove that nothing was lost or repeated."""
