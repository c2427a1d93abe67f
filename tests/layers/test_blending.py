"""Modes of blending against the formulas of CSS (Compositing and Blending Level 1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest

from imgsvc_core.pixels.overlay import mix_over
from imgsvc_core.spec.layers.layer import Mixing
from tests.support.photos import as_vips, cut_out, deep

RNG = np.random.default_rng(11)
OPAQUE = RNG.integers(0, 256, (40, 50, 3), np.uint8)
TRANSPARENT = RNG.integers(0, 256, (40, 50, 4), np.uint8)
TOP = RNG.integers(0, 256, (40, 50, 4), np.uint8)
TOP[:10, :, 3], TOP[10:20, :, 3] = 0, 255
for _below in OPAQUE, TRANSPARENT[..., :3]:  # with white on black, black on white, and each on itself
    _below[:, :5], _below[:, 45:] = 0, 255
TOP[:, 3:8, :3], TOP[:, 43:48, :3], TOP[:, :1, :3], TOP[:, 49:, :3] = 255, 0, 0, 255


def _soft_light(below: Any, above: Any) -> Any:
    root = np.where(below <= 0.25, ((16 * below - 12) * below + 4) * below, np.sqrt(below))
    return np.where(
        above <= 0.5,
        below - (1 - 2 * above) * below * (1 - below),
        below + (2 * above - 1) * (root - below),
    )


def _hard_light(below: Any, above: Any) -> Any:
    return np.where(above <= 0.5, below * 2 * above, below + (2 * above - 1) - below * (2 * above - 1))


def _dodge(below: Any, above: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below == 0, 0, np.where(above == 1, 1, np.minimum(1, below / (1 - above))))


def _burn(below: Any, above: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below == 1, 1, np.where(above == 0, 0, 1 - np.minimum(1, (1 - below) / above)))


def _luma(color: Any) -> Any:
    return color @ np.array([0.3, 0.59, 0.11])


def _set_luma(color: Any, luma: Any) -> Any:
    """``SetLum`` and ``ClipColor`` of the standard, pixel by pixel."""
    moved = color + (luma - _luma(color))[..., None]
    for pixel, gray in zip(moved.reshape(-1, 3), luma.ravel(), strict=True):
        if (low := pixel.min()) < 0:
            pixel[:] = gray + (pixel - gray) * gray / (gray - low)
        if (high := pixel.max()) > 1:
            pixel[:] = gray + (pixel - gray) * (1 - gray) / (high - gray)
    return moved


def _range(color: Any) -> Any:
    return color.max(-1) - color.min(-1)


def _set_saturation(color: Any, wanted: Any) -> Any:
    """``SetSat`` of the standard, pixel by pixel."""
    made = np.zeros_like(color)
    for out, pixel, saturation in zip(made.reshape(-1, 3), color.reshape(-1, 3), wanted.ravel(), strict=True):
        low, middle, high = np.argsort(pixel, kind="stable")
        if pixel[high] > pixel[low]:
            out[middle] = (pixel[middle] - pixel[low]) * saturation / (pixel[high] - pixel[low])
            out[high] = saturation
    return made


FORMULAS: dict[str, Callable[[Any, Any], Any]] = {
    "normal": lambda below, above: above,
    "multiply": lambda below, above: below * above,
    "screen": lambda below, above: below + above - below * above,
    "overlay": lambda below, above: _hard_light(above, below),
    "darken": np.minimum,
    "lighten": np.maximum,
    "color-dodge": _dodge,
    "color-burn": _burn,
    "hard-light": _hard_light,
    "soft-light": _soft_light,
    "difference": lambda below, above: np.abs(below - above),
    "hue": lambda below, above: _set_luma(_set_saturation(above, _range(below)), _luma(below)),
    "saturation": lambda below, above: _set_luma(_set_saturation(below, _range(above)), _luma(below)),
    "color": lambda below, above: _set_luma(above, _luma(below)),
    "luminosity": lambda below, above: _set_luma(below, _luma(above)),
    "exclusion": lambda below, above: below + above - 2 * below * above,
}


def composited(below: Any, above: Any, mixing: str) -> Any:
    """Premultiplied colors and alpha from 0 to 1."""
    color_below, alpha_below = below[..., :3], below[..., 3:] if below.shape[2] == 4 else 1.0
    color, alpha = above[..., :3], above[..., 3:]
    total = alpha + alpha_below * (1 - alpha)
    if mixing == "plus-lighter":
        mixed = np.minimum(1, color * alpha + color_below * alpha_below)
        total = np.minimum(1, alpha + alpha_below)
    else:
        blended = (1 - alpha_below) * color + alpha_below * FORMULAS[mixing](color_below, color)
        mixed = alpha * blended + (1 - alpha) * alpha_below * color_below
    return mixed, total


@pytest.mark.parametrize("opacity", [1.0, 0.5])
@pytest.mark.parametrize("kind", ["opaque", "transparent", "16 bit"])
@pytest.mark.parametrize("mixing", get_args(Mixing))
def test_colors_are_mixed_as_by_css(mixing: Mixing, kind: str, opacity: float) -> None:
    below = {"opaque": OPAQUE, "transparent": TRANSPARENT, "16 bit": deep(OPAQUE)}[kind]
    found = mix_over(as_vips(below), as_vips(TOP), 0, 0, opacity, mixing).numpy()
    assert (found.shape, found.dtype) == (below.shape, below.dtype)
    white = 65535 if below.dtype == np.uint16 else 255
    above = TOP / 255
    above[..., 3] *= opacity
    mixed, total = composited(below / white, above, mixing)
    found = found / white
    if found.shape[2] == 4:
        assert np.abs(found[..., 3:] - total).max() < 1.5 / 255
        found = found[..., :3] * found[..., 3:]
    assert np.abs(found - mixed).max() < 2.5 / 255


@pytest.mark.parametrize("mixing", ["hue", "saturation"])
def test_nearly_gray_colors_are_mixed_as_by_css(mixing: Mixing) -> None:
    """Their small differences are stretched over the whole range."""
    gray = RNG.integers(10_000, 50_000, (40, 50, 1)) + RNG.integers(0, 3, (40, 50, 3))
    colors = RNG.integers(0, 65536, (40, 50, 3))
    below, above = (colors, gray) if mixing == "hue" else (gray, colors)
    top = np.dstack((above, np.full((40, 50), 65535))).astype(np.uint16)
    found = mix_over(as_vips(below.astype(np.uint16)), as_vips(top), 0, 0, 1, mixing).numpy()
    expected = FORMULAS[mixing](below / 65535, above / 65535) * 65535
    assert np.abs(found - expected).max() < 0.25 * 65535 / 255


def test_only_the_part_below_the_mark_changes() -> None:
    mark = as_vips(cut_out("rocket")[100:160, 200:260])
    found = mix_over(as_vips(OPAQUE), mark, -50, 30, 1, "multiply").numpy()
    assert np.array_equal(found[:30], OPAQUE[:30])
    assert np.array_equal(found[:, 10:], OPAQUE[:, 10:])
