"""Worker processes, the pool of them, and who is next."""
