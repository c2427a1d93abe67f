"""What a picture shows, as far as it decides how it is best encoded."""

from __future__ import annotations

import zlib
from typing import Any

import attrs
import pyvips

from imgsvc_core.codecs.settings import SaveSettings, Subsampling
from imgsvc_core.vipsimage import samples_of, size_of

# Pixels of pictures that may lie in memory only to be examined. Larger ones are taken for photographs.
MOST_EXAMINED = 16_000_000
_SAMPLED_PIXELS = 32_768
# The sum of the differences in R-G and in B-G between neighbors from which color jumps, of 8 bits. Such jumps
# are between .8 and 2.5 % of screenshots and drawings whose colored lines and text gain by full resolution,
# and at most .2 % of photographs.
_COLOR_JUMP = 96
_COLORED_EDGES = 0.004
# With more of them, compressed differences are smaller than compressed samples, dithered or not.
_FEW_COLORS, _FEW_GRAYS = 256, 64
_FULL_COLOR_QUALITY = 90  # from here on libjpeg and libheif store color at full resolution too


@attrs.frozen
class Content:
    """Shares of the neighbors in a picture, from 0 to 1, and what compresses best."""

    flat: float  # that are equal
    colored_edges: float  # between which color jumps
    repeats: bool  # colors repeat more than the differences between neighbors, as if it is dithered


_PHOTOGRAPH = Content(flat=0.0, colored_edges=0.0, repeats=False)


def examine(image: pyvips.Image, settings: SaveSettings) -> tuple[pyvips.Image, Content]:
    """Return the picture, in memory if its pixels had to be examined, and its content."""
    width, height = size_of(image)
    if settings.photograph or width * height > MOST_EXAMINED:
        return image, _PHOTOGRAPH
    image = image.copy_memory()
    step = max(1, width * height // _SAMPLED_PIXELS)
    return image, _content(image if step == 1 else image.subsample(1, min(step, height)))


def choose_subsampling(image: pyvips.Image, settings: SaveSettings) -> tuple[pyvips.Image, Subsampling]:
    """Return the picture, in memory if its pixels had to be examined, and the color resolution to encode."""
    given = given_subsampling(image.bands, settings)
    if given is not None:
        return image, given
    image, content = examine(image, settings)
    return image, "444" if content.colored_edges >= _COLORED_EDGES else "420"


def given_subsampling(bands: int, settings: SaveSettings) -> Subsampling | None:
    """Return the color resolution to encode, or None if the picture is to be examined for it."""
    if settings.subsampling is not None:
        return settings.subsampling
    if bands < 3:
        return "420"
    if settings.lossless or (settings.quality or 0) >= _FULL_COLOR_QUALITY:
        return "444"
    return "420" if settings.photograph else None


def _content(image: pyvips.Image) -> Content:
    import numpy as np

    if image.width == 1:
        return _PHOTOGRAPH
    pixels = image.numpy().reshape(image.height, image.width, image.bands)
    if samples_of(image) == "ushort":
        pixels = pixels >> 8
    repeats = _repeats(pixels)
    bands = [pixels[:, :, band].astype(np.int16) for band in range(image.bands)]
    if image.bands < 3:
        steps = sum(_steps(band) for band in bands)
        return Content(flat=float((steps == 0).mean()), colored_edges=0.0, repeats=repeats)
    red, green, blue, *alpha = bands
    jumps = _steps(red - green) + _steps(blue - green)
    steps = sum((_steps(band) for band in (green, *alpha)), jumps)
    edges = jumps >= _COLOR_JUMP
    for opacity in alpha:
        edges &= np.minimum(opacity[:, 1:], opacity[:, :-1]) > 127
    flat, colored_edges = float((steps == 0).mean()), float(edges.mean())
    return Content(flat=flat, colored_edges=colored_edges, repeats=repeats)


def _repeats(pixels: Any) -> bool:
    """Return True if the colors are few, and compress better than the differences between neighbors."""
    import numpy as np

    bands = pixels.shape[2]
    numbers = pixels.reshape(-1, bands) @ (1 << 8 * np.arange(bands, dtype=np.uint32))
    few = _FEW_COLORS if bands >= 3 else _FEW_GRAYS
    if any(len(np.unique(some)) > few for some in (numbers[::16], numbers)):
        return False
    differences = pixels[:, 1:] - pixels[:, :-1]
    plain, different = (zlib.compress(part.tobytes(), 1) for part in (pixels[:, 1:], differences))
    return len(plain) < len(different)


def _steps(band: Any) -> Any:
    """Return how much each sample differs from the one to the left."""
    return abs(band[:, 1:] - band[:, :-1])
