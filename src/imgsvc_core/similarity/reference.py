"""A picture in memory that encoded files are scored against."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyvips
from numpy.typing import NDArray

from imgsvc_core._runtime.deadline import check_time
from imgsvc_core._runtime.vipsimage import frame_count
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.loading import load
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.raster import Raster
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.vips import to_array
from imgsvc_core.similarity.shown import flatters, grounds_for, on_ground, with_all_scales, with_room
from imgsvc_core.similarity.ssimulacra2 import Original, score_by_parts

_MOST_KEPT = 6_000_000  # pixels of all frames whose half of the work is kept


class Reference:
    """A picture, or all frames of an animation, that encoded files are scored against."""

    def __init__(self, image: pyvips.Image) -> None:
        """Take a gray or sRGB picture in memory, upright, of 8 or 16 bits."""
        self._count = frame_count(image)
        self._frames = _frames(image, self._count)
        self._keeps = image.width * image.height <= _MOST_KEPT
        self._kept: dict[tuple[int, int, bool], Original] = {}

    def score(self, data: bytes) -> float:
        """Return the SSIMULACRA2 of a file, that of its worst frame on its worst ground.

        Of small gray pictures it is that of the picture or of its mirrored copies, whichever is less.
        """
        settings = LoadSettings(all_frames=self._count > 1, array=self._count == 1, metadata=False)
        decoded = load(probe(ByteSource(data)), settings)
        worst = 100.0
        for number, pixels in enumerate(_frames(decoded, self._count)):
            frame, shown = with_room(self._frames[number]), with_room(pixels)
            for ground in grounds_for(frame, shown):
                check_time()
                original, seen = on_ground(ground, frame), on_ground(ground, shown)
                worst = min(worst, self._score((number, ground, False), original, seen))
                if flatters(original):
                    mirrored = with_all_scales(original), with_all_scales(seen)
                    worst = min(worst, self._score((number, ground, True), *mirrored))
        return worst

    def _score(
        self, place: tuple[int, int, bool], original: NDArray[np.uint8], shown: NDArray[np.uint8]
    ) -> float:
        """Score a frame on a ground, perhaps mirrored, which makes small frames up to 28 times larger."""
        if not self._keeps or (place[2] and self._count > 1):
            return score_by_parts(original, shown)
        if place not in self._kept:
            self._kept[place] = Original.of(original)
        return self._kept[place].score(shown)


def _frames(image: pyvips.Image | Raster, count: int) -> NDArray[np.uint8]:
    """Return frames x height x width x bands of 8 bits."""
    pixels: NDArray[Any] = image.pixels if isinstance(image, Raster) else to_array(image)
    if pixels.dtype != np.uint8:
        pixels = ((pixels.astype(np.uint32) * 255 + 32_767) // 65_535).astype(np.uint8)
    return pixels.reshape(count, -1, *pixels.shape[1:])
