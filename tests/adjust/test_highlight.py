"""``highlight``: lowered bright tones."""

from __future__ import annotations

import pytest

from tests.adjust.exact import COLORS, run, signed
from tests.support.photos import Pixels, deep


def test_0_is_neutral() -> None:
    assert (run(COLORS, highlight=0) == COLORS).all()


@pytest.mark.parametrize("value", [1, 35, 100])
@pytest.mark.parametrize("pixels", [COLORS, deep(COLORS)], ids=["8 bit", "16 bit"])
def test_is_the_mirror_image_of_shadow(value: int, pixels: Pixels) -> None:
    mirrored = run(run(run(pixels, invert=True), shadow=value), invert=True)
    # A tone exactly half-way between two levels may round to either.
    assert abs(signed(mirrored) - run(pixels, highlight=-value)).max() <= 1
    assert (mirrored == run(pixels, highlight=-value)).mean() > 0.999


def test_darkens_and_keeps_the_ends() -> None:
    result = run(COLORS, highlight=-60)
    assert (result <= COLORS).all()
    assert (result[COLORS == 255] == 255).all()
