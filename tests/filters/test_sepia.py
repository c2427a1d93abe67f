"""``sepia``: brown shading."""

from __future__ import annotations

import numpy as np
import pytest

from imgsvc_core.spec import Sepia
from tests.adjust.css import css
from tests.adjust.exact import COLORS, GRAYS, run, signed


def test_0_is_neutral() -> None:
    assert (run(COLORS, Sepia(value=0)) == COLORS).all()


@pytest.mark.parametrize("value", [10, 55, 100])
def test_equals_css(value: int) -> None:
    theirs = css(COLORS, f"sepia({value / 100})")
    assert np.abs(signed(run(COLORS, Sepia(value=value))) - theirs).max() <= 1


def test_colors_gray_pictures() -> None:
    brown = run(GRAYS, Sepia(value=100))
    assert (brown == run(np.dstack([GRAYS] * 3), Sepia(value=100))).all()
    red, green, blue = brown[8, 0]
    assert red > green > blue
