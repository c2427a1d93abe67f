"""Where results and pending uploads lie."""
