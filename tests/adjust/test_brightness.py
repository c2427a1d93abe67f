"""``brightness``: an offset."""

from __future__ import annotations

import numpy as np
import pytest

from tests.adjust.css import linear
from tests.adjust.exact import COLORS, run, signed
from tests.support.photos import deep


def test_0_is_neutral() -> None:
    assert (run(COLORS, brightness=0) == COLORS).all()


@pytest.mark.parametrize(("value", "tone"), [(100, 255), (-100, 0)])
def test_ends_are_white_and_black(value: int, tone: int) -> None:
    assert (run(COLORS, brightness=value) == tone).all()
    assert (run(deep(COLORS), brightness=value) == tone * 257).all()


@pytest.mark.parametrize("value", [-55, 30])
def test_equals_an_svg_transfer(value: int) -> None:
    theirs = linear(COLORS, 1, value / 100)
    assert np.abs(signed(run(COLORS, brightness=value)) - theirs).max() <= 1
