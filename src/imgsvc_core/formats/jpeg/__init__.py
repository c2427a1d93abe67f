"""JPEG."""
