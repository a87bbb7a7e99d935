"""Files that `harness init` and `harness demo` write, as resources of the package."""
