"""The tools of an agent as contracts, and the loop that runs them."""
