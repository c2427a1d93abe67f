from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

from imgsvc_core.pixels.spatial.sharpen import adjust_unsharp, unsharp, unsharp_sigma
from imgsvc_core.plan.filter_works import Unsharp
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


@pytest.mark.parametrize("gain", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("sigma", [0.6, 2.0, 4.0, 12.0, 30.0])
def test_agrees_with_the_formula(gain: float, sigma: float) -> None:
    pixels = coffee().astype(float)
    blurred = ndimage.gaussian_filter(pixels, (sigma, sigma, 0), mode="nearest", truncate=6)
    expected = np.clip(pixels + gain * (pixels - blurred), 0, 255)
    assert np.abs(unsharp(as_vips(coffee()), gain, sigma).numpy() - expected).max() < 0.5 + 1.5 * gain
    fine = unsharp(as_vips(deep(coffee())), gain, sigma).numpy() / 257
    assert np.abs(fine - expected).max() < 0.75


def test_continuous_at_zero() -> None:
    result = unsharp(as_vips(coffee()), 0.01, unsharp_sigma(400)).numpy()
    assert np.abs(result - coffee().astype(int)).max() <= 2


def test_a_value_is_percent_of_the_difference() -> None:
    found = adjust_unsharp(as_vips(coffee()), Unsharp(90)).numpy()
    assert np.array_equal(found, unsharp(as_vips(coffee()), 0.9, unsharp_sigma(400)).numpy())


def test_more_is_more_contrast() -> None:
    found = [
        unsharp(as_vips(astronaut()), value / 100, unsharp_sigma(512)).numpy().std()
        for value in (0, 20, 60, 100)
    ]
    assert found == sorted(found)
    assert found[-1] > 1.01 * found[0]


@pytest.mark.parametrize("gain", [0.3, 1.0])
def test_a_flat_field_is_exact(gain: float) -> None:
    for sigma in (0.6, 4.0, 30.0):
        assert_flat_is_exact(lambda image, sigma=sigma: unsharp(image, gain, sigma))


def test_neutral_is_the_same_image() -> None:
    image = as_vips(astronaut())
    assert unsharp(image, 0, unsharp_sigma(512)) is image


def test_alpha_is_kept_and_hidden_colors_have_no_part() -> None:
    pixels = cut_out()
    np.testing.assert_array_equal(unsharp(as_vips(pixels), 1.0, 5.0).numpy()[:, :, 3], pixels[:, :, 3])
    pixels[:, :, :3] = np.where(pixels[:, :, 3:] > 0, 120, 0)
    seen = unsharp(as_vips(pixels), 1.0, 5.0).numpy()[pixels[:, :, 3] > 0]
    assert (seen[:, :3] == 120).all()


@every_kind
def test_keeps_the_kind(kind: str) -> None:
    image = as_vips(KINDS[kind]())
    assert_same_kind(unsharp(image, 0.8, 3.2), image)


@given(pictures(), st.floats(0, 1), st.floats(0, 40))
def test_any_size_and_value(pixels: np.ndarray, gain: float, sigma: float) -> None:
    image = as_vips(pixels)
    assert_same_kind(unsharp(image, gain, sigma), image)


def test_metadata_frames_and_streams() -> None:
    assert_keeps_metadata(lambda image: unsharp(image, 1.0, 6.0))
    assert_streams(lambda image: unsharp(image, 1.0, 6.0))


def test_deep_pictures_are_computed_deep() -> None:
    assert_deep(lambda image: unsharp(image, 0.7, 2.0))


def test_golden(check_golden: GoldenCheck) -> None:
    check_golden("unsharp", unsharp(as_vips(astronaut()[60:160, 180:280]), 1.0, 2.0))
