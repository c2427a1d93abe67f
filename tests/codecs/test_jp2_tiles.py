"""JPEG 2000 with tiles that have no data is damaged, and never black in part."""

from __future__ import annotations

import io

import pytest
from PIL import Image

import imgsvc_core as imgsvc

START_OF_TILE = b"\xff\x90\x00\x0a"


def tiled() -> bytes:
    target = io.BytesIO()
    Image.new("RGB", (128, 96), (200, 10, 10)).save(target, "JPEG2000", tile_size=(64, 64), no_jp2=True)
    return target.getvalue()


def test_all_tiles_are_there() -> None:
    assert imgsvc.process(tiled(), {"output": {"format": "png"}}).output.width == 128


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_missing_tiles_are_damage(kept: int) -> None:
    head, *tiles = tiled().split(START_OF_TILE)
    cut = START_OF_TILE.join([head, *tiles[:kept]]) + b"\xff\xd9"
    with pytest.raises(imgsvc.CorruptImage, match="tiles are missing"):
        imgsvc.process(cut, {"output": {"format": "png"}})
