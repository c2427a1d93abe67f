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
from imgsvc_core.formats.ico import Ico
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.vips import from_array, still


def read(picture: Ico, settings: LoadSettings) -> pyvips.Image:
    """Return the picture that the header has described: RGB with alpha, or what its PNG holds."""
    icon, source = picture.header, picture.source
    if icon.bitmap is None:
        png = source.read(icon.start, icon.length)
        return still(pyvips.Image.pngload_buffer(png, fail_on="error"))
    return from_array(_decode(source.buffer(), icon.bitmap, icon.start + icon.length))


def _decode(data: Any, header: BitmapHeader, end: int) -> Any:
    """Join the colors of the upper half with the alpha of 32 bits, or with the mask of the lower half."""
    import numpy as np

    if end < header.pixels_at + header.stride * header.height:
        end = len(data)  # a length that is too short for the colors means nothing
    if header.bits == 32 and header.masks is not None and not header.masks[3]:
        header = attrs.evolve(header, masks=(*header.masks[:3], 0xFF000000))
    color = decode_pixels(data[:end], header)
    if color.ndim == 2:
        color = np.repeat(color[:, :, None], 3, axis=2)
    return color if color.shape[2] == 4 else np.dstack((color, _read_mask(data, header, end)))


def _read_mask(data: Any, header: BitmapHeader, end: int) -> Any:
    """Return the mask as alpha. Some writers leave it out, and then all is opaque."""
    import numpy as np

    start, stride = header.pixels_at + header.stride * header.height, (header.width + 31) // 32 * 4
    if end <= start:
        return np.full((header.height, header.width), 255, np.uint8)
    body = data[start : min(end, start + stride * header.height)]
    if len(body) < stride * header.height:
        raise CorruptImage("The ICO image is truncated: part of its mask is missing.")
    bits = np.unpackbits(np.frombuffer(body, np.uint8).reshape(header.height, stride), axis=1)
    rows = bits[:, : header.width] if header.top_down else bits[::-1, : header.width]
    return np.where(rows, 0, 255).astype(np.uint8)
