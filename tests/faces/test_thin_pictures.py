"""No faces are found in pictures that are too thin for any."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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
