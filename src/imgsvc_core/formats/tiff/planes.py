"""TIFF that libvips decodes only from a copy of the file that describes the same pixels in another way.

Separate planes become gray pages: libvips decodes planes of half floats, and of gray with transparency, to
wrong pixels, and cannot decode tiled planes. Pillow decodes tiled planes of 16 bits to wrong pixels. Both
decode gray pages of all these kinds exactly.

Colors that libvips would divide wrongly by their transparency become gray with extra channels, which it
leaves as they are. Samples of 64 bits, which it does not know, become two channels of 32 bits each. The
channels of colors of 16 bits that only Pillow decompresses become neighbors in a gray picture, which it does
not round to 8 bits.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.directory import Directory, Layout
from imgsvc_core.formats.tiff.header import (
    BLACK_IS_LOWEST,
    UNSIGNED,
    WHITE_IS_LOWEST,
    Tag,
    white_is_lowest,
)

_LONG, _UNDEFINED, _LONG8 = 4, 7, 16
_WORD = 32  # bits of a channel that stands for half a sample
_INTERLEAVED = 1
_NO_PREDICTOR = 1
_OF_EVERY_PAGE = (
    Tag.WIDTH, Tag.HEIGHT, Tag.COMPRESSION, Tag.BIT_ORDER, Tag.ORIENTATION, Tag.ROWS_PER_STRIP, Tag.PREDICTOR,
    Tag.TILE_WIDTH, Tag.TILE_HEIGHT,
)  # fmt: skip
_BLOBS = (Tag.JPEG_TABLES, Tag.XMP, Tag.PROFILE)

_Values = Mapping[int, Sequence[int] | bytes]


def planes_as_pages(source: ByteSource, page: Directory, channels: Sequence[int]) -> ByteSource:
    """Return a copy of the file whose pages are some channels of the page, as gray images.

    The pixels stay where they are; new directories follow them.

    Raises:
        CorruptImage: the file lists fewer strips or tiles than its planes have, or impossible ones.
    """
    return _with_pages(source, page, [_tags_of_plane(page, channel) for channel in channels])


def as_bare_channels(source: ByteSource, page: Directory) -> ByteSource:
    """Return a copy of the file whose page has channels of no meaning: two of 32 bits for a sample of 64.

    The first of the two is the half that the byte order of the file puts first.

    Raises:
        CorruptImage: the file states an impossible size or place.
    """
    tags = _tags(page, channels=page.first(Tag.CHANNELS, 1), white_is_lowest=False)
    return _with_pages(source, page, [tags | {tag: page.numbers(tag) for tag in _parts(page)}])


def as_gray_neighbors(source: ByteSource, page: Directory) -> ByteSource:
    """Return a copy of the file whose page is gray, with the channels of a pixel side by side.

    Samples are whole numbers, black is the lowest, and the differences that a predictor stores stay such.
    """
    channels = page.first(Tag.CHANNELS, 1)
    tags = _tags(page, channels=1, white_is_lowest=False)
    wider = {tag: [channels * page.first(tag, 0)] for tag in (Tag.WIDTH, Tag.TILE_WIDTH) if tag in tags}
    plain = {Tag.SAMPLE_FORMAT: [UNSIGNED], Tag.PREDICTOR: [_NO_PREDICTOR]}
    return _with_pages(
        source, page, [tags | {tag: page.numbers(tag) for tag in _parts(page)} | wider | plain]
    )


def _with_pages(source: ByteSource, page: Directory, pages: Sequence[_Values]) -> ByteSource:
    layout = page.layout
    begin, start = 2 * layout.word_size, source.size
    body = b""
    try:
        for number, tags in enumerate(pages, start=1):
            body += _directory(layout, tags, start + len(body), last=number == len(pages))
    except struct.error as error:
        raise CorruptImage("The TIFF image is damaged: it states an impossible size or place.") from error
    head = source.read(0, begin - layout.word_size) + struct.pack(layout.word, start)
    return ByteSource(b"".join((head, source.read(begin), body)), name=source.name)


def _tags_of_plane(page: Directory, channel: int) -> _Values:
    found = _tags(page, channels=1, white_is_lowest=channel == 0 and white_is_lowest(page))
    count = _parts_of_a_plane(page)
    for tag in _parts(page):
        parts = page.numbers(tag)[channel * count : (channel + 1) * count]
        if len(parts) < count:
            raise CorruptImage("The TIFF image is damaged: it lists too few parts of its planes.")
        found[tag] = parts
    return found


def _tags(page: Directory, *, channels: int, white_is_lowest: bool) -> dict[int, Sequence[int] | bytes]:
    """Return the tags of a page of gray channels, but for the places of its pixels."""
    bits, kind = page.first(Tag.BITS, 1), page.first(Tag.SAMPLE_FORMAT, UNSIGNED)
    if bits == 2 * _WORD:
        bits, kind, channels, white_is_lowest = _WORD, UNSIGNED, 2 * channels, False
    found: dict[int, Sequence[int] | bytes] = {
        Tag.BITS: [bits] * channels,
        Tag.PHOTOMETRIC: [WHITE_IS_LOWEST if white_is_lowest else BLACK_IS_LOWEST],
        Tag.CHANNELS: [channels],
        Tag.PLANES: [_INTERLEAVED],
        Tag.SAMPLE_FORMAT: [kind] * channels,
    }
    found |= {tag: [page.first(tag, 0)] for tag in _OF_EVERY_PAGE if tag in page.entries}
    return found | {tag: page.content(tag) for tag in _BLOBS if tag in page.entries}


def _parts(page: Directory) -> tuple[Tag, Tag]:
    """Return the tags that tell where the pixels are and how many bytes they have."""
    if Tag.TILE_WIDTH in page.entries:
        return Tag.TILE_OFFSETS, Tag.TILE_LENGTHS
    return Tag.STRIP_OFFSETS, Tag.STRIP_LENGTHS


def _parts_of_a_plane(page: Directory) -> int:
    """Return how many strips or tiles a plane has."""
    width, height = page.first(Tag.WIDTH, 0), page.first(Tag.HEIGHT, 0)
    if Tag.TILE_WIDTH in page.entries:
        across, down = page.first(Tag.TILE_WIDTH, 0), page.first(Tag.TILE_HEIGHT, 0)
    else:
        across, down = width, min(height, page.first(Tag.ROWS_PER_STRIP, height))
    if not (across and down):
        raise CorruptImage("The TIFF image is damaged: the parts of its planes have no size.")
    return -(-width // across) * -(-height // down)


def _directory(layout: Layout, tags: _Values, start: int, *, last: bool) -> bytes:
    """Return a directory and its values, for the place where it starts."""
    size = struct.calcsize(layout.count) + len(tags) * (struct.calcsize(layout.entry) + layout.word_size)
    size += layout.word_size
    entries, values = [struct.pack(layout.count, len(tags))], b""
    for tag, value in sorted(tags.items()):
        if isinstance(value, bytes):
            kind, data = _UNDEFINED, value
        else:
            kind = _LONG8 if layout.big else _LONG
            data = struct.pack(f"{layout.order}{len(value)}{layout.word[-1]}", *value)
        if len(data) <= layout.word_size:
            field = data.ljust(layout.word_size, b"\0")
        else:
            field = struct.pack(layout.word, start + size + len(values))
            values += data
        entries.append(struct.pack(layout.entry, tag, kind, len(value)) + field)
    entries.append(struct.pack(layout.word, 0 if last else start + size + len(values)))
    return b"".join((*entries, values))
