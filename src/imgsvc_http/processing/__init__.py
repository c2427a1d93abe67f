"""Worker processes, and the way of one picture through them."""
