"""BMP in all its dialects, from OS/2 1.x to Windows V5, decoded here.

Follows Microsoft's "Bitmap Storage" and, for OS/2, "Encyclopedia of Graphics File Formats". General readers
refuse legal files of this family (bit fields of any width, 2 bits per pixel, short OS/2 headers, RLE of 24
bits) or lose their alpha.
"""

from __future__ import annotations

import struct
from typing import Any

import attrs
import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.readers.promised import check_stored
from imgsvc_core.codecs.readers.rle import expand_rle
from imgsvc_core.codecs.readers.vips import from_array
from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.errors import CorruptImage
from imgsvc_core.info import ImageInfo

_FILE_HEADER = 14
_RGB, _RLE8, _RLE4, _BITFIELDS, _RLE24, _ALPHA_BITFIELDS = 0, 1, 2, 3, 4, 6
_OS2_HEADERS = range(16, 65)
_WINDOWS_HEADERS = (40, 52, 56, 108, 124)


@attrs.frozen(kw_only=True)
class Bitmap:
    """The header of a device-independent bitmap.

    ``masks`` are those of red, green, blue and alpha, or ``None`` without bit fields; ``body`` is where the
    header and its masks end and the palette starts, relative to the header.
    """

    width: int
    height: int
    top_down: bool
    bits: int
    compression: int
    colors: int
    color_bytes: int
    masks: tuple[int, int, int, int] | None
    body: int

    @property
    def stride(self) -> int:
        """Bytes of a row, padded to four."""
        return (self.width * self.bits + 31) // 32 * 4


def read(source: ByteSource, info: ImageInfo, settings: LoadSettings) -> pyvips.Image:
    """Grey where the palette is, else RGB, with alpha where bit fields have it."""
    data = source.buffer()
    (pixels_at,) = struct.unpack_from("<I", data, 10)
    header = parse_header(data, _FILE_HEADER)
    check_stored(header.width, header.height, info)
    after_palette = _FILE_HEADER + header.body + header.colors * header.color_bytes
    if not _FILE_HEADER + header.body <= pixels_at < len(data):
        pixels_at = after_palette
    return from_array(decode_pixels(data, header, _FILE_HEADER + header.body, pixels_at))


def parse_header(data: Any, start: int) -> Bitmap:
    """The header at ``start``, in any of its versions; `CorruptImage` where it makes no sense."""
    (size,) = struct.unpack_from("<I", data, start)
    if size == 12:
        width, height, _, bits = struct.unpack_from("<HhHH", data, start + 4)
        compression = used = 0
    elif size in _OS2_HEADERS or size in _WINDOWS_HEADERS:
        field = bytes(data[start : start + min(size, 40)]).ljust(40, b"\0")
        width, height, _, bits, compression = struct.unpack_from("<iiHHI", field, 4)
        (used,) = struct.unpack_from("<I", field, 32)
    else:
        raise CorruptImage(f"The BMP header has an unknown size of {size} bytes.")
    if width <= 0 or height == 0 or bits not in (1, 2, 4, 8, 16, 24, 32):
        raise CorruptImage(f"The BMP header states {width} x {height} pixels of {bits} bits.")
    os2 = size in _OS2_HEADERS and size not in _WINDOWS_HEADERS
    known = (_RGB, _RLE8, _RLE4, _RLE24) if os2 else (_RGB, _RLE8, _RLE4, _BITFIELDS, _ALPHA_BITFIELDS)
    if compression not in known:
        raise CorruptImage(f"The BMP image uses compression {compression}, which is no bitmap encoding.")
    masks, behind = _masks(data, start, size, bits, compression)
    return Bitmap(
        width=width, height=abs(height), top_down=height < 0, bits=bits, compression=compression,
        colors=min(used or 1 << bits, 1 << bits) if bits <= 8 else 0, color_bytes=3 if size == 12 else 4,
        masks=masks, body=size + behind,
    )  # fmt: skip


def _masks(
    data: Any, start: int, size: int, bits: int, compression: int
) -> tuple[tuple[int, int, int, int] | None, int]:
    """The bit fields, and how many bytes they take behind the header."""
    if bits not in (16, 32):
        return None, 0
    if compression in (_BITFIELDS, _ALPHA_BITFIELDS):
        number = 4 if compression == _ALPHA_BITFIELDS or size >= 56 else 3
        masks = struct.unpack_from(f"<{number}I", data, start + 40)
        red, green, blue, alpha = (*masks, 0)[:4]
        return (red, green, blue, alpha), 4 * number if size == 40 else 0
    if bits == 16:
        return (0x7C00, 0x03E0, 0x001F, 0), 0
    return (0xFF0000, 0xFF00, 0xFF, 0), 0


def decode_pixels(data: Any, header: Bitmap, palette_at: int, pixels_at: int) -> Any:
    """The pixels as an array of (height, width[, bands]), top row first; `CorruptImage` where some miss."""
    import numpy as np

    if header.compression in (_RLE8, _RLE4) or (header.compression == _RLE24 and header.bits == 24):
        rows = expand_rle(bytes(data[pixels_at:]), header.width, header.height, header.bits)
    else:
        length = header.stride * header.height
        body = data[pixels_at : pixels_at + length]
        if len(body) < length:
            raise CorruptImage(
                f"The BMP image is truncated: {len(body)} of {length} bytes of pixels are there."
            )
        rows = _unpack(np.frombuffer(body, np.uint8).reshape(header.height, header.stride), header)
    if not header.top_down:
        rows = rows[::-1]
    if header.bits <= 8:
        return _palette(data, header, palette_at)[rows]
    return rows


def _unpack(rows: Any, header: Bitmap) -> Any:
    """Palette indices, or color channels."""
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


def _bit_fields(rows: Any, header: Bitmap) -> Any:
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


def _palette(data: Any, header: Bitmap, start: int) -> Any:
    """256 colors, black where the file has fewer; one band where all of the file's are grey."""
    import numpy as np

    stored = bytes(data[start : start + header.colors * header.color_bytes])
    count = len(stored) // header.color_bytes
    colors = np.frombuffer(stored, np.uint8, count * header.color_bytes).reshape(count, header.color_bytes)
    palette = np.zeros((256, 3), np.uint8)
    palette[:count] = colors[:, 2::-1]
    grey = (palette == palette[:, :1]).all()
    return palette[:, 0] if grey else palette
