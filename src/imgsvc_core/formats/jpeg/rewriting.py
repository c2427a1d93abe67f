"""Change the metadata of a JPEG without touching its coded data."""

from __future__ import annotations

from imgsvc_core.formats.directory import EXIF_PREFIX
from imgsvc_core.formats.jpeg import Jpeg
from imgsvc_core.formats.jpeg.header import CODED_MARKER, Segment, is_metadata
from imgsvc_core.formats.jpeg.samsung import with_end
from imgsvc_core.formats.jpeg.segments import APP2, ICC, make_segment
from imgsvc_core.formats.metadata import PHOTOSHOP, XMP_PREFIX, Blocks, beside_stored, segments_of
from imgsvc_core.formats.settings import MetadataPolicy

_START, _END = b"\xff\xd8", b"\xff\xd9"
_APP0, _APP14 = 0xE0, 0xEE
_KEPT = {_APP0: b"JFIF\0", APP2: ICC, _APP14: b"Adobe"}
_NO_PREVIEW = bytes(2)  # the size of the preview of JFIF, which follows
_BEFORE_PREVIEW = _ADOBE_LENGTH = 12


def rewrite(picture: Jpeg, policy: MetadataPolicy) -> bytes:
    """Return the file without segments that its pixels and colors do not need, and without what follows."""
    data = bytes(with_end(picture).source.buffer())
    segments = picture.header.segments
    blocks = _blocks(picture, data) if policy == "copyright" else Blocks()
    new = segments_of(beside_stored(blocks, policy, picture.info.orientation))
    kept = [segment for segment in segments if _stays(data, segment)]
    whole = [make_segment(segment.marker, _content(data, segment)) for segment in kept]
    first = 1 if kept and kept[0].marker == _APP0 else 0
    return b"".join((_START, *whole[:first], new, *whole[first:], _coded(picture, data, segments[-1].end)))


def _stays(data: bytes, segment: Segment) -> bool:
    start = _KEPT.get(segment.marker)
    return not is_metadata(segment.marker) or (start is not None and data.startswith(start, segment.start))


def _content(data: bytes, segment: Segment) -> bytes:
    """Return what pixels and colors need of a segment."""
    content = data[segment.start : segment.end]
    if segment.marker == _APP0:
        return content[:_BEFORE_PREVIEW] + _NO_PREVIEW
    return content[:_ADOBE_LENGTH] if segment.marker == _APP14 else content


def _coded(picture: Jpeg, data: bytes, start: int) -> bytes:
    """Return all scans with the coded segments between them, up to the end of the picture."""
    pieces: list[bytes] = []
    begin = place = start
    while found := CODED_MARKER.search(data, place):
        marker, place = found[1][0], found.end()
        if marker == _END[1]:
            return b"".join((*pieces, data[begin : found.start()], _END))
        place += max(2, int.from_bytes(data[place : place + 2], "big"))
        if is_metadata(marker):
            pieces.append(data[begin : found.start()])
            begin = place
    raise picture.header_reader.corrupt("it ends before its data is complete")


def _blocks(picture: Jpeg, data: bytes) -> Blocks:
    """Return the metadata of the file: of EXIF and XMP the first block, of IPTC all parts."""

    def contents(prefix: bytes) -> list[bytes]:
        return [
            data[segment.start + len(prefix) : segment.end]
            for segment in picture.header.segments
            if data.startswith(prefix, segment.start, segment.end)
        ]

    exif, packets = contents(EXIF_PREFIX), contents(XMP_PREFIX)
    records = b"".join(contents(PHOTOSHOP))
    return Blocks(next(iter(exif), None), next(iter(packets), None), records or None)
