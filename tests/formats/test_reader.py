"""Reading headers: no byte beyond the file, or beyond a part of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.reader import HeaderReader


@pytest.mark.parametrize(
    ("offset", "length", "held"),
    [(2, 3, b"cde"), (2, 4, b"cdef"), (2, 100, b"cdef"), (6, 5, b""), (9, 5, b""), (2, -1, b"")],
)
def test_a_part_ends_with_the_file(offset: int, length: int, held: bytes) -> None:
    part = HeaderReader(ByteSource(b"abcdef"), "PNG").part(offset, length)
    assert part.size == len(held)
    assert part.read(0, len(held)) == held
    with pytest.raises(CorruptImage, match="before its header is complete"):
        part.read(0, len(held) + 1)


def test_parts_of_a_header_are_counted() -> None:
    reader = HeaderReader(ByteSource(b"abcdef"), "PNG")
    reader.count(1_999_999)
    reader.read(0, 1)
    with pytest.raises(CorruptImage, match="more than 2,000,000 parts"):
        reader.read(0, 1)


def test_a_file_that_becomes_shorter_is_damaged(tmp_path: Path) -> None:
    file = tmp_path / "a.png"
    file.write_bytes(b"abcdef")
    source = ByteSource(file)
    assert source.size == 6
    file.write_bytes(b"abc")
    with pytest.raises(CorruptImage, match="became shorter while it was read"):
        HeaderReader(source, "PNG").read(0, 6)
