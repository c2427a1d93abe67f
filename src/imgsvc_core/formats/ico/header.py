"""ICO and CUR: the directory of pictures, each a PNG or a bitmap without its file header."""

from __future__ import annotations

import attrs

from imgsvc_core.formats.bmp import header as bmp
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.png import header as png
from imgsvc_core.formats.reader import HeaderReader


@attrs.frozen
class Icon:
    """One picture of an icon: where it is in the file, and its size and colors as the picture states them.

    ``bitmap`` is its header, in which the height is that of the picture and its mask together; ``None`` for a
    PNG.
    """

    start: int
    length: int
    width: int
    height: int
    bits: int
    bitmap: bmp.BitmapHeader | None


@attrs.frozen
class _DirectoryEntry:
    """An entry of the directory. The picture may state another size; cursors declare no bits."""

    start: int
    length: int
    pixels: int


def read_header(reader: HeaderReader) -> tuple[ImageInfo, Icon]:
    """Read the facts of the picture that `read_icon` chooses, and where it is."""
    icon = read_icon(reader)
    if icon.bitmap is None:
        part = reader.part(icon.start, icon.length)
        info = png.read_header(part).info(part)
        info = attrs.evolve(
            info, format="ico", bytes=reader.size, orientation=1, frames=1, delays=(), plays=None
        )
        return info, icon
    info = ImageInfo(
        format="ico",
        width=icon.width,
        height=icon.height,
        colorspace="palette" if icon.bits <= 8 else "srgb",
        depth=icon.bitmap.depth,
        bytes=reader.size,
        alpha=True,
    )
    return info, icon


def read_icon(reader: HeaderReader) -> Icon:
    """Choose the largest picture, by the sizes in the directory; of equally large ones, the deepest."""
    entries = _read_entries(reader)
    if not entries:
        raise reader.corrupt("it has no picture")
    largest = max(entry.pixels for entry in entries)
    icons = [_read_picture(reader, entry) for entry in entries if entry.pixels == largest]
    return max(icons, key=lambda icon: (icon.width * icon.height, icon.bits))


def _read_entries(reader: HeaderReader) -> list[_DirectoryEntry]:
    (count,) = reader.unpack("<H", 4)
    entries = []
    for offset in range(6, 6 + 16 * count, 16):
        width, height, length, start = reader.unpack("<BB6xII", offset)
        entries.append(_DirectoryEntry(start, length, (width or 256) * (height or 256)))
    return entries


def _read_picture(reader: HeaderReader, entry: _DirectoryEntry) -> Icon:
    if reader.read(entry.start, len(png.SIGNATURE)) == png.SIGNATURE:
        head = png.read_head(reader.part(entry.start, entry.length))
        return Icon(entry.start, entry.length, head.width, head.height, head.bits, None)
    header = bmp.read_bitmap_header(reader, entry.start)
    if header.height < 2:
        raise reader.corrupt(f"its size of {header.width} x {header.height} pixels is impossible")
    height = header.height // 2  # the picture and its mask, one above the other
    return Icon(entry.start, entry.length, header.width, height, header.bits, header)
