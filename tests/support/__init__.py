"""Pictures, measures and switches that all tests share."""
