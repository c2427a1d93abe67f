"""The kind of a picture, which decides how it is best encoded."""

from __future__ import annotations

import zlib
from typing import Any, Literal

import pyvips

from imgsvc_core._runtime.numpy_cost import numpy_pays
from imgsvc_core._runtime.records import frozen
from imgsvc_core._runtime.vipsimage import bands_of, samples_of, size_of
from imgsvc_core.formats.settings import MOST_EXAMINED, SaveSettings, Subsampling
from imgsvc_core.formats.vips import to_array, with_pixels

_SAMPLED_PIXELS = 32_768
# Equal neighbors: over .9 of charts, icons and pixel art; .3 to .7 of dithered pictures and dense text.
_GRAPHIC = 0.8
# Bytes of a sample, compressed fast: .5 and more in photographs, at most .2 in screenshots and drawings.
_EXACT_BYTES = 0.3
# The sum of the differences in R-G and in B-G between neighbors from which color jumps, of 8 bits. Such jumps
# are between .8 and 2.5 % of screenshots and drawings whose colored lines and text gain by full resolution,
# and at most .2 % of photographs.
_COLOR_JUMP = 96
_COLORED_EDGES = 0.004
_OPAQUE = 127  # pixels with more alpha count
_FEW_COLORS, _FEW_GRAYS = 256, 64
FULL_COLOR_QUALITY = 90  # from here on libjpeg and libheif store color at full resolution too

Kind = Literal["graphic", "mixed", "photograph"]


def kind_of(image: pyvips.Image, settings: SaveSettings) -> Kind:
    """Return what a picture shows, which tells how it becomes smallest without a difference to the eye.

    Graphics have few colors and flat areas. Of photographs no encoder makes a small file without loss. The
    others, such as screenshots and drawings with soft edges, have to be encoded both ways.
    """
    width, height = size_of(image)
    if settings.photograph or width * height > MOST_EXAMINED:
        return "photograph"
    if width == 1:
        return "mixed"  # there are no neighbors to compare

    from imgsvc_core.formats.palette import has_at_most

    pixels = sampled(image.copy_memory())
    if has_at_most(_FEW_COLORS if image.bands >= 3 else _FEW_GRAYS, pixels):
        return "graphic" if _flat(pixels) > _GRAPHIC else "mixed"
    return "mixed" if _compressed(pixels) < _EXACT_BYTES * pixels.size else "photograph"


@frozen
class Examined:
    """A picture and the color resolution to encode.

    ``pixels`` are all of them as an array, if NumPy examined them. If libvips did, the picture is in memory.
    """

    image: pyvips.Image
    subsampling: Subsampling
    pixels: Any = None

    @property
    def in_memory(self) -> pyvips.Image:
        """The picture, whose pixels are not computed again if they were examined."""
        return self.image if self.pixels is None else with_pixels(self.image, self.pixels)

    def smooth_share(self) -> float:
        """Return the share of neighboring pixels that differ by at most one level.

        The picture is in memory.
        """
        if self.image.width == 1:
            return 0.0
        if self.pixels is not None:
            return _smooth(_some_lines(self.pixels))
        return _smooth(sampled(self.image)) if _numpy_pays(self.image) else smooth_share(self.image)


def examine(image: pyvips.Image, settings: SaveSettings) -> Examined:
    """Choose the color resolution to encode: that of the settings, or what suits the pixels."""
    given = given_subsampling(bands_of(image), settings)
    width, height = size_of(image)
    if given is not None or width * height > MOST_EXAMINED or width == 1:
        return Examined(image, given or "420")
    if _numpy_pays(image):
        pixels = to_array(image)
        edges = colored_edges(_some_lines(pixels))
    else:
        pixels, image = None, image.copy_memory()
        edges = colored_edges_by_libvips(image)
    return Examined(image, "444" if edges >= _COLORED_EDGES else "420", pixels)


def choose_subsampling(image: pyvips.Image, settings: SaveSettings) -> tuple[pyvips.Image, Subsampling]:
    """Return the picture, in memory if its pixels had to be examined, and the color resolution to encode."""
    examined = examine(image, settings)
    return examined.in_memory, examined.subsampling


