"""Loss of power: what may be left of a state directory, and whether a store reads it."""
