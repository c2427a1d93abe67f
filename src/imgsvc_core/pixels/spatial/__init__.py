"""Filters and adjustments whose pixels depend on their neighbors or on their place.

The functions take a picture of one frame with 8 or 16 bits, gray or RGB, with or without alpha, and return
one of the same size, bands and format. Those that take lengths in pixels return the very same picture for a
neutral one. Those that take what is asked for turn its values into lengths, which are relative to the shorter
side of the frame, so that a small preview looks like the full-size result.
"""
