"""GIF, by libvips."""

from __future__ import annotations

import struct
from typing import Any

import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.readers.vips import animation, open_lazily, still
from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.errors import CorruptImage
from imgsvc_core.info import ImageInfo

_EXTENSION, _IMAGE = 0x21, 0x2C
_TRANSPARENT = b"\x21\xf9\x04\x01\0\0\0\0"  # the first color of the next frame
_ONE_PIXEL = b"\x02\x02\x44\x01\0"  # of the first color, compressed


def read(source: ByteSource, info: ImageInfo, settings: LoadSettings) -> pyvips.Image:
    """Grey or RGB, with alpha where a frame has a transparent color or the first leaves the screen empty."""
    moving = settings.all_frames and info.animated
    if moving:
        _check_complete(source.buffer())
    options = {"n": -1} if moving else {}
    image = open_lazily("gif", source, settings, fail_on="error", **options)
    whole = (image.width, image.get_page_height()) == (info.width, info.height)
    if not whole or (info.alpha and not image.hasalpha()):
        image = _on_whole_screen(source, info, settings, moving=moving)
    return animation(image, info) if moving else still(image)


def _on_whole_screen(
    source: ByteSource, info: ImageInfo, settings: LoadSettings, *, moving: bool
) -> pyvips.Image:
    """The frames on the screen that the file declares.

    libvips' decoder (libnsgif) holds a screen of the size of a monitor, or of more than 2048 pixels, for that
    of the author's display, and takes the first frame for the picture; and where no frame has a transparent
    color, libvips shows the empty screen as black. So one pixel in the far corner is put before the first
    frame. It is transparent, as the empty screen is, except where the frames cover all of it and nothing else
    is transparent either.
    """
    data = bytes(source.buffer())
    start = 13 + _palette_bytes(data[10])
    corner = struct.pack("<HHHHB", info.width - 1, info.height - 1, 1, 1, 0x80)
    frame = (_TRANSPARENT if info.alpha else b"") + b"\x2c" + corner + bytes(6) + _ONE_PIXEL
    patched = ByteSource(data[:start] + frame + data[start:])
    if not moving:
        return open_lazily("gif", patched, settings, page=1, fail_on="error")
    return open_lazily("gif", patched, settings, page=1, n=-1, fail_on="error")


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
