"""Filters and adjustments whose pixels depend on their neighbors or on their position.

The functions take a picture of one frame with 8 or 16 bits, gray or RGB, with or without alpha, and return
one of the same size, bands and format. Functions of lengths in pixels return the very same picture for a
neutral length. Functions of a part of the request turn its values into lengths. These are relative to the
shorter side of the frame, so that a small preview looks like the full-size result.
"""
