"""Geometry on real pixels: the same as turning the picture upright first and doing every step by itself."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import imgsvc_core as imgsvc
from tests.process.pictures import pixels_of, stored_with_orientation
from tests.spec.strategies import operations
from tests.support.perceptual import distance
from tests.support.photos import Pixels, as_vips, coffee

GEOMETRY = [
    {},
    {"resize": {"width": 120}},
    {"resize": {"width": 90, "height": 140, "mode": "fit"}},
    {"resize": {"width": 90, "height": 140, "mode": "fit", "gravity": "top-left"}},
    {"resize": {"width": 90, "height": 140, "mode": "fill", "background": "204060"}},
    {"resize": {"width": 200, "height": 50, "mode": "stretch"}},
    {"crop": {"width": 160, "height": 100, "gravity": "bottom-right"}, "resize": {"width": 80}},
    {"crop": {"width": 161, "height": 101, "x": 33, "y": 21}},
    {"crop": {"mode": "ratio", "ratio": "1:2"}, "resize": {"height": 100}},
    {"flip": {"horizontal": True}, "resize": {"width": 100}},
    {"flip": {"vertical": True}, "rotate": {"angle": 90}, "resize": {"width": 100}},
    {"rotate": {"angle": 180}},
    {"rotate": {"angle": -90}, "crop": {"width": 100, "height": 60, "x": 5, "y": 9}, "resize": {"width": 50}},
    {"rotate": {"angle": 37, "background": "FFF"}, "resize": {"width": 120}},
    {"resize": {"width": 150}, "scale": {"size": 0.5, "ratio": 0.8}},
]


@pytest.mark.parametrize("request_", GEOMETRY)
def test_a_stored_orientation_makes_no_difference(request_: dict[str, Any]) -> None:
    upright = coffee()[20:320:2, 100:500:2].copy()
    plain = _processed(stored_with_orientation(upright, 1), request_)
    for orientation in range(2, 9):
        turned = _processed(stored_with_orientation(upright, orientation), request_)
        assert turned.shape == plain.shape, orientation
        assert distance(turned, plain) < 0.01, orientation
        assert np.abs(turned.astype(int) - plain).mean() < 1, orientation


def test_each_step_does_what_numpy_does() -> None:
    upright = coffee()[20:320:2, 100:500:2].copy()
    height, width = upright.shape[:2]
    source = stored_with_orientation(upright, 1)

    def same(request: dict[str, Any], expected: Pixels) -> None:
        assert np.array_equal(_processed(source, request), expected), request

    same({}, upright)
    same({"flip": {"horizontal": True}}, upright[:, ::-1])
    same({"flip": {"vertical": True}}, upright[::-1])
    same({"rotate": {"angle": 90}}, np.rot90(upright, -1))
    same({"rotate": {"angle": 180}}, np.rot90(upright, 2))
    same({"rotate": {"angle": 270}}, np.rot90(upright))
    same({"crop": {"width": 30, "height": 20, "x": 7, "y": 9}}, upright[9:29, 7:37])
    same({"crop": {"width": 30, "height": 20, "gravity": "bottom-right"}}, upright[-20:, -30:])
    same({"crop": {"width": 30, "height": 20}}, upright[65:85, 85:115])
    same({"crop": {"width": 9999, "height": 20, "x": 190, "y": 0}}, upright[:20, 190:])
    same(
        {"crop": {"mode": "ratio", "ratio": "1:1"}}, upright[:, (width - height) // 2 : (width + height) // 2]
    )


def test_what_is_decoded_in_order_may_be_turned() -> None:
    """The first line of the result may be the last one of the file."""
    upright = np.random.default_rng(3).integers(0, 256, (4000, 5, 3), np.uint8)
    source = as_vips(upright).pngsave_buffer()
    assert np.array_equal(_processed(source, {"flip": {"vertical": True}}), upright[::-1])
    assert np.array_equal(_processed(source, {"flip": {"horizontal": True}}), upright[:, ::-1])
    assert np.array_equal(_processed(source, {"rotate": {"angle": 90}}), np.rot90(upright, -1))


def test_resampling_is_that_of_a_good_resampler() -> None:
    upright = coffee()
    found = _processed(stored_with_orientation(upright, 1), {"resize": {"width": 150, "height": 100}})
    expected = np.asarray(Image.fromarray(upright).resize((150, 100), Image.Resampling.LANCZOS))
    assert distance(found, expected) < 0.012


@pytest.mark.parametrize("request_", [item for item in GEOMETRY if "rotate" not in item])
@pytest.mark.parametrize("factor", [1, 2, 4, 8])
def test_decoding_small_gives_the_same_picture(factor: int, request_: dict[str, Any]) -> None:
    small = coffee()[20:320:2, 100:500:2]
    large = np.asarray(
        Image.fromarray(small).resize(
            (small.shape[1] * factor, small.shape[0] * factor), Image.Resampling.BICUBIC
        )
    )
    crop = request_.get("crop", {})
    wide = {
        **request_,
        **({"crop": {k: v * factor if isinstance(v, int) else v for k, v in crop.items()}} if crop else {}),
    }
    if "resize" not in wide:
        wide["scale"] = {"size": 1 / factor}
        request_ = {**request_, "scale": {"size": 1.0}}
    data = io.BytesIO()
    Image.fromarray(large).save(data, "JPEG", quality=97, subsampling=0)
    plain = _processed(stored_with_orientation(small.copy(), 1), request_)
    shrunk = _processed(data.getvalue(), wide)
    assert shrunk.shape == plain.shape
    assert distance(shrunk, plain) < 0.04


MOVES = st.fixed_dictionaries(
    {},
    optional={
        name: operations(imgsvc.OPERATIONS[name]) for name in ("flip", "rotate", "crop", "resize", "scale")
    },
)


@given(MOVES, st.integers(1, 8), st.integers(1, 40), st.integers(1, 40))
def test_the_result_has_the_planned_size(
    moves: dict[str, Any], orientation: int, width: int, height: int
) -> None:
    spec = imgsvc.Spec(**moves, output=imgsvc.Output(format="png"))
    picture = np.full((height, width, 3), 128, np.uint8)
    source = stored_with_orientation(picture, orientation)
    limits = imgsvc.Limits(output_pixels=200_000)
    try:
        plan = imgsvc.explain(spec, imgsvc.inspect(source), limits=limits)
        result = imgsvc.process(source, spec, limits=limits)
    except (imgsvc.OutputTooLarge, imgsvc.UnsupportedOperation):
        return
    assert (result.output.width, result.output.height) == plan.size
    assert result.output.orientation == 1


def _processed(source: bytes, request: dict[str, Any]) -> Pixels:
    data = imgsvc.process(source, {**request, "output": {"format": "png"}}).data
    assert data is not None
    return pixels_of(data)
