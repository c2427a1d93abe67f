"""ICO and CUR: one picture of the directory is decoded.

General readers decode every embedded picture before anybody can ask for its size.
"""

from __future__ import annotations

from typing import Any

import attrs
import pyvips

from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.bmp.header import BitmapHeader
from imgsvc_core.formats.bmp.reading import decode_pixels
from imgsvc_core.formats.bounded_exif import without_endless_exif
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.ico.header import Icon
from imgsvc_core.formats.png import header as png
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.vips import from_array, still


def read(source: ByteSource, icon: Icon) -> pyvips.Image:
    """Return the picture that the header has described: RGB with alpha, or what its PNG holds."""
    data = source.read(icon.start, icon.length)
    if icon.bitmap is None:
        part = HeaderReader(ByteSource(data), "PNG")
        picture = without_endless_exif(ByteSource(data), png.read_header(part).exif_blocks)
        return still(pyvips.Image.pngload_buffer(picture.buffer(), fail_on="error"))
    return from_array(_decode(icon, icon.bitmap, data))


def _decode(icon: Icon, double: BitmapHeader, data: bytes) -> Any:
    """Join the colors of the upper half with the alpha of 32 bits, or with the mask of the lower half."""
    import numpy as np

    header = attrs.evolve(double, height=icon.height)
    if header.bits == 32 and header.masks is not None and not header.masks[3]:
        header = attrs.evolve(header, masks=(*header.masks[:3], 0xFF000000))
    color = decode_pixels(data, header, header.palette_at, header.palette_end)
    if color.ndim == 2:
        color = np.repeat(color[:, :, None], 3, axis=2)
    if color.shape[2] == 4:
        return color
    mask_at = header.palette_end + header.stride * header.height
    return np.dstack((color, _read_mask(icon, header, data, mask_at)))


def _read_mask(icon: Icon, header: BitmapHeader, data: bytes, start: int) -> Any:
    """Return the mask as alpha. Some writers leave it out, and then all is opaque."""
    import numpy as np

    stride = (icon.width + 31) // 32 * 4
    body = data[start : start + stride * icon.height]
    if icon.length <= start:
        return np.full((icon.height, icon.width), 255, np.uint8)
    if len(body) < stride * icon.height:
        raise CorruptImage("The ICO image is truncated: part of its mask is missing.")
    bits = np.unpackbits(np.frombuffer(body, np.uint8).reshape(icon.height, stride), axis=1)
    rows = bits[:, : icon.width] if header.top_down else bits[::-1, : icon.width]
    return np.where(rows, 0, 255).astype(np.uint8)
