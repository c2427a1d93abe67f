from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

from imgsvc_core.pixels.spatial.zoom import zoom_blur, zoom_depth
from tests.support.golden import GoldenCheck
from tests.support.photos import as_pixels, as_vips, astronaut, coffee, deep
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


def mean_of_magnifications(pixels: np.ndarray, depth: float, count: int = 60) -> np.ndarray:
    """Of a gray picture, by scipy: log-spaced magnifications 1 to 1 / (1 - depth) about the center."""
    center = (np.array(pixels.shape) - 1) / 2
    scales = (1 - depth) ** ((np.arange(count) + 0.5) / count)
    return np.mean(
        [
            ndimage.affine_transform(pixels, (scale, scale), center * (1 - scale), order=1, mode="nearest")
            for scale in scales
        ],
        axis=0,
    )


@pytest.mark.parametrize("depth", [0.004, 0.01, 0.02, 0.08, 0.2])
def test_agrees_with_the_mean_of_magnified_pictures(depth: float) -> None:
    pixels = ndimage.gaussian_filter(coffee()[:, :, 1].astype(float), 1.5).round()
    expected = mean_of_magnifications(pixels, depth)
    shallow = as_pixels(zoom_blur(as_vips(pixels.astype(np.uint8)), depth)) - expected
    fine = as_pixels(zoom_blur(as_vips(deep(pixels)), depth)) / 257 - expected
    assert shallow.std() < 0.7
    assert fine.std() < 0.7
    assert abs(shallow.mean()) < 0.3
    assert abs(fine.mean()) < 0.3


@pytest.mark.parametrize("depth", [0.05, 0.2])
def test_smooth_pictures_show_no_steps(depth: float) -> None:
    y, x = np.mgrid[0:300, 0:400]
    slope = 40 + 200 * x / 400 * y / 300
    expected = mean_of_magnifications(slope, depth)
    assert np.abs(as_pixels(zoom_blur(as_vips(slope.round().astype(np.uint8)), depth)) - expected).max() < 2
    fine = as_pixels(zoom_blur(as_vips((slope * 257).round().astype(np.uint16)), depth)) / 257
    assert np.abs(fine - expected).max() < 0.8


@pytest.mark.parametrize("size", [(301, 201), (300, 200)])
def test_the_center_is_fixed(size: tuple[int, int]) -> None:
    """Its mirror images stay mirror images, and what was in the center is still the brightest there."""
    width, height = size
    pixels = np.zeros((height, width), np.uint8)
    pixels[(height - 1) // 2 : height // 2 + 1, (width - 1) // 2 : width // 2 + 1] = 255
    result = as_pixels(zoom_blur(as_vips(pixels), 0.15)).astype(int)
    assert result[height // 2, width // 2] == result.max() >= 235
    assert np.abs(result - result[::-1]).max() <= 2
    assert np.abs(result - result[:, ::-1]).max() <= 2
    assert not result[: height // 2 - 3].any()


def test_streaks_run_away_from_the_center() -> None:
    """A dot to the right becomes a horizontal streak, one above a vertical streak, outwards only."""
    pixels = np.zeros((401, 401), np.uint8)
    pixels[199:202, 330:333] = pixels[70:73, 199:202] = 255
    rows, columns = np.nonzero(as_pixels(zoom_blur(as_vips(pixels), 0.2))[150:251])
    assert 328 <= columns.min() < columns.max() <= 200 + 133 / 0.8
    assert rows.max() - rows.min() < 8
    rows, columns = np.nonzero(as_pixels(zoom_blur(as_vips(pixels), 0.2))[:150])
    assert 200 - 132 / 0.8 <= rows.min() < rows.max() <= 74
    assert columns.max() - columns.min() < 8


def test_nothing_is_taken_from_farther_out() -> None:
    """Whatever surrounds the middle of the picture, the middle comes out the same."""
    first = coffee()
    second = 255 - first
    second[100:300, 150:450] = first[100:300, 150:450]
    middle = np.s_[106:294, 156:444]
    np.testing.assert_array_equal(
        zoom_blur(as_vips(first), 0.2).numpy()[middle], zoom_blur(as_vips(second), 0.2).numpy()[middle]
    )


@pytest.mark.parametrize("depth", [0.01, 0.2, 0.7])
def test_a_flat_field_is_exact(depth: float) -> None:
    assert_flat_is_exact(lambda image: zoom_blur(image, depth))
    assert_flat_is_exact(lambda image: zoom_blur(image, depth), size=(200, 300))


def test_neutral_is_the_same_image() -> None:
    image = as_vips(astronaut())
    assert zoom_blur(image, zoom_depth(0)) is image


def test_no_dark_halo_around_transparency() -> None:
    for depth in (0.03, 0.2):
        assert_no_halo(lambda image, depth=depth: zoom_blur(image, depth))


@every_kind
def test_keeps_the_kind(kind: str) -> None:
    image = as_vips(KINDS[kind]())
    assert_same_kind(zoom_blur(image, 0.1), image)


@given(pictures(largest=60), st.floats(0, 0.9))
def test_any_size_and_value(pixels: np.ndarray, depth: float) -> None:
    image = as_vips(pixels)
    assert_same_kind(zoom_blur(image, depth), image)


@given(st.integers(1, 3), st.integers(1, 400), st.booleans(), st.floats(0, 0.2))
def test_thin_pictures(width: int, height: int, lying: bool, depth: float) -> None:
    pixels = np.random.default_rng(height).integers(0, 256, (height, width, 3), np.uint8)
    image = as_vips(pixels.swapaxes(0, 1) if lying else pixels)
    assert_same_kind(zoom_blur(image, depth), image)


def test_metadata_frames_and_streams() -> None:
    assert_keeps_metadata(lambda image: zoom_blur(image, 0.2))
    assert_streams(lambda image: zoom_blur(image, 0.05))


def test_deep_pictures_are_computed_deep() -> None:
    assert_deep(lambda image: zoom_blur(image, 0.1))


def test_golden(check_golden: GoldenCheck) -> None:
    check_golden("blur-zoom", zoom_blur(as_vips(astronaut()[20:140, 160:280]), 0.2))
