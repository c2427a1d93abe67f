"""Filters in pixels, which dialects ask for: what other servers do with libvips."""

from __future__ import annotations

import math

import numpy as np
import pytest
import pyvips

import imgsvc_core as imgsvc
from imgsvc_core.spec import Filter
from imgsvc_core.spec.internal import GaussianBlur, LightnessSharpen, Mosaic
from imgsvc_urls.dialects.building import libvips_blur, truncated_blur
from tests.support import photos

Pixels = photos.Pixels


def filtered(pixels: Pixels, *filters: Filter) -> Pixels:
    spec = imgsvc.Spec(filter=filters, output={"format": "png"})
    return np.asarray(imgsvc.process(pixels, spec).to_pil())


def difference(first: Pixels, second: Pixels) -> float:
    return float(np.abs(first.astype(float) - second).mean())


@pytest.mark.parametrize("sigma", [0.8, 2, 7.5, 20, 60, 150])
def test_blur_is_as_strong_as_that_of_libvips(sigma: float) -> None:
    astronaut = photos.astronaut()
    theirs = pyvips.Image.new_from_array(astronaut).gaussblur(sigma).numpy()
    ours = filtered(astronaut, libvips_blur(sigma))
    assert difference(ours, theirs) < 2.2  # their weights are whole numbers up to 20
    assert ours.std() == pytest.approx(theirs.std(), rel=0.015)
    uncut = filtered(astronaut, truncated_blur(sigma, math.ceil(4 * sigma)))
    assert difference(uncut, theirs) > difference(ours, theirs)


def test_a_mask_of_one_pixel_blurs_nothing() -> None:
    assert libvips_blur(0.5).is_neutral
    assert truncated_blur(3, 0).is_neutral
    assert libvips_blur(0).is_neutral


@pytest.mark.parametrize("sigma", [0.5, 1.5, 4])
def test_sharpening_is_that_of_libvips(sigma: float) -> None:
    cat = photos.photo("cat")
    theirs = pyvips.Image.new_from_array(cat).sharpen(sigma=sigma).numpy()
    assert difference(filtered(cat, LightnessSharpen(sigma=sigma)), theirs) < 0.01
    assert difference(theirs, cat) > 0.2


def test_sharpening_keeps_alpha() -> None:
    cat = photos.photo("cat")
    alpha = np.linspace(0, 255, cat.shape[1]).astype(np.uint8)[None, :].repeat(cat.shape[0], 0)
    made = filtered(np.dstack([cat, alpha]), LightnessSharpen(sigma=1.5))
    assert (made[:, :, 3] == alpha).all()
    opaque = filtered(cat, LightnessSharpen(sigma=1.5))
    assert difference(made[:, -50:, :3], opaque[:, -50:]) < 2


@pytest.mark.parametrize("cell", [2, 7, 64, 1000])
def test_cells_begin_at_the_top_left_corner(cell: int) -> None:
    cat = photos.photo("cat")
    made, size = filtered(cat, Mosaic(cell=cell)), min(cell, max(cat.shape))
    assert made.shape == cat.shape
    for top in range(0, cat.shape[0] - size, size):
        for left in range(0, cat.shape[1] - size, size):
            at = np.s_[top : top + size, left : left + size]
            assert (made[at] == made[top, left]).all()
            assert np.abs(made[top, left] - cat[at].reshape(-1, 3).mean(0)).max() <= 1.5
    assert len(np.unique(made[0], axis=0)) <= math.ceil(cat.shape[1] / size)


def test_the_last_cells_mirror_what_they_lack() -> None:
    row = np.arange(0, 250, 25, dtype=np.uint8)[None, :].repeat(8, 0)
    made = filtered(row, Mosaic(cell=8))
    assert made[0, 8:].tolist() == [round(np.mean([200, 225, 225, 200, 175, 150, 125, 100]))] * 2


def test_transparent_colors_do_not_enter_cells() -> None:
    pixels = np.zeros((8, 8, 4), np.uint8)
    pixels[:, :4] = (200, 100, 0, 255)
    made = filtered(pixels, Mosaic(cell=8))
    assert made[0, 0, :3].tolist() == [200, 100, 0]
    assert made[0, 0, 3] in (127, 128)


@pytest.mark.parametrize("sigma", [5, 40])
def test_straight_blur_keeps_colors_and_alpha_apart(sigma: int) -> None:
    cat = photos.photo("cat")
    alpha = np.zeros(cat.shape[:2], np.uint8)
    alpha[:, 200:] = 255
    made = filtered(np.dstack([cat, alpha]), GaussianBlur(sigma=sigma, unweighted=True))
    assert difference(made[..., :3], filtered(cat, GaussianBlur(sigma=sigma))) < 0.5
    usual = filtered(np.dstack([cat, alpha]), GaussianBlur(sigma=sigma))
    assert difference(made[:, :150, :3], usual[:, :150, :3]) > 5


def test_the_widest_blur_of_libvips_ends_at_its_largest_sigma() -> None:
    """A wider one would need gigabytes for a small picture."""
    assert libvips_blur(10.0**18) == libvips_blur(1000)
    assert libvips_blur(999).sigma < libvips_blur(1000).sigma < 1000
