"""``invert``: the negative."""

from __future__ import annotations

import numpy as np
import pytest

from tests.adjust.css import css
from tests.adjust.exact import COLORS, GRAYS, run, signed
from tests.support.photos import Pixels, deep


@pytest.mark.parametrize("pixels", [COLORS, GRAYS, deep(COLORS)], ids=["color", "gray", "16 bit"])
def test_is_exact_and_an_involution(pixels: Pixels) -> None:
    inverted = run(pixels, invert=True)
    assert (inverted == np.iinfo(pixels.dtype).max - pixels).all()
    assert (run(inverted, invert=True) == pixels).all()


def test_false_is_neutral() -> None:
    assert (run(COLORS, invert=False) == COLORS).all()


def test_equals_css() -> None:
    assert np.abs(signed(run(COLORS, invert=True)) - css(COLORS, "invert(1)")).max() <= 1


@pytest.mark.parametrize("adjust", [{"saturation": 80}, {"hue": 120}, {"vibrance": -70}])
def test_comes_to_the_same_after_what_it_commutes_with(adjust: dict[str, int]) -> None:
    after = run(run(COLORS, **adjust), invert=True)
    assert np.abs(signed(after) - run(COLORS, **adjust, invert=True)).max() <= 1
