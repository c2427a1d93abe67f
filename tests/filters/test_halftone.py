from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

from imgsvc_core.pixels.spatial.halftone import halftone, halftone_pitch
from tests.support.golden import GoldenCheck
from tests.support.photos import as_pixels, as_vips, astronaut, camera, cut_out, deep
from tests.support.spatial import (
    KINDS,
    assert_keeps_metadata,
    assert_same_kind,
    assert_streams,
    every_kind,
    pictures,
)


@pytest.mark.parametrize("pitch", [2.0, 3.3, 8.0, 20.0, 51.0])
@pytest.mark.parametrize("level", [3, 20, 64, 100, 128, 190, 240, 253])
def test_gray_keeps_its_tone(pitch: float, level: int) -> None:
    flat = np.full((500, 600), level, np.uint8)
    assert halftone(as_vips(flat), pitch).avg() == pytest.approx(level, abs=1.5)
    assert halftone(as_vips(deep(flat)), pitch).avg() / 257 == pytest.approx(level, abs=1.5)


@pytest.mark.parametrize("pitch", [4.0, 12.0, 30.0])
@pytest.mark.parametrize(
    "color", [(200, 100, 50), (30, 60, 90), (255, 0, 128), (10, 200, 30), (220, 180, 170)]
)
def test_color_keeps_its_tone(pitch: float, color: tuple[int, int, int]) -> None:
    flat = np.full((700, 800, 3), color, np.uint8)
    assert halftone(as_vips(flat), pitch).numpy().mean(axis=(0, 1)) == pytest.approx(color, abs=3)


def test_a_photograph_seen_from_afar_is_the_photograph() -> None:
    for pixels in (astronaut(), deep(astronaut())):
        pixels = pixels / pixels.max()
        sized = (pixels * 255).round().astype(np.uint8)
        afar = ndimage.gaussian_filter(halftone(as_vips(sized), 5.0).numpy() / 255, (8, 8, 0))
        assert np.abs(afar - ndimage.gaussian_filter(pixels, (8, 8, 0))).mean() < 0.02


@pytest.mark.parametrize("pitch", [2.0, 7.5, 20.0, 60.0])
def test_black_and_white_are_exact(pitch: float) -> None:
    for top, dtype in ((255, np.uint8), (65535, np.uint16)):
        for level in (0, top):
            for shape in ((90, 120), (90, 120, 3)):
                result = halftone(as_vips(np.full(shape, level, dtype)), pitch)
                assert result.min() == result.max() == level


def test_gray_stays_gray() -> None:
    gray = np.dstack([camera()] * 3)
    for pixels in (gray, deep(gray)):
        result = halftone(as_vips(pixels), 7.0).numpy()
        assert (result.max(axis=2) == result.min(axis=2)).all()


def test_a_brighter_pixel_is_never_darker() -> None:
    dark = as_pixels(halftone(as_vips(camera()), 9.0))
    bright = as_pixels(halftone(as_vips(np.minimum(camera(), 225) + 30), 9.0))
    assert (bright >= dark).all()


@pytest.mark.parametrize("pitch", [8.0, 16.0, 25.0])
def test_dots_are_a_pitch_apart(pitch: float) -> None:
    """One dot for each square of the pitch, in rows at 45 degrees."""
    side = 24 * round(pitch * 2**0.5)
    light = as_pixels(halftone(as_vips(np.full((side, side), 215, np.uint8)), pitch))
    _, dots = ndimage.label(light < 128)
    assert dots == pytest.approx((side / pitch) ** 2, rel=0.15)
    spectrum = np.abs(np.fft.fft2(light - light.mean()))[: side // 2, : side // 2]
    row, column = np.unravel_index(spectrum.argmax(), spectrum.shape)
    assert row == column == 24


def test_dots_have_soft_edges() -> None:
    result = as_pixels(halftone(as_vips(np.full((300, 300), 128, np.uint8)), 12.0))
    between = ((result > 0) & (result < 255)).mean()
    assert 0.02 < between < 0.4


def test_neutral_is_the_same_image() -> None:
    image = as_vips(astronaut())
    assert halftone(image, halftone_pitch(0, 512)) is image
    assert halftone(image, 1.99) is image


def test_alpha_is_kept() -> None:
    np.testing.assert_array_equal(halftone(as_vips(cut_out()), 9.0).numpy()[:, :, 3], cut_out()[:, :, 3])


def test_deep_pictures_have_deep_edges() -> None:
    result = halftone(as_vips(deep(astronaut())), 9.0).numpy()
    assert np.unique(result).size > 2000


@every_kind
def test_keeps_the_kind(kind: str) -> None:
    image = as_vips(KINDS[kind]())
    assert_same_kind(halftone(image, 6.5), image)


@given(pictures(), st.floats(0, 60))
def test_any_size_and_value(pixels: np.ndarray, pitch: float) -> None:
    image = as_vips(pixels)
    assert_same_kind(halftone(image, pitch), image)


def test_metadata_frames_and_streams() -> None:
    assert_keeps_metadata(lambda image: halftone(image, 8.0))
    assert_streams(lambda image: halftone(image, 8.0))


def test_golden(check_golden: GoldenCheck) -> None:
    check_golden("halftone", halftone(as_vips(astronaut()[20:160, 140:280]), 5.0))
