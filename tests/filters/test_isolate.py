"""``isolate``: one color among grays."""

from __future__ import annotations

import colorsys
from itertools import pairwise

import numpy as np
import pytest

from imgsvc_core.spec import Color, Isolate
from tests.adjust.exact import COLORS, GRAYS, isolate_weight, levels_off, luma, run, unit
from tests.support.photos import Pixels, astronaut, deep

ORANGE = "ff8000"


def test_threshold_1_is_neutral() -> None:
    assert (run(COLORS, Isolate(color=Color.parse(ORANGE), threshold=1)) == COLORS).all()


def test_threshold_0_is_gray() -> None:
    result = run(COLORS, Isolate(color=Color.parse(ORANGE), threshold=0))
    assert np.ptp(result, axis=-1).max() == 0
    assert levels_off(result, np.repeat(luma(unit(COLORS)), 3, axis=-1)) <= 0.51


@pytest.mark.parametrize("color", [ORANGE, "808080", "0040ff"])
def test_grays_stay(color: str) -> None:
    grays = np.dstack([GRAYS] * 3)
    assert (run(grays, Isolate(color=Color.parse(color), threshold=0.3)) == grays).all()
    assert (run(GRAYS, Isolate(color=Color.parse(color), threshold=0.3)) == GRAYS).all()


@pytest.mark.parametrize("color", [ORANGE, "7f8080"])
def test_a_higher_threshold_keeps_more(color: str) -> None:
    kept = [
        np.ptp(run(deep(COLORS), Isolate(color=Color.parse(color), threshold=t)), axis=-1).astype(int)
        for t in (0, 0.1, 0.3, 0.6, 0.9, 1)
    ]
    for less, more in pairwise(kept):
        assert (more >= less - 1).all()
        assert (more > less).any()


@pytest.mark.parametrize("pixels", [COLORS, astronaut(), deep(COLORS)], ids=["cube", "photo", "16 bit"])
@pytest.mark.parametrize("threshold", [0.05, 0.2, 0.7])
def test_mixes_luma_and_color_by_distance_of_hue(pixels: Pixels, threshold: float) -> None:
    x = unit(pixels)
    weight = isolate_weight(x, (255, 128, 0), threshold)[..., None]
    result = run(pixels, Isolate(color=Color.parse(ORANGE), threshold=threshold))
    assert levels_off(result, luma(x) + weight * (x - luma(x))) <= (0.6 if pixels.dtype == np.uint8 else 50)


@pytest.mark.parametrize("degrees", [0, 100, 200, 300, 359])
def test_keeps_its_color_and_drops_the_opposite_one_all_around_the_circle(degrees: int) -> None:
    def rgb(angle: float) -> list[int]:
        return [round(255 * c) for c in colorsys.hsv_to_rgb(angle % 360 / 360, 0.8, 0.9)]

    own, near, far = rgb(degrees), rgb(degrees + 10), rgb(degrees + 180)
    result = run(np.array([[own, near, far]], np.uint8), Isolate(color=Color(*own), threshold=0.2))
    assert result[0, :2].tolist() == [own, near]
    assert np.ptp(result[0, 2]) == 0


def test_a_gray_target_keeps_dull_colors() -> None:
    pixels = np.array([[[120, 124, 128], [250, 20, 40]]], np.uint8)
    result = run(pixels, Isolate(color=Color.parse("808080"), threshold=0.2))
    assert result[0, 0].tolist() == [120, 124, 128]
    assert np.ptp(result[0, 1]) == 0
