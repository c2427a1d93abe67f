from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage  # type: ignore[import-untyped]

from imgsvc_core.pixels.spatial.gaussian import gaussian_blur, gaussian_sigma
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

SIGMAS = (0.25, 0.4, 0.7, 1, 1.5, 2.2, 2.99, 3.1, 4, 5.5, 6.2, 8, 11, 15, 20, 24, 24.1, 29, 37, 50, 75)


def scipy_blur(pixels: np.ndarray, sigma: float) -> np.ndarray:
    return ndimage.gaussian_filter(pixels.astype(float), (sigma, sigma, 0), mode="nearest", truncate=6)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_agrees_with_an_independent_gaussian(sigma: float) -> None:
    pixels = coffee()[60:300, 100:400]
    expected = scipy_blur(pixels, sigma)
    shallow = gaussian_blur(as_vips(pixels), sigma).numpy() - expected
    fine = gaussian_blur(as_vips(deep(pixels)), sigma).numpy() / 257 - expected
    assert np.abs(shallow).max() < 1.5
    assert np.abs(fine).max() < 1.5
    assert abs(shallow.mean()) < 0.05
    assert abs(fine.mean()) < 0.05
    assert fine.std() < 0.1


def checkerboard(side: int, cell: int) -> np.ndarray:
    y, x = np.mgrid[0:side, 0:side] // cell
    return ((x + y) % 2 * 255).astype(np.uint8)[..., None]


def noise(side: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, (side, side, 1), np.uint8) * np.uint8(255)


HARD = {
    "fine checks": checkerboard(320, 1),
    "checks": checkerboard(320, 8),
    "coarse checks": checkerboard(320, 32),
    "noise": noise(320),
    "astronaut": astronaut()[:320, :320],
}


@pytest.mark.parametrize("what", HARD)
@pytest.mark.parametrize(
    "sigma", [1.59, 1.7, 2.2, 2.8, 2.99, 3.1, 3.2, 3.9, 24.2, 28.1, 45.5, 48, 56.1, 90.6, 113]
)
def test_agrees_on_the_hardest_pictures_where_the_method_changes(what: str, sigma: float) -> None:
    expected = scipy_blur(HARD[what], sigma)
    found = gaussian_blur(as_vips(HARD[what]), sigma).numpy().reshape(expected.shape)
    assert np.abs(found - expected).max() < (1.5 if what == "astronaut" or sigma > 24 else 2)


@pytest.mark.parametrize("sigma", [1.78, 2.14, 2.48, 2.5, 2.76, 3.04, 3.12, 6.2])
def test_weights_of_few_bits_suit_noise(sigma: float) -> None:
    pixels = np.hstack([noise(320, seed) for seed in (1, 2, 3)])
    found = gaussian_blur(as_vips(pixels), sigma).numpy().reshape(pixels.shape)
    assert np.abs(found - scipy_blur(pixels, sigma)).max() < 2.3


@pytest.mark.parametrize("sigma", [1.65, 1.75, 1.8, 1.95, 2.05, 2.2, 2.4, 2.55, 2.7, 2.95, 3.0, 3.05, 3.15])
def test_one_mask_of_few_bits_is_exact_enough(sigma: float) -> None:
    pixels = astronaut()
    found = gaussian_blur(as_vips(pixels), sigma).numpy()
    assert np.abs(found - scipy_blur(pixels, sigma)).max() < 1.5
    noisy = np.hstack([noise(320, seed) for seed in (4, 5, 6)])
    found = gaussian_blur(as_vips(noisy), sigma).numpy().reshape(noisy.shape)
    assert np.abs(found - scipy_blur(noisy, sigma)).max() < 2.5


@pytest.mark.parametrize("what", HARD)
@pytest.mark.parametrize("sigma", [6.01, 7, 7.9, 8.1, 10.6, 14.1, 45.5])
def test_agrees_on_the_hardest_deep_pictures(what: str, sigma: float) -> None:
    expected = scipy_blur(HARD[what], sigma)
    found = gaussian_blur(as_vips(deep(HARD[what])), sigma).numpy().reshape(expected.shape) / 257
    assert np.abs(found - expected).max() < 1.1


