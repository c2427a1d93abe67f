"""The equivalents of other tools do what the page says of them."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvips
from numpy.typing import NDArray
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


def _photograph() -> bytes:
    """A photograph as a phone takes it, with a camera's name."""
    picture = photos.as_vips(photos.coffee()).copy()
    picture.set_type(pyvips.GValue.gstr_type, "exif-ifd0-Model", "Camera (Camera, ASCII)")
    data: bytes = picture.jpegsave_buffer(Q=90)
    return data


def _cut_corners(shown: NDArray[np.uint8], mask: dict[str, Any]) -> bool:
    corner, expected = shown[0, 0], [255, 255, 255, 255] if "background" in mask else [None, None, None, 0]
    return all(want in (None, value) for value, want in zip(corner, expected, strict=True))


# What a parameter promises of the result, the pixels of which are RGBA.
PROMISES: dict[str, Callable[[imgsvc.Result, NDArray[np.uint8], Any], bool]] = {
    "output.format": lambda result, _, name: result.output.format == name or name == "auto",
    "output.max_bytes": lambda result, _, most: result.output.bytes <= most,
    "output.quality": lambda result, _, quality: result.output.quality == quality,
    "output.metadata": lambda result, _, __: b"Camera" in (result.data or b""),
    "adjust.saturation": lambda _, shown, __: int(np.ptp(shown[..., :3].astype(int), axis=2).max()) <= 2,
    "mask": lambda _, shown, mask: _cut_corners(shown, mask),
    "border": lambda _, shown, __: int(shown[0, 0, :3].max()) <= 2,
    "padding": lambda _, shown, __: int(shown[0, 300, :3].min()) >= 253,
}


def test_requests_do_what_the_page_tells() -> None:
    photograph, kept = _photograph(), []
    for tool, other, request, _ in ROWS:
        for path, holds in PROMISES.items():
            value: Any = request
            for key in path.split("."):
                value = value.get(key, {})
            if value == {}:
                continue
            output = {} if path.startswith("output.") else {"output": {"format": "png"}}
            result = imgsvc.process(photograph, {**request, **output})
            shown = np.asarray(Image.open(io.BytesIO(result.data or b"")).convert("RGBA"))
            assert holds(result, shown, value), f"{tool} {other}: {path}"
            kept.append(path)
    assert set(kept) == PROMISES.keys()


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
