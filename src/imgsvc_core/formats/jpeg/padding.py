"""Zeros before a marker, which some cameras write and decoders take for lost blocks."""

from __future__ import annotations

import re

import pyvips

from imgsvc_core._runtime.patterns import pattern
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.jpeg import Jpeg

_LEFT_OVER = pattern(r"(\d+) extraneous bytes before marker 0x(\w\w)")
_END = "d9"
_MAY_BE_PADDED = pattern(rb"\0\xff+[\xc4\xd9-\xdd]")
_PADDING = b"\0\xff"
_SMALLEST = 8
_MOST_TRIES = 64  # decodings at the smallest size


def is_padding(complaint: str, data: bytes, scan: int) -> bool | None:
    """Return True if a decoder complains of padding after the one scan of a file, which starts at ``scan``.

    Return None if it complains of something else than bytes before the end.
    """
    found = _LEFT_OVER.search(complaint)
    if found is None or found[2] != _END:
        return None
    padded, first = _padded(data, scan, int(found[1]), _END), re.compile(b"\xff+\xd9").search(data, scan)
    return first is not None and first.start() in padded


def without_padding(picture: Jpeg) -> ByteSource:
    """Return a file in several scans without zeros before its markers.

    The last zero may also be coded data. So the file is decoded, in the smallest size there is, and what the
    decoder has left over is cut out, if it is padding.
    """
    source, scan = picture.source, picture.header.segments[-1].end
    if not _MAY_BE_PADDED.search(source.buffer(), scan):
        return source
    data = bytes(source.buffer())
    complaint, tries = _complaint(data), 1
    while found := _LEFT_OVER.search(complaint):
        count = int(found[1])
        for end in _padded(data, scan, count, found[2]):
            shorter = data[: end - count] + data[end:]
            told, tries = _complaint(shorter), tries + 1
            if not told or _LEFT_OVER.search(told):  # otherwise a scan has become too short
                data, complaint = shorter, told
                break
            if tries > _MOST_TRIES:
                return source
        else:
            return source
    return ByteSource(data, name=source.name)


def _padded(data: bytes, scan: int, count: int, marker: str) -> list[int]:
    """Return where so much padding ends before a marker and the bytes that fill up to it."""
    marked = re.compile(b"\xff+" + re.escape(bytes.fromhex(marker)))
    ends = (found.start() for found in marked.finditer(data, scan))
    return [end for end in ends if not data[end - count : end].strip(_PADDING)]


def _complaint(data: bytes) -> str:
    try:
        pyvips.Image.jpegload_buffer(data, shrink=_SMALLEST, fail_on="warning").avg()
    except pyvips.Error as error:
        return str(error.detail)
    return ""
