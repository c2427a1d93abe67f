"""JPEGs with odd headers and sound pixels.

Decoders report only their first warning. A warning about the header may hide one about pixels. So decoders
get a copy whose header says the same in the usual way. If they still warn, pixels are damaged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from imgsvc_core._runtime.patterns import pattern
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.jpeg import Jpeg
from imgsvc_core.formats.jpeg.header import Segment
from imgsvc_core.formats.jpeg.segments import APP2, ICC, MOST_OF_ICC, make_segment, of_profile
from imgsvc_core.formats.reader import HeaderReader

_APP0, _APP14, _SOS = 0xE0, 0xEE, 0xDA
_DECIDING = (_APP0, APP2, _APP14, _SOS)  # decoders warn about these
_LENGTH = 4  # bytes of a marker and a length, before the content
_JFIF_MAJOR, _JFIF_BYTES = 5, 14
_ADOBE_TRANSFORM = 11
# The values for each number of channels. Decoders read all other values as the last one: YCbCr and YCCK.
_TRANSFORMS = {3: (0, 1), 4: (0, 2)}

_ICC_HEAD = len(ICC) + 2  # followed by the number of the part and the number of parts
_LARGEST_ICC = 255 * MOST_OF_ICC  # the number of a part is one byte
_SIGNATURE_AT = 36  # in every profile: "acsp"

_ALL_COEFFICIENTS = b"\0\x3f\0"  # the last bytes of a scan header in a sequential file
_ODD_SCAN = pattern(
    rb"(\xff\xda\0(?:\x08\x01.{2}|\x0a\x02.{4}|\x0c\x03.{6}|\x0e\x04.{8}))(?!\0\x3f\0).{3}", re.DOTALL
)


def with_sound_header(picture: Jpeg) -> Jpeg:
    """Return the file, or a copy if a decoder would warn about its header.

    Bytes between segments are left out. They stay if they look like a segment with a damaged marker, because
    tables or colors may then be missing.
    """
    source, segments, frame = picture.source, picture.header.segments, picture.header.frame
    reader, channels, sequential = picture.header_reader, len(frame.components), frame.sequential
    several = sequential and reader.byte(segments[-1].start) != channels
    if picture.header.adjacent and not several:
        deciding = [segment for segment in segments if segment.marker in _DECIDING]
        stored = _stored(reader, deciding)
        if stored == _usual_segments(stored, channels, sequential):
            return picture
    ends = (2, *(segment.end for segment in segments[:-1]))
    starts = (segment.start - _LENGTH for segment in segments)
    gaps = [reader.read(end, start - end) for end, start in zip(ends, starts, strict=True) if start > end]
    stored = _stored(reader, segments)
    usual = _usual_segments(stored, channels, sequential)
    if any(map(_is_segment, gaps)) or (usual == stored and not (gaps or several)):
        return picture
    rest = source.read(segments[-1].end)
    if several:
        rest = _ODD_SCAN.sub(rb"\1" + _ALL_COEFFICIENTS, rest)
    written, end = [], 2
    for marker, content in usual:
        written.append(Segment(marker, end + _LENGTH, len(content)))
        end = written[-1].end
    head = (make_segment(*part) for part in usual)
    sound = ByteSource(b"".join((b"\xff\xd8", *head, rest)), name=source.name)
    scan = end if picture.header.in_one_scan and sequential else None
    header = attrs.evolve(picture.header, segments=tuple(written), adjacent=True, scan=scan)
    return Jpeg(HeaderReader(sound, picture.title), picture.info, header)


def _stored(reader: HeaderReader, segments: Sequence[Segment]) -> list[tuple[int, bytes]]:
    return [(segment.marker, reader.read(segment.start, segment.length)) for segment in segments]


def _usual_segments(
    segments: list[tuple[int, bytes]], channels: int, sequential: bool
) -> list[tuple[int, bytes]]:
    """Return the segments as decoders read them."""
    return _with_sound_profile(
        [(marker, _usual(marker, content, channels, sequential)) for marker, content in segments]
    )


def _is_segment(stray: bytes) -> bool:
    """Return True if bytes between segments look like a segment: the length that they state fits."""
    return len(stray) > _LENGTH and int.from_bytes(stray[2:_LENGTH], "big") == len(stray) - 2


def _usual(marker: int, content: bytes, channels: int, sequential: bool) -> bytes:
    """Return the content of a segment. Odd values are replaced by the values that decoders use instead."""
    if marker == _APP0 and len(content) >= _JFIF_BYTES and content.startswith(b"JFIF\0"):
        return content[:_JFIF_MAJOR] + b"\1" + content[_JFIF_MAJOR + 1 :]
    if marker == _APP14 and len(content) > _ADOBE_TRANSFORM and content.startswith(b"Adobe"):
        transform = content[_ADOBE_TRANSFORM]
        known = _TRANSFORMS.get(channels, (transform,))
        taken = transform if transform in known else known[-1]
        return content[:_ADOBE_TRANSFORM] + bytes((taken,)) + content[_ADOBE_TRANSFORM + 1 :]
    if marker == _SOS and sequential:
        return content[: -len(_ALL_COEFFICIENTS)] + _ALL_COEFFICIENTS
    return content


def _with_sound_profile(segments: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return the segments with the parts of the color profile numbered from 1, each once."""
    places = [place for place, segment in enumerate(segments) if _is_of_profile(*segment)]
    if not places:
        return segments
    parts = [(content[len(ICC)], content[_ICC_HEAD:]) for _, content in (segments[place] for place in places)]
    counts = {segments[place][1][len(ICC) + 1] for place in places}
    numbered = counts == {len(parts)} and {number for number, _ in parts} == {*range(1, len(parts) + 1)}
    if numbered and any(piece for _, piece in parts):
        return segments
    others = [segment for place, segment in enumerate(segments) if place not in places]
    return others[: places[0]] + of_profile(_joined(parts)) + others[places[0] :]


def _is_of_profile(marker: int, content: bytes) -> bool:
    return marker == APP2 and len(content) >= _ICC_HEAD and content.startswith(ICC)


def _joined(parts: Sequence[tuple[int, bytes]]) -> bytes:
    """Join the numbered parts of a profile. Return no bytes if the result is no profile or is too large.

    First each number is taken once, in order. If that gives no profile, the parts are joined as stored,
    because some encoders give all parts the same number. Other encoders count from 0.
    """
    first_of = dict(reversed(parts))
    in_order = b"".join(piece for _, piece in sorted(first_of.items()))
    as_stored = b"".join(piece for _, piece in parts)
    for profile in (in_order, as_stored):
        size = int.from_bytes(profile[:4], "big")
        fits = _SIGNATURE_AT < size <= min(len(profile), _LARGEST_ICC)
        if fits and profile[_SIGNATURE_AT:].startswith(b"acsp"):
            return profile[:size]
    return b""
