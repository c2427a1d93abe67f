"""Animations as libvips keeps them: all frames in one tall strip, with the height of a frame beside it."""

from __future__ import annotations

import pyvips


def frame_count(image: pyvips.Image) -> int:
    """Number of frames in the strip."""
    return int(image.height // image.get_page_height())


def split_frames(image: pyvips.Image) -> list[pyvips.Image]:
    """Each frame of the strip as a picture of its own."""
    height = image.get_page_height()
    return [image.crop(0, top, image.width, height) for top in range(0, image.height, height)]


def join_frames(frames: list[pyvips.Image]) -> pyvips.Image:
    """One strip of equally large frames, with delays and loop count of the first one's metadata."""
    if len(frames) == 1:
        return frames[0]
    strip = pyvips.Image.arrayjoin(frames, across=1).copy()
    strip.set_type(pyvips.GValue.gint_type, "page-height", frames[0].height)
    return strip
