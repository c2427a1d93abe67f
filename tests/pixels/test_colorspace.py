"""Pictures with profiles become sRGB as exact arithmetic on the numbers of the profile has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import pyvips

from imgsvc_core._runtime.vipsimage import PROFILE, has
from imgsvc_core.pixels.colorspace import to_srgb
from tests.formats.test_profiles import FORMULA, GAMMA, P3, SRGB, decoded, formula, profile, table
from tests.support.photos import Pixels, as_vips, astronaut, coffee, deep, ramp

PROPHOTO = ((0.79767, 0.28804, 0.0), (0.13519, 0.71187, 0.0), (0.03134, 0.00009, 0.82491))
ADOBE = ((0.60974, 0.31111, 0.01947), (0.20528, 0.62567, 0.06087), (0.14919, 0.06322, 0.74457))
SAMPLED = np.linspace(0, 1, 1024) ** 1.8

Curve = Callable[[Any], Any]
PROFILES: dict[str, tuple[bytes, tuple[tuple[float, ...], ...], Curve]] = {
    "Display P3": (FORMULA, P3, decoded),
    "Adobe RGB": (GAMMA, ADOBE, lambda x: x ** (563 / 256)),
    "ProPhoto": (
        formula(3, 1.8, 1, 0, 1 / 16, 1 / 32),
        PROPHOTO,
        lambda x: np.where(x < 1 / 32, x / 16, x**1.8),
    ),
    "linear": (table([]), SRGB, lambda x: x),
    "sampled": (table(SAMPLED), P3, lambda x: np.interp(x, np.linspace(0, 1, 1024), SAMPLED)),
    "plain formula": (formula(0, 1.8), P3, lambda x: x**1.8),
    "formula from a point on": (
        formula(1, 2, 1.1, -0.1),
        SRGB,
        lambda x: np.where(x >= 1 / 11, np.maximum(1.1 * x - 0.1, 0) ** 2, 0),
    ),
    "formula with an offset": (
        formula(2, 2, 0.9, -0.09, 0.1),
        SRGB,
        lambda x: np.where(x >= 0.1, np.maximum(0.9 * x - 0.09, 0) ** 2 + 0.1, 0.1),
    ),
}


def encoded(light: Any) -> Any:
    light = np.clip(light, 0, 1)
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)


def tagged(pixels: Pixels, icc: bytes) -> pyvips.Image:
    image = as_vips(pixels).copy()
    image.set_type(pyvips.GValue.blob_type, "icc-profile-data", icc)
    return image


def fine(picture: Pixels) -> Pixels:
    """16 bits that use all of them."""
    noise = np.random.default_rng(3).integers(-128, 129, picture.shape)
    return np.clip(deep(picture).astype(int) + noise, 0, 65535).astype(np.uint16)


@pytest.mark.parametrize("name", PROFILES)
def test_16_bits_are_exact(name: str) -> None:
    curve, colorants, light = PROFILES[name]
    noise = np.random.default_rng(1).integers(0, 65536, (100, 100, 3)).astype(np.uint16)
    matrix = np.linalg.inv(np.transpose(SRGB)) @ np.transpose(colorants)
    for pixels in (fine(coffee()[::2, ::2]), fine(astronaut()[::2, ::2]), noise):
        result = to_srgb(tagged(pixels, profile(curve, colorants)))
        assert result.format == "ushort"
        expected = 65535 * encoded(light(pixels / 65535) @ matrix.T)
        assert np.abs(result.numpy() - expected).max() < 40  # .16 of 255 levels, of which libvips gives 1000


def test_the_result_has_the_profile_of_srgb() -> None:
    result = to_srgb(tagged(deep(coffee()), profile(FORMULA, P3)))
    assert result.get("icc-profile-data") == pyvips.Operation.call("profile_load", "srgb")


def test_alpha_of_16_bits_stays() -> None:
    pixels = np.dstack([deep(coffee()), ramp(600, 400, depth=16)])
    result = to_srgb(tagged(pixels, profile(FORMULA, P3))).numpy()
    opaque = to_srgb(tagged(deep(coffee()), profile(FORMULA, P3))).numpy()
    assert np.array_equal(result[..., 3], pixels[..., 3])
    assert np.array_equal(result[..., :3], opaque)


@pytest.mark.parametrize("depth", [8, 16])
@pytest.mark.parametrize("name", ["linear", "Adobe RGB", "sampled"])
def test_gray_is_exact(name: str, depth: int) -> None:
    curve, _, light = PROFILES[name]
    icc = profile(curve).replace(b"rTRC", b"kTRC").replace(b"RGB XYZ ", b"GRAYXYZ ")
    tones = ramp(256 if depth == 8 else 4096, 4, depth=depth)
    result = to_srgb(tagged(tones, icc))
    assert result.interpretation == ("b-w" if depth == 8 else "grey16")
    assert not result.get_typeof("icc-profile-data")
    levels = 2**depth - 1
    expected = levels * encoded(light(tones / levels))
    assert np.abs(result.numpy().reshape(tones.shape) - expected).max() <= (0.51 if depth == 8 else 10)


def test_16_bits_with_tables_are_as_8_bits() -> None:
    """The profile of inks that libvips has consists of tables."""
    inks = np.random.default_rng(2).integers(0, 256, (64, 64, 4)).astype(np.uint8)
    icc = pyvips.Operation.call("profile_load", "cmyk")
    coarse, fine = (to_srgb(tagged(pixels, icc).copy(interpretation="cmyk")) for pixels in (inks, deep(inks)))
    assert fine.format == "ushort"
    assert np.abs(fine.numpy() / 257 - coarse.numpy()).mean() < 1


@pytest.mark.parametrize("depth", [8, 16])
def test_inks_without_a_profile_have_a_black_that_is_black(depth: int) -> None:
    inks = np.array([[[0, 0, 0, 255], [255] * 4, [190, 170, 170, 240], [0] * 4, [255, 0, 0, 0]]], np.uint8)
    image = as_vips(inks if depth == 8 else deep(inks)).copy(interpretation="cmyk")
    key, all_inks, rich, paper, cyan = to_srgb(image).numpy()[0] / (1 if depth == 8 else 257)
    assert key.max() <= 20.5
    assert all_inks.max() < 1
    assert rich.max() < 8
    assert paper.min() > 254
    assert np.abs(cyan - (0, 154, 228)).max() < 3  # as on paper, not (0, 255, 255)


@pytest.mark.parametrize("depth", [8, 16])
def test_inks_with_a_profile_have_their_black_compensated(depth: int) -> None:
    """Without compensation, all inks are (33, 33, 44)."""
    inks = np.array([[[255] * 4, [0] * 4]], np.uint8)
    icc = pyvips.Operation.call("profile_load", "cmyk")
    image = tagged(inks if depth == 8 else deep(inks), icc).copy(interpretation="cmyk")
    all_inks, paper = to_srgb(image).numpy()[0] / (1 if depth == 8 else 257)
    assert all_inks[:2].max() < 1
    assert all_inks[2] < 25
    assert paper.min() > 254


def test_a_profile_of_another_color_model_is_dropped() -> None:
    gray = as_vips(astronaut()[..., :1].copy())
    gray.set_type(pyvips.GValue.blob_type, PROFILE, pyvips.Operation.call("profile_load", "srgb"))
    converted = to_srgb(gray)
    assert not has(converted, PROFILE)
    assert np.array_equal(converted.numpy(), gray.numpy())
