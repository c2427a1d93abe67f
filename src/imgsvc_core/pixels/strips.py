"""Reduce all frames of an animation together, to the same samples as one by one.

libvips takes half a millisecond to set up a reduction, as long as a small frame takes. Frames that lie side
by side have no column in common, and frames in a strip no row. So columns are reduced in the one arrangement,
and rows in the other: no frame bleeds into the next.
"""

from __future__ import annotations

from functools import partial

import pyvips

from imgsvc_core._runtime.deadline import in_memory
from imgsvc_core._runtime.vipsimage import frame_count
from imgsvc_core.pixels import resampling
from imgsvc_core.pixels.channels import resampled_premultiplied
from imgsvc_core.plan.geometry import Box, Size

_MOST_BYTES = 1 << 22  # bytes of frames that are reduced at once, which bounds the memory beside the strip


def suits(strip: pyvips.Image, box: Box, want: Size) -> bool:
    """Return True if a rectangle of each frame can be reduced to a size, and several fit into a group."""
    return 2 * _bytes_of_frame(strip) <= _MOST_BYTES and resampling.reduces_at_once(box.size, want)


def reduce(strip: pyvips.Image, box: Box, want: Size) -> pyvips.Image:
    """Reduce a rectangle of each frame of a strip in memory to a size."""
    height, frames = strip.get_page_height(), frame_count(strip)
    most = _MOST_BYTES // _bytes_of_frame(strip)
    groups = (
        strip.crop(0, first * height, strip.width, min(most, frames - first) * height)
        for first in range(0, frames, most)
    )
    operation = partial(_reduce, height=height, box=box, want=want)
    reduced = [in_memory(resampled_premultiplied(group, operation)) for group in groups]
    # The last group may be shorter than the cell that it gets.
    joined = pyvips.Image.arrayjoin(reduced, across=1).crop(0, 0, want.width, want.height * frames).copy()
    joined.set_type(pyvips.GValue.gint_type, "page-height", want.height)
    return joined


def _bytes_of_frame(strip: pyvips.Image) -> int:
    sample = 1 if strip.format == "uchar" else 2
    return int(strip.width * strip.get_page_height() * strip.bands * sample)


def _reduce(group: pyvips.Image, *, height: int, box: Box, want: Size) -> pyvips.Image:
    options = {"kernel": resampling.KERNEL, "gap": resampling.GAP}
    beside = group.grid(height, group.height // height, 1)
    beside = beside.crop(0, box.top, beside.width, box.height)
    columns = in_memory(beside.reducev(box.height / want.height, **options))
    lefts = range(box.left, columns.width, group.width)
    frames = [columns.crop(left, 0, box.width, want.height) for left in lefts]
    return pyvips.Image.arrayjoin(frames, across=1).reduceh(box.width / want.width, **options)
