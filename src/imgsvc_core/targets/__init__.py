"""Everything that a result can be written to, and what is told of it."""
