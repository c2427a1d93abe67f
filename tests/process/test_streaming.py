"""Sources that are read once, line by line, whatever looks at the pixels before they are encoded."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.formats.table import FORMATS, OUTPUT_NAMES
from tests.support.photos import mosaic

_OPTIONS = [
    (name, option)
    for name in OUTPUT_NAMES
    for option in (
        {"effort": 1} if FORMATS[name].effort else {},
        *({"subsampling": sampling} for sampling in FORMATS[name].subsamplings),
        *({"encoding": encoding} for encoding in ("baseline", "progressive") if FORMATS[name].interlaces),
        *([{"lossless": True}] if FORMATS[name].lossless and FORMATS[name].quality else []),
        *([{"quality": 50}, {"max_bytes": 1_200}] if FORMATS[name].quality else []),
    )
]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """TIFFs that are too high to be read again from libvips' last lines."""
    folder = tmp_path_factory.mktemp("sources")
    picture = Image.fromarray(mosaic(20, 250))
    opaque, transparent = picture.convert("RGBA"), picture.convert("RGBA")
    transparent.paste((0, 0, 0, 0), (5, 30, 15, 200))
    kinds = {"rgb": picture, "gray": picture.convert("L"), "opaque": opaque, "transparent": transparent}
    for name, source in kinds.items():
        source.save(folder / f"{name}.tiff", compression="tiff_lzw")
    return {name: folder / f"{name}.tiff" for name in kinds}


@pytest.mark.parametrize(("format", "options"), _OPTIONS, ids=str)
def test_a_target_gets_the_bytes_of_a_result_in_memory(
    format: str, options: dict[str, Any], sources: dict[str, Path], tmp_path: Path
) -> None:
    for source, resize in itertools.product(sources.values(), ({}, {"resize": {"width": 17}})):
        request = {**resize, "output": {"format": format, **options}}
        target = tmp_path / f"result{FORMATS[format].suffixes[0]}"
        imgsvc.process(source, request, target)
        assert target.read_bytes() == imgsvc.process(source, request).data
