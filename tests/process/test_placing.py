"""Which part of a picture a crop or a resize keeps: given points, and distances from edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import imgsvc_core as imgsvc
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.plan import compile_plan
from imgsvc_core.plan.steps import CropBox
from imgsvc_core.spec import unparse
from imgsvc_core.spec.density import at_density
from imgsvc_core.spec.geometry import EDGES
from tests.support.decoded import decode
from tests.support.photos import Pixels, coffee

FRACTIONS = st.floats(0, 1)
SIDES = st.integers(1, 3000)


def box_of(request: dict[str, Any], width: int, height: int) -> tuple[int, int, int, int]:
    """Left, top, width and height of the last crop of a plan, or of all of the frame."""
    info = ImageInfo(format="png", width=width, height=height, colorspace="srgb", depth=8, bytes=1000)
    plan = compile_plan(imgsvc.parse(request), info, limits=imgsvc.Limits.none())
    boxes = [planned.step.box for planned in plan.steps if isinstance(planned.step, CropBox)]
    return tuple(boxes[-1]) if boxes else (0, 0, *plan.size)


def shown(request: dict[str, Any]) -> Pixels:
    result = imgsvc.process(PHOTO, {**request, "output": {"format": "png"}})
    return decode("png", result.data)[0]


PHOTO = coffee()


@given(SIDES, SIDES, SIDES, SIDES, FRACTIONS, FRACTIONS)
def test_a_focal_point_is_in_the_middle_as_far_as_the_picture_reaches(
    width: int, height: int, inner_width: int, inner_height: int, x: float, y: float
) -> None:
    crop = {"width": inner_width, "height": inner_height, "gravity": "focus", "focus_x": x, "focus_y": y}
    box = box_of({"crop": crop}, width, height)
    for start, part, whole, fraction in zip(box[:2], box[2:], (width, height), (x, y), strict=True):
        assert 0 <= start <= whole - part
        assert start <= fraction * whole <= start + part
        beside = start + part / 2 - fraction * whole
        assert abs(beside) <= 0.5 or (beside > 0 and start == 0) or (beside < 0 and start == whole - part)


@pytest.mark.parametrize(("x", "y"), [(0.25, 0.5), (0, 0), (1, 1), (0.71, 0.13)])
def test_a_crop_keeps_its_focal_point(x: float, y: float) -> None:
    height, width = PHOTO.shape[:2]
    left, top = (
        round(min(max(x * width - 60, 0), width - 120)),
        round(min(max(y * height - 40, 0), height - 80)),
    )
    found = shown({"crop": {"width": 120, "height": 80, "gravity": "focus", "focus_x": x, "focus_y": y}})
    np.testing.assert_array_equal(found, PHOTO[top : top + 80, left : left + 120])


def test_a_resize_keeps_its_focal_point() -> None:
    scaled = shown({"resize": {"height": 90}})
    left = round(0.3 * scaled.shape[1] - 20)
    box = {"width": 40, "height": 90, "mode": "fit", "gravity": "focus"}
    found = shown({"resize": {**box, "focus_x": 0.3, "focus_y": 0.9}})
    np.testing.assert_array_equal(found, scaled[:, left : left + 40])


def test_what_least_sides_push_out_of_the_box_is_cut_at_the_center() -> None:
    scaled = shown({"resize": {"width": 900}})
    found = shown({"resize": {"width": 300, "height": 200, "min_width": 900}})
    np.testing.assert_array_equal(found, scaled[200:400, 300:600])


def test_the_point_of_an_aspect_ratio() -> None:
    crop = {"mode": "ratio", "ratio": "1:1", "gravity": "focus", "focus_x": 0.4, "focus_y": 0}
    assert box_of({"crop": crop}, 400, 100) == (110, 0, 100, 100)


def test_the_plan_names_the_point() -> None:
    crop = {"width": 10, "height": 10, "gravity": "focus", "focus_x": 0.25, "focus_y": 1}
    info = ImageInfo(format="png", width=100, height=100, colorspace="srgb", depth=8, bytes=1000)
    assert "gravity focus at 0.25, 1" in str(imgsvc.explain({"crop": crop}, info))


OFFSETS = st.integers(-4000, 4000)


@given(SIDES, SIDES, SIDES, SIDES, st.sampled_from([*EDGES, "center"]), OFFSETS, OFFSETS)
def test_offsets_lead_inwards_and_end_at_the_edges(
    width: int, height: int, inner_width: int, inner_height: int, gravity: str, across: int, down: int
) -> None:
    crop = {"width": inner_width, "height": inner_height, "gravity": gravity}
    plain = box_of({"crop": crop}, width, height)
    moved = box_of({"crop": {**crop, "offset_x": across, "offset_y": down}}, width, height)
    assert moved[2:] == plain[2:]
    ways = (-1 if "right" in gravity else 1, -1 if "bottom" in gravity else 1)
    for place, expected in enumerate((across, down)):
        room = (width, height)[place] - plain[2 + place]
        assert moved[place] == min(max(plain[place] + ways[place] * expected, 0), room)


@pytest.mark.parametrize(
    ("gravity", "left", "top"),
    [("top-left", 30, 20), ("bottom-right", -150, -100), ("right", -150, 180), (None, 270, 180)],
)
def test_a_crop_lies_at_its_distance(gravity: str | None, left: int, top: int) -> None:
    height, width = PHOTO.shape[:2]
    assert (height, width) == (400, 600)
    crop = {"width": 120, "height": 80, "gravity": gravity, "offset_x": 30, "offset_y": 20}
    left, top = left % width, top % height
    expected = PHOTO[top : top + 80, left : left + 120]
    np.testing.assert_array_equal(shown({"crop": crop}), expected)


def test_a_picture_lies_at_its_distance_in_a_filled_box() -> None:
    box = {"width": 60, "height": 100, "mode": "fill", "gravity": "bottom", "background": "f00"}
    plain = shown({"resize": {**box, "gravity": "top"}})
    moved = shown({"resize": {**box, "offset_y": 15}})
    assert plain.shape == moved.shape == (100, 60, 3)
    np.testing.assert_array_equal(moved[45:85], plain[:40])
    assert (moved[:45] == (255, 0, 0)).all()
    assert (moved[85:] == (255, 0, 0)).all()
    np.testing.assert_array_equal(shown({"resize": {**box, "offset_y": 900}}), plain)


def test_densities_multiply_the_offsets_of_a_resize_only() -> None:
    crop, resize = {"width": 9, "height": 9, "offset_x": 4}, {**FIT, "offset_x": -3}
    dense = unparse(at_density(imgsvc.parse({"crop": crop, "resize": resize}), 2))
    assert dense["crop"] == crop
    assert dense["resize"] == {"width": 10, "height": 10, "mode": "fit", "offset_x": -6}


FIT = {"width": 5, "height": 5, "mode": "fit"}
FOCUS = {"gravity": "focus", "focus_x": 0.5, "focus_y": 0.5}


@pytest.mark.parametrize(
    ("request_", "path", "message"),
    [
        (
            {"crop": {"width": 5, "height": 5, "gravity": "focus", "focus_x": 0.5}},
            "crop.focus_y",
            "Crop 'focus_y' parameter must be float within 0 to 1 range, "
            "and is required when 'gravity' is focus",
        ),
        (
            {"resize": {**FIT, "focus_x": 0.5}},
            "resize.focus_x", "Resize 'focus_x' parameter must be left out unless 'gravity' is focus",
        ),
        (
            {"resize": {**FIT, **FOCUS, "focus_y": 1.5}},
            "resize.focus_y", "Resize 'focus_y' parameter must be float within 0 to 1 range, got 1.5",
        ),
        (
            {"resize": {**FIT, **FOCUS, "mode": "fill"}},
            "resize.gravity", "Resize 'gravity' parameter must not be focus when 'mode' is fill",
        ),
        (
            {"resize": {**FIT, **FOCUS, "offset_x": 3}},
            "resize.offset_x", "Resize 'offset_x' parameter must be left out when 'gravity' is focus",
        ),
        (
            {"resize": {"width": 5, "offset_y": 3}},
            "resize.offset_y", "Resize 'offset_y' parameter must be left out when 'mode' is auto",
        ),
        (
            {"crop": {"width": 5, "height": 5, "offset_x": 3, "y": 4}},
            "crop.offset_x", "Crop 'offset_x' parameter cannot be used together with 'y'; give one",
        ),
        (
            {"crop": {"width": 5, "height": 5, **FOCUS, "x": 4}},
            "crop.gravity", "Crop 'gravity' parameter cannot be used together with 'x'; give one",
        ),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(request_: dict[str, Any], path: str, message: str) -> None:
    with pytest.raises(imgsvc.SpecError) as caught:
        imgsvc.parse(request_)
    assert [(problem.path, problem.message) for problem in caught.value.problems] == [(path, message)]
