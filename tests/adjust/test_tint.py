"""``tint``: light from green to magenta."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from imgsvc_core.plan.color.curves import apply_curves
from imgsvc_core.plan.color.white_balance import tint_gains
from tests.adjust.exact import COLORS, Floats, W, decode, encode, levels_off, run, unit


def test_gains_at_100() -> None:
    assert tint_gains(100) == pytest.approx((1.469, 0.820, 1.400), abs=1e-3)


def test_0_is_neutral() -> None:
    assert (run(COLORS, tint=0) == COLORS).all()


def test_green_gain_is_below_1_and_luma_is_kept() -> None:
    gains = np.array([tint_gains(value) for value in range(1, 101)])
    assert (gains[:, 1] < 1).all()
    assert (gains[:, [0, 2]] > 1).all()
    assert gains @ W == pytest.approx(1)


def test_is_a_gain_on_linear_light_that_commutes_with_temperature_and_exposure() -> None:
    expected = np.clip(encode(decode(unit(COLORS)) * tint_gains(60)), 0, 1)
    assert levels_off(run(COLORS, tint=60), expected) <= 0.51
    names = ("temperature", "tint", "exposure")
    in_some_order = [run_in_order(order) for order in permutations(names)]
    assert np.ptp(in_some_order, axis=0).max() <= 1e-9


def run_in_order(names: tuple[str, ...]) -> Floats:
    """Each curve by itself, so that every one goes through linear light on its own."""
    x = np.linspace(0, 1, 101)[:, None]
    for name in names:
        x = apply_curves(x, [(name, (40,))])
    return x
