"""Decode plain AVIF stills by imagecodecs, whose decoder dav1d takes a third of the time of libvips' one."""

from __future__ import annotations

import functools
from importlib.util import find_spec
from math import prod

import pyvips

from imgsvc_core.formats.boundary import decoder
from imgsvc_core.formats.heif import Heif
from imgsvc_core.formats.vips import from_array

_LEAST_PIXELS = 1 << 19  # below, loading the package takes longer than it saves
_CHANGES = frozenset({b"irot", b"imir", b"clap"})
_STILL = b"avif"
# Coefficients of luma and chroma that libvips' decoder and this one know alike, see ITU-T H.273.
_MATRICES = frozenset({1, 5, 6, 9})


@functools.cache
def has_decoder() -> bool:
    """Return True if imagecodecs is installed."""
    return find_spec("imagecodecs") is not None


def suits(picture: Heif) -> bool:
    """Return True for an opaque picture in color of 8 bits, coded in one piece and stored upright."""
    info, items, reader = picture.info, picture.header.items, picture.header_reader
    properties = items.properties.get(items.primary, ())
    colors = [box for box in properties if box.kind == b"colr" and reader.read(box.start, 4) == b"nclx"]
    return (
        info.format == "avif"
        and info.depth == 8
        and info.colorspace == "srgb"
        and not info.alpha
        and prod((info.width, info.height)) >= _LEAST_PIXELS
        and items.kinds.get(items.primary) == b"av01"
        and _CHANGES.isdisjoint(box.kind for box in properties)
        and all(reader.unpack(">H", box.start + 8)[0] in _MATRICES for box in colors)
        and reader.read(8, 4) == _STILL
        and has_decoder()
    )


def decoded(picture: Heif) -> pyvips.Image:
    """Return the pixels in memory.

    Raises:
        CorruptImage: the file is damaged or cut short.
    """
    with decoder("avif"):
        import imagecodecs

        pixels = imagecodecs.avif_decode(picture.source.read(), index=0, numthreads=1)
    return from_array(pixels)
