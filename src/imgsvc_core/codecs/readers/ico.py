"""ICO and CUR: the directory is read here and one picture of it decoded.

General readers decode every embedded picture before anybody can ask for its size.
"""

from __future__ import annotations

import struct
from typing import Any

import attrs
import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.readers.bmp import Bitmap, decode_pixels, parse_header
from imgsvc_core.codecs.readers.vips import from_array, still
from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.errors import CorruptImage
from imgsvc_core.info import ImageInfo

_MOST_ENTRIES = 1024
_PNG = b"\x89PNG\r\n\x1a\n"


@attrs.frozen
class _Icon:
    """One entry: where its picture is, and the size that the picture itself states."""

    offset: int
    length: int
    width: int
    height: int
    bits: int
    png: bool


def read(source: ByteSource, info: ImageInfo, settings: LoadSettings) -> pyvips.Image:
    """The picture whose size the header check has seen; of several, the one of the most colors."""
    icons = [icon for icon in _icons(source) if (icon.width, icon.height) == (info.width, info.height)]
    if not icons:
        raise CorruptImage(f"The ICO image holds no readable picture of {info.width} x {info.height} pixels.")
    icon = max(icons, key=lambda icon: icon.bits)
    data = source.read(icon.offset, icon.length)
    if icon.png:
        return still(pyvips.Image.pngload_buffer(data, fail_on="error"))
    return from_array(_decode(icon, data))


def _icons(source: ByteSource) -> list[_Icon]:
    (count,) = struct.unpack_from("<H", source.read(4, 2))
    directory = source.read(6, 16 * min(count, _MOST_ENTRIES))
    icons = []
    for start in range(0, len(directory) - 15, 16):
        length, offset = struct.unpack_from("<II", directory, start + 8)
        head = source.read(offset, min(length, 64))
        try:
            icons.append(_entry(offset, length, head))
        except (CorruptImage, struct.error):
            continue  # a broken small copy does not spoil the others
    return icons


def _entry(offset: int, length: int, head: bytes) -> _Icon:
    if head.startswith(_PNG):
        width, height, depth, kind = struct.unpack_from(">IIBB", head, 16)
        channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}.get(kind, 1)
        return _Icon(offset, length, width, height, depth * channels, png=True)
    header = parse_header(head, 0)
    return _Icon(offset, length, header.width, header.height // 2, header.bits, png=False)


def _decode(icon: _Icon, data: bytes) -> Any:
    """Color of the upper half, transparency of the mask below it or of the alpha channel of 32 bits."""
    import numpy as np

    double = parse_header(data, 0)
    header = attrs.evolve(double, height=icon.height)
    palette_at = header.body
    pixels_at = palette_at + header.colors * header.color_bytes
    if header.bits == 32 and header.masks is not None and not header.masks[3]:
        header = attrs.evolve(header, masks=(*header.masks[:3], 0xFF000000))
    color = decode_pixels(data, header, palette_at, pixels_at)
    if color.ndim == 2:
        color = np.repeat(color[:, :, None], 3, axis=2)
    if color.shape[2] == 4 and color[:, :, 3].any():
        return color
    opaque = _opaque(icon, header, data, pixels_at + header.stride * header.height)
    return np.dstack((color[:, :, :3], opaque))


def _opaque(icon: _Icon, header: Bitmap, data: bytes, start: int) -> Any:
    """The mask as alpha; some writers leave it out, and then all is opaque."""
    import numpy as np

    stride = (icon.width + 31) // 32 * 4
    body = data[start : start + stride * icon.height]
    if len(body) < stride * icon.height:
        return np.full((icon.height, icon.width), 255, np.uint8)
    bits = np.unpackbits(np.frombuffer(body, np.uint8).reshape(icon.height, stride), axis=1)
    rows = bits[:, : icon.width] if header.top_down else bits[::-1, : icon.width]
    return np.where(rows, 0, 255).astype(np.uint8)
