"""Change the metadata of HEIC and AVIF without touching coded data: it is overwritten in its place."""

from __future__ import annotations

from contextlib import suppress

from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats import exif
from imgsvc_core.formats.boxes import FileBox, read_boxes
from imgsvc_core.formats.heif import Heif
from imgsvc_core.formats.heif.items import boxes_of, metadata_places
from imgsvc_core.formats.heif.sequence import descriptions
from imgsvc_core.formats.metadata import Blocks, beside_stored
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import MetadataPolicy

_BEFORE_EXIF = bytes(4)  # where the block begins after these bytes
_EMPTY = exif.serialize(exif.Exif({}))
_WORDS = b"udes"  # a name, a description and keywords
_OF_PICTURE = frozenset({b"ftyp", b"meta", b"mdat", b"moov"})


def rewrite(picture: Heif, policy: MetadataPolicy) -> bytes | None:
    """Return the file with its EXIF and XMP replaced by what a policy keeps, filled up to their sizes, and
    without words that describe the picture, and boxes beside it, such as those of motion video.

    Return None if the places of EXIF and XMP are told in a way that is not understood.
    """
    reader = picture.header_reader
    of_tracks, described = descriptions(reader)
    listed = [picture.header.items.boxes, *(boxes_of(reader, box) for box in of_tracks)]
    places = [metadata_places(reader, boxes) for boxes in listed]
    if None in places:
        return None
    data = bytearray(picture.source.buffer())
    boxes = _boxes(reader)
    end = max(box.end for box in boxes if box.kind in _OF_PICTURE)
    others = [box for box in boxes if box.kind not in _OF_PICTURE and box.end < end]
    words = [box for boxes in picture.header.items.properties.values() for box in boxes if box.kind == _WORDS]
    for box in (*described, *others, *words):
        data[box.begin + 4 : box.begin + 8] = b"free"
        data[box.start : box.end] = bytes(box.end - box.start)
    for kind, start, length in {place for several in places for place in several or ()}:
        old = bytes(data[start : start + length])
        if kind == b"Exif":
            kept = beside_stored(Blocks(exif=old[len(_BEFORE_EXIF) :]), policy, 1).exif or _EMPTY
            new = (_BEFORE_EXIF + kept).ljust(length, b"\0")
        else:
            new = (beside_stored(Blocks(xmp=old), policy, 1).xmp or b"").ljust(length)
        data[start : start + length] = new if len(new) == length else bytes(length)
    return bytes(data[:end])


def _boxes(reader: HeaderReader) -> list[FileBox]:
    """Return the boxes of the file, up to anything that is no box."""
    found: list[FileBox] = []
    with suppress(CorruptImage):
        found.extend(read_boxes(reader, 0, reader.size))
    return found
