from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

from imgsvc_core.pixels.spatial.sharpen import sharpen, sharpen_gain, sharpen_sigma
from tests.support.golden import GoldenCheck
from tests.support.photos import as_vips, astronaut, coffee, cut_out, deep
from tests.support.spatial import (
    KINDS,
    assert_deep,
    assert_flat_is_exact,
    assert_keeps_metadata,
    assert_same_kind,
    assert_streams,
    every_kind,
    pictures,
)

LUMA = np.array([0.213, 0.715, 0.072])


def blurred_luma(pixels: np.ndarray, sigma: float) -> np.ndarray:
    return ndimage.gaussian_filter(pixels @ LUMA, sigma, mode="nearest", truncate=6)


@pytest.mark.parametrize("gain", [-1, -0.4, 0.3, 1.5])
@pytest.mark.parametrize("sigma", [0.5, 0.8, 1.6, 2.4, 5.0])
def test_agrees_with_the_formula(gain: float, sigma: float) -> None:
    pixels = coffee()
    detail = pixels @ LUMA - blurred_luma(pixels, sigma)
    expected = np.clip(pixels + gain * detail[:, :, np.newaxis], 0, 255)
    assert np.abs(sharpen(as_vips(pixels), gain, sigma).numpy() - expected).max() < 0.7
    fine = sharpen(as_vips(deep(pixels)), gain, sigma).numpy() / 257
    assert np.abs(fine - expected).max() < 0.2


def test_minus_hundred_is_softened_luma() -> None:
    pixels = np.clip(coffee(), 60, 190)
    result = sharpen(as_vips(deep(pixels)), sharpen_gain(-100), 2.0).numpy() / 257
    np.testing.assert_allclose(result @ LUMA, blurred_luma(pixels, 2.0), atol=0.2)


def test_color_differences_are_kept() -> None:
    pixels = np.clip(coffee(), 60, 190).astype(int)
    result = sharpen(as_vips(pixels.astype(np.uint8)), 0.5, 1.0).numpy().astype(int)
    change = np.where((result > 0) & (result < 255), result - pixels, -1)
    unclipped = ((result > 0) & (result < 255)).all(axis=2)
    assert (np.ptp(change[unclipped], axis=1) == 0).all()


def test_continuous_at_zero() -> None:
    image = as_vips(coffee())
    for value in (-1, 1):
        result = sharpen(image, sharpen_gain(value), sharpen_sigma(400)).numpy()
        assert np.abs(result - coffee().astype(int)).max() <= 2


def test_more_is_sharper() -> None:
    def sharpness(value: int) -> float:
        result = sharpen(as_vips(astronaut()), sharpen_gain(value), sharpen_sigma(512))
        return float(np.abs(np.diff(result.numpy().astype(float), axis=1)).mean())

    found = [sharpness(value) for value in (-100, -50, 0, 20, 60, 100)]
    assert found == sorted(found)
    assert found[-1] > 1.2 * found[2] > 1.2 * found[0]


@pytest.mark.parametrize(("extent", "sigma"), [(256, 0.5), (2048, 0.0008 * 2048)])
def test_only_fine_detail_becomes_sharper(extent: int, sigma: float) -> None:
    def change(period: float) -> float:
        wave = 128 + 60 * np.cos(2 * np.pi * np.arange(extent) / period)
        pixels = np.tile(wave.round().astype(np.uint8)[None, :, None], (16, 1, 3))
        result = sharpen(as_vips(pixels), sharpen_gain(100), sharpen_sigma(extent)).numpy()
        return float(np.abs(result.astype(int) - pixels)[:, 8:-8].max())

    assert change(60 * sigma) <= 3
    assert change(4 * sigma) > 30


@pytest.mark.parametrize("gain", [-1, 0.7, 1.5])
def test_a_flat_field_is_exact(gain: float) -> None:
    for sigma in (0.5, 2.4, 9.0):
        assert_flat_is_exact(lambda image, sigma=sigma: sharpen(image, gain, sigma))


def test_neutral_is_the_same_image() -> None:
    image = as_vips(astronaut())
    assert sharpen(image, sharpen_gain(0), sharpen_sigma(512)) is image


def test_alpha_is_kept_and_hidden_colors_have_no_part() -> None:
    pixels = cut_out()
    np.testing.assert_array_equal(sharpen(as_vips(pixels), 1.5, 2.0).numpy()[:, :, 3], pixels[:, :, 3])
    pixels[:, :, :3] = np.where(pixels[:, :, 3:] > 0, 120, 0)
    seen = sharpen(as_vips(pixels), 1.5, 2.0).numpy()[pixels[:, :, 3] > 0]
    assert (seen[:, :3] == 120).all()


@every_kind
def test_keeps_the_kind(kind: str) -> None:
    image = as_vips(KINDS[kind]())
    assert_same_kind(sharpen(image, 1.0, 1.2), image)


@given(pictures(), st.floats(-1, 1.5), st.floats(0, 8))
def test_any_size_and_value(pixels: np.ndarray, gain: float, sigma: float) -> None:
    image = as_vips(pixels)
    assert_same_kind(sharpen(image, gain, sigma), image)


def test_metadata_frames_and_streams() -> None:
    assert_keeps_metadata(lambda image: sharpen(image, 1.0, 2.0))
    assert_streams(lambda image: sharpen(image, 1.0, 2.0))


def test_deep_pictures_are_computed_deep() -> None:
    assert_deep(lambda image: sharpen(image, 0.7, 1.0))


def test_golden(check_golden: GoldenCheck) -> None:
    check_golden("sharpen", sharpen(as_vips(astronaut()[60:160, 180:280]), sharpen_gain(100), 0.7))
