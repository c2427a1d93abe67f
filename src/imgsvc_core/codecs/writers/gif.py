"""GIF, by libvips: at most 256 colors a frame, delays in hundredths of a second."""

from __future__ import annotations

import pyvips

from imgsvc_core.codecs.changes import timing
from imgsvc_core.codecs.settings import MOST_EXAMINED, SaveSettings
from imgsvc_core.codecs.table import codec_effort
from imgsvc_core.codecs.writers.sink import Sink
from imgsvc_core.vipsimage import frame_count, has, join_frames, size_of, split_frames

_LONGEST_DELAY = 655_350  # milliseconds; more would begin at zero again as well
_SHORTEST_DELAY = 20  # milliseconds of a frame that browsers show as long as it says
_HURRIED = 10  # milliseconds up to which browsers show a frame of any format for 100
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
        kept = in_hundredths(delays)
        if len(kept) < frames:
            sink.note(f"GIF has no frames of less than 20 ms: {frames - len(kept)} of {frames} are left out.")
            image = join_frames([frame for number, frame in enumerate(split_frames(image)) if number in kept])
        image = image.copy()
        image.set_type(pyvips.GValue.array_int_type, "delay", list(kept.values()))
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


def in_hundredths(delays: list[int]) -> dict[int, int]:
    """Return the numbers of the frames that are kept, and their delays in whole hundredths of a second.

    Each frame ends when it would, give or take a frame. A frame whose time is over before it begins is left
    out, but never the last one, which stays visible if the animation plays once.
    """
    kept: dict[int, int] = {}
    end = shown = 0
    for number, delay in enumerate(delays):
        end += min(delay, _LONGEST_DELAY)
        due = (end + 5) // 10 * 10 - shown
        if delay > _HURRIED:
            if due < 10:
                continue
            due = max(due, _SHORTEST_DELAY)
        kept[number] = max(due, 0)
        shown += kept[number]
    last = len(delays) - 1
    if last not in kept:
        replaced = kept.popitem()[1] if len(kept) > 1 else _SHORTEST_DELAY
        kept[last] = max(replaced, _SHORTEST_DELAY)
    return kept
