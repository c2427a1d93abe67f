"""ICO and CUR: the directory of pictures, each a PNG or a bitmap without its file header."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from imgsvc_core._runtime.records import frozen
from imgsvc_core.formats.bmp.header import BitmapHeader, read_bitmap_header
from imgsvc_core.formats.directory import ExifBlock
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.png import header as png
from imgsvc_core.formats.reader import HeaderReader


@frozen
class Icon:
    """One picture of an icon: where it is in the file, and its size and colors as the picture states them.

    ``bitmap`` is its header; ``None`` for a PNG.
    """

    start: int
    length: int
    pixels: int
    bits: int
    bitmap: BitmapHeader | None


def read_header(reader: HeaderReader) -> tuple[ImageInfo, Icon, Sequence[ExifBlock]]:
    """Read the facts of one picture, where it is, and where its EXIF is.

    It is the largest by the sizes in the directory, and of equally large ones the deepest. The picture itself
    may state another size. Cursors declare no bits.
    """
    (count,) = reader.unpack("<H", 4)
    entries = [reader.unpack("<BB6xII", offset) for offset in range(6, 6 + 16 * count, 16)]
    if not entries:
        raise reader.corrupt("it has no picture")
    sizes = [(width or 256) * (height or 256) for width, height, _, _ in entries]
    largest = (entry for entry, size in zip(entries, sizes, strict=True) if size == max(sizes))
    icons = [_read_picture(reader, start, length) for _, _, length, start in largest]
    icon = max(icons, key=lambda icon: (icon.pixels, icon.bits))
    if icon.bitmap is not None:
        return icon.bitmap.info(reader, "ico", alpha=True), icon, ()
    inner, _, blocks = png.read_header(reader.part(icon.start, icon.length))
    info = attrs.evolve(
        inner, format="ico", bytes=reader.size, orientation=1, frames=1, delays=(), plays=None
    )
    return info, icon, [block._replace(name_at=icon.start + block.name_at) for block in blocks]


def _read_picture(reader: HeaderReader, start: int, length: int) -> Icon:
    if reader.read(start, len(png.SIGNATURE)) == png.SIGNATURE:
        head = png.read_head(reader.part(start, length))
        return Icon(start, length, head.width * head.height, head.bits, None)
    double = read_bitmap_header(reader, start)  # the picture and its mask, one above the other
    if double.height < 2:
        raise reader.corrupt(f"its size of {double.width} x {double.height} pixels is impossible")
    bitmap = attrs.evolve(double, height=double.height // 2)
    return Icon(start, length, bitmap.width * bitmap.height, bitmap.bits, bitmap)
