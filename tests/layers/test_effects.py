"""Copies, corners and shadows of layers, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from imgsvc_core.pixels.layers.laying import draw_layer, lay_layer
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.layers import Laid
from imgsvc_core.spec import Layer
from tests.support.photos import as_vips

FRAME = Size(120, 90)
WHITE = np.full((90, 120, 3), 255, np.uint8)
RNG = np.random.default_rng(5)
MARK = RNG.integers(0, 256, (11, 14, 3), np.uint8)


def laid_over(pixels: Any = None, **layer: Any) -> Any:
    asked = Laid(Layer(**layer), "layers[0]", FRAME)
    drawn = draw_layer(asked, None if pixels is None else as_vips(pixels))
    return lay_layer(as_vips(WHITE), asked, drawn).numpy()


@pytest.mark.parametrize(("x", "y"), [(0, 0), (5, 70), (-3, -200), (119, 45)])
@pytest.mark.parametrize(("spacing", "stagger"), [(0, 0.0), (3, 0.0), (3, 0.5), ("10%", 0.25)])
def test_copies_cover_the_picture(x: int, y: int, spacing: Any, stagger: float) -> None:
    found = laid_over(MARK, picture={"id": "a"}, x=x, y=y, repeat={"spacing": spacing, "stagger": stagger})
    space = 9 if spacing == "10%" else spacing
    across, down = 14 + space, 11 + space
    expected = WHITE.copy()
    for row in range(90):
        number, within = divmod(row - y, down)
        for column in range(120):
            place = (column - x - (number % 2) * round(stagger * across)) % across
            if within < 11 and place < 14:
                expected[row, column] = MARK[within, place]
    assert np.array_equal(found, expected)


def test_copies_touch_each_other_unless_told_otherwise() -> None:
    plain, given = (laid_over(MARK, picture={"id": "a"}, repeat=repeat) for repeat in ({}, {"spacing": 0}))
    assert np.array_equal(plain, given)


@pytest.mark.parametrize("radius", [6, "50%", 500])
def test_corners_are_round(radius: Any) -> None:
    box = {"shape": {"kind": "rectangle", "color": "000000"}, "width": 40, "height": 20, "x": 30, "y": 30}
    found = 1 - laid_over(**box, radius=radius)[30:50, 30:70, 0] / 255
    around = 6 if radius == 6 else 10
    fine = 16
    x, y = np.meshgrid((np.arange(40 * fine) + 0.5) / fine, (np.arange(20 * fine) + 0.5) / fine)
    beyond_x = np.maximum(0, np.maximum(around - x, x - (40 - around)))
    beyond_y = np.maximum(0, np.maximum(around - y, y - (20 - around)))
    inside = np.hypot(beyond_x, beyond_y) <= around
    assert np.abs(found - inside.reshape(20, fine, 40, fine).mean((1, 3))).max() < 0.03


@pytest.mark.parametrize("blur", [0, 4, 12])
@pytest.mark.parametrize(("x", "y"), [(7, -5), (9, 0), (-9, 0), (0, 9), (0, -9)])
def test_a_shadow_is_a_blurred_copy_below(x: int, y: int, blur: int) -> None:
    box = {"shape": {"kind": "rectangle", "color": "ff0000"}, "width": 30, "height": 20, "x": 40, "y": 30}
    found = laid_over(**box, shadow={"x": x, "y": y, "blur": blur, "color": "C0000000"}) / 255
    share = np.zeros((90, 120))
    share[30 + y : 50 + y, 40 + x : 70 + x] = 1
    if blur:
        offsets = np.arange(-40, 41)
        kernel = np.exp(-(offsets**2) / (2 * (blur / 2) ** 2))
        kernel /= kernel.sum()
        share = np.apply_along_axis(np.convolve, 0, share, kernel, "same")
        share = np.apply_along_axis(np.convolve, 1, share, kernel, "same")
    expected = np.repeat((1 - share * 0xC0 / 255)[..., None], 3, axis=2)
    expected[30:50, 40:70] = [1, 0, 0]
    assert np.abs(found - expected).max() < 0.02


def test_a_shadow_moves_nothing_and_turns_with_its_layer() -> None:
    box = {"shape": {"kind": "rectangle", "color": "ff0000"}, "width": 30, "height": 20}
    for rotation in (0, 90, 30):
        plain = laid_over(**box, gravity="top-left", rotation=rotation)
        shadowed = laid_over(**box, gravity="top-left", rotation=rotation, shadow={"x": 9, "y": 9, "blur": 6})
        red = (plain == [255, 0, 0]).all(-1)
        assert red.sum() > 400
        kept = (np.abs(shadowed[red].astype(int) - [255, 0, 0]) <= 1).all(-1)
        assert kept.all() if rotation % 90 == 0 else kept.mean() > 0.9  # edges are soft
        assert (shadowed < plain).any()


@pytest.mark.parametrize("rotation", [17, 33, 45])
@pytest.mark.parametrize("blur", [7, 20])
def test_a_shadow_does_not_move_a_turned_layer(rotation: int, blur: int) -> None:
    box: dict[str, Any] = {"shape": {"kind": "ellipse", "color": "ff0000"}, "width": 81, "height": 51}
    plain = laid_over(**box, rotation=rotation)
    shadowed = laid_over(**box, rotation=rotation, shadow={"blur": blur, "color": "00ffffff"})
    assert np.abs(plain.astype(int) - shadowed).max() <= 1
