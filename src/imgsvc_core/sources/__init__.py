"""Everything that an image can come from, until its facts are known."""
