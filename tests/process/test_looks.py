"""Looks on the whole way: the values of a request become the amounts that the documentation states.

Lengths are parts of R, the shorter side of the frame. What is expected is worked out here a second time, from
the formulas alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage  # type: ignore[import-untyped]

import imgsvc_core as imgsvc
from imgsvc_core.spec import Color, Isolate, Monochrome, Sepia
from tests.adjust.exact import COLORS, exact, luma, signed, unit
from tests.support.decoded import decode
from tests.support.photos import Pixels, coffee, deep, mosaic

WIDE = coffee()[40:240, 100:400]
"""300 x 200 pixels: R is 200."""
TALL = np.ascontiguousarray(WIDE.swapaxes(0, 1))
SHAPES = pytest.mark.parametrize("pixels", [WIDE, TALL], ids=["wide", "tall"])


def looks(pixels: Pixels, **request: Any) -> Pixels:
    """The pixels after a request."""
    return decode("png", imgsvc.process(pixels, {**request, "output": {"format": "png"}}).data or b"")[0]


def levels(pixels: Pixels, **request: Any) -> NDArray[np.float64]:
    """The pixels after a request, computed with 16 bits, in levels of 8 bits."""
    return looks(deep(pixels), **request) / 257


def gaussian(pixels: Pixels | NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    sigmas = (sigma, sigma, 0)[: pixels.ndim]
    return np.asarray(ndimage.gaussian_filter(pixels.astype(float), sigmas, mode="nearest", truncate=6))


@SHAPES
def test_gaussian_blur_100_has_a_sigma_of_a_twentieth_of_r(pixels: Pixels) -> None:
    found = levels(pixels, filter={"blur": {"mode": "gaussian", "value": 40}})
    assert np.abs(found - gaussian(pixels, 0.05 * 200 * 0.4)).max() < 0.3


@SHAPES
def test_motion_blur_100_is_a_tenth_of_r_long_and_upright_by_default(pixels: Pixels) -> None:
    for angle, axis in ((None, 0), (0, 1)):
        blur = {"mode": "motion", "value": 55} | ({} if angle is None else {"angle": angle})
        expected = ndimage.uniform_filter1d(pixels.astype(float), 11, axis=axis, mode="nearest")
        assert np.abs(levels(pixels, filter={"blur": blur}) - expected).max() < 0.3


@SHAPES
def test_zoom_blur_100_travels_a_fifth_of_the_way_to_the_center(pixels: Pixels) -> None:
    depth, count = 0.2 * 0.5, 120
    smooth = gaussian(pixels, 1.5).round().astype(np.uint8)
    center = (np.array(smooth.shape) - 1) / 2
    expected = np.zeros(smooth.shape)
    for scale in (1 - depth) ** ((np.arange(count) + 0.5) / count):
        factors = np.array([scale, scale, 1])
        expected += ndimage.affine_transform(
            smooth.astype(float), factors, center * (1 - factors), order=1, mode="nearest"
        )
    found = levels(smooth, filter={"blur": {"mode": "zoom", "value": 50}})
    assert (found - expected / count).std() < 0.8


@SHAPES
def test_pixellate_100_has_cells_of_a_tenth_of_r(pixels: Pixels) -> None:
    found = levels(pixels, filter={"pixellate": {"value": 50}})
    height, width = (side // 10 for side in pixels.shape[:2])
    cells = pixels.reshape(height, 10, width, 10, 3).mean(axis=(1, 3))
    assert np.abs(found - cells.repeat(10, axis=0).repeat(10, axis=1)).max() < 0.01


def test_halftone_100_has_dots_a_twenty_fifth_of_r_apart() -> None:
    gray = np.full((500, 700), 120, np.uint8)
    found = looks(gray, filter={"halftone": {"value": 50}})
    repeats = [shift for shift in range(1, 60) if np.array_equal(found[:, :-shift], found[:, shift:])]
    assert repeats[0] == round(0.04 * 500 * 0.5 * np.sqrt(2))


@SHAPES
def test_vignette_takes_its_value_from_the_corners_and_starts_at_its_radius(pixels: Pixels) -> None:
    found = levels(pixels, filter={"vignette": {"value": 70, "radius": 40}})
    y, x = (np.arange(side) - (side - 1) / 2 for side in pixels.shape[:2])
    r = np.hypot(x, y[:, None]) / np.hypot(x[0], y[0])
    t = np.clip((r - 0.4) / 0.6, 0, 1)
    assert np.abs(found - pixels * (1 - 0.7 * t * t * (3 - 2 * t))[..., None]).max() < 0.1


def test_sharpen_adds_luma_detail_finer_than_eight_ten_thousandths_of_r() -> None:
    pixels = mosaic(1500, 1400)
    y = luma(pixels.astype(float))[..., 0]
    detail = (y - gaussian(y, 0.0008 * 1400))[..., None]
    for value, amount in ((40, 1.5 * 0.4), (-50, -0.5)):
        expected = np.clip(pixels + amount * detail, 0, 255)
        assert np.abs(levels(pixels, adjust={"sharpen": value}) - expected).max() < 0.15


@SHAPES
def test_unsharp_adds_detail_finer_than_four_thousandths_of_r(pixels: Pixels) -> None:
    expected = np.clip(pixels + 0.7 * (pixels - gaussian(pixels, 0.004 * 200)), 0, 255)
    assert np.abs(levels(pixels, adjust={"unsharp": 70}) - expected).max() < 0.15


def test_r_is_that_of_the_frame_at_that_stage() -> None:
    request = {"resize": {"width": 150, "height": 100}}
    small = looks(WIDE, **request)
    assert np.array_equal(
        looks(WIDE, **request, filter={"pixellate": {"value": 50}}),
        looks(small, filter={"pixellate": {"value": 50}}),
    )


FILTERS: dict[str, dict[str, Any]] = {
    "isolate": {"color": "C03010", "threshold": 0.1},
    "monochrome": {"value": 70, "color": "3060FF"},
    "sepia": {"value": 60},
    "duotone": {"light": "FFE8A0", "dark": "102050"},
    "blur": {"mode": "gaussian", "value": 30},
    "pixellate": {"value": 40},
    "vignette": {"value": 90, "radius": 20},
    "halftone": {"value": 60},
}
"""In the order in which an object of them is applied."""


@pytest.mark.parametrize(
    ("first", "second"), list(zip(FILTERS, list(FILTERS)[1:], strict=False)), ids=lambda name: str(name)
)
def test_an_object_of_filters_is_applied_in_the_documented_order(first: str, second: str) -> None:
    one, other = {first: FILTERS[first]}, {second: FILTERS[second]}
    in_order = looks(WIDE, filter=[one, other])
    assert np.array_equal(looks(WIDE, filter={**other, **one}), in_order)
    assert not np.array_equal(looks(WIDE, filter=[other, one]), in_order)


def test_an_array_of_filters_is_applied_in_its_order() -> None:
    isolate = Isolate(color=Color(0xC0, 0x30, 0x10), threshold=0.1)
    monochrome, sepia = Monochrome(value=70, color=Color(0x30, 0x60, 0xFF)), Sepia(value=60)
    items = [{name: FILTERS[name]} for name in ("isolate", "monochrome", "sepia", "isolate")]
    classes = [isolate, monochrome, sepia, isolate]
    for documents, operations in ((items, classes), (items[::-1], classes[::-1])):
        expected = exact(COLORS, {}, *operations) * 255
        assert np.abs(looks(COLORS, filter=documents) - expected).max() <= 1


MARK = np.zeros((20, 30, 4), np.uint8)
MARK[...] = (0, 200, 40, 255)
PLACE = np.s_[170:190, 10:40]


def marked(**request: Any) -> Pixels:
    document = {**request, "output": {"format": "png"}}
    document["watermark"] = {"id": "mark", "x": 10, "y": 170, **request.get("watermark", {})}
    return decode("png", imgsvc.process(WIDE, document, watermarks={"mark": MARK}).data or b"")[0]


def test_a_watermark_is_laid_with_its_opacity() -> None:
    found = signed(marked(watermark={"opacity": 0.3}))
    expected = 0.3 * MARK[..., :3] + 0.7 * WIDE[PLACE]
    assert np.abs(found[PLACE] - expected).max() <= 1
    found[PLACE] = WIDE[PLACE]
    assert np.array_equal(found, WIDE)


def test_a_watermark_comes_after_adjustments_and_filters_and_before_opacity() -> None:
    filters = {"blur": {"mode": "gaussian", "value": 50}, "monochrome": {"value": 100, "color": "F00"}}
    found = marked(adjust={"invert": True, "opacity": 0.5}, filter=filters)
    assert (found[PLACE][..., :3] == MARK[..., :3]).all()
    assert (found[..., 3] == 128).all()
    assert (np.delete(found[..., 1], np.s_[170:190], axis=0) == 0).all()


def test_a_watermark_lies_on_padding_and_border_too() -> None:
    found = marked(padding={"size": 8, "background": "00F"}, border={"size": 4, "color": "F00"})
    assert found.shape == (224, 324, 3)
    assert (found[PLACE] == MARK[..., :3]).all()
    assert (found[100, :4] == (255, 0, 0)).all()
    assert (found[100, 4:10] == (0, 0, 255)).all()


def test_adjustments_have_their_order_whatever_the_order_of_the_keys() -> None:
    values = {"invert": True, "hue": 60, "vibrance": 50, "gamma": 30, "contrast": 40, "exposure": 20}
    expected = exact(COLORS, {}, **values) * 255
    assert np.abs(looks(COLORS, adjust=values) - expected).max() <= 1
    forward = dict(reversed(list(values.items())))
    assert np.array_equal(looks(COLORS, adjust=forward), looks(COLORS, adjust=values))


def test_sharpening_comes_after_the_curves_and_before_inversion() -> None:
    steps: list[dict[str, Any]] = [{"contrast": 80}, {"sharpen": 100}, {"unsharp": 100}, {"invert": True}]
    pixels = deep(WIDE)
    for step in steps:
        pixels = looks(pixels, adjust=step)
    together = looks(
        deep(WIDE), adjust={name: value for step in reversed(steps) for name, value in step.items()}
    )
    assert np.abs(unit(together) - unit(pixels)).max() < 0.02 / 255
