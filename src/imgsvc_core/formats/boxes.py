"""Boxes, the structure of ISO base media files (ISO/IEC 14496-12, section 4) and of JPEG 2000 files."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from imgsvc_core._runtime.records import frozen
from imgsvc_core.formats.reader import HeaderReader


@frozen
class FileBox:
    """A box: its kind, where it begins, and where its content starts and ends."""

    kind: bytes
    begin: int
    start: int
    end: int


def read_boxes(reader: HeaderReader, start: int, end: int) -> Iterator[FileBox]:
    """Yield the boxes between two offsets; one that would end later is cut there."""
    while start + 8 <= end:
        length, kind = reader.unpack(">I4s", start)
        head = 8
        if length == 1:
            (length,) = reader.unpack(">Q", start + 8)
            head = 16
        elif length == 0:
            length = end - start
        if length < head:
            raise reader.corrupt(f"its {kind.decode('latin-1')!r} box has the impossible length {length}")
        yield FileBox(kind, start, start + head, min(start + length, end))
        start += length


def first_box(reader: HeaderReader, parent: FileBox, kind: bytes) -> FileBox | None:
    """Return the first box of a kind inside another."""
    return next((box for box in read_boxes(reader, parent.start, parent.end) if box.kind == kind), None)


def make_box(kind: bytes, content: bytes) -> bytes:
    """Return a box with its header."""
    return struct.pack(">I4s", 8 + len(content), kind) + content
