"""GIF, by libvips."""

from __future__ import annotations

from typing import Any

import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.readers.vips import animation, open_lazily, still
from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.errors import CorruptImage
from imgsvc_core.info import ImageInfo

_EXTENSION, _IMAGE = 0x21, 0x2C


def read(source: ByteSource, info: ImageInfo, settings: LoadSettings) -> pyvips.Image:
    """Grey or RGB, with alpha where a frame has a transparent color."""
    if not (settings.all_frames and info.animated):
        return still(open_lazily("gif", source, settings, fail_on="error"))
    _check_complete(source.buffer())
    return animation(open_lazily("gif", source, settings, n=-1, fail_on="error"), info)


def _check_complete(data: Any) -> None:
    """Refuse a file that ends inside a frame: libvips fills up the last frame of an animation silently.

    A file that only lacks its trailer is complete.
    """
    size = len(data)
    position = 13 + _palette_bytes(data[10])
    while position < size and data[position] in (_EXTENSION, _IMAGE):
        if data[position] == _IMAGE and position + 10 < size:
            position += 11 + _palette_bytes(data[position + 9])
        else:
            position += 2
        while position < size and data[position]:
            position += 1 + data[position]
        position += 1
    if position > size:
        raise CorruptImage("The GIF image is truncated inside a frame.")


def _palette_bytes(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0
