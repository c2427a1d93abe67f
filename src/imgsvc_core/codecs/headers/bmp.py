"""BMP: the file header and the bitmap header in its many versions."""

from __future__ import annotations

import attrs

from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.info import ImageInfo

FILE_HEADER = 14
_CORE, _INFO, _WITH_ALPHA_MASK, _V5 = 12, 40, 56, 124
_SIZES = frozenset({_CORE, *range(16, 65, 4), 108, _V5})
_WINDOWS_SIZES = frozenset({_INFO, 52, _WITH_ALPHA_MASK, 108, _V5})
_BIT_FIELDS, _ALPHA_BIT_FIELDS = 3, 6
_DEPTHS = frozenset({1, 2, 4, 8, 16, 24, 32})
_EMBEDDED_JPEG_OR_PNG = frozenset({4, 5})
_PROFILE_EMBEDDED = b"DEBM"


@attrs.frozen
class BitmapHeader:
    """The bitmap header of BMP files and of icons. ``masks`` are those of red, green, blue and alpha."""

    size: int
    width: int
    height: int
    bits: int
    compression: int
    masks: tuple[int, ...]

    @property
    def depth(self) -> int:
        """Bits per channel: of the colors of the palette, or of the widest color mask."""
        if self.masks:
            return max(mask.bit_count() for mask in self.masks[:3]) or 8
        return 5 if self.bits == 16 else 8


def is_bmp(reader: HeaderReader) -> bool:
    """Return True if a bitmap header of a known size follows the file header: "BM" may begin any text."""
    return reader.size >= 18 and reader.unpack("<I", FILE_HEADER)[0] in _SIZES


def read_info(reader: HeaderReader) -> ImageInfo:
    """Facts of a BMP."""
    header = read_bitmap_header(reader, FILE_HEADER)
    return ImageInfo(
        format="bmp",
        width=header.width,
        height=abs(header.height),
        colorspace="palette" if header.bits <= 8 else "srgb",
        depth=header.depth,
        bytes=reader.size,
        alpha=len(header.masks) == 4 and header.masks[3] != 0,
        profile=header.size == _V5 and reader.read(FILE_HEADER + 56, 4) == _PROFILE_EMBEDDED,
    )


def read_bitmap_header(reader: HeaderReader, start: int) -> BitmapHeader:
    """The bitmap header at ``start``. A negative height, from the top down, stays negative."""
    (size,) = reader.unpack("<I", start)
    if size not in _SIZES:
        raise reader.corrupt(f"its header has an unknown size of {size} bytes")
    if size == _CORE:
        width, height, planes, bits = reader.unpack("<HHHH", start + 4)
    else:
        width, height, planes, bits = reader.unpack("<iiHH", start + 4)
    compression = reader.unpack("<I", start + 16)[0] if size >= 20 else 0
    if planes != 1 or bits not in _DEPTHS:
        raise reader.corrupt(f"its {planes} planes of {bits} bits per pixel are impossible")
    if width < 1 or height == 0 or height == -(1 << 31):
        raise reader.corrupt(f"its size of {width} x {height} pixels is impossible")
    if compression in _EMBEDDED_JPEG_OR_PNG and size in _WINDOWS_SIZES:
        raise reader.unsupported("it holds a picture for printers, compressed as JPEG or PNG")
    return BitmapHeader(
        size, width, height, bits, compression, _masks(reader, start, size, compression, bits)
    )


def _masks(reader: HeaderReader, start: int, size: int, compression: int, bits: int) -> tuple[int, ...]:
    if size < _INFO or bits not in (16, 32) or compression not in (_BIT_FIELDS, _ALPHA_BIT_FIELDS):
        return ()
    with_alpha = size >= _WITH_ALPHA_MASK or compression == _ALPHA_BIT_FIELDS
    return reader.unpack("<4I" if with_alpha else "<3I", start + _INFO)
