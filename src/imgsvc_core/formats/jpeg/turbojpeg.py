"""Decode a whole JPEG into memory, to the same pixels as libvips does by lines, and find all damage.

TurboJPEG takes less time than libvips. libvips replaces it if the extra is not installed, and if loading
NumPy for it would take longer.
"""

from __future__ import annotations

import functools
from typing import Any

import pyvips

from imgsvc_core._runtime.numpy_cost import numpy_pays
from imgsvc_core._runtime.patterns import pattern
from imgsvc_core._runtime.vipsimage import size_of
from imgsvc_core.formats.boundary import failure_of_machine, unreadable
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.jpeg import Jpeg
from imgsvc_core.formats.jpeg import whole as whole_jpeg
from imgsvc_core.formats.jpeg.padding import is_padding

_CHANNELS = {"gray": "GRAY", "srgb": "RGB", "cmyk": "CMYK"}
_LEAST_SIDE = 8  # pixels; at fewer, sides that are rounded differ from those of libvips
_MOST_ENCODED_BYTES = 2**26
_MOST_PIXELS = 2**28
_MOST_DECODED_PIXELS = 2**24
_ONLY_LOOKED_AT = (1, 1)  # in the smallest size there is
_MOST_SHRINK = 8

_OTHERWISE_SOUND = pattern(
    "Could not|Unsupported color conversion|[Mm]emory|[Tt]oo (large|wide|small)|[Mm]aximum supported"
)


@functools.cache
def decoder() -> Any | None:
    """Return TurboJPEG's function, or None if it is not installed."""
    try:
        from simplejpeg import decode_jpeg
    except ImportError:
        return None
    return decode_jpeg


def decoded(picture: Jpeg, shrink: int) -> Any | None:
    """Return an array of (height, width, 1 or 3), or an image of libvips in memory. Sides are rounded up or
    down.

    Return None for a large or unusual picture, which libvips then decodes by lines. Its data is checked for
    damage first, if that is possible. Any warning of the decoder that means damage raises `CorruptImage`.
    """
    source, info, scan = picture.source, picture.info, picture.header.scan
    if scan is None or (
        info.depth != 8 or source.size > _MOST_ENCODED_BYTES or info.width * info.height > _MOST_PIXELS
    ):
        return None
    width, height = -(-info.width // shrink), -(-info.height // shrink)
    exact = (info.width, info.height) == (width * shrink, height * shrink)
    alike = (exact or min(info.width, info.height) >= _LEAST_SIDE) and info.colorspace != "cmyk"
    shown = alike and width * height <= _MOST_DECODED_PIXELS
    try:
        decode = decoder() if numpy_pays(info.width * info.height) else None
        if decode is None:
            smallest = _MOST_SHRINK if min(info.width, info.height) >= _MOST_SHRINK else 1
            pixels = whole_jpeg.decode(picture, shrink if shown else smallest)
            size = size_of(pixels)
        else:
            least_width, least_height = (width, height) if shown else _ONLY_LOOKED_AT
            pixels = decode(
                source.buffer(),
                colorspace=_CHANNELS[info.colorspace],
                min_width=least_width,
                min_height=least_height,
            )
            size = pixels.shape[1], pixels.shape[0]
    except (ValueError, pyvips.Error) as error:
        if machine := failure_of_machine(error):
            raise machine from error
        complaint = error.detail if isinstance(error, pyvips.Error) else str(error)
        if _tells_damage(complaint, source, scan):
            raise unreadable("jpg", error) from error
        return None
    except MemoryError:
        return None
    rounded = (width, height), (info.width // shrink, info.height // shrink)
    return pixels if shown and size in rounded else None


def _tells_damage(complaint: str, source: ByteSource, scan: int) -> bool:
    """Return True if pixels are wrong. Leftover coded data means lost blocks, leftover padding does not."""
    padding = is_padding(complaint, bytes(source.buffer()), scan)
    return _OTHERWISE_SOUND.search(complaint) is None if padding is None else not padding
