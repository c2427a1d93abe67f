"""``vibrance``: saturation of dull colors."""

from __future__ import annotations

import numpy as np
import pytest
import pyvips

from imgsvc_core.pixels.pointwise import apply_blocks
from imgsvc_core.plan.color.steps import VibranceStep
from imgsvc_core.plan.folding import fold
from tests.adjust.exact import COLORS, GRAYS, PURE, levels_off, luma, run, unit
from tests.support.photos import as_vips, deep


def test_0_is_neutral() -> None:
    assert (run(COLORS, vibrance=0) == COLORS).all()


@pytest.mark.parametrize("value", [-100, 40, 100])
def test_grays_and_pure_colors_stay(value: int) -> None:
    grays = np.dstack([GRAYS] * 3)
    assert (run(grays, vibrance=value) == grays).all()
    assert (run(PURE, vibrance=value) == PURE).all()
    assert (run(deep(grays), vibrance=value) == deep(grays)).all()


@pytest.mark.parametrize("value", [-60, 60])
def test_scales_the_distance_from_luma(value: int) -> None:
    x = unit(COLORS)
    weight = 1 + value / 100 * (1 - np.ptp(x, axis=-1, keepdims=True))
    expected = np.clip(luma(x) + (x - luma(x)) * weight, 0, 1)
    assert levels_off(run(COLORS, vibrance=value), expected) <= 0.51


def test_keeps_luma_where_nothing_clips() -> None:
    pixels = deep(COLORS)
    result = run(pixels, vibrance=50)
    inside = ((result > 0) & (result < 65535)).all(axis=-1)
    assert inside.mean() > 0.1
    assert np.abs(luma(unit(result)) - luma(unit(pixels)))[inside].max() < 2e-5


def test_acts_more_on_dull_colors_than_on_strong_ones() -> None:
    dull, strong = np.array([[[120, 130, 140]]], np.uint8), np.array([[[40, 130, 220]]], np.uint8)
    gain = [np.ptp(run(p, vibrance=80)) / np.ptp(p) for p in (dull, strong)]
    assert gain[0] > gain[1] + 0.3


def test_works_on_a_strip_of_frames_as_a_whole() -> None:
    strip = as_vips(COLORS).copy()
    strip.set_type(pyvips.GValue.gint_type, "page-height", 12)
    result = apply_blocks(strip, fold([VibranceStep(30)]))
    assert result.get_page_height() == 12
    assert (result.numpy() == run(COLORS, vibrance=30)).all()
