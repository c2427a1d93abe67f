"""``temperature``: warmer light."""

from __future__ import annotations

import numpy as np
import pytest

from imgsvc_core.plan.color.white_balance import temperature_gains
from tests.adjust.exact import COLORS, GRAYS, W, decode, encode, levels_off, run, unit


def test_gains_at_100_are_those_of_a_black_body_at_3941_k() -> None:
    assert temperature_gains(100) == pytest.approx((1.374, 0.939, 0.503), abs=1e-3)


def test_0_is_neutral() -> None:
    assert temperature_gains(0) == pytest.approx((1, 1, 1), abs=1e-12)
    assert (run(COLORS, temperature=0) == COLORS).all()


def test_gains_rise_in_red_fall_in_blue_and_keep_luma() -> None:
    gains = np.array([temperature_gains(value) for value in range(101)])
    assert (np.diff(gains[:, 0]) > 0).all()
    assert (np.diff(gains[:, 2]) < 0).all()
    assert gains @ W == pytest.approx(1)


def test_is_a_gain_on_linear_light() -> None:
    expected = np.clip(encode(decode(unit(COLORS)) * temperature_gains(60)), 0, 1)
    assert levels_off(run(COLORS, temperature=60), expected) <= 0.51


def test_black_stays_black() -> None:
    assert (run(COLORS, temperature=100)[(COLORS == 0)] == 0).all()


def test_warms_gray_pictures_too() -> None:
    warm = run(GRAYS, temperature=50)
    assert (warm == run(np.dstack([GRAYS] * 3), temperature=50)).all()
    red, _, blue = warm[8, 0].astype(int)
    assert red > blue + 20
