"""HEIC and AVIF."""