@pytest.mark.parametrize("sigma", [2.0, 9.0, 40.0])
def test_step_edges_at_the_border_are_clamped(sigma: float) -> None:
    pixels = np.zeros((120, 160, 1), np.uint8)
    pixels[:, :3], pixels[-5:], pixels[40:60, 80:] = 255, 255, 200
    result = gaussian_blur(as_vips(pixels), sigma).numpy().reshape(pixels.shape)
    assert np.abs(result - scipy_blur(pixels, sigma)).max() < 1.5


@pytest.mark.parametrize("sigma", [0.5, 5.0, 30.0, 200.0])
def test_a_flat_field_is_exact(sigma: float) -> None:
    assert_flat_is_exact(lambda image: gaussian_blur(image, sigma))


@pytest.mark.parametrize("sigma", [1.0, 12.0, 26.0])
def test_the_mean_is_kept(sigma: float) -> None:
    framed = np.pad(astronaut(), ((200, 200), (200, 200), (0, 0)))
    for pixels in (framed, deep(framed)):
        result = gaussian_blur(as_vips(pixels), sigma).numpy()
        assert result.mean() == pytest.approx(pixels.mean(), rel=2e-3)


def test_blurs_add_up() -> None:
    image = as_vips(deep(astronaut()))
    twice = gaussian_blur(gaussian_blur(image, 3.0), 4.0).numpy() / 257
    assert np.abs(twice - gaussian_blur(image, 5.0).numpy() / 257)[20:-20, 20:-20].max() < 1


def test_large_blurs_show_no_blocks() -> None:
    """On a soft picture neighbouring pixels differ by a hair: blocks would be steps."""
    result = gaussian_blur(as_vips(deep(coffee())), 60.0).numpy().astype(float) / 257
    bend = np.abs(np.diff(result, n=2, axis=1))
    assert bend.max() < 0.2


def test_neutral_is_the_same_image() -> None:
    image = as_vips(astronaut())
    assert gaussian_blur(image, gaussian_sigma(0, 512)) is image


def test_no_dark_halo_around_transparency() -> None:
    for sigma in (1.0, 10.0, 40.0):
        assert_no_halo(lambda image, sigma=sigma: gaussian_blur(image, sigma))


@every_kind
@pytest.mark.parametrize("sigma", [1.5, 12.0, 40.0])
def test_keeps_the_kind(kind: str, sigma: float) -> None:
    image = as_vips(KINDS[kind]())
    assert_same_kind(gaussian_blur(image, sigma), image)


@given(pictures(), st.floats(0, 60))
def test_any_size_and_value(pixels: np.ndarray, sigma: float) -> None:
    image = as_vips(pixels)
    assert_same_kind(gaussian_blur(image, sigma), image)


def test_metadata_frames_and_streams() -> None:
    for sigma in (2.0, 7.0, 60.0):
        assert_keeps_metadata(lambda image, sigma=sigma: gaussian_blur(image, sigma))
        assert_streams(lambda image, sigma=sigma: gaussian_blur(image, sigma))


def test_deep_pictures_are_computed_deep() -> None:
    for sigma in (1.0, 10.0):
        assert_deep(lambda image, sigma=sigma: gaussian_blur(image, sigma))


def test_a_preview_looks_like_the_full_size() -> None:
    full = as_vips(astronaut())
    half = full.resize(0.5)
    small = gaussian_blur(half, gaussian_sigma(40, 256)).numpy().astype(float)
    large = gaussian_blur(full, gaussian_sigma(40, 512)).resize(0.5).numpy()
    assert np.abs(small - large).mean() < 0.7


def test_golden(check_golden: GoldenCheck) -> None:
    check_golden("blur-gaussian", gaussian_blur(as_vips(astronaut()[20:140, 160:280]), 4.0))


@pytest.mark.parametrize("bands", [3, 4])
def test_a_wide_blur_holds_few_copies_of_the_picture(bands: int) -> None:
    """Each tile of the reduced picture used to compute its part of the large one: 800 MB of this one."""
    code = f"""if True:
        import pyvips
        from imgsvc_core.pixels.spatial.gaussian import gaussian_blur
        from tests.support.processes import peak_memory
        space = "rgb16" if {bands} == 3 else "srgb"
        image = pyvips.Image.black(2000, 2000, bands={bands}).copy(interpretation=space)
        image = image.cast("ushort" if {bands} == 3 else "uchar").copy_memory()
        before = peak_memory()
        gaussian_blur(image, 100).avg()
        print(peak_memory() - before)
    """
    grown = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert int(grown) < 150_000_000
