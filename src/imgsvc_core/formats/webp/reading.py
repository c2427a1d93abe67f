"""WebP, by libvips; the decoder scales a still to any smaller size.

imagecodecs decodes a still whole in half of the time, if it is installed.
"""

from __future__ import annotations

import functools
from typing import Any

import pyvips

from imgsvc_core._runtime.numpy_cost import numpy_pays
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.raster import Raster
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.vips import animation, open_lazily, still
from imgsvc_core.formats.webp import Webp
from imgsvc_core.formats.webp.header import with_sound_flags

_RESOLUTION = 1.0  # pixels per millimeter, as libvips has it
_MOST_ENCODED_BYTES = 1 << 26


@functools.cache
def decoder() -> Any | None:
    """Return the function of imagecodecs, or None if it is not installed."""
    try:
        from imagecodecs import webp_decode
    except ImportError:
        return None
    return webp_decode


def read(picture: Webp, settings: LoadSettings) -> pyvips.Image | Raster:
    """Return RGB, with alpha if a pixel may be transparent."""
    info = picture.info
    source = with_sound_flags(picture.source, alpha=info.alpha)
    plain = settings.array and not (picture.header.framed or picture.exif_blocks)
    if plain and numpy_pays(info.width * info.height) and (raster := _at_once(source, alpha=info.alpha)):
        return raster
    if settings.all_frames and info.animated:
        image = animation(open_lazily("webp", source, settings, n=-1, fail_on="error"), info)
    else:
        image = still(open_lazily("webp", source, settings, scale=settings.scale, fail_on="error"))
    opaque = not info.alpha and image.bands == 4  # libvips gives alpha to all animations
    return image[:3] if opaque else image


def _at_once(source: ByteSource, *, alpha: bool) -> Raster | None:
    """Decode a still, whose EXIF states no resolution. Return None for damage, so that libvips refuses it."""
    decode = decoder()
    if decode is None or source.size > _MOST_ENCODED_BYTES:
        return None
    try:
        pixels = decode(source.buffer(), hasalpha=alpha)
    except (MemoryError, RuntimeError, ValueError):
        return None
    return Raster(pixels, (_RESOLUTION, _RESOLUTION))
