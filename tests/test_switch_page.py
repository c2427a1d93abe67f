"""The equivalents of other tools do what the page says of them."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

import imgsvc_core as imgsvc
from tests.support import photos

PAGE = (Path(__file__).parent.parent / "docs" / "howto" / "switch.md").read_text(encoding="utf-8")
ROWS = [
    (tool.strip(), other.strip().strip("`"), json.loads(request), (int(width), int(height)))
    for tool, table in re.findall(r"^## (.+?)$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    for other, request, width, height in re.findall(
        r"^\| (.+?) \| `(\{.*\})` \| (\d+)×(\d+) \|$", table, re.MULTILINE
    )
]
PILLOW = [(code, request, size) for tool, code, request, size in ROWS if tool == "Pillow"]


def test_all_rows_are_read() -> None:
    assert len(ROWS) == len(re.findall(r"^\| .*\{.*\}", PAGE, re.MULTILINE))
    assert {tool for tool, *_ in ROWS} == {"Pillow", "sharp", "imgproxy", "thumbor", "Cloudinary"}


@pytest.mark.parametrize(
    ("request_", "size"), [row[2:] for row in ROWS], ids=[f"{row[0]} {row[1]}" for row in ROWS]
)
def test_requests_give_the_size_that_the_page_tells(
    request_: dict[str, object], size: tuple[int, int]
) -> None:
    photograph: bytes = photos.as_vips(photos.coffee()).jpegsave_buffer()
    result = imgsvc.process(photograph, request_)
    assert (result.output.width, result.output.height) == size


@pytest.mark.parametrize(("code", "request_", "size"), PILLOW, ids=[row[0] for row in PILLOW])
def test_pillow_gives_the_same_picture(code: str, request_: dict[str, object], size: tuple[int, int]) -> None:
    picture = Image.fromarray(photos.coffee())
    scope = {"im": picture, "ImageOps": ImageOps}
    theirs = eval(code, scope) or picture  # thumbnail works in place
    data = imgsvc.process(photos.coffee(), {**request_, "output": {"format": "png"}}).data
    assert data is not None
    assert theirs.size == size
    ours = imgsvc.inspect(data)
    assert (ours.width, ours.height) == size
    assert _difference(theirs, data) < 4


def _difference(theirs: Image.Image, data: bytes) -> float:
    """Return the mean difference of the channels, of 255."""
    ours = Image.open(io.BytesIO(data)).convert("RGB")
    return float(np.abs(np.asarray(ours, float) - np.asarray(theirs.convert("RGB"), float)).mean())
