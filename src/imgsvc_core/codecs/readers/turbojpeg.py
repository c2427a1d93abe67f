"""JPEG decoded at once by TurboJPEG: the pixels of libvips in less time, but as much memory as they take."""

from __future__ import annotations

import re
from typing import Any

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.info import ImageInfo

try:
    from simplejpeg import decode_jpeg
except ImportError:
    decode_jpeg = None

_CHANNELS = {"gray": "GRAY", "srgb": "RGB"}
_DAMAGE = ("Corrupt JPEG data", "Premature end of JPEG file")
_LEFT_OVER = re.compile(r"(\d+) extraneous bytes before marker 0xd9")
_END = b"\xff\xd9"
_PADDING = b"\0\xff"
_LEAST_SIDE = 64
_MOST_ENCODED_BYTES = 2**24
_MOST_DECODED_PIXELS = 2**23


def decoded(source: ByteSource, info: ImageInfo, shrink: int) -> Any | None:
    """An array of (height, width, 1 or 3), each side rounded up, of a file that is plain.

    Nothing where that would take much memory, where the codec is missing, and where anything is unusual:
    libvips is to decode these. `ValueError` for damage, also where the decoder would do no more than warn.
    """
    width, height = -(-info.width // shrink), -(-info.height // shrink)
    if (
        decode_jpeg is None
        or info.depth != 8
        or info.colorspace not in _CHANNELS
        or min(info.width, info.height) < _LEAST_SIDE
        or source.size > _MOST_ENCODED_BYTES
        or width * height > _MOST_DECODED_PIXELS
    ):
        return None
    channels = _CHANNELS[info.colorspace]
    try:
        pixels = decode_jpeg(source.buffer(), colorspace=channels, min_width=width, min_height=height)
    except ValueError as error:
        if _tells_damage(str(error), source):
            raise
        return None
    except MemoryError:
        return None
    return pixels if pixels.shape[:2] == (height, width) else None


def _tells_damage(complaint: str, source: ByteSource) -> bool:
    """Whether pixels are wrong. Coded data left over has lost its place, unlike padding."""
    left_over = _LEFT_OVER.search(complaint)
    if left_over:
        data = bytes(source.buffer())
        end = data.rindex(_END)
        return bool(data[end - int(left_over[1]) : end].strip(_PADDING))
    return complaint.startswith(_DAMAGE)
