from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

from imgsvc_core.pixels.spatial.motion import motion_blur, motion_length
from tests.support.golden import GoldenCheck
from tests.support.photos import as_vips, astronaut, coffee, deep
from tests.support.spatial import (
    KINDS,
    assert_deep,
    assert_flat_is_exact,
    assert_keeps_metadata,
    assert_no_halo,
    assert_same_kind,
    assert_streams,
    every_kind,
    pictures,
)


@pytest.mark.parametrize(("angle", "axis"), [(0, 1), (90, 0)])
@pytest.mark.parametrize("length", [3, 7, 31, 127, 301])
def test_upright_blurs_are_box_filters(angle: float, axis: int, length: int) -> None:
    pixels = coffee()
    expected = ndimage.uniform_filter1d(pixels.astype(float), length, axis=axis, mode="nearest")
    assert np.abs(motion_blur(as_vips(pixels), length, angle).numpy() - expected).max() < 2
    fine = motion_blur(as_vips(deep(pixels)), length, angle).numpy() / 257
    assert np.abs(fine - expected).max() < (0.01 if length < 128 else 1.0)


@pytest.mark.parametrize("angle", [17, 30, 45, 77, 120, 160])
@pytest.mark.parametrize("length", [9, 40, 120])
def test_agrees_with_the_mean_of_shifted_pictures(angle: float, length: int) -> None:
    pixels = coffee()[100:300, 150:400, 1].astype(float)
    steps = (np.arange(length) + 0.5) / length - 0.5
    dx, dy = np.cos(np.radians(angle)), -np.sin(np.radians(angle))
    expected = np.mean(
        [ndimage.shift(pixels, (s * length * dy, s * length * dx), order=1, mode="nearest") for s in steps],
        axis=0,
    )
    error = (
        motion_blur(as_vips(coffee()[100:300, 150:400, 1]), length, angle).numpy().reshape(pixels.shape)
        - expected
    )
    assert error.std() < 1.2
    assert abs(error.mean()) < 0.1


@pytest.mark.parametrize("angle", [5, 17, 37, 60, 77, 101, 144, 160])
@pytest.mark.parametrize("length", [100, 150, 210, 333])
def test_long_streaks_have_their_angle_and_length(angle: float, length: int) -> None:
    """By the moments of what becomes of a dot: a line of length l has the variance l^2 / 12."""
    middle = length + 20
    dot = np.zeros((2 * middle + 1, 2 * middle + 1), np.uint16)
    dot[middle, middle] = 65535
    light = motion_blur(as_vips(dot), length, angle).numpy().reshape(dot.shape).astype(float)
    light /= light.sum()
    y, x = np.mgrid[middle : -middle - 1 : -1, -middle : middle + 1]
    covariance = np.array([[(light * x * x).sum(), (light * x * y).sum()], [0, (light * y * y).sum()]])
    variances, axes = np.linalg.eigh(covariance, UPLO="U")
    found = np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))
    assert abs((found - angle + 90) % 180 - 90) < 0.3
    assert np.sqrt(12 * variances[1]) == pytest.approx(length, rel=0.006)


def test_angles_run_counter_clockwise_from_the_right() -> None:
    dot = np.zeros((61, 61), np.uint8)
    dot[30, 30] = 255
    streak = motion_blur(as_vips(dot), 31, 45).numpy().reshape(61, 61)
    assert streak[20, 40] > 0
    assert streak[40, 20] > 0
    assert streak[20, 20] == streak[40, 40] == 0


@pytest.mark.parametrize("length", [12, 75])
@given(angle=st.integers(0, 180))
def test_half_a_turn_makes_no_difference(length: float, angle: int) -> None:
    image = as_vips(astronaut()[200:260, 200:290])
    np.testing.assert_array_equal(
        motion_blur(image, length, angle).numpy(), motion_blur(image, length, angle + 180).numpy()
    )


def test_upright_blurs_are_one_dimensional() -> None:
    random = np.random.default_rng(5)
    row = np.repeat(random.integers(0, 256, (1, 90), np.uint8), 70, axis=0)
    for length in (5, 40, 200):
        np.testing.assert_array_equal(motion_blur(as_vips(row), length, 90).numpy().reshape(row.shape), row)
        np.testing.assert_array_equal(
            motion_blur(as_vips(row.T), length, 0).numpy().reshape(row.T.shape), row.T
        )


@pytest.mark.parametrize("length", [1.5, 20.0, 64.0, 500.0])
@pytest.mark.parametrize("angle", [0, 33, 90])
def test_a_flat_field_is_exact(length: float, angle: float) -> None:
    assert_flat_is_exact(lambda image: motion_blur(image, length, angle), size=(31, 23))


@pytest.mark.parametrize("length", [20.0, 150.0])
def test_the_mean_is_kept(length: float) -> None:
    pixels = np.pad(astronaut(), ((100, 100), (100, 100), (0, 0)))
    result = motion_blur(as_vips(pixels), length, 60).numpy()
    assert result.mean() == pytest.approx(pixels.mean(), abs=0.1)


def test_long_streaks_have_no_seams() -> None:
    """A single line, smeared across, is a bar of one brightness."""
    line = np.zeros((400, 400), np.uint8)
    line[:, 200] = 250
    for angle, tolerance in ((0, 0.01), (30, 0.15)):
        bar = motion_blur(as_vips(deep(line)), 150, angle).numpy().reshape(400, 400)[200, 145:255] / 257
        assert bar.std() < tolerance * bar.mean()


def test_neutral_is_the_same_image() -> None:
    image = as_vips(astronaut())
    assert motion_blur(image, motion_length(0, 512), 90) is image


def test_no_dark_halo_around_transparency() -> None:
    for length in (8.0, 90.0):
        assert_no_halo(lambda image, length=length: motion_blur(image, length, 30))


@every_kind
@pytest.mark.parametrize("length", [6.0, 90.0])
def test_keeps_the_kind(kind: str, length: float) -> None:
    image = as_vips(KINDS[kind]())
    assert_same_kind(motion_blur(image, length, 55), image)


@given(pictures(), st.floats(0, 80), st.floats(0, 360))
def test_any_size_and_value(pixels: np.ndarray, length: float, angle: float) -> None:
    image = as_vips(pixels)
    assert_same_kind(motion_blur(image, length, angle), image)


def test_metadata_frames_and_streams() -> None:
    for length in (9.0, 120.0):
        assert_keeps_metadata(lambda image, length=length: motion_blur(image, length, 30))
        assert_streams(lambda image, length=length: motion_blur(image, length, 30))


def test_deep_pictures_are_computed_deep() -> None:
    assert_deep(lambda image: motion_blur(image, 25, 30))


def test_golden(check_golden: GoldenCheck) -> None:
    check_golden("blur-motion", motion_blur(as_vips(astronaut()[20:140, 160:280]), 14.0, 30))
