"""Pictures extended to a size or an aspect ratio."""

from __future__ import annotations

import io
import subprocess
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.plan import geometry
from imgsvc_core.plan.geometry import Size
from imgsvc_core.spec import Canvas, unparse
from imgsvc_core.spec.density import at_density
from tests.support.decoded import decode
from tests.support.photos import Pixels, coffee, cut_out
from tests.support.requires import program

SIDES = st.integers(1, 20_000)
SIZES = st.builds(Size, SIDES, SIDES)
PARTS = st.floats(1, 100)
PHOTO = coffee()[:40, :60]


def shown(source: Any, request: dict[str, Any]) -> Pixels:
    return decode("png", imgsvc.process(source, {**request, "output": {"format": "png"}}).data)[0]


@given(SIZES, SIDES, st.none() | SIDES)
def test_sides_are_at_least_as_long_as_asked_for(size: Size, width: int, height: int | None) -> None:
    found = geometry.extended(size, Canvas(width=width, height=height))
    assert found == (max(size.width, width), max(size.height, height or 0))


@given(SIZES, st.none() | SIDES, PARTS, PARTS)
def test_one_side_grows_to_the_ratio(size: Size, least: int | None, across: float, down: float) -> None:
    found = geometry.extended(size, Canvas(width=least, ratio=(across, down)))
    width = max(size.width, least or 0)
    assert found.width == width or found.height == size.height
    assert found.width >= width
    assert found.height >= size.height
    assert (
        abs(found.height * across / down - found.width) <= 0.51
        or abs(found.width * down / across - found.height) <= 0.51
    )


@pytest.mark.parametrize(
    ("canvas", "size", "left", "top"),
    [
        ({"width": 80, "height": 70}, (80, 70), 10, 15),
        ({"width": 81, "height": 71, "gravity": "center"}, (81, 71), 10, 15),
        ({"width": 80, "height": 70, "gravity": "bottom-right"}, (80, 70), 20, 30),
        ({"width": 80, "height": 70, "gravity": "top", "offset_x": -4, "offset_y": 5}, (80, 70), 6, 5),
        ({"height": 70, "gravity": "bottom", "offset_y": 500}, (60, 70), 0, 0),
        ({"ratio": "1:1", "gravity": "top"}, (60, 60), 0, 0),
        ({"ratio": "2:1", "gravity": "left"}, (80, 40), 0, 0),
        ({"width": 100, "ratio": "1:1"}, (100, 100), 20, 30),
        ({"width": 20, "height": 30}, (60, 40), 0, 0),
        ({"ratio": "3:2"}, (60, 40), 0, 0),
    ],
)
def test_the_picture_lies_where_gravity_puts_it(
    canvas: dict[str, Any], size: tuple[int, int], left: int, top: int
) -> None:
    expected = np.full((size[1], size[0], 3), (0x33, 0x66, 0x99), np.uint8)
    expected[top : top + 40, left : left + 60] = PHOTO
    np.testing.assert_array_equal(shown(PHOTO, {"canvas": {**canvas, "background": "369"}}), expected)


def test_the_space_is_transparent_unless_the_output_has_no_alpha() -> None:
    found = shown(PHOTO, {"canvas": {"width": 80}})
    assert (found[:, :10] == 0).all()
    assert (found[:, 10:70, 3] == 255).all()
    data = imgsvc.process(PHOTO, {"canvas": {"width": 80}, "output": {"format": "jpg"}}).data
    assert (decode("jpg", data)[0][:, :8] > 245).all()


def test_padding_comes_on_top() -> None:
    request = {"canvas": {"width": 80, "height": 80}, "padding": {"size": 5, "left": 1}}
    assert shown(PHOTO, request).shape == (90, 86, 4)


def test_it_is_what_imagemagick_extends_to() -> None:
    cut = cut_out()[:97, 100:301]
    file = io.BytesIO()
    Image.fromarray(cut).save(file, "PNG")
    arguments = ["-background", "#FFD9A080", "-gravity", "southeast", "-extent", "260x150"]
    data = subprocess.check_output(
        [program("magick", "convert"), "png:-", *arguments, "png:-"], input=file.getvalue()
    )
    canvas = {"width": 260, "height": 150, "gravity": "bottom-right", "background": "80FFD9A0"}
    found, expected = shown(cut, {"canvas": canvas}), decode("png", data)[0]
    np.testing.assert_array_equal(found[-97:, -201:], cut)
    np.testing.assert_array_equal(found[:-97], expected[:-97])


def test_every_frame_of_an_animation_is_extended() -> None:
    frames = [Image.new("RGB", (30, 20), color) for color in ("red", "lime", "blue")]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    result = imgsvc.process(file.getvalue(), {"canvas": {"ratio": "1:1", "background": "fff"}})
    found = decode("gif", result.data)[0][..., :3]
    assert found.shape == (3, 30, 30, 3)
    assert (found[:, :5] == 255).all()
    assert [tuple(frame[15, 15]) for frame in found] == [(255, 0, 0), (0, 255, 0), (0, 0, 255)]


def test_densities_multiply_it() -> None:
    spec = imgsvc.Spec(canvas={"width": 50, "ratio": "2:1", "offset_x": -3})
    assert unparse(at_density(spec, 2))["canvas"] == {"width": 100, "ratio": "2:1", "offset_x": -6}


@pytest.mark.parametrize("canvas", [{"ratio": "99999:0.001"}, {"width": 60_000, "height": 60_000}])
def test_results_beyond_the_limits_are_refused(canvas: dict[str, Any]) -> None:
    with pytest.raises(imgsvc.OutputTooLarge):
        imgsvc.process(PHOTO, {"canvas": canvas})


def test_the_longest_side_is_limited_without_limits_too() -> None:
    with pytest.raises(imgsvc.OutputTooLarge):
        imgsvc.process(PHOTO, {"canvas": {"ratio": "99999:0.0001"}}, limits=imgsvc.Limits.none())


def test_something_must_be_asked_for() -> None:
    with pytest.raises(imgsvc.SpecError, match="Canvas needs at least one of 'width'"):
        imgsvc.parse({"canvas": {"background": "fff"}})
