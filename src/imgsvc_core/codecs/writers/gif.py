"""GIF, by libvips: at most 256 colors a frame, delays in hundredths of a second."""

from __future__ import annotations

import itertools

import pyvips

from imgsvc_core.codecs.changes import timing
from imgsvc_core.codecs.settings import MOST_EXAMINED, SaveSettings
from imgsvc_core.codecs.table import codec_effort
from imgsvc_core.codecs.writers.sink import Sink
from imgsvc_core.vipsimage import frame_count, has, size_of

_LONGEST_DELAY = 655_350  # milliseconds; more would begin at zero again as well
_MOST_PLAYS = 65_535  # more would begin at zero again, which is for ever

_SOURCE_PALETTE = "gif-palette"
_SAMPLED_PIXELS = 2048
# How far 99 of 100 pixels may lie from the palette of the source, in RGB. Photographs and drawings that were
# only made smaller keep within that; a palette without the new colors, or of black and white alone, does not.
_NEAR = 20


def write(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> None:
    """Write a still or an animation; equal frames stay frames of their own.

    The palette of the source serves again if it suits the picture: that takes a third of the time, and one
    palette for all frames makes much smaller files.
    """
    options: dict[str, object] = {}
    if settings.colors is not None:
        options["bitdepth"] = settings.colors.bit_length() - 1
    elif has(image, _SOURCE_PALETTE) and image.width * image.height <= MOST_EXAMINED:
        image = image.copy_memory()
        options["reuse"] = _suits(image, image.get(_SOURCE_PALETTE))
    frames = frame_count(image)
    if frames > 1:
        delays, plays = timing(image, frames)
        image = image.copy()
        image.set_type(pyvips.GValue.array_int_type, "delay", in_hundredths(delays))
        image.set_type(pyvips.GValue.gint_type, "loop", min(plays, _MOST_PLAYS))
    sink.save(
        image, "gif", effort=codec_effort("gif", settings.effort), interlace=settings.progressive is True,
        keep_duplicate_frames=True, keep="none", **options,
    )  # fmt: skip


def _suits(image: pyvips.Image, palette: list[int]) -> bool:
    """Return True if a palette of 32-bit RGBA has a color near to nearly each pixel."""
    import numpy as np

    width, height = size_of(image)
    sample = image.subsample(1, min(height, max(1, width * height // 65_536))).colourspace("srgb").numpy()
    pixels = sample.reshape(-1, sample.shape[-1])
    if image.hasalpha():
        pixels = pixels[pixels[:, -1] > 127]
    pixels = pixels[:: max(1, len(pixels) // _SAMPLED_PIXELS), :3].astype(np.float32)
    colors = np.array(palette, np.int64).astype("<u4").view(np.uint8).reshape(-1, 4)[:, :3].astype(np.float32)
    squares = (pixels**2).sum(axis=1)[:, None] + (colors**2).sum(axis=1) - 2 * pixels @ colors.T
    return len(pixels) == 0 or float(np.quantile(squares.min(axis=1), 0.99)) <= _NEAR**2


def in_hundredths(delays: list[int]) -> list[int]:
    """Round delays to hundredths of a second at the end of each frame, so that no error adds up."""
    held = (min(delay, _LONGEST_DELAY) for delay in delays)
    ends = [0, *((end + 5) // 10 * 10 for end in itertools.accumulate(held))]
    return [after - before for before, after in itertools.pairwise(ends)]
