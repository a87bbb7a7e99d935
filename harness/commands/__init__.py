"""The subcommands of `harness`, one a module."""
