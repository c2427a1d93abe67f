"""BMP in all its dialects, decoded here.

General readers refuse legal files of this family (bit fields of any width, 2 bits per pixel, short OS/2
headers, RLE of 24 bits) or lose their alpha.
"""

from __future__ import annotations

from typing import Any

import pyvips

from imgsvc_core._runtime.vipsimage import PROFILE
from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.bmp import Bmp
from imgsvc_core.formats.bmp import header as bmp
from imgsvc_core.formats.bmp.header import BitmapHeader
from imgsvc_core.formats.bmp.rle import expand_rle
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.vips import attach, from_array


def read(picture: Bmp, settings: LoadSettings) -> pyvips.Image:
    """Return gray if the palette is gray, else RGB, with alpha if the bit fields have it."""
    source, profile = picture.source, picture.header.profile
    image = from_array(decode_pixels(source.buffer(), picture.header))
    return attach(image, {PROFILE: source.read(*profile) if profile else None})


def decode_pixels(data: Any, header: BitmapHeader) -> Any:
    """Return the pixels as an array of (height, width[, bands]), top row first.

    Alpha that is 0 everywhere is left out: it is a byte that the writer has not set.

    Raises:
        CorruptImage: some of the pixels are missing.
    """
    import numpy as np

    if header.compression in (bmp.RLE8, bmp.RLE4, bmp.RLE24):
        rows = expand_rle(bytes(data[header.pixels_at :]), header.width, header.height, header.bits)
    else:
        length = header.stride * header.height
        body = data[header.pixels_at : header.pixels_at + length]
        missing, padding = length - len(body), header.stride - (header.width * header.bits + 7) // 8
        if missing > padding:
            raise CorruptImage(
                f"The BMP image is truncated: {len(body)} of {length} bytes of pixels are there."
            )
        if missing:  # some writers leave out the padding of the last row
            body = bytes(body) + bytes(missing)
        rows = _unpack(np.frombuffer(body, np.uint8).reshape(header.height, header.stride), header)
    if not header.top_down:
        rows = rows[::-1]
    if header.bits <= 8:
        return _palette(data, header)[rows]
    return rows if rows.shape[2] < 4 or rows[:, :, 3].any() else rows[:, :, :3]


def _unpack(rows: Any, header: BitmapHeader) -> Any:
    """Return palette indices, or color channels."""
    import numpy as np

    width = header.width
    match header.bits:
        case 8:
            return rows[:, :width]
        case 1 | 2 | 4 as bits:
            shifts = np.arange(8 - bits, -1, -bits, dtype=np.uint8)
            indices = rows[:, :, None] >> shifts & (1 << bits) - 1
            return indices.reshape(len(rows), -1)[:, :width]
        case 24:
            return rows[:, : width * 3].reshape(len(rows), width, 3)[:, :, ::-1]
        case _:
            return _bit_fields(rows, header)


def _bit_fields(rows: Any, header: BitmapHeader) -> Any:
    import numpy as np

    assert header.masks is not None
    words = rows.view("<u2" if header.bits == 16 else "<u4")[:, : header.width]
    masks = header.masks if header.masks[3] else header.masks[:3]
    channels = np.empty((*words.shape, len(masks)), np.uint8)
    for band, mask in enumerate(masks):
        if not mask:
            channels[:, :, band] = 0
            continue
        shift = (mask & -mask).bit_length() - 1
        white = mask >> shift
        values = (words & mask) >> shift
        if white != 255:
            values = (values.astype(np.uint64) * 510 + white) // (2 * white)
        channels[:, :, band] = values
    return channels


def _palette(data: Any, header: BitmapHeader) -> Any:
    """Return 256 colors, black beyond those of the file; one band if all of the file's are gray."""
    import numpy as np

    stored = bytes(data[header.palette_at : header.palette_at + header.colors * header.color_bytes])
    count = len(stored) // header.color_bytes
    colors = np.frombuffer(stored, np.uint8, count * header.color_bytes).reshape(count, header.color_bytes)
    palette = np.zeros((256, 3), np.uint8)
    palette[:count] = colors[:, 2::-1]
    gray = (palette == palette[:, :1]).all()
    return palette[:, 0] if gray else palette
