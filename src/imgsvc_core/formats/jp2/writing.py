"""JPEG 2000: by libvips if it has the codec, else by imagecodecs (deep pictures) or Pillow."""

from __future__ import annotations

import io
import struct
from functools import partial
from importlib.util import find_spec
from typing import Any

import pyvips

from imgsvc_core._runtime.vipsimage import PROFILE
from imgsvc_core.formats import availability
from imgsvc_core.formats.boundary import encoder
from imgsvc_core.formats.boxes import make_box
from imgsvc_core.formats.format import SavedFacts
from imgsvc_core.formats.jp2.codestream import TILE, encode_by_tiles
from imgsvc_core.formats.jp2.header import reduced_sizes
from imgsvc_core.formats.metadata import blob, keep_profile
from imgsvc_core.formats.settings import SaveSettings
from imgsvc_core.formats.sink import Sink
from imgsvc_core.formats.vips import to_array, to_depth

_MOST_DECOMPOSITIONS = 5  # as in most encoders
_START = make_box(b"jP  ", b"\r\n\x87\n") + make_box(b"ftyp", b"jp2 \0\0\0\0jp2 ")
_SRGB, _GRAY = 16, 17
_WAVELETS = 7


def write(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> SavedFacts:
    """Write 8 or 16 bits; without imagecodecs, deep pictures are rounded to 8."""
    facts: SavedFacts = {"channels": image.bands, "subsample": None if image.bands < 3 else "4:4:4"}
    if availability.writer_backend("jp2") == "libvips":
        options = {"Q": settings.quality, "lossless": settings.lossless}
        sink.save(image, "jp2k", keep=keep_profile(image), **options)
        return facts
    deep = image.format == "ushort" and find_spec("imagecodecs") is not None
    depth = 16 if deep else 8
    pixels = to_array(image if deep else to_depth(image, 8))
    encode = _encode_deep if deep else _encode_by_pillow
    codestream = b"".join(encode_by_tiles(pixels, partial(encode, settings=settings)))
    header = _header_box(pixels.shape, depth, blob(image, PROFILE))
    sink.write(b"".join((_START, header, make_box(b"jp2c", codestream))))
    height, width, _ = pixels.shape
    tile = min(width, TILE), min(height, TILE)
    levels = () if deep else reduced_sizes((width, height), tile, _decompositions(*tile))
    return {**facts, "depth": depth, "levels": levels}


def decibels(quality: int) -> float:
    """Return the signal-to-noise ratio of a quality: 38 dB at 80, which looks as good as JPEG."""
    return 18 + quality / 4


def _decompositions(width: int, height: int) -> int:
    """Return how often a tile is halved, until one pixel is left at the latest."""
    return min(_MOST_DECOMPOSITIONS, min(width, height).bit_length() - 1)


def _encode_by_pillow(pixels: Any, settings: SaveSettings) -> bytes:
    """Encode 8 bits. The transform between colors (mct) halves the size; Pillow omits it by default."""
    from PIL import Image

    height, width, bands = pixels.shape
    options: dict[str, Any] = {"irreversible": not settings.lossless, "mct": int(bands >= 3)}
    options["num_resolutions"] = 1 + _decompositions(width, height)
    if not settings.lossless:
        assert settings.quality is not None
        options |= {"quality_mode": "dB", "quality_layers": [decibels(settings.quality)]}
    encoded = io.BytesIO()
    with encoder("jp2"):
        Image.fromarray(_without_single_band(pixels)).save(encoded, "JPEG2000", no_jp2=True, **options)
    return encoded.getvalue()


def _encode_deep(pixels: Any, settings: SaveSettings) -> bytes:
    import imagecodecs

    assert settings.quality is not None
    level = 0 if settings.lossless else round(decibels(settings.quality))
    with encoder("jp2"):
        encoded = imagecodecs.jpeg2k_encode(
            _without_single_band(pixels),
            level=level,
            codecformat="j2k",
            reversible=settings.lossless,
            mct=pixels.shape[2] >= 3,
        )
    return bytes(encoded)


def _without_single_band(pixels: Any) -> Any:
    import numpy as np

    return np.ascontiguousarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)


def _header_box(shape: tuple[int, int, int], depth: int, profile: bytes | None) -> bytes:
    """Return the size, the color space and the kinds of channels (ISO/IEC 15444-1, annex I)."""
    height, width, bands = shape
    size = struct.pack(">IIHBBBB", height, width, bands, depth - 1, _WAVELETS, 0, 0)
    space = b"\2\0\0" + profile if profile else struct.pack(">3BI", 1, 0, 0, _SRGB if bands >= 3 else _GRAY)
    content = make_box(b"ihdr", size) + make_box(b"colr", space)
    if bands in (2, 4):
        colors = [(channel, 0, channel + 1) for channel in range(bands - 1)]
        kinds = b"".join(struct.pack(">3H", *channel) for channel in (*colors, (bands - 1, 1, 0)))
        content += make_box(b"cdef", struct.pack(">H", bands) + kinds)
    return make_box(b"jp2h", content)
