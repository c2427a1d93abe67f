"""Change the metadata of a WebP without touching its coded data."""

from __future__ import annotations

from imgsvc_core.formats.metadata import Blocks, beside_stored
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import MetadataPolicy
from imgsvc_core.formats.webp import Webp
from imgsvc_core.formats.webp.header import CODED, FIRST_CHUNK, FRAME_HEAD, make_chunk, read_chunks, riff

_EXTENDED, _FRAME, _EXIF, _XMP = b"VP8X", b"ANMF", b"EXIF", b"XMP "
_KEPT = (b"ICCP", b"ANIM", _FRAME, *CODED)
_FLAGS = {_EXIF: 0x08, _XMP: 0x04}


def rewrite(picture: Webp, policy: MetadataPolicy) -> bytes:
    """Return the file without chunks that its pixels and colors do not need, and without what follows."""
    reader, info = picture.header_reader, picture.info
    end = 8 + reader.unpack("<I", 4)[0]
    places = [(kind, start, length) for kind, start, length in read_chunks(reader, FIRST_CHUNK, end)]
    found = {
        kind: reader.read(start, length)
        for kind, start, length in reversed(places)
        if kind in (_EXTENDED, *_FLAGS)
    }
    pixels = [
        (kind, _frame(reader, start, length) if kind == _FRAME else reader.read(start, length))
        for kind, start, length in places
        if kind in _KEPT
    ]
    head = found.get(_EXTENDED)
    if head is None:  # decoders find no metadata in such a file
        return riff(pixels)
    kept = beside_stored(Blocks(found.get(_EXIF), found.get(_XMP)), policy, info.orientation)
    metadata = {kind: block for kind, block in zip(_FLAGS, kept, strict=False) if block}
    flags = head[0] & ~sum(_FLAGS.values()) | sum(_FLAGS[kind] for kind in metadata)
    return riff([(_EXTENDED, bytes((flags,)) + head[1:]), *pixels, *metadata.items()])


def _frame(reader: HeaderReader, start: int, length: int) -> bytes:
    """Return a frame with what it is decoded of alone."""
    first = start + FRAME_HEAD
    chunks = read_chunks(reader, first, start + length)
    return reader.read(start, FRAME_HEAD) + b"".join(
        make_chunk(kind, reader.read(*place)) for kind, *place in chunks if kind in CODED
    )
