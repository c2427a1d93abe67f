"""No faces are found in pictures that are too thin for any."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import pyvips

import imgsvc_core as imgsvc


@pytest.mark.parametrize(
    "shape", [(3, 5000, 3), (5000, 3, 3), (1, 4000, 3), (2, 961, 3), (1, 1, 3), (32, 480, 3), (480, 25, 3)]
)
@pytest.mark.parametrize(
    "request_",
    [{"crop": {"mode": "face"}}, {"resize": {"width": 1, "height": 1, "mode": "fit", "gravity": "face"}}],
)
def test_nothing_is_found_and_nothing_fails(shape: tuple[int, ...], request_: dict[str, Any]) -> None:
    pytest.importorskip("cv2")
    result = imgsvc.process(np.zeros(shape, np.uint8), {**request_, "output": {"format": "png"}})
    assert result.faces == ()
    expected = (1, 1) if "resize" in request_ else (shape[1], shape[0])
    assert (result.output.width, result.output.height) == expected


def test_a_thin_picture_is_not_decoded_for_faces() -> None:
    """Of a picture that is cut off, the first rows can be read, but not all of it."""
    png = bytes(pyvips.Image.gaussnoise(10, 60_000).cast("uchar").pngsave_buffer())
    request = {
        "crop": {"width": 10, "height": 10, "y": 0},
        "resize": {"width": 5, "height": 2, "mode": "fit", "gravity": "face"},
        "output": {"format": "png"},
    }
    result = imgsvc.process(png[: len(png) // 2], request)
    assert (result.output.width, result.output.height) == (5, 2)