def _numpy_pays(image: pyvips.Image) -> bool:
    return numpy_pays(min(image.width * image.height, _SAMPLED_PIXELS))


def colored_edges(pixels: Any) -> float:
    """Return the share of neighboring pixels whose colors differ much."""
    import numpy as np

    red, green, blue, *alpha = (pixels[:, :, band].astype(np.int16) for band in range(pixels.shape[2]))
    edges = _steps(red - green) + _steps(blue - green) >= _COLOR_JUMP
    for opacity in alpha:
        edges &= np.minimum(opacity[:, 1:], opacity[:, :-1]) > _OPAQUE
    return float(edges.mean())


def colored_edges_by_libvips(image: pyvips.Image) -> float:
    """Return the same share of some lines without NumPy."""
    image = _lines(image)
    image = image >> 8 if samples_of(image) == "ushort" else image
    more = [0] * (image.bands - 3)
    colors = image.recomb([[1, -1, 0, *more], [0, -1, 1, *more]])
    steps = colors.conv([[-1, 1, 0]], precision="float").abs()  # none at the left edge, which is repeated
    edges = steps.recomb([[1, 1]]) >= _COLOR_JUMP
    if more:
        opaque = (image.extract_band(3) > _OPAQUE).cast("float")
        edges &= opaque.conv([[1, 1, 0]], precision="float") > 255
    share: float = edges.avg() / 255 * image.width / (image.width - 1)
    return share


def smooth_share(image: pyvips.Image) -> float:
    """Return the same share as `Examined.smooth_share` without NumPy, of a picture of 8 bits in memory."""
    lines = _lines(image)
    right, left = (lines.crop(start, 0, lines.width - 1, lines.height) for start in (1, 0))
    share: float = ((right - left).abs() <= 1).bandand().avg() / 255
    return share


def given_subsampling(bands: int, settings: SaveSettings) -> Subsampling | None:
    """Return the color resolution to encode, or None if the picture is to be examined for it."""
    if settings.subsampling is not None:
        return settings.subsampling
    if bands < 3:
        return "420"
    if settings.lossless or (settings.quality or 0) >= FULL_COLOR_QUALITY:
        return "444"
    return "420" if settings.photograph else None


def sampled(image: pyvips.Image) -> Any:
    """Return some lines of a picture in memory as an array of (height, width, bands) of 8 bits."""
    return _to_8_bits(to_array(_lines(image)))


def _some_lines(pixels: Any) -> Any:
    """Return the same lines of an array."""
    height, width = pixels.shape[:2]
    return _to_8_bits(pixels[:: _step(width, height)])


def _to_8_bits(pixels: Any) -> Any:
    return (pixels >> 8).astype("uint8") if pixels.itemsize > 1 else pixels


def _step(width: int, height: int) -> int:
    return min(max(1, width * height // _SAMPLED_PIXELS), height)


def _lines(image: pyvips.Image) -> pyvips.Image:
    step = _step(image.width, image.height)
    return image if step == 1 else image.subsample(1, step)


def _flat(pixels: Any) -> float:
    """Return the share of neighboring pixels that are equal."""
    return _share_in_all_bands(pixels[:, 1:] == pixels[:, :-1])


def _smooth(pixels: Any) -> float:
    """Return the share of neighboring pixels of 8 bits that differ by at most one level."""
    import numpy as np

    right, left = pixels[:, 1:], pixels[:, :-1]
    return _share_in_all_bands(np.maximum(right, left) - np.minimum(right, left) <= 1)


def _share_in_all_bands(found: Any) -> float:
    import numpy as np

    # `all` over the bands takes nine times as long
    return float(np.logical_and.reduce([found[:, :, band] for band in range(found.shape[2])]).mean())


def _compressed(pixels: Any) -> int:
    """Return the bytes that colors take, or the differences between neighbors, whichever are fewer."""
    parts = pixels[:, 1:], pixels[:, 1:] - pixels[:, :-1]
    return min(len(zlib.compress(part.tobytes(), 1)) for part in parts)


def _steps(band: Any) -> Any:
    """Return how much each sample differs from the one to the left."""
    return abs(band[:, 1:] - band[:, :-1])
