"""Change the metadata of HEIC and AVIF without touching coded data: it is overwritten in its place."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from contextlib import suppress

from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats import exif
from imgsvc_core.formats.boxes import FileBox, make_box, read_boxes
from imgsvc_core.formats.heif import Heif
from imgsvc_core.formats.heif.header import shown_items
from imgsvc_core.formats.heif.items import (
    boxes_of,
    listed_entries,
    listed_references,
    metadata_items,
    pieces_of,
)
from imgsvc_core.formats.heif.sequence import coded_frames, descriptions, times_of
from imgsvc_core.formats.metadata import Blocks, beside_stored
from imgsvc_core.formats.settings import MetadataPolicy

_BEFORE_EXIF = bytes(4)  # where the block begins after these bytes
_EMPTY = exif.serialize(exif.Exif({}))
_WORDS = frozenset({b"udes", b"altt", b"crtt", b"mdft"})  # descriptions, and times of making and changing
_OF_PICTURE = frozenset({b"ftyp", b"meta", b"mdat"})
_OF_DATA = frozenset({b"mdat", b"idat"})
_BRAND = 8  # where the major one is
_MOVING = frozenset({b"avis", b"hevc", b"hevx", b"hevm", b"hevs", b"msf1"})
_HEAD = 8  # bytes of a box


def rewrite(picture: Heif, policy: MetadataPolicy) -> bytes | None:
    """Return the file with its EXIF and XMP replaced by what a policy keeps, filled up to their sizes.

    What else describes the picture goes, with other pictures, such as thumbnails, gain maps and depth, and
    boxes beside it, such as those of motion video.

    Return None if the places of data are told in a way that is not understood.
    """
    reader, items = picture.header_reader, picture.header.items
    data = bytearray(picture.source.buffer())
    boxes: list[FileBox] = []
    with suppress(CorruptImage):  # what follows the picture may be no box
        boxes.extend(read_boxes(reader, 0, reader.size))
    moves = picture.info.frames > 1 or reader.read(_BRAND, 4) in _MOVING
    of_picture = {*_OF_PICTURE, *([b"moov"] if moves else [])}
    of_tracks, described = descriptions(reader) if moves else ([], [])
    listed = [items.boxes, *(boxes_of(reader, box) for box in of_tracks)]
    texts: set[tuple[bytes, int, int]] = set()
    for lists in listed:
        kinds = metadata_items(reader, lists)
        pieces = pieces_of(reader, lists, kinds)
        if pieces is None or any(len(several) != 1 for several in pieces.values()):
            return None
        texts.update((kinds[item], *several[0]) for item, several in pieces.items())
    shown = shown_items(reader, items)
    coded = pieces_of(reader, items.boxes, shown)
    if coded is None:
        return None

    stay = [*itertools.chain.from_iterable(coded.values()), *((start, length) for _, start, length in texts)]
    if moves:
        stay += [(frame.start, frame.size) for frame in coded_frames(reader)]
        for start, length in times_of(reader):
            data[start : start + length] = bytes(length)
    for box in (*boxes, *(box for lists in listed for box in lists.values())):
        if box.kind in _OF_DATA:
            _clear_between(data, box, stay)
    end = max(box.end for box in boxes if box.kind in of_picture)
    others = [box for box in boxes if box.kind not in of_picture and box.end < end]
    words = [box for boxes in items.properties.values() for box in boxes if box.kind in _WORDS]
    groups = [box for box in items.boxes.values() if box.kind == b"grpl"]
    for box in (*described, *others, *words, *groups):
        data[box.begin + 4 : box.begin + 8] = b"free"
        data[box.start : box.end] = bytes(box.end - box.start)
    if not moves and (brands := boxes[0]).kind == b"ftyp":
        for at in range(brands.start + 8, brands.end - 3, 4):
            if bytes(data[at : at + 4]) in _MOVING:
                data[at : at + 4] = data[_BRAND : _BRAND + 4]
    kept = shown | metadata_items(reader, items.boxes).keys()
    for kind, listing in ((b"iinf", listed_entries), (b"iref", listed_references)):
        if kind in items.boxes:
            _shorten(data, items.boxes[kind], listing(reader, items.boxes[kind], kept))
    for kind, start, length in texts:
        new = _rewritten(kind, bytes(data[start : start + length]), policy)
        data[start : start + length] = new if len(new) == length else bytes(length)
    return bytes(data[:end])


def _rewritten(kind: bytes, text: bytes, policy: MetadataPolicy) -> bytes:
    """Return what a policy keeps of an EXIF or XMP, filled up to its size."""
    if kind == b"Exif":
        stored = beside_stored(Blocks(exif=text[len(_BEFORE_EXIF) :]), policy, 1).exif or _EMPTY
        return (_BEFORE_EXIF + stored).ljust(len(text), b"\0")
    return (beside_stored(Blocks(xmp=text), policy, 1).xmp or b"").ljust(len(text))


def _shorten(data: bytearray, box: FileBox, content: bytes) -> None:
    """Give a box a content from which whole boxes were left out, if any."""
    new = make_box(box.kind, content)
    if rest := box.end - box.begin - len(new):
        new += make_box(b"free", bytes(rest - _HEAD))
    data[box.begin : box.end] = new


def _clear_between(data: bytearray, box: FileBox, stay: Iterable[tuple[int, int]]) -> None:
    """Overwrite what is in a box beside some pieces."""
    at = box.start
    for start, length in (*sorted(stay), (box.end, 0)):
        until = min(start, box.end)
        data[at:until] = bytes(max(0, until - at))
        at = max(at, start + length)
