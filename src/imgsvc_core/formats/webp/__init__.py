"""WebP."""
