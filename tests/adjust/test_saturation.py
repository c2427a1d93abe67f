"""``saturation``: distance from gray."""

from __future__ import annotations

import numpy as np
import pytest

from tests.adjust.css import css
from tests.adjust.exact import COLORS, levels_off, luma, run, signed, unit
from tests.support.photos import Pixels, deep


def test_0_is_neutral() -> None:
    assert (run(COLORS, saturation=0) == COLORS).all()


@pytest.mark.parametrize("pixels", [COLORS, deep(COLORS)], ids=["8 bit", "16 bit"])
def test_minus_100_is_luma(pixels: Pixels) -> None:
    result = run(pixels, saturation=-100)
    assert np.ptp(result, axis=-1).max() == 0
    assert levels_off(result, np.repeat(luma(unit(pixels)), 3, axis=-1)) <= 0.51


@pytest.mark.parametrize("value", [-100, -40, 30, 100])
def test_equals_css(value: int) -> None:
    theirs = css(COLORS, f"saturate({1 + value / 100})")
    assert np.abs(signed(run(COLORS, saturation=value)) - theirs).max() <= 1
