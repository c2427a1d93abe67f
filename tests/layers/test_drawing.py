"""Shapes and gradients, pixel by pixel, against formulas in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from imgsvc_core.pixels.layers.gradient import draw_gradient
from imgsvc_core.pixels.layers.shape import draw_shape
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.layers import Laid
from imgsvc_core.spec import Gradient, Layer

_FINE = 16


def laid(frame: tuple[int, int] = (90, 60), **layer: Any) -> Laid:
    return Laid(Layer(**layer), "layers[0]", Size(*frame))


def grid(width: int, height: int, fine: int = 1) -> tuple[Any, Any]:
    """The centers of pixels, or of parts of them."""
    x = (np.arange(width * fine) + 0.5) / fine
    y = (np.arange(height * fine) + 0.5) / fine
    return np.meshgrid(x, y)


def averaged(inside: Any, fine: int) -> Any:
    height, width = inside.shape
    return inside.reshape(height // fine, fine, width // fine, fine).mean((1, 3))


def test_a_rectangle_has_its_color_everywhere() -> None:
    found = draw_shape(laid(shape={"kind": "rectangle", "color": "80FF3300"}, width=31, height=9)).numpy()
    assert found.shape == (9, 31, 4)
    assert (found == [0xFF, 0x33, 0x00, 0x80]).all()


@pytest.mark.parametrize(("width", "height"), [(40, 40), (51, 20), (7, 33)])
def test_an_ellipse_covers_its_part_of_each_pixel(width: int, height: int) -> None:
    found = draw_shape(laid(shape={"kind": "ellipse", "color": "00ff00"}, width=width, height=height)).numpy()
    x, y = grid(width, height, _FINE)
    inside = ((x / width * 2 - 1) ** 2 + (y / height * 2 - 1) ** 2) <= 1
    assert np.abs(found[..., 3] / 255 - averaged(inside, _FINE)).max() < 0.02
    assert (found[found[..., 3] > 0][:, :3] == [0, 255, 0]).all()


@pytest.mark.parametrize(("width", "height", "thickness"), [(60, 40, 6), (80, 15, 3), (20, 50, 12)])
def test_a_line_joins_the_corners(width: int, height: int, thickness: int) -> None:
    shape = {"kind": "line", "color": "fff", "thickness": thickness}
    found = draw_shape(laid(shape=shape, width=width, height=height)).numpy()[..., 3] / 255
    x, y = grid(width, height, _FINE)
    distance = np.abs(x * height - y * width) / math.hypot(width, height)
    expected = averaged(distance <= thickness / 2, _FINE)
    assert np.abs(found - expected).max() < 0.16  # the edge is a ramp of one pixel
    assert abs(found.sum() - expected.sum()) < 0.01 * expected.sum()


COLORS = [("000000", "FFFFFF"), ("00000000", "CC000000"), ("80FF0000", "200000FF"), ("F80", "08F")]


def css(start: str, end: str, share: Any) -> Any:
    """Colors mixed premultiplied, as CSS Images 3 says, from 0 to 1."""

    def rgba(text: str) -> Any:
        digits = "".join(2 * digit for digit in text) if len(text) == 3 else text
        alpha, *rgb = bytes.fromhex(digits.rjust(8, "F"))
        return np.array([*rgb, alpha]) / 255

    first, last = rgba(start), rgba(end)
    share = np.clip(share, 0, 1)[..., None]
    alpha = first[3] * (1 - share) + last[3] * share
    color = first[:3] * first[3] * (1 - share) + last[:3] * last[3] * share
    return np.concatenate([color, alpha], -1)  # premultiplied


@pytest.mark.parametrize("colors", COLORS)
@pytest.mark.parametrize("angle", [None, 0, 90, 180, 270, -90, 45, 30, 200, 359])
def test_a_linear_gradient_is_that_of_css(colors: tuple[str, str], angle: float | None) -> None:
    width, height = 90, 60
    gradient = Gradient(start=colors[0], end=colors[1], angle=angle)
    found = draw_gradient(gradient, Size(width, height)).numpy() / 255
    way = math.radians(180 if angle is None else angle)
    x, y = grid(width, height)
    along = (x - width / 2) * math.sin(way) - (y - height / 2) * math.cos(way)
    length = abs(width * math.sin(way)) + abs(height * math.cos(way))
    expected = css(*colors, along / length + 0.5)
    premultiplied = np.concatenate([found[..., :3] * found[..., 3:], found[..., 3:]], -1)
    assert np.abs(premultiplied - expected).max() < 1.2 / 255


@pytest.mark.parametrize("colors", COLORS)
def test_a_radial_gradient_ends_at_the_ellipse_through_the_corners(colors: tuple[str, str]) -> None:
    gradient = Gradient(kind="radial", start=colors[0], end=colors[1])
    found = draw_gradient(gradient, Size(80, 50)).numpy() / 255
    x, y = grid(80, 50)
    share = np.hypot((x - 40) / (40 * math.sqrt(2)), (y - 25) / (25 * math.sqrt(2)))
    premultiplied = np.concatenate([found[..., :3] * found[..., 3:], found[..., 3:]], -1)
    assert np.abs(premultiplied - css(*colors, share)).max() < 1.2 / 255
