"""A YAML file becomes a case, and a case becomes a run of the real loop."""
