"""BMP: the file header and the bitmap header in all its versions, from OS/2 1.x to Windows V5.

Follows Microsoft's "Bitmap Storage" and, for OS/2, the "Encyclopedia of Graphics File Formats".
"""

from __future__ import annotations

import attrs

from imgsvc_core._runtime.records import frozen
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.reader import HeaderReader

RGB, RLE8, RLE4, BIT_FIELDS, RLE24, _ALPHA_BIT_FIELDS = 0, 1, 2, 3, 4, 6
FILE_HEADER = 14
_CORE, _INFO, _WITH_ALPHA_MASK, _V5 = 12, 40, 56, 124
_ALPHA_MASK = 52  # where it is in the header
_WINDOWS_SIZES = frozenset({_INFO, 52, _WITH_ALPHA_MASK, 108, _V5})
_SIZES = frozenset({_CORE, *range(16, 65, 4)}) | _WINDOWS_SIZES
_WINDOWS_COMPRESSIONS = frozenset({RGB, RLE8, RLE4, BIT_FIELDS, _ALPHA_BIT_FIELDS})
_OS2_COMPRESSIONS = frozenset({RGB, RLE8, RLE4, RLE24})
_RUN_BITS = {RLE8: 8, RLE4: 4, RLE24: 24}
_EMBEDDED_JPEG_OR_PNG = frozenset({4, 5})
_DEPTHS = frozenset({1, 2, 4, 8, 16, 24, 32})
_MASKS = {16: (0x7C00, 0x03E0, 0x001F, 0), 32: (0xFF0000, 0xFF00, 0xFF, 0)}  # without masks of their own
_PROFILE_EMBEDDED = b"DEBM"


@frozen(kw_only=True)
class BitmapHeader:
    """The header of a device-independent bitmap, in a BMP file or in an icon.

    ``masks`` are those of red, green, blue and alpha, for 16 and 32 bits per pixel. All places are those in
    the file. ``profile`` is where the profile starts, and its length.
    """

    width: int
    height: int
    top_down: bool
    bits: int
    compression: int
    masks: tuple[int, int, int, int] | None
    colors: int
    color_bytes: int
    palette_at: int
    pixels_at: int
    profile: tuple[int, int] | None = None

    @property
    def depth(self) -> int:
        """Bits per channel: of the colors of the palette, or of the widest color mask."""
        return (max(mask.bit_count() for mask in self.masks[:3]) or 8) if self.masks else 8

    @property
    def stride(self) -> int:
        """Bytes of a row of pixels, padded to four."""
        return (self.width * self.bits + 31) // 32 * 4

    def info(self, reader: HeaderReader, format: str, *, alpha: bool) -> ImageInfo:
        """Return the facts."""
        return ImageInfo(
            format=format,
            width=self.width,
            height=self.height,
            colorspace="palette" if self.bits <= 8 else "srgb",
            depth=self.depth,
            bytes=reader.size,
            alpha=alpha,
            profile=self.profile is not None,
        )


def is_bmp(reader: HeaderReader) -> bool:
    """Return True if a bitmap header of a known size follows the file header: "BM" may begin any text."""
    return reader.size >= 18 and reader.unpack("<I", FILE_HEADER)[0] in _SIZES


