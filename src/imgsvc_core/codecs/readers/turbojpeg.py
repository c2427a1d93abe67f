"""JPEG decoded at once by TurboJPEG: the same pixels as from libvips in less time, all in memory."""

from __future__ import annotations

import re
from typing import Any

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.boundary import damaged
from imgsvc_core.codecs.headers.jpeg import plain_scan
from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.info import ImageInfo

try:
    from simplejpeg import decode_jpeg
except ImportError:
    decode_jpeg = None

_CHANNELS = {"gray": "GRAY", "srgb": "RGB", "cmyk": "CMYK"}
_LEAST_SIDE = 64
_MOST_ENCODED_BYTES = 2**26
_MOST_PIXELS = 2**28
_MOST_DECODED_PIXELS = 2**23
_ONLY_LOOKED_AT = (1, 1)  # in the smallest size there is

_LEFT_OVER = re.compile(r"(\d+) extraneous bytes before marker 0xd9")
_END = b"\xff\xd9"
_PADDING = b"\0\xff"
_OTHERWISE_SOUND = re.compile(
    "Could not|Unsupported color conversion|[Mm]emory|[Tt]oo (large|wide|small)|[Mm]aximum supported"
)


def read_plain(source: ByteSource, info: ImageInfo, shrink: int) -> Any | None:
    """Return what `decoded` does for a file that all decoders read alike, or None."""
    scan = plain_scan(HeaderReader(source, "JPEG"))
    return None if scan is None else decoded(source, info, shrink, scan)


def decoded(source: ByteSource, info: ImageInfo, shrink: int, scan: int) -> Any | None:
    """Return an array of (height, width, 1 or 3), sides rounded up, of a file whose data starts at ``scan``.

    Return None if that takes much memory, if the codec is missing, or if anything is unusual: libvips decodes
    these files. Raise `CorruptImage` for damage, even if the decoder only warns, or if libvips is to decode
    the file.
    """
    if (
        decode_jpeg is None
        or info.depth != 8
        or info.colorspace not in _CHANNELS
        or source.size > _MOST_ENCODED_BYTES
        or info.width * info.height > _MOST_PIXELS
    ):
        return None
    width, height = -(-info.width // shrink), -(-info.height // shrink)
    alike = min(info.width, info.height) >= _LEAST_SIDE and info.colorspace != "cmyk"
    shown = alike and width * height <= _MOST_DECODED_PIXELS
    least_width, least_height = (width, height) if shown else _ONLY_LOOKED_AT
    try:
        pixels = decode_jpeg(
            source.buffer(),
            colorspace=_CHANNELS[info.colorspace],
            min_width=least_width,
            min_height=least_height,
        )
    except ValueError as error:
        if _tells_damage(str(error), source, scan):
            raise damaged("jpg", error) from error
        return None
    except MemoryError:
        return None
    return pixels if shown and pixels.shape[:2] == (height, width) else None


def _tells_damage(complaint: str, source: ByteSource, scan: int) -> bool:
    """Return True if pixels are wrong. Leftover coded data means lost blocks, leftover padding does not."""
    left_over = _LEFT_OVER.search(complaint)
    if left_over is None:
        return _OTHERWISE_SOUND.search(complaint) is None
    data = bytes(source.buffer())
    end = data.find(_END, scan)
    return end < 0 or bool(data[end - int(left_over[1]) : end].strip(_PADDING))
