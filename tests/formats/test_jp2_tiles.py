"""JPEG 2000 with tiles that have no data is damaged, and never black in part."""

from __future__ import annotations

import io
import struct

import pytest
from PIL import Image

import imgsvc_core as imgsvc
from tests.support.decoded import decode

START_OF_TILE = b"\xff\x90\x00\x0a"


def tiled(**options: object) -> bytes:
    target = io.BytesIO()
    picture = Image.new("RGB", (128, 96), (200, 10, 10))
    picture.save(target, "JPEG2000", tile_size=(64, 64), no_jp2=True, **options)
    return target.getvalue()


def test_all_tiles_are_there() -> None:
    assert imgsvc.process(tiled(), {"output": {"format": "png"}}).output.width == 128


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_missing_tiles_are_damage(kept: int) -> None:
    head, *tiles = tiled().split(START_OF_TILE)
    cut = START_OF_TILE.join([head, *tiles[:kept]]) + b"\xff\xd9"
    with pytest.raises(imgsvc.CorruptImage, match="tiles are missing"):
        imgsvc.process(cut, {"output": {"format": "png"}})


def test_one_tile_several_times_is_not_all_of_them() -> None:
    head, first, *others = tiled().split(START_OF_TILE)
    repeated = START_OF_TILE.join([head, *[first] * (1 + len(others))]) + b"\xff\xd9"
    with pytest.raises(imgsvc.CorruptImage, match="tiles are missing"):
        imgsvc.process(repeated, {"output": {"format": "png"}})


def test_tiles_begin_where_their_grid_does() -> None:
    moved = tiled(offset=(64, 64), tile_offset=(64, 64))
    assert imgsvc.process(moved, {"output": {"format": "png"}}).output.width == 128


def empty(size: int, packets: bytes) -> bytes:
    """Return a gray picture of one tile whose packets are these."""
    frame = struct.pack(">HIIIIIIIIHBBB", 0, size, size, 0, 0, size, size, 0, 0, 1, 7, 1, 1)
    style = struct.pack(">BBHBBBBBB", 0, 0, 1, 0, 0, 4, 4, 0, 1)
    segments = ((0xFF51, frame), (0xFF52, style), (0xFF5C, b"\x40\x40"))
    head = b"".join(struct.pack(">HH", marker, len(content) + 2) + content for marker, content in segments)
    tile = START_OF_TILE + struct.pack(">HIBB", 0, 14 + len(packets), 0, 1) + b"\xff\x93" + packets
    return b"\xff\x4f" + head + tile + b"\xff\xd9"


@pytest.mark.parametrize("spec", [{}, {"resize": {"width": 50}}])
def test_a_tile_without_packets_is_damage(spec: dict[str, object]) -> None:
    with pytest.raises(imgsvc.CorruptImage):
        imgsvc.process(empty(9990, b""), {**spec, "output": {"format": "png"}})


def test_empty_packets_are_a_picture_of_medium_gray() -> None:
    result = imgsvc.process(empty(200, b"\0"), {"output": {"format": "png"}})
    assert decode("png", result.data)[0][..., 0].min() == 128
