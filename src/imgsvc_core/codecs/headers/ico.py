"""ICO and CUR: the directory of pictures, each a PNG or a bitmap without its file header."""

from __future__ import annotations

import attrs

from imgsvc_core.codecs.headers import bmp, png
from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.info import ImageInfo

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_ICON = 1


@attrs.frozen
class IconEntry:
    """One picture of the directory: its place in the file in bytes, and its size and bits as declared there.

    The picture itself may tell another size. Cursors declare no bits.
    """

    start: int
    length: int
    width: int
    height: int
    bits: int


def read_entries(reader: HeaderReader) -> list[IconEntry]:
    """The pictures of the icon, the largest first, of equally large ones the deepest."""
    kind, count = reader.unpack("<HH", 2)
    entries = []
    for offset in range(6, 6 + 16 * count, 16):
        width, height, _, _, _, bits, length, start = reader.unpack("<BBBBHHII", offset)
        entries.append(IconEntry(start, length, width or 256, height or 256, bits if kind == _ICON else 0))
    return sorted(entries, key=lambda entry: (entry.width * entry.height, entry.bits), reverse=True)


def read_info(reader: HeaderReader) -> ImageInfo:
    """Facts of the largest picture of an icon, as the picture tells them."""
    entries = read_entries(reader)
    if not entries:
        raise reader.corrupt("it has no picture")
    entry = entries[0]
    if reader.read(entry.start, 8) == PNG_SIGNATURE:
        info = png.read_info(reader.part(entry.start, entry.length))
        return attrs.evolve(
            info, format="ico", bytes=reader.size, orientation=1, frames=1, delays=(), plays=None
        )
    header = bmp.read_bitmap_header(reader, entry.start)
    if header.height < 2:
        raise reader.corrupt(f"its size of {header.width} x {header.height} pixels is impossible")
    return ImageInfo(
        format="ico",
        width=header.width,
        height=header.height // 2,  # the picture and its mask, one above the other
        colorspace="palette" if header.bits <= 8 else "srgb",
        depth=header.depth,
        bytes=reader.size,
        alpha=True,
    )
