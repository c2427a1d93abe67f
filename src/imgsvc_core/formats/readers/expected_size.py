"""Checks that a decoder finds the size that the header states.

Limits and plans use the facts of the header alone. A decoder that reads another size from the same bytes, of
two fields that contradict each other, is stopped before it computes a pixel.
"""

from __future__ import annotations

import pyvips

from imgsvc_core._runtime.vipsimage import size_of
from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.table import FORMATS, LoadScaling


def check_stored(width: int, height: int, info: ImageInfo) -> None:
    """Raise `CorruptImage` if a decoder that knows only full sizes is about to decode another one."""
    _compare((width, height), (info.width, info.height), info, tolerance=0)


def check_loaded(image: pyvips.Image, info: ImageInfo, settings: LoadSettings) -> None:
    """Raise `CorruptImage` if a loaded image has another size than the header and the settings say.

    Decoders differ in how they round, and a drawing's own size may have fractions, which grow with it.
    """
    width, height = expected_size(info, settings)
    frames = info.frames if settings.all_frames else 1
    _compare(size_of(image), (width, height * frames), info, tolerance=max(1, settings.scale))


def expected_size(info: ImageInfo, settings: LoadSettings) -> tuple[float, float]:
    """Return width and height of a loaded frame: of a smaller copy in the file, or as the decoder scales."""
    stored = info.width, info.height
    if info.levels:
        wanted = info.width * settings.scale
        return min((stored, *info.levels), key=lambda size: abs(size[0] - wanted))
    scaling = FORMATS[info.format].load_scaling
    if info.animated or scaling in (LoadScaling.NONE, LoadScaling.LEVELS):
        return stored
    return info.width * settings.scale, info.height * settings.scale


def _compare(
    found: tuple[int, int], expected: tuple[float, float], info: ImageInfo, *, tolerance: float
) -> None:
    if any(abs(side - wanted) > tolerance for side, wanted in zip(found, expected, strict=True)):
        title = FORMATS[info.format].title
        raise CorruptImage(
            f"The {title} image is damaged: its header states {expected[0]:.0f} x {expected[1]:.0f} "
            f"pixels, its data {found[0]} x {found[1]}."
        )