def read_header(reader: HeaderReader) -> tuple[ImageInfo, BitmapHeader]:
    """Read the facts of a BMP, and its header.

    If the pixels are stated to be inside of the header, they are after the palette. Otherwise the palette
    ends at the pixels at the latest, however many colors are stated.
    """
    header = attrs.evolve(read_bitmap_header(reader, FILE_HEADER), profile=_profile(reader))
    (pixels_at,) = reader.unpack("<I", 10)
    room = pixels_at - header.palette_at
    if room >= 0:
        colors = min(header.colors, room // header.color_bytes)
        header = attrs.evolve(header, colors=colors, pixels_at=pixels_at)
    return header.info(reader, "bmp", alpha=header.masks is not None and header.masks[3] != 0), header


def read_bitmap_header(reader: HeaderReader, start: int) -> BitmapHeader:
    """Read the bitmap header at ``start``. The number of planes is always 1, whatever is stated."""
    (size,) = reader.unpack("<I", start)
    if size not in _SIZES:
        raise reader.corrupt(f"its header has an unknown size of {size} bytes")
    width, height, bits = reader.unpack("<Hh2xH" if size == _CORE else "<ii2xH", start + 4)
    if width < 1 or height == 0 or height == -(1 << 31):
        raise reader.corrupt(f"its size of {width} x {height} pixels is impossible")
    compression = reader.unpack("<I", start + 16)[0] if size >= 20 else RGB
    _check_compression(reader, size, compression, bits)
    if bits not in _DEPTHS:
        raise reader.corrupt(f"its {bits} bits per pixel are impossible")
    masks, masks_end = _read_masks(reader, start, size, compression, bits)
    used = reader.unpack("<I", start + 32)[0] if size >= 36 else 0
    most_colors = 1 << bits if bits <= 8 else 0
    colors, color_bytes = min(used or most_colors, most_colors), 3 if size == _CORE else 4
    palette_at = start + max(size, masks_end)
    return BitmapHeader(
        width=width,
        height=abs(height),
        top_down=height < 0,
        bits=bits,
        compression=compression,
        masks=masks,
        colors=colors,
        color_bytes=color_bytes,
        palette_at=palette_at,
        pixels_at=palette_at + colors * color_bytes,
    )


def _check_compression(reader: HeaderReader, size: int, compression: int, bits: int) -> None:
    windows = size in _WINDOWS_SIZES
    if windows and compression in _EMBEDDED_JPEG_OR_PNG:
        raise reader.unsupported("it holds a picture for printers, compressed as JPEG or PNG")
    if compression not in (_WINDOWS_COMPRESSIONS if windows else _OS2_COMPRESSIONS):
        raise reader.unsupported(f"its compression {compression} is not supported; save it uncompressed")
    if _RUN_BITS.get(compression, bits) != bits:
        raise reader.corrupt(f"its compression {compression} is no encoding of {bits} bits per pixel")


def _read_masks(
    reader: HeaderReader, start: int, size: int, compression: int, bits: int
) -> tuple[tuple[int, int, int, int] | None, int]:
    """Return the bit masks of the channels, and where they end.

    They come after the shortest header, and are part of longer ones. Without bit fields the colors have the
    usual masks, but browsers that copy a picture still state that of its alpha.
    """
    if bits not in _MASKS:
        return None, 0
    if compression not in (BIT_FIELDS, _ALPHA_BIT_FIELDS):
        red, green, blue, alpha = _MASKS[bits]
        if size in _WINDOWS_SIZES and size >= _WITH_ALPHA_MASK:
            (alpha,) = reader.unpack("<I", start + _ALPHA_MASK)
            alpha &= ((1 << bits) - 1) & ~(red | green | blue)
        return (red, green, blue, alpha), 0
    number = 4 if size >= _WITH_ALPHA_MASK or compression == _ALPHA_BIT_FIELDS else 3
    stated = (*reader.unpack(f"<{number}I", start + _INFO), 0)
    red, green, blue, alpha = (mask & ((1 << bits) - 1) for mask in stated[:4])
    return (red, green, blue, alpha), _INFO + 4 * number


def _profile(reader: HeaderReader) -> tuple[int, int] | None:
    """Return where the embedded profile is, or None. A profile in another file is ignored."""
    if reader.unpack("<I", FILE_HEADER)[0] != _V5 or reader.read(FILE_HEADER + 56, 4) != _PROFILE_EMBEDDED:
        return None
    offset, length = reader.unpack("<II", FILE_HEADER + 112)
    start = FILE_HEADER + offset
    return (start, length) if length and start + length <= reader.size else None
