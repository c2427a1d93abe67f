"""``monochrome``: shades of one color."""

from __future__ import annotations

import numpy as np
import pytest

from imgsvc_core.spec import Color, Monochrome
from tests.adjust.exact import COLORS, GRAYS, levels_off, luma, run, signed, unit

WHITE = np.full((1, 1, 3), 255, np.uint8)


@pytest.mark.parametrize(
    "neutral",
    [Monochrome(value=0, color=Color.parse("f80")), Monochrome(value=70, color=Color.parse("00ff8000"))],
)
def test_neutral(neutral: Monochrome) -> None:
    assert (run(COLORS, neutral) == COLORS).all()


def test_white_gives_the_color_and_black_stays() -> None:
    full = Monochrome(value=100, color=Color.parse("d04080"))
    assert run(WHITE, full).tolist() == [[[0xD0, 0x40, 0x80]]]
    assert run(np.zeros_like(WHITE), full).max() == 0


def test_is_luma_times_the_color() -> None:
    result = run(COLORS, Monochrome(value=100, color=Color.parse("d04080")))
    assert levels_off(result, luma(unit(COLORS)) * np.array([0xD0, 0x40, 0x80]) / 255) <= 0.51


def test_value_and_alpha_of_the_color_weaken_alike() -> None:
    by_value = run(COLORS, Monochrome(value=20, color=Color.parse("d04080")))
    by_alpha = run(COLORS, Monochrome(value=100, color=Color.parse("33d04080")))
    half = unit(COLORS) * 0.8 + 0.2 * luma(unit(COLORS)) * np.array([0xD0, 0x40, 0x80]) / 255
    assert np.abs(signed(by_value) - by_alpha).max() == 0
    assert levels_off(by_value, half) <= 0.51


def test_gray_pictures_get_color_only_from_a_color() -> None:
    assert run(GRAYS, Monochrome(value=50, color=Color.parse("f80"))).shape == (16, 16, 3)
    assert run(GRAYS, Monochrome(value=50, color=Color.parse("888"))).shape == (16, 16)
    assert (run(GRAYS, Monochrome(value=50, color=Color.parse("fff"))) == GRAYS).all()
