"""Steps that bring the tables of any earlier version up to date."""
