"""Every decision that code makes. Pure functions: no model, no I/O."""
