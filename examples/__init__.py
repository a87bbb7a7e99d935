"""Loops and tools to learn from; the cases of this repository run them."""
