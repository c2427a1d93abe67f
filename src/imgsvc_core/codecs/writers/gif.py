"""GIF, by libvips: 256 colors a frame, delays in hundredths of a second."""

from __future__ import annotations

import itertools

import pyvips

from imgsvc_core.codecs.changes import timing
from imgsvc_core.codecs.settings import SaveSettings
from imgsvc_core.codecs.table import codec_effort
from imgsvc_core.codecs.writers.sink import Sink
from imgsvc_core.vipsimage import frame_count

_LONGEST_DELAY = 655_350  # milliseconds; more would begin at zero again as well
_MOST_PLAYS = 65_535  # more would begin at zero again, which is for ever


def write(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> None:
    """Still or animated; equal frames stay frames of their own."""
    frames = frame_count(image)
    if frames > 1:
        delays, plays = timing(image, frames)
        image = image.copy()
        image.set_type(pyvips.GValue.array_int_type, "delay", in_hundredths(delays))
        image.set_type(pyvips.GValue.gint_type, "loop", min(plays, _MOST_PLAYS))
    sink.save(
        image, "gif", effort=codec_effort("gif", settings.effort), interlace=settings.progressive is True,
        keep_duplicate_frames=True, keep="none",
    )  # fmt: skip


def in_hundredths(delays: list[int]) -> list[int]:
    """Round delays to hundredths of a second at the end of each frame, so that no error adds up."""
    held = (min(delay, _LONGEST_DELAY) for delay in delays)
    ends = [0, *((end + 5) // 10 * 10 for end in itertools.accumulate(held))]
    return [after - before for before, after in itertools.pairwise(ends)]
