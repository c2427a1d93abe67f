"""GIF, by libvips: at most 256 colors a frame, delays in hundredths of a second."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyvips

from imgsvc_core._runtime.vipsimage import frame_count, join_frames, split_frames
from imgsvc_core.formats.changes import timing
from imgsvc_core.formats.format import SavedFacts
from imgsvc_core.formats.quantizer import Histogram
from imgsvc_core.formats.settings import MOST_EXAMINED, SaveSettings
from imgsvc_core.formats.sink import Sink
from imgsvc_core.formats.table import codec_effort
from imgsvc_core.formats.vips import from_array, to_array

_LONGEST_DELAY = 655_350  # milliseconds; the 16-bit field of hundredths would overflow
_SHORTEST_DELAY = 20  # milliseconds; browsers do not respect shorter delays
_HURRIED = 10  # milliseconds; up to this delay, browsers show a frame of any format for 100 ms
_MOST_PLAYS = 65_535  # the field has 16 bits, and 0 means forever

_FEWER_COLORS = "GIF has 256 colors for each frame, and the picture has more."
_MOST_COLORS = 256
_MOST_CHOSEN = 254  # libvips chooses at most 254 colors and keeps the rest for transparency
_TRANSPARENT = 127  # pixels with this alpha or less become transparent
# One palette for all frames makes files a third smaller in a third of the time. Compared with a palette for
# each frame, its mean square error is 1.2 times as large within a scene, and twice as large between scenes.
_WORSE, _UNSEEN = 1.5, 2.0
_SAME_PALETTE = 1  # with libvips' own limit of 3, a new color of few pixels is lost


def write(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> SavedFacts:
    """Write a still or an animation; equal frames stay frames of their own."""
    frames = frame_count(image)
    facts: SavedFacts = {"colorspace": "palette", "interlaced": settings.progressive is True}
    plays, shown = 1, [0]
    if frames > 1:
        delays, plays = timing(image, frames)
        kept = in_hundredths(delays)
        if len(kept) < frames:
            sink.note(f"GIF has no frames of less than 20 ms: {frames - len(kept)} of {frames} are left out.")
            image = join_frames([frame for number, frame in enumerate(split_frames(image)) if number in kept])
        plays, shown = min(plays, _MOST_PLAYS), list(kept.values())
        facts |= {"frames": len(kept)}
        if len(kept) > 1:
            facts |= {"delays": tuple(shown), "plays": plays}
    image = image.copy()
    image.set_type(pyvips.GValue.array_int_type, "delay", shown)
    image.set_type(pyvips.GValue.gint_type, "loop", plays)
    options: dict[str, object] = {
        "effort": codec_effort("gif", settings.effort), "interlace": settings.progressive is True,
        "keep_duplicate_frames": True, "keep": "none",
    }  # fmt: skip
    if settings.colors is None and image.width * image.height > MOST_EXAMINED:
        sink.note(_FEWER_COLORS)
        sink.save(image, "gif", **options)
        return facts
    image = image.colourspace("srgb").copy_memory()
    if settings.palettes == "pillow":
        image = join_frames([_reduced_by_pillow(frame) for frame in split_frames(image)])
    histogram = _colors(image)
    most = settings.colors or _MOST_COLORS
    exact = histogram.has_at_most(most)
    limited = exact or settings.colors is not None
    palette = histogram.choose(min(most, _MOST_CHOSEN)) if limited or settings.palettes != "libvips" else None
    if palette is not None and (limited or _serves(palette, image)):
        sink.save(_with_palette(image, palette), "gif", reuse=True, **options)
    else:
        exact = all(_colors(frame).has_at_most(most) for frame in split_frames(image))
        sink.save(image, "gif", interpalette_maxerror=_SAME_PALETTE, **options)
    if not exact:
        sink.note(_FEWER_COLORS if settings.colors is None else f"The colors are reduced to {most}.")
    return facts


def _colors(image: pyvips.Image) -> Histogram:
    """Count the colors of the pixels that are visible."""
    pixels = to_array(image).reshape(-1, image.bands)
    if image.hasalpha():
        pixels = pixels[pixels[:, 3] > _TRANSPARENT]
    return Histogram.of(pixels[:, :3])


def _reduced_by_pillow(frame: pyvips.Image) -> pyvips.Image:
    """Return a frame with the colors that Pillow chooses. Visible pixels become opaque."""
    from PIL import Image

    reduced = Image.fromarray(to_array(frame)).quantize(_MOST_COLORS)
    pixels = np.array(reduced.convert("RGBA" if frame.hasalpha() else "RGB"))
    pixels[..., 3:] = np.where(pixels[..., 3:] > 0, 255, 0)
    return frame.insert(from_array(pixels), 0, 0)


def _serves(palette: Any, image: pyvips.Image) -> bool:
    """Return True if frames look about as good with one palette as with a palette for each."""
    frames = split_frames(image)
    if len(frames) == 1:
        return True
    shared = own = 0.0
    for number in {0, len(frames) // 2, len(frames) - 1}:
        histogram = _colors(frames[number])
        shared += histogram.error(palette)
        own += histogram.error(histogram.choose(len(palette)))
    return shared <= _WORSE * own + _UNSEEN


def _with_palette(image: pyvips.Image, palette: Any) -> pyvips.Image:
    """Return the picture with a palette attached. libvips' encoder uses it instead of choosing colors."""
    colors = np.full((len(palette), 4), 255, np.uint8)
    colors[:, :3] = palette
    image = image.copy()
    image.set_type(pyvips.GValue.array_int_type, "gif-palette", colors.view("<i4")[:, 0].tolist())
    return image


def in_hundredths(delays: list[int]) -> dict[int, int]:
    """Return the numbers of the frames that are kept, and their delays in whole hundredths of a second.

    Each frame ends at its own time, give or take the length of a frame. A frame is left out if its time is
    over before it begins. The last frame always stays: it remains visible if the animation plays once.
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
        if len(kept) > 1:
            kept.popitem()  # it is as short: only after such a one a frame is left out
        kept[last] = _SHORTEST_DELAY
    return kept
