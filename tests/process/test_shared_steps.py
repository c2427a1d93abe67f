"""Steps that use a picture several times do not compute it several times.

In threads that are not its own, libvips does, so that the time doubles with every such step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import imgsvc_core as imgsvc

ADJUSTED = {"tint": 3, "sharpen": 1, "unsharp": 7, "vibrance": -100, "opacity": 0.5}


@pytest.mark.parametrize("shape", [(33, 47, 4), (300, 300, 4), (2, 30, 4), (30, 2, 3)])
@pytest.mark.parametrize(
    "request_",
    [
        {"adjust": ADJUSTED, "mask": {"shape": "ellipse", "background": "FF0000"}},
        {"adjust": ADJUSTED, "filter": {"isolate": {"color": "FF0000"}, "pixellate": {"value": 9}}},
        {
            "adjust": ADJUSTED,
            "filter": {"isolate": {"color": "FF0000"}, "vignette": {"value": 9, "radius": 9}},
            "border": {"size": 3, "radius": 8, "background": "0000FF80"},
        },
    ],
)
def test_many_steps_take_no_time(shape: tuple[int, ...], request_: dict[str, Any]) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, shape, np.uint8)
    for format in ("png", "webp"):
        imgsvc.process(pixels, {**request_, "output": {"format": format}}, limits=imgsvc.Limits(seconds=10))
