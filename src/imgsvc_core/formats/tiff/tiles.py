"""Tiles of a TIFF, decoded for their damage alone: libvips shows a black tile in place of a damaged one."""

from __future__ import annotations

import struct

from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.directory import Directory
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.tiff.header import JPEG, Tag
from imgsvc_core.formats.vips import open_lazily

_LONG = 4
_TOLD = (1, JPEG)  # compressions without damage, or whose damage libvips tells
_STRIPS: dict[int, int] = {Tag.TILE_OFFSETS: Tag.STRIP_OFFSETS, Tag.TILE_LENGTHS: Tag.STRIP_LENGTHS}
_REPLACED = frozenset({Tag.WIDTH, Tag.HEIGHT, Tag.ROWS_OF_STRIP, Tag.TILE_WIDTH, Tag.TILE_HEIGHT})


def check(source: ByteSource, page: Directory) -> None:
    """Decode the tiles of a page, as strips of a narrow picture, of which libvips tells all damage.

    A tile without bytes is none: it is left out on purpose.

    Raises:
        pyvips.Error: a tile is damaged.
    """
    lengths = page.numbers(Tag.TILE_LENGTHS)
    if lengths and all(lengths) and page.first(Tag.COMPRESSION, 1) not in _TOLD:
        strips = open_lazily("tiff", _as_strips(source, page), LoadSettings(), fail_on="error")
        strips.crop(0, 0, 1, strips.height).avg()


def _as_strips(source: ByteSource, page: Directory) -> ByteSource:
    """Return a copy of the file with one page, in which the tiles lie one below the other."""
    layout, data = page.layout, source.editable()
    stored = page.stored_entries(data)
    if not stored:
        return source
    across, down = page.first(Tag.TILE_WIDTH, 0), page.first(Tag.TILE_HEIGHT, 0)
    height = down * len(page.numbers(Tag.TILE_OFFSETS))
    entries: dict[int, bytes] = {
        tag: struct.pack(layout.entry, tag, _LONG, 1)
        + struct.pack(f"{layout.order}I", value).ljust(layout.word_size, b"\0")
        for tag, value in ((Tag.WIDTH, across), (Tag.HEIGHT, height), (Tag.ROWS_OF_STRIP, down))
    }
    for tag in sorted(stored.keys() - _REPLACED):
        number = _STRIPS.get(tag, tag)
        entries[number] = struct.pack(f"{layout.order}H", number) + stored[tag][2:]
    page.write_entries(data, entries, 0)
    struct.pack_into(layout.word, data, layout.word_size, page.start)
    return ByteSource(data)
