"""``duotone``: two colors for lights and darks."""

from __future__ import annotations

import numpy as np
import pytest

from imgsvc_core.spec import Color, Duotone, Sepia
from tests.adjust.exact import COLORS, GRAYS, levels_off, luma, run, unit
from tests.support.photos import Pixels, astronaut, deep

LIGHT, DARK = (0xFF, 0xEE, 0xCC), (0x10, 0x20, 0x60)
DUOTONE = Duotone(light=Color.parse("ffeecc"), dark=Color.parse("102060"))
ENDS: Pixels = np.array([[[0] * 3, [255] * 3]], np.uint8)


@pytest.mark.parametrize("factor", [1, 257], ids=["8 bit", "16 bit"])
def test_black_gives_dark_and_white_gives_light(factor: int) -> None:
    pixels = deep(ENDS) if factor == 257 else ENDS
    assert (run(pixels, DUOTONE)[0] == np.array([DARK, LIGHT]) * factor).all()


def test_output_lies_on_the_segment_at_luma() -> None:
    y = luma(unit(COLORS))
    expected = (np.array(DARK) + (np.array(LIGHT) - DARK) * y) / 255
    assert levels_off(run(COLORS, DUOTONE), expected) <= 0.51


def test_gray_pictures() -> None:
    assert (run(GRAYS, DUOTONE) == run(np.dstack([GRAYS] * 3), DUOTONE)).all()
    assert run(GRAYS, Duotone(light=Color.parse("ddd"), dark=Color.parse("222"))).shape == GRAYS.shape


def test_filters_after_it_act_on_its_colors() -> None:
    picture = astronaut()
    at_once = run(picture, DUOTONE, Sepia(value=50))
    in_turn = run(run(picture, DUOTONE), Sepia(value=50))
    assert np.abs(at_once.astype(int) - in_turn).max() <= 1
