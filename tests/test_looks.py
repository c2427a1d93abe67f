"""A golden picture of every pointwise look; the spatial operations have theirs beside their tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import pyvips

import imgsvc_core as imgsvc
from tests.adjust.exact import decode, encode
from tests.support.golden import GoldenCheck
from tests.support.photos import as_vips, astronaut

LOOKS: dict[str, dict[str, Any]] = {
    **{
        f"adjust-{name}": {"adjust": {name: value}}
        for name, value in {
            "temperature": 70,
            "tint": 40,
            "exposure": 30,
            "shadow": 80,
            "highlight": -80,
            "brightness": 20,
            "contrast": 30,
            "gamma": 40,
            "vibrance": 80,
            "saturation": -60,
            "hue": 90,
            "invert": True,
            "opacity": 0.5,
        }.items()
    },
    "filter-sepia": {"filter": {"sepia": {"value": 80}}},
    "filter-monochrome": {"filter": {"monochrome": {"value": 80, "color": "4060FF"}}},
    "filter-duotone": {"filter": {"duotone": {"light": "FFE0A0", "dark": "102060"}}},
    "filter-isolate": {"filter": {"isolate": {"color": "E05020", "threshold": 0.15}}},
    "everything": {
        "adjust": {"temperature": 30, "contrast": 20, "vibrance": 40, "sharpen": 40},
        "filter": [{"sepia": {"value": 30}}, {"vignette": {"value": 80, "radius": 40}}],
        "mask": {"shape": "rounded", "radius": 24},
        "border": {"size": 4, "color": "FFF", "radius": 24},
    },
}


@pytest.mark.parametrize("name", LOOKS)
def test_the_look_is_the_golden_one(name: str, check_golden: GoldenCheck) -> None:
    portrait = as_vips(astronaut()).crop(60, 0, 320, 320)
    request = {**LOOKS[name], "resize": {"width": 160}, "output": {"format": "png"}}
    data = imgsvc.process(portrait, request).data
    assert data is not None
    check_golden(name, pyvips.Image.new_from_buffer(data, ""))


def test_enhancement_is_the_golden_one(check_golden: GoldenCheck) -> None:
    light = decode(astronaut() / 255) * (0.5, 0.4, 0.3)
    dark_and_warm = np.rint(encode(light) * 255).astype(np.uint8)
    request = {"auto": {"enhance": True}, "resize": {"width": 160}, "output": {"format": "png"}}
    data = imgsvc.process(dark_and_warm, request).data
    assert data is not None
    check_golden("auto-enhance", pyvips.Image.new_from_buffer(data, ""))


def test_a_golden_picture_notices_a_change(check_golden: GoldenCheck) -> None:
    portrait = as_vips(astronaut()).crop(60, 0, 320, 320)
    data = imgsvc.process(portrait, {"resize": {"width": 160}, "adjust": {"brightness": 25}}).data
    assert data is not None
    with pytest.raises(pytest.fail.Exception):
        check_golden("adjust-brightness", pyvips.Image.new_from_buffer(data, ""))
