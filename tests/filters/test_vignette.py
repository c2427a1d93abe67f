from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from imgsvc_core.pixels.spatial.vignette import filter_vignette, vignette
from imgsvc_core.spec import Vignette
from tests.support.golden import GoldenCheck
from tests.support.photos import as_pixels, as_vips, astronaut, coffee, cut_out, deep
from tests.support.spatial import (
    KINDS,
    assert_keeps_metadata,
    assert_same_kind,
    assert_streams,
    every_kind,
    pictures,
)

strengths = st.floats(0, 1)
radii = st.floats(0, 1)


def formula(pixels: np.ndarray, strength: float, radius: float) -> np.ndarray:
    """Straight from the definition, in floating point."""
    height, width = pixels.shape[:2]
    y, x = np.mgrid[0:height, 0:width]
    r = np.hypot(x - (width - 1) / 2, y - (height - 1) / 2) / np.hypot((width - 1) / 2, (height - 1) / 2)
    t = np.clip((r - radius) / (1 - radius), 0, 1)
    return pixels * (1 - strength * t * t * (3 - 2 * t))[:, :, np.newaxis]


@pytest.mark.parametrize(
    ("strength", "radius"), [(0.3, 0), (1, 0), (1, 0.3), (0.6, 0.55), (1, 0.9), (1, 0.99)]
)
def test_agrees_with_the_formula(strength: float, radius: float) -> None:
    pixels = coffee()
    shallow = vignette(as_vips(pixels), strength, radius).numpy() - formula(pixels, strength, radius)
    fine = vignette(as_vips(deep(pixels)), strength, radius).numpy() - formula(deep(pixels), strength, radius)
    assert np.abs(shallow).max() < 0.52
    assert np.abs(fine).max() < 4


@given(st.integers(2, 40), st.integers(2, 40), strengths, st.floats(0, 0.99))
@example(27, 27, 1.0, 0.0)
def test_center_corners_symmetry_and_monotony(
    width: int, height: int, strength: float, radius: float
) -> None:
    white = np.full((height, width), 65535, np.uint16)
    result = as_pixels(vignette(as_vips(white), strength, radius)).astype(int)
    np.testing.assert_array_equal(result, result[::-1])
    np.testing.assert_array_equal(result, result[:, ::-1])
    assert abs(result[0, 0] - 65535 * (1 - strength)) <= 1
    if width % 2 and height % 2:
        assert result[height // 2, width // 2] == 65535
    quarter = result[height // 2 :, width // 2 :]
    assert (np.diff(quarter, axis=0) <= 0).all()
    assert (np.diff(quarter, axis=1) <= 0).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("radius", [0.999, 1 - 1e-9, np.nextafter(1.0, 0)])
@pytest.mark.parametrize("size", [(3, 1), (1, 2), (30, 41)])
def test_only_the_corners_lie_beyond_the_largest_radius(size: tuple[int, int], radius: float) -> None:
    white = np.full(size, 255, np.uint8)
    dark = as_pixels(vignette(as_vips(white), 1.0, radius)) == 0
    assert dark[[0, 0, -1, -1], [0, -1, 0, -1]].all()
    assert dark.sum() == min(size[0], 2) * min(size[1], 2)


def test_inside_the_radius_nothing_changes() -> None:
    result = vignette(as_vips(coffee()), 1.0, 0.5).numpy()
    y, x = np.mgrid[0:400, 0:600]
    inside = np.hypot(x - 299.5, y - 199.5) < 0.499 * np.hypot(299.5, 199.5)
    np.testing.assert_array_equal(result[inside], coffee()[inside])


def test_equally_far_is_equally_dark() -> None:
    white = np.full((601, 601), 65535, np.uint16)
    result = as_pixels(vignette(as_vips(white), 1.0, 0.1)).astype(int)
    assert abs(result[300, 300 + 250] - result[300 + 150, 300 + 200]) <= 4
    assert abs(result[300, 300 + 250] - result[300 - 200, 300 + 150]) <= 4


def test_values_are_percent() -> None:
    found = filter_vignette(as_vips(coffee()), Vignette(value=80, radius=30)).numpy()
    assert np.array_equal(found, vignette(as_vips(coffee()), 0.8, 0.3).numpy())


def test_neutral_is_the_same_image() -> None:
    image = as_vips(astronaut())
    assert vignette(image, 0, 0.3) is image
    assert vignette(image, 0.8, 1) is image


def test_alpha_is_kept() -> None:
    np.testing.assert_array_equal(vignette(as_vips(cut_out()), 0.8, 0.1).numpy()[:, :, 3], cut_out()[:, :, 3])


@every_kind
def test_keeps_the_kind(kind: str) -> None:
    image = as_vips(KINDS[kind]())
    assert_same_kind(vignette(image, 0.5, 0.2), image)


@given(pictures(), strengths, radii)
def test_any_size_and_value(pixels: np.ndarray, strength: float, radius: float) -> None:
    image = as_vips(pixels)
    result = vignette(image, strength, radius)
    assert_same_kind(result, image)
    assert (result.numpy() <= image.numpy()).all()


def test_metadata_frames_and_streams() -> None:
    assert_keeps_metadata(lambda image: vignette(image, 0.7, 0.2))
    assert_streams(lambda image: vignette(image, 0.7, 0.2))


def test_golden(check_golden: GoldenCheck) -> None:
    small = as_vips(astronaut()).resize(0.2)
    check_golden("vignette", vignette(small, 0.9, 0.25))
