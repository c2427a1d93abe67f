"""Filters of libvips and sharp, which dialects ask for: what those libraries themselves make of a picture."""

from __future__ import annotations

import numpy as np
import pytest
import pyvips
from scipy import ndimage  # type: ignore[import-untyped]

import imgsvc_core as imgsvc
from imgsvc_core.spec import Color, Filter
from imgsvc_core.spec.internal import LightnessSharpen
from imgsvc_core.spec.vips_filters import (
    ChromaTint,
    LocalEqualize,
    Median,
    Modulate,
    Morphology,
    Negate,
    Stretch,
    Threshold,
    WithoutWhite,
)
from tests.support import photos
from tests.support.photos import Pixels


def filtered(pixels: Pixels, *filters: Filter) -> Pixels:
    spec = imgsvc.Spec(filter=filters, output={"format": "png"})
    return np.asarray(imgsvc.process(pixels, spec).to_pil())


def difference(first: Pixels, second: Pixels) -> float:
    return float(np.abs(first.astype(float) - second).mean())


CAT = photos.photo("cat")[:200, :300]
THEIRS = pyvips.Image.new_from_array(CAT)


def lch(factors: list[float], addends: list[float]) -> Pixels:
    changed = THEIRS.colourspace("lch").linear(factors, addends).colourspace("srgb")
    made: Pixels = changed.cast("uchar").numpy()
    return made


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        (Median(size=5), lambda: THEIRS.median(5).numpy()),
        (Modulate(brightness=1.5, hue=90), lambda: lch([1.5, 1, 1], [0, 0, 90])),
        (Modulate(saturation=0.3, lightness=10), lambda: lch([1, 0.3, 1], [10, 0, 0])),
        (LocalEqualize(width=20, height=10, slope=5), lambda: THEIRS.hist_local(20, 10, max_slope=5).numpy()),
        (Negate(), lambda: 255 - CAT),
        (Threshold(level=128, gray=False), lambda: np.where(CAT >= 128, 255, 0)),
        (
            LightnessSharpen(sigma=2, flat=1, jagged=2, bend=3, most_brighter=5, most_darker=6),
            lambda: THEIRS.sharpen(sigma=2, m1=1, m2=2, x1=3, y2=5, y3=6).numpy(),
        ),
    ],
)
def test_pixels_are_those_of_libvips(filter: Filter, expected: object) -> None:
    assert callable(expected)
    theirs = expected()
    assert difference(filtered(CAT, filter), theirs) < 0.6
    assert difference(CAT, theirs) > 1


def test_a_threshold_of_the_gray_picture_is_the_same_for_all_channels() -> None:
    made = filtered(CAT, Threshold(level=128))
    gray = THEIRS.colourspace("b-w").numpy()
    assert np.unique(made).tolist() == [0, 255]
    assert difference(made.reshape(*gray.shape[:2], -1)[:, :, 0], np.where(gray >= 128, 255, 0)) < 1


def test_lightness_is_stretched_over_the_whole_range() -> None:
    dull = (CAT // 3 + 60).astype(np.uint8)
    made = filtered(dull, Stretch(lower=1, upper=99))
    luma = pyvips.Image.new_from_array(made).colourspace("lab")[0]
    assert luma.min() < 3
    assert luma.max() > 97
    flat = np.full((20, 20, 3), 90, np.uint8)
    assert (filtered(flat, Stretch()) == 90).all()


def test_a_tint_keeps_lightness_black_and_white() -> None:
    ramp = np.arange(256, dtype=np.uint8)[None, :, None].repeat(3, 2)
    made = filtered(ramp, ChromaTint(color=Color(255, 0, 0)))
    assert made[0, 0].tolist() == [0, 0, 0]
    assert made[0, 255].tolist() == [255, 255, 255]
    red, green, _ = made[0, 128].astype(int)
    assert red > green + 50
    lightness = pyvips.Image.new_from_array(made).colourspace("lab")[0].numpy()
    wanted = pyvips.Image.new_from_array(ramp).colourspace("lab")[0].numpy()
    assert abs(lightness[0, 20:100] - wanted[0, 20:100]).max() < 6


def test_a_tint_colors_a_gray_picture() -> None:
    gray = np.full((10, 10), 128, np.uint8)
    assert filtered(gray, ChromaTint(color=Color(255, 0, 0))).shape == (10, 10, 3)


@pytest.mark.parametrize("mode", ["dilate", "erode"])
def test_morphology_is_that_of_sharp(mode: str) -> None:
    dots = np.full((40, 40, 3), 255, np.uint8)
    dots[15:25, 10:30] = 0
    made = filtered(dots, Morphology(mode=mode, width=3))
    mask = pyvips.Image.new_from_array([[0] * 7] * 7)
    assert (made == pyvips.Image.new_from_array(dots).morph(mask, mode).invert().numpy()).all()
    assert (made != dots).any()


def test_white_becomes_transparent() -> None:
    corner = np.full((10, 10, 3), 255, np.uint8)
    corner[:5] = 200, 255, 255
    made = filtered(corner, WithoutWhite())
    assert made[0, 0].tolist() == [200, 255, 255, 255]
    assert made[9, 9].tolist() == [255, 255, 255, 0]
    faint = filtered(np.dstack([corner, np.full((10, 10), 90, np.uint8)]), WithoutWhite())
    assert (faint[0, 0, 3], faint[9, 9, 3]) == (90, 0)


def test_alpha_stays_unless_it_is_negated() -> None:
    alpha = np.full((*CAT.shape[:2], 1), 200, np.uint8)
    clear = np.dstack([CAT, alpha])
    for filter in (Modulate(hue=40), Negate(), Threshold(level=99), Stretch(), Median(size=3)):
        assert (filtered(clear, filter)[:, :, 3] == 200).all()
    assert (filtered(clear, Negate(alpha=True))[:, :, 3] == 55).all()


@pytest.mark.parametrize("filter", [Median(size=1), Modulate(), Morphology(mode="erode", width=0)])
def test_neutral_values_change_nothing(filter: Filter) -> None:
    assert filter.is_neutral
    assert imgsvc.Spec(filter=[filter]).simplified().filter == ()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_gray_and_deep_pictures(dtype: type) -> None:
    scale = 257 if dtype is np.uint16 else 1
    for pixels in (CAT, CAT[:, :, 1]):
        deep = (pixels.astype(int) * scale).astype(dtype)
        for filter in (Modulate(brightness=0.5), Stretch(), LocalEqualize(width=9, height=9), Median(size=3)):
            made, expected = filtered(deep, filter), filtered(pixels, filter)
            assert difference(made // (made.max() // 256 + 1 if made.dtype != np.uint8 else 1), expected) < 1


@pytest.mark.parametrize(("width", "height"), [(1, 1), (2, 2), (4, 40), (40, 3)])
def test_medians_of_windows_that_are_larger_than_the_picture(width: int, height: int) -> None:
    pixels = np.ascontiguousarray(CAT[:height, :width])
    expected = ndimage.median_filter(pixels, size=(5, 5, 1), mode="nearest")
    assert np.array_equal(filtered(pixels, Median(size=5)), expected)
