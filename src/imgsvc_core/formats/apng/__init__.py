"""Animated PNG."""
