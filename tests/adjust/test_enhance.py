"""``auto.enhance``: photographs that were spoiled come nearer to what they were."""

from __future__ import annotations

import numpy as np
import pytest
import pyvips
from skimage.color import deltaE_ciede2000, rgb2lab

from imgsvc_core.color.enhance import measure
from imgsvc_core.color.steps import VibranceStep, adjustments
from imgsvc_core.pixels.pointwise import apply_blocks
from imgsvc_core.plan.folding import LutBlock, MatrixBlock, fold
from imgsvc_core.spec import Adjust
from tests.adjust.exact import decode, encode
from tests.support.photos import Pixels, as_pixels, as_vips, deep, photo, ramp

CASTS = {
    "warm": (1.25, 0.97, 0.7),
    "cool": (0.75, 1.02, 1.35),
    "green": (0.9, 1.05, 0.85),
    "magenta": (1.15, 0.93, 1.2),
}
PHOTOS = ("astronaut", "cat", "coffee", "rocket", "retina")


def spoiled(pixels: Pixels, gain: float | tuple[float, ...]) -> Pixels:
    light = decode(pixels / 255) * np.asarray(gain)
    result: Pixels = np.rint(np.clip(encode(light), 0, 1) * 255).astype(np.uint8)
    return result


def enhanced(pixels: Pixels) -> Pixels:
    image = as_vips(pixels)
    gray = image.bands < 3
    return as_pixels(apply_blocks(image, fold(measure(image), gray=gray)))


def difference(a: Pixels, b: Pixels) -> float:
    """Mean CIEDE2000."""
    return float(deltaE_ciede2000(rgb2lab(a), rgb2lab(b)).mean())  # type: ignore[no-untyped-call]


def before_and_after(name: str, gain: float | tuple[float, ...]) -> tuple[float, float]:
    original = photo(name)[::4, ::4]
    bad = spoiled(original, gain)
    return difference(bad, original), difference(enhanced(bad), original)


@pytest.mark.parametrize("depth", [8, 16])
def test_a_grey_ramp_is_unchanged(depth: int) -> None:
    tones = ramp(256, 8, depth=depth)
    assert measure(as_vips(tones)) == ()
    assert measure(as_vips(np.dstack([tones] * 3))) == ()


@pytest.mark.parametrize("tone", [0, 1, 90, 255])
def test_a_flat_picture_keeps_its_color(tone: int) -> None:
    flat = np.full((20, 20, 3), tone, np.uint8)
    assert (enhanced(flat) == flat).all()


@pytest.mark.parametrize("name", PHOTOS)
@pytest.mark.parametrize("stops", [-1.5, -1])
def test_underexposed_photographs_come_much_nearer(name: str, stops: float) -> None:
    before, after = before_and_after(name, 2**stops)
    assert after < 0.5 * before


@pytest.mark.parametrize("name", PHOTOS)
@pytest.mark.parametrize("stops", [1, 1.5])
def test_overexposed_photographs_come_nearer(name: str, stops: float) -> None:
    before, after = before_and_after(name, 2**stops)
    assert after < before


@pytest.mark.parametrize("cast", CASTS)
def test_casts_come_nearer(cast: str) -> None:
    before, after = before_and_after("astronaut", CASTS[cast])
    assert after < 0.75 * before


@pytest.mark.parametrize("name", ["coffee", "retina"])
@pytest.mark.parametrize("cast", CASTS)
def test_where_no_cast_is_sure_nothing_gets_worse(name: str, cast: str) -> None:
    before, after = before_and_after(name, CASTS[cast])
    assert after <= before + 0.02


def test_a_good_photograph_is_hardly_changed() -> None:
    original = photo("astronaut")[::2, ::2]
    assert difference(enhanced(original), original) < 1.5


def test_grey_photographs_stay_grey() -> None:
    dark = spoiled(photo("camera"), 0.4)
    result = enhanced(dark)
    assert result.shape == dark.shape
    before, after = (np.abs(photo("camera") - one.astype(float)).mean() for one in (dark, result))
    assert after < 0.6 * before


def test_measures_16_bits_as_8() -> None:
    dark = spoiled(photo("coffee"), 0.4)
    labels = [[step.label for step in measure(as_vips(kind(dark)))] for kind in (np.copy, deep)]
    assert labels[0] == labels[1]


def test_transparent_pixels_do_not_count() -> None:
    dark = spoiled(photo("astronaut"), 0.4)
    alpha = np.full(dark.shape[:2], 255, np.uint8)
    alpha[:256] = 0
    white_above = np.dstack([dark, alpha])
    white_above[:256, :, :3] = 255
    assert measure(as_vips(white_above)) == measure(as_vips(np.ascontiguousarray(dark[256:])))


def test_a_fully_transparent_picture_is_left_alone() -> None:
    assert measure(as_vips(np.zeros((9, 9, 4), np.uint8))) == ()


def test_the_first_frame_of_an_animation_counts() -> None:
    dark = spoiled(photo("coffee"), 0.4)
    strip = as_vips(np.concatenate([dark, photo("coffee")])).copy()
    strip.set_type(pyvips.GValue.gint_type, "page-height", dark.shape[0])
    assert measure(strip) == measure(as_vips(dark))


def test_folds_with_the_adjustments() -> None:
    dull = spoiled(
        as_pixels(apply_blocks(as_vips(photo("cat")), fold(adjustments(Adjust(saturation=-60))))), 0.5
    )
    steps = measure(as_vips(dull))
    assert isinstance(steps[-1], VibranceStep)
    lut, matrix = fold((*steps, *adjustments(Adjust(saturation=20, invert=True))))
    assert isinstance(lut, LutBlock)
    assert isinstance(matrix, MatrixBlock)
