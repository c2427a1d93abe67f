"""ICO and CUR."""
